//! Wakers that panic when they are woken, cloned or dropped: no operation of another thread or task
//! unwinds because of it, nothing is left half done, and a wait whose poll panicked can be polled
//! again.

mod actors;
#[path = "../support/random.rs"]
mod numbers;
mod random;
mod room;
mod unwind;
mod waker;

use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use conversant::gate::TierGate;
use conversant::intent::IntentLock;
use conversant::job_queue::{JobQueue, Place as JobPlace};
use conversant::limit::{Bypass, Limit};
use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode::{self, Is, Ix, S, X};
use conversant::queue::Queue;
use conversant::scheduler::{CallerOptions, How, Scheduler, first};
use conversant::semaphore::Semaphore;
use conversant::wait::WaitCounts;

use waker::{Act, Rudeness, rude, take_panics, take_woken, wakers, while_rude};

fn poll<F: Future + Unpin>(wait: &mut F) -> Poll<F::Output> {
    // Not dropped while wakers panic.
    let waker = ManuallyDrop::new(rude(0));
    Pin::new(wait).poll(&mut Context::from_waker(&waker))
}

fn waits<F: Future + Unpin>(mut wait: F) -> F {
    assert!(poll(&mut wait).is_pending());
    wait
}

fn unwinds<R>(on: Act, f: impl FnOnce() -> R) -> std::thread::Result<R> {
    let rudely = || while_rude(Rudeness::always(on), f);
    catch_unwind(AssertUnwindSafe(rudely))
}

/// The result of `f` while wakers panic on this act, and how often they did.
fn counted<R>(on: Act, f: impl FnOnce() -> R) -> (R, u32) {
    take_panics();
    let Ok(done) = unwinds(on, f) else {
        panic!("it unwinds when a waker panics on {on:?}");
    };
    (done, take_panics())
}

/// The same, where at least one waker must panic.
fn despite<R>(on: Act, f: impl FnOnce() -> R) -> R {
    let (done, panics) = counted(on, f);
    assert!(panics > 0, "no waker panicked");
    done
}

/// A poll that panics, because the waker cannot be cloned.
fn poll_in_vain<F: Future + Unpin>(wait: &mut F) {
    let polled = unwinds(Act::Clone, || poll(wait).is_ready());
    assert!(polled.is_err(), "no waker was cloned");
}

#[test]
fn a_ticket_leaves_for_the_next() {
    let gate = TierGate::new();
    let (mut first, mut next, mut other) = (gate.join(1), gate.join(2), gate.join(2));
    assert!(first.try_enter());
    let enters = waits(other.enter());
    assert!(despite(Act::Wake, || first.leave_for(&mut next)));
    assert!(next.entered());
    drop(enters);
    drop((next, other));
    let mut last = gate.join(3);
    assert!(last.try_enter());
    assert_eq!(gate.snapshot().outstanding, [(3, 1)]);
}

#[test]
fn a_ticket_whose_enter_was_forgotten_is_dropped() {
    let gate = TierGate::new();
    let (mut first, mut second) = (gate.join(1), gate.join(2));
    assert!(first.try_enter());
    std::mem::forget(waits(second.enter()));
    despite(Act::Drop, || drop(second));
    let snapshot = gate.snapshot();
    assert_eq!(snapshot.outstanding, [(1, 1)]);
    assert_eq!(snapshot.counts.enters, WaitCounts::default());
    drop(first);
    assert!(gate.join(3).try_enter());
}

#[test]
fn a_ticket_whose_enter_was_forgotten_enters() {
    let gate = TierGate::new();
    let (mut first, mut second) = (gate.join(1), gate.join(2));
    assert!(first.try_enter());
    std::mem::forget(waits(second.enter()));
    drop(first);
    // Notified already: it has no waker. A ticket that enters in time has one.
    let mut third = gate.join(3);
    assert!(second.try_enter());
    std::mem::forget(waits(third.enter()));
    assert!(counted(Act::Drop, || second.leave_for(&mut third)).0);
    assert_eq!(gate.counts().enters, WaitCounts::default());
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name(u32);

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        (self.0 > 9).then_some(Name(self.0 / 10))
    }
}

