//! A capacity: pushes that are refused, and pushes that wait for room.

use std::cell::Cell;
use std::cmp::Ordering;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Memory};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use conversant::job_queue::{Claim, Expired, JobId, JobQueue, Place, PushError, PushReason, Scope};
use conversant::limit::Limit;

type Queue = JobQueue<u32, u32>;

fn full(capacity: u32) -> (Queue, Vec<JobId>) {
    let queue = JobQueue::builder().capacity(capacity).build().unwrap();
    let jobs = (0..capacity).map(|n| (n, n, Place::new()));
    let ids = queue.push_all(jobs).unwrap();
    (queue, ids)
}

fn refused(queue: &Queue) -> PushReason {
    let error = queue.push(7, 77, Place::new()).unwrap_err();
    assert_eq!(error.content, (7, 77));
    error.reason
}

/// A caller that waits for room would wait for nothing.
#[test]
fn a_batch_is_refused_for_its_names_before_its_room() {
    let queue = Queue::builder().capacity(2).build().unwrap();
    let named = || Place::new().unique("a");
    let there = queue.push(1, 1, named()).unwrap();
    let batch = [(2, 2, Place::new()), (3, 3, named())];
    let refused = queue.push_all(batch).unwrap_err();
    let content = vec![(2, 2), (3, 3)];
    let reason = PushReason::Duplicate(there);
    assert_eq!(refused, PushError { content, reason });
    assert_eq!(queue.room(), Some(1));
}

#[test]
fn a_full_queue_refuses_until_a_job_is_gone() {
    let (queue, ids) = full(4);
    assert_eq!(queue.capacity(), Limit::AtMost(4));
    assert_eq!(refused(&queue), PushReason::Full);
    let mut claims = queue.try_claim(2);
    claims.pop().unwrap().fail_for_good().unwrap();
    assert_eq!(
        refused(&queue),
        PushReason::Full,
        "claimed or dead it is here"
    );
    let left = || {
        let left = queue.room().unwrap();
        assert_eq!(queue.push(9, 9, Place::new()).is_ok(), left == 1);
        left
    };
    claims.pop().unwrap().complete().unwrap();
    assert_eq!((left(), left()), (1, 0));
    queue.remove(ids[1]).unwrap();
    assert_eq!((left(), left()), (1, 0));
    assert_eq!(queue.remove_all([ids[2], ids[1]]).len(), 1);
    assert_eq!((left(), left()), (1, 0));
    assert_eq!(queue.drain(&Scope::Queue).len(), 4);
    assert_eq!(queue.room(), Some(4));
}

/// Like a limit of 0, a pause.
#[test]
fn a_capacity_of_0_lets_nothing_in() {
    let (queue, _) = full(0);
    assert_eq!(refused(&queue), PushReason::Full);
    let mut wait = queue.push_wait(1, 1, Place::new());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
    queue.close();
    let Poll::Ready(Err(error)) = Pin::new(&mut wait).poll(&mut cx) else {
        panic!("it has no room");
    };
    assert_eq!(error.reason, PushReason::Closed);
}

#[test]
fn of_many_each_is_completed_in_its_own_queue() {
    let ((one, _), (other, _)) = (full(4), full(3));
    one.set_limit(Scope::Queue, Limit::AtMost(3)).unwrap();
    let mut claims = crate::until(one.try_claim(1), Duration::from_secs(1));
    one.advance(Duration::from_secs(1));
    claims.extend(one.try_claim(3));
    claims.extend(other.try_claim(2));
    let mut waits = pin!(one.claim(1));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    let done = Claim::complete_all(claims);
    let keys = done.into_iter().map(|done| Ok(done?.key));
    let expected = [Err(Expired), Ok(0), Ok(1), Ok(2), Ok(0), Ok(1)];
    assert!(keys.eq(expected));
    assert_eq!(one.room(), Some(3));
    assert_eq!(other.room(), Some(2));
    assert_eq!(one.counts().dropped + other.counts().dropped, 0);
    let Poll::Ready(Ok(last)) = waits.as_mut().poll(&mut cx) else {
        panic!("it was not given the last");
    };
    assert!(last.iter().map(|claim| **claim).eq([3]));
    let none: [Claim<u32, u32>; 0] = [];
    assert!(Claim::complete_all(none).is_empty());
}