fn owners<const N: usize>(locks: &LockTable<Name>) -> [Owner<Name>; N] {
    [(); N].map(|()| locks.owner(0))
}

#[test]
fn an_owner_is_dropped() {
    for on in [Act::Wake, Act::Drop] {
        let locks = LockTable::new();
        let [mut a, mut b, mut c, mut d] = owners(&locks);
        a.try_lock(&Name(2), X).unwrap();
        b.try_lock(&Name(11), X).unwrap();
        let c_waits = waits(c.lock(&Name(11), S));
        std::mem::forget(waits(b.lock(&Name(2), X)));
        let d_waits = waits(d.lock(&Name(2), S));
        despite(on, || drop(b));
        assert_eq!(locks.snapshot().owners, 3, "{on:?}");
        let mut c_waits = c_waits;
        assert_eq!(poll(&mut c_waits), Poll::Ready(Ok(())), "{on:?}");
        despite(Act::Wake, || drop(a));
        let mut d_waits = d_waits;
        assert_eq!(poll(&mut d_waits), Poll::Ready(Ok(())), "{on:?}");
        drop((c_waits, d_waits));
        drop((c, d));
        assert!(locks.is_empty());
    }
}

/// A wait has been granted its lock, and has not looked.
#[test]
fn an_owner_is_dropped_that_was_granted_what_it_forgot() {
    let locks = LockTable::new();
    let [mut a, mut b, mut c] = owners(&locks);
    a.try_lock(&Name(11), X).unwrap();
    std::mem::forget(waits(b.lock(&Name(11), X)));
    let mut c_waits = waits(c.lock(&Name(11), X));
    despite(Act::Wake, || a.release_all());
    despite(Act::Wake, || drop(b));
    assert_eq!(poll(&mut c_waits), Poll::Ready(Ok(())));
    drop(c_waits);
    assert_eq!(locks.snapshot().owners, 2);
}

#[test]
fn a_release_cancels() {
    for on in [Act::Wake, Act::Drop] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let hold = scheduler.hold();
        let tasks = (0..100).map(|n| caller.exec(move || Ok::<_, ()>(n)).unwrap());
        let mut tasks: Vec<_> = tasks.collect();
        let mut told: Vec<_> = tasks.iter_mut().map(|task| waits(task.outcome())).collect();
        let mut release = caller.release(How::Cancel);
        let (released, _) = counted(on, || poll(&mut release));
        assert!(matches!(released, Poll::Ready(Ok(all)) if all.cancelled == 100));
        assert!(told.iter_mut().all(|wait| poll(wait).is_ready()));
        assert!(scheduler.status().waiting.is_empty());
        drop(hold);
        scheduler.shutdown(How::Cancel).wait().unwrap();
    }
}

#[test]
fn a_shutdown_cancels() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    let hold = scheduler.hold();
    let tasks = (0..100).map(|n| caller.exec(move || Ok::<_, ()>(n)).unwrap());
    let mut tasks: Vec<_> = tasks.collect();
    let mut told: Vec<_> = tasks.iter_mut().map(|task| waits(task.outcome())).collect();
    let mut shutdown = scheduler.shutdown(How::Cancel);
    let shut = despite(Act::Wake, || poll(&mut shutdown));
    assert_eq!(shut, Poll::Ready(Ok(())));
    assert!(told.iter_mut().all(|wait| poll(wait).is_ready()));
    drop(hold);
}

/// The guard's modes are released with it, and the waiters behind its conversion go on.
#[test]
fn a_guard_is_dropped_whose_conversion_was_forgotten() {
    for on in [Act::Wake, Act::Drop] {
        let readers = IntentLock::striped_for_readers(4);
        for lock in [IntentLock::new(), IntentLock::striped(4), readers] {
            let lock = lock.with_bypass(Bypass::AtMost(0));
            let (mut converts, other) = (lock.lock(S).wait(), lock.lock(S).wait());
            std::mem::forget(waits(converts.convert(X)));
            let mut behind = waits(lock.lock(S));
            despite(on, || drop(converts));
            drop(other);
            drop(poll(&mut behind));
            drop(behind);
            assert_eq!(lock.snapshot().held, [0; 6], "{on:?}");
            assert!(lock.try_lock(X).is_ok());
        }
    }
}