#[test]
fn of_many_all_have_room_or_none() {
    let (queue, _) = full(2);
    queue.try_claim(1).remove(0).complete().unwrap();
    let many = |n: u32| queue.push_all((0..n).map(|n| (n, n, Place::new())));
    assert_eq!(many(2).unwrap_err().reason, PushReason::Full);
    let error = many(3).unwrap_err();
    assert_eq!(error.reason, PushReason::AboveCapacity);
    assert_eq!(error.content, [(0, 0), (1, 1), (2, 2)]);
    let twice = [1, 2].map(|n| (n, n, Place::new().unique("one")));
    queue.try_claim(1).remove(0).complete().unwrap();
    assert_eq!(queue.push_all(twice).unwrap_err().content, [(1, 1), (2, 2)]);
    assert_eq!(queue.room(), Some(2));
    assert_eq!(many(2).unwrap().len(), 2);
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Memory::Relaxed);
    }
}

/// Polls, and returns how often it had been woken before.
fn poll<F: Future + Unpin>(wait: &mut F, woken: &Arc<Woken>) -> (usize, Poll<F::Output>) {
    let waker = Waker::from(woken.clone());
    let times = woken.0.load(Memory::Relaxed);
    let polled = Pin::new(wait).poll(&mut Context::from_waker(&waker));
    (times, polled)
}

fn woken<const N: usize>() -> [Arc<Woken>; N] {
    [(); N].map(|()| Arc::new(Woken(AtomicUsize::new(0))))
}

#[test]
fn those_who_wait_are_served_in_their_order() {
    let (queue, _) = full(1);
    let shop = queue.tenant("shop");
    let mut waits = [
        queue.push_wait(1, 1, Place::new()),
        queue.push_wait(2, 2, shop.place()),
        queue.push_wait(3, 3, Place::new()),
    ];
    let woken: [_; 3] = woken();
    for (wait, woken) in waits.iter_mut().zip(&woken) {
        assert!(poll(wait, woken).1.is_pending());
    }
    let [first, mut second, third] = waits;
    queue.try_claim(1).remove(0).complete().unwrap();
    assert_eq!(refused(&queue), PushReason::Full, "the room is promised");
    // It had been notified, and leaves: the next has its room.
    assert_eq!(first.into_message(), Some((1, 1)));
    let (times, pushed) = poll(&mut second, &woken[1]);
    let Poll::Ready(Ok(id)) = pushed else {
        panic!("it has room")
    };
    assert_eq!((times, queue.get(id).unwrap()), (1, 2));
    drop(third);
    assert_eq!(shop.try_claim(1).remove(0).complete().unwrap().key, 2);
    queue.push(4, 4, Place::new()).unwrap();
}

#[test]
fn what_is_refused_after_all_leaves_its_room_to_the_next() {
    let queue: Queue = JobQueue::builder().capacity(2).build().unwrap();
    let once = || Place::new().unique("one");
    let (id, _) = (
        queue.push(1, 1, once()).unwrap(),
        queue.push(2, 2, Place::new()).unwrap(),
    );
    queue.try_claim(1).remove(0).fail_for_good().unwrap();
    let mut twice = queue.push_wait(3, 3, once());
    let mut next = queue.push_wait(4, 4, Place::new());
    let [one, two] = woken();
    assert!(poll(&mut twice, &one).1.is_pending());
    assert!(poll(&mut next, &two).1.is_pending());
    // Its name is taken meanwhile.
    queue.requeue(id).unwrap();
    queue.try_claim(2).pop().unwrap().complete().unwrap();
    let (times, error) = poll(&mut twice, &one);
    let duplicate = PushError {
        content: (3, 3),
        reason: PushReason::Duplicate(id),
    };
    assert_eq!((times, error), (1, Poll::Ready(Err(duplicate))));
    let (times, pushed) = poll(&mut next, &two);
    assert!(times == 1 && matches!(pushed, Poll::Ready(Ok(_))));
}

#[test]
fn the_end_gives_their_jobs_back_to_those_who_wait() {
    let (queue, _) = full(1);
    let late = queue.push_wait(5, 55, Place::new());
    let late = late.or_return_after(Duration::ZERO).unwrap_err();
    assert_eq!((late.content, late.reason), ((5, 55), PushReason::TimedOut));
    let mut wait = queue.push_wait(1, 11, Place::new());
    let [one] = woken();
    assert!(poll(&mut wait, &one).1.is_pending());
    queue.close();
    let (times, ended) = poll(&mut wait, &one);
    let Poll::Ready(Err(error)) = ended else {
        panic!("the queue is closed")
    };
    assert_eq!((times, error.content), (1, (1, 11)));
    assert_eq!(
        (error.reason, refused(&queue)),
        (PushReason::Closed, PushReason::Closed)
    );
    queue.try_claim(1).remove(0).complete().unwrap();
}

/// Its task goes on at once, as in an executor that polls where it is woken.
struct Pushes(Arc<Queue>, AtomicBool);

impl Wake for Pushes {
    fn wake(self: Arc<Self>) {
        self.1
            .store(self.0.push(9, 9, Place::new()).is_ok(), Memory::SeqCst);
    }
}

#[test]
fn a_waker_finds_the_room_of_the_job_whose_end_has_woken_it() {
    let queue = Arc::new(Queue::builder().capacity(2).build().unwrap());
    let one = || Place::new().group("one");
    queue.set_limit(Scope::group("one"), 1).unwrap();
    queue.push(1, 1, one()).unwrap();
    queue.push(2, 2, one()).unwrap();
    let first = queue.try_claim_one().unwrap();
    let pushes = Arc::new(Pushes(Arc::clone(&queue), AtomicBool::new(false)));
    let mut next = pin!(queue.claim_one());
    let waker = Waker::from(Arc::clone(&pushes));
    let waits = next.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(waits.is_pending());
    first.complete().unwrap();
    assert!(pushes.1.load(Memory::SeqCst), "there was room");
}

thread_local! {
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug, PartialEq, Eq)]
struct Rude(u32);