/// More guards hold a mode than the word counts. One that does not fit has asked for more, was
/// handed it, forgot the wait, and finds room in the word by then.
#[test]
fn a_guard_beyond_the_word_is_dropped_whose_conversion_was_forgotten() {
    for on in [Act::Wake, Act::Drop] {
        let lock = IntentLock::new().with_bypass(Bypass::AtMost(0));
        let mut held: Vec<_> = (0..65_535).map(|_| lock.lock(Is).wait()).collect();
        let mut spilled = lock.lock(Is).wait();
        let strong = lock.lock(S).wait();
        std::mem::forget(waits(spilled.convert(Ix)));
        let mut behind = waits(lock.lock(S));
        drop(strong);
        held.truncate(1000);
        counted(on, || drop(spilled));
        let Poll::Ready(guard) = poll(&mut behind) else {
            panic!("nobody holds what it conflicts with");
        };
        drop((guard, held));
        assert_eq!(lock.snapshot().held, [0; 6], "{on:?}");
        assert!(lock.try_lock(X).is_ok());
    }
}

/// A downgrade of a guard that does not fit in the word lets others go on.
#[test]
fn a_guard_beyond_the_word_is_downgraded() {
    let lock = IntentLock::new().with_bypass(Bypass::AtMost(0));
    let mut held: Vec<_> = (0..65_535).map(|_| lock.lock(Ix).wait()).collect();
    let mut spilled = lock.lock(Ix).wait();
    let mut behind = waits(lock.lock(S));
    held.clear();
    despite(Act::Wake, || spilled.downgrade(Is)).unwrap();
    drop(spilled);
    let Poll::Ready(guard) = poll(&mut behind) else {
        panic!("nobody holds what it conflicts with");
    };
    drop(guard);
    assert_eq!(lock.snapshot().held, [0; 6]);
    assert!(lock.try_lock(X).is_ok());
}

/// Polls that cannot clone the waker, before and after a poll that waits; then a poll that finds
/// the grant, and whose waker panics when it is dropped.
fn goes_on<F: Future + Unpin, R>(mut wait: F, grant: impl FnOnce() -> R) -> F::Output {
    poll_in_vain(&mut wait);
    assert!(poll(&mut wait).is_pending());
    let (again, _) = counted(Act::Drop, || poll(&mut wait));
    assert!(again.is_pending());
    despite(Act::Wake, grant);
    // Some waits take what is free without a clone.
    let polled = unwinds(Act::Clone, || poll(&mut wait));
    if let Ok(Poll::Ready(output)) = polled {
        return output;
    }
    match counted(Act::Drop, || poll(&mut wait)).0 {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it has what it waits for"),
    }
}

#[test]
fn a_semaphore_is_polled_again() {
    for bypass in [Bypass::AtMost(0), Bypass::AtMost(64)] {
        let semaphore = Semaphore::new(3).unwrap().with_bypass(bypass);
        let held = semaphore.try_acquire(3).unwrap();
        let permit = goes_on(semaphore.acquire(2), || drop(held)).unwrap();
        assert_eq!((permit.count(), semaphore.available()), (2, 1));
    }
}

#[test]
fn an_intent_lock_is_polled_again() {
    for bypass in [Bypass::AtMost(0), Bypass::AtMost(64)] {
        let lock = IntentLock::new().with_bypass(bypass);
        let held = lock.lock(X).wait();
        let guard = goes_on(lock.lock(S), || drop(held));
        assert_eq!(lock.snapshot().held[S as usize], 1);
        drop(guard);
        let (mut guard, held) = (lock.lock(S).wait(), lock.lock(S).wait());
        goes_on(guard.convert(X), || drop(held)).unwrap();
        assert_eq!(guard.mode(), Mode::X);
        drop(guard);
        assert_eq!(lock.snapshot().held, [0; 6]);
    }
}