impl PartialOrd for Rude {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rude {
    fn cmp(&self, other: &Self) -> Ordering {
        if PANICS.get() {
            resume_unwind(Box::new("a comparison"));
        }
        self.0.cmp(&other.0)
    }
}

#[test]
fn a_comparison_that_panics_leaves_its_room() {
    let queue = JobQueue::builder().capacity(2).build().unwrap();
    let id = queue.push(Rude(1), 1, Place::new()).unwrap();
    queue.push(Rude(2), 2, Place::new()).unwrap();
    let mut wait = pin!(queue.push_wait(Rude(3), 3, Place::new()));
    let mut poll = || wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    queue.remove(id).unwrap();
    PANICS.set(true);
    assert!(catch_unwind(AssertUnwindSafe(&mut poll)).is_err());
    let pushed = || queue.push(Rude(4), 4, Place::new());
    assert!(catch_unwind(AssertUnwindSafe(pushed)).is_err());
    let mut other = pin!(queue.push_wait(Rude(6), 6, Place::new()));
    let mut poll = || other.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(catch_unwind(AssertUnwindSafe(&mut poll)).is_err());
    PANICS.set(false);
    assert_eq!(queue.room(), Some(1));
    pushed().unwrap();
    // That wait is done: it asks for no room again.
    assert!(catch_unwind(AssertUnwindSafe(&mut poll)).is_err());
    queue.claim_one().wait().unwrap().complete().unwrap();
    assert_eq!(queue.room(), Some(1));
    queue.push(Rude(5), 5, Place::new()).unwrap();
}

/// A push that is refused for its name, also in a `push_all` or where it would wait, takes no room
/// for whose lack another push is refused.
#[test]
fn a_push_that_is_refused_takes_no_room() {
    for places in [1, 2] {
        let queue: Queue = JobQueue::builder().capacity(1 + places).build().unwrap();
        let once = || Place::new().unique("one");
        let duplicate = PushReason::Duplicate(queue.push(0, 0, once()).unwrap());
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Memory::Relaxed) {
                    let refused = queue.push(1, 1, once()).unwrap_err();
                    assert_eq!(refused.reason, duplicate);
                    let refused = queue.push_wait(1, 1, once()).wait().unwrap_err();
                    assert_eq!(refused.reason, duplicate);
                    let twice = [2, 3].map(|n| (n, n, Place::new().unique("two")));
                    let refused = queue.push_all(twice).unwrap_err();
                    let full = [PushReason::DuplicateInBatch, PushReason::Full];
                    assert!(full.contains(&refused.reason));
                }
            });
            let pushed = (0..20_000).try_for_each(|n| {
                let pushed = queue.push(n, n, Place::new());
                let id = pushed.map_err(|error| error.reason)?;
                queue.remove(id).unwrap();
                Ok::<(), PushReason>(())
            });
            over.store(true, Memory::Relaxed);
            assert_eq!(pushed, Ok(()));
        });
        assert_eq!(queue.room(), Some(i64::from(places)));
    }
}

#[test]
fn who_is_refused_for_a_name_waits_for_no_room() {
    let queue: Queue = JobQueue::builder().capacity(1).build().unwrap();
    let once = || Place::new().unique("one");
    let id = queue.push(1, 1, once()).unwrap();
    let duplicate = PushReason::Duplicate(id);
    assert_eq!(queue.push(2, 2, once()).unwrap_err().reason, duplicate);
    let [one] = woken();
    let (_, polled) = poll(&mut queue.push_wait(3, 3, once()), &one);
    assert!(matches!(polled, Poll::Ready(Err(error)) if error.reason == duplicate));
    // A push that replaces a job has the room of that job.
    let (next, old) = queue.push_replacing(4, 4, once()).unwrap();
    assert_eq!(old.map(|old| (old.key, old.job)), Some((1, 1)));
    let full = queue.push_replacing(5, 5, Place::new()).unwrap_err();
    assert_eq!((full.content.1, full.reason), (5, PushReason::Full));
    queue.remove(next).unwrap();
    assert_eq!(queue.room(), Some(1));
    let (_, none) = queue.push_replacing(6, 6, once()).unwrap();
    assert_eq!((none, queue.room()), (None, Some(0)));
}

#[test]
fn agents_and_pushers_never_exceed_it() {
    const EACH: u32 = 2_000;
    let queue: Queue = JobQueue::builder().capacity(3).build().unwrap();
    thread::scope(|scope| {
        let pushers = [0, 1].map(|pusher| {
            let queue = &queue;
            scope.spawn(move || {
                for n in 0..EACH {
                    let wait = queue.push_wait(n, pusher, Place::new());
                    wait.wait().unwrap();
                }
            })
        });
        let agent = scope.spawn(|| {
            let mut done = 0;
            while let Ok(claims) = queue.claim(2).wait() {
                let counts = queue.counts();
                assert!(counts.ready + counts.claimed as usize <= 3);
                for claim in claims {
                    claim.complete().unwrap();
                    done += 1;
                }
            }
            done
        });
        for pusher in pushers {
            pusher.join().unwrap();
        }
        queue.close();
        assert_eq!(agent.join().unwrap(), 2 * EACH);
    });
    assert_eq!(queue.room(), Some(3));
}