#[test]
fn a_lock_table_is_polled_again() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    a.try_lock(&Name(11), X).unwrap();
    goes_on(b.lock(&Name(11), S), || a.release_all()).unwrap();
    assert_eq!(b.held(&Name(11)), Some(S));
}

#[test]
fn a_gate_is_polled_again() {
    let gate = TierGate::new();
    let (mut first, mut second) = (gate.join(1), gate.join(2));
    assert!(first.try_enter());
    goes_on(second.enter(), || drop(first));
    assert_eq!(gate.counts().inside, 1);
}

#[test]
fn a_scheduler_is_polled_again() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    let hold = scheduler.hold();
    let mut task = caller.exec(|| Ok::<_, ()>(1)).unwrap();
    let other = caller.exec(|| Ok::<_, ()>(2)).unwrap();
    let sync = goes_on(caller.synchronize(), || (task.cancel(), other.cancel()));
    assert_eq!(sync.unwrap().cancelled, 2);
    assert!(task.outcome().wait().is_ok());
    let mut task = caller.exec(|| Ok::<_, ()>(1)).unwrap();
    let cancels = caller.exec(|| Ok::<_, ()>(2)).unwrap();
    drop(cancels);
    let mut outcome = task.outcome();
    poll_in_vain(&mut outcome);
    assert!(poll(&mut outcome).is_pending());
    let released = goes_on(caller.release(How::Drain), || {
        let mut cancel = caller.release(How::Cancel);
        assert!(poll(&mut cancel).is_ready());
    });
    assert_eq!(released.unwrap().cancelled, 2);
    assert!(poll(&mut outcome).is_ready());
    drop(hold);
    scheduler.shutdown(How::Drain).wait().unwrap();
}

/// The second clone of a poll panics: of the first poll, then of one with another waker.
#[test]
fn a_wait_for_the_first_of_two_tasks_is_polled_again() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    let _hold = scheduler.hold();
    let mut tasks = [1, 2].map(|n| caller.exec(move || Ok::<_, ()>(n)).unwrap());
    let (old, new, mut wait) = (rude(1), rude(2), first(&mut tasks));
    let mut polls = |waker: &Waker, clones| {
        let mut cx = Context::from_waker(waker);
        let polled = || Pin::new(&mut wait).poll(&mut cx).is_ready();
        let polled = || while_rude(Rudeness([0, clones, 0]), polled);
        (catch_unwind(AssertUnwindSafe(polled)).ok(), wakers())
    };
    let none = wakers();
    assert_eq!(polls(&old, 2), (None, none));
    assert_eq!(polls(&old, 0), (Some(false), none + 2));
    assert_eq!(polls(&new, 2), (None, none + 2));
    caller.cancel_all();
    assert!(take_woken(1) && !take_woken(2));
    assert_eq!(polls(&new, 0), (Some(true), none));
}

#[test]
fn a_job_queue_is_polled_again() {
    let queue = JobQueue::new();
    let push = || queue.push(1, "job", JobPlace::new()).unwrap();
    let claims = goes_on(queue.claim(1), push).unwrap();
    assert_eq!(*claims[0], "job");
    drop(claims);
    assert_eq!(queue.counts().ready, 1);
}

#[test]
fn a_wait_for_what_failed_is_polled_again() {
    let jobs = JobQueue::builder().attempts(1).build().unwrap();
    let job = jobs.push(1, "job", JobPlace::new()).unwrap();
    let claim = jobs.try_claim(1).remove(0);
    assert_eq!(goes_on(jobs.next_dead(), || claim.fail().unwrap()), Ok(job));
    let queue = Queue::builder().attempts(1).build().unwrap();
    let one = queue
        .lane(1, Limit::Unlimited)
        .unwrap()
        .conversation()
        .unwrap();
    one.send("message").unwrap();
    let delivery = queue.try_receive().unwrap().next().unwrap().detach();
    let poisoned = goes_on(queue.next_poisoned(), || delivery.give_back());
    assert_eq!(poisoned.map(|poisoned| poisoned.group), Ok(one.group_id()));
}
