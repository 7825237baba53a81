//! Tasks that receive: who is woken, what becomes of a wake-up that is not used, and what wakers and
//! messages may do that the queue cannot foresee.

mod queue_support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use conversant::error::{Closed, TimedOut};
use conversant::limit::Limit;
use conversant::queue::{Conversation, Queue, ReceivesStatus, Turn};
use conversant::wait::Wait;

use queue_support::{Bell, conversation, plain, poll, serve, take, turn};

/// Runs tasks one after the other whenever they are woken, until all are done or all sleep.
struct Executor<'a> {
    tasks: Vec<Option<std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>>>,
    woken: Vec<Arc<Woken>>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<'a> Executor<'a> {
    fn new() -> Self {
        let (tasks, woken) = (Vec::new(), Vec::new());
        Self { tasks, woken }
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + 'a) {
        self.tasks.push(Some(Box::pin(task)));
        self.woken.push(Arc::new(Woken(AtomicBool::new(true))));
    }

    /// How many tasks are left asleep.
    fn run(&mut self) -> usize {
        let is_woken = |woken: &Arc<Woken>| woken.0.swap(false, Ordering::SeqCst);
        while let Some(n) = self.woken.iter().position(is_woken) {
            let waker = Waker::from(self.woken[n].clone());
            if let Some(task) = &mut self.tasks[n]
                && task
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_ready()
            {
                self.tasks[n] = None;
            }
        }
        self.tasks.iter().flatten().count()
    }
}

/// A receive that waits, its bell and its waker.
struct Waiting<'a> {
    receive: Wait<conversant::queue::Receive<'a, u8>>,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<'a> Waiting<'a> {
    fn new(queue: &'a Queue<u8>) -> Self {
        let (bell, waker) = Bell::new();
        let mut receive = queue.receive();
        assert!(poll(&mut receive, &waker).is_pending());
        Self {
            receive,
            bell,
            waker,
        }
    }

    fn poll(&mut self) -> Poll<Result<Turn<u8>, Closed>> {
        poll(&mut self.receive, &self.waker)
    }

    fn got(&mut self) -> u8 {
        let Poll::Ready(Ok(mut turn)) = self.poll() else {
            panic!("a turn");
        };
        turn.next().unwrap().complete()
    }
}

fn receives(queue: &Queue<u8>) -> (usize, usize) {
    let ReceivesStatus { waiting, notified } = queue.snapshot().receives;
    (waiting, notified)
}

fn rings(waiting: &[Waiting<'_>]) -> Vec<usize> {
    waiting.iter().map(|w| w.bell.rings()).collect()
}

fn conversations<const N: usize>(queue: &Queue<u8>) -> [Conversation<u8>; N] {
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    [(); N].map(|()| lane.conversation().unwrap())
}

#[test]
fn nothing_happens_before_the_first_poll() {
    let queue = Queue::<u8>::new();
    let receive = queue.receive();
    assert_eq!(receives(&queue), (0, 0));
    drop(receive);
}

#[test]
fn tasks_share_the_work_and_end_with_the_queue() {
    let queue = Queue::<usize>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversations: Vec<_> = (0..4).map(|_| lane.conversation().unwrap()).collect();
    let served = Mutex::new(Vec::new());
    let mut executor = Executor::new();
    for _ in 0..3 {
        executor.spawn(async {
            while let Ok(mut turn) = queue.receive().await {
                while let Some(delivery) = turn.next() {
                    served.lock().unwrap().push(delivery.complete());
                }
            }
        });
    }
    assert_eq!(executor.run(), 3);
    for n in 0..40 {
        conversations[n % 4].send(n).unwrap();
        if n % 5 == 0 {
            assert_eq!(executor.run(), 3);
        }
    }
    queue.close();
    assert_eq!(executor.run(), 0);
    drop(executor);
    let mut served = served.into_inner().unwrap();
    for n in 0..4 {
        assert!(served.iter().filter(|m| **m % 4 == n).is_sorted());
    }
    served.sort_unstable();
    assert!(served.into_iter().eq(0..40));
}

#[test]
fn one_wake_for_each_unit_of_eligible_work_the_longest_waiting_first() {
    let queue = Queue::new();
    let [a, b] = conversations(&queue);
    let mut waiting: Vec<_> = (0..4).map(|_| Waiting::new(&queue)).collect();
    a.send(1).unwrap();
    assert_eq!(rings(&waiting), [1, 0, 0, 0]);
    // More in the same group is not eligible.
    a.send_all([2, 3]).unwrap();
    assert_eq!(rings(&waiting), [1, 0, 0, 0]);
    b.send(4).unwrap();
    assert_eq!(rings(&waiting), [1, 1, 0, 0]);
    assert_eq!(receives(&queue), (2, 2));
    // Any order of polls finds them, by rank.
    assert_eq!(waiting[1].got(), 1);
    // The end of the turn made more of `a` eligible: one more.
    assert_eq!(rings(&waiting), [1, 1, 1, 0]);
    assert_eq!(waiting[0].got(), 4);
    assert_eq!(waiting[2].got(), 2);
    assert_eq!(rings(&waiting), [1, 1, 1, 1]);
    assert_eq!(waiting[3].got(), 3);
    assert_eq!(receives(&queue), (0, 0));
}

#[test]
fn a_burst_wakes_as_many_as_there_are_turns() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::AtMost(0), 100).unwrap();
    let conversations: Vec<_> = (0..50).map(|_| lane.conversation().unwrap()).collect();
    group.conversation().unwrap().send_all([0; 100]).unwrap();
    lane.set_cap(Limit::AtMost(0)).unwrap();
    for conversation in &conversations {
        conversation.send(1).unwrap();
    }
    let mut waiting: Vec<_> = (0..100).map(|_| Waiting::new(&queue)).collect();
    // Paused and capped: nobody. More room than a batch of wakers: all at once.
    assert_eq!(rings(&waiting).iter().sum::<usize>(), 0);
    lane.set_cap(Limit::AtMost(40)).unwrap();
    assert_eq!(rings(&waiting).iter().sum::<usize>(), 40);
    assert_eq!(receives(&queue), (60, 40));
    lane.set_cap(Limit::Unlimited).unwrap();
    assert_eq!(receives(&queue), (50, 50));
    group.set_limit(Limit::SERIAL).unwrap();
    assert_eq!(receives(&queue), (49, 51));
    let all = (0..51).filter(|_| waiting.remove(0).got() < 2).count();
    assert_eq!(all, 51);
    drop(waiting);
    // The 49 that were left took wake-ups for the rest of the paused group; they passed them on.
    assert_eq!(receives(&queue), (0, 0));
    assert_eq!(serve(&queue).len(), 99);
}

/// Each thing that makes work eligible wakes.
#[test]
fn whatever_makes_work_eligible_wakes() {
    type Make = fn(&Queue<u8>) -> Box<dyn FnOnce()>;
    let makers: [(&str, Make); 9] = [
        ("a send", |queue| {
            let [a] = conversations(queue);
            Box::new(move || a.send(1).unwrap())
        }),
        ("a burst", |queue| {
            let [a] = conversations(queue);
            Box::new(move || a.send_all([1, 2]).unwrap())
        }),
        ("a limit", |queue| {
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            let group = lane.group(Limit::AtMost(0), 1).unwrap();
            group.conversation().unwrap().send(1).unwrap();
            Box::new(move || group.set_limit(Limit::SERIAL).unwrap())
        }),
        ("a cap", |queue| {
            let lane = queue.lane(1, Limit::AtMost(0)).unwrap();
            lane.conversation().unwrap().send(1).unwrap();
            Box::new(move || lane.set_cap(Limit::SERIAL).unwrap())
        }),
        ("a completion", |queue| {
            let [a] = conversations(queue);
            a.send_all([1, 2]).unwrap();
            let first = take(queue).unwrap();
            Box::new(move || _ = first.complete())
        }),
        ("a return", |queue| {
            let [a] = conversations(queue);
            a.send(1).unwrap();
            let first = take(queue).unwrap();
            Box::new(move || drop(first))
        }),
        ("the end of a turn", |queue| {
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            conversation(&lane, Limit::AtMost(2), 1)
                .send_all([1, 2])
                .unwrap();
            let mut turn = turn(queue).unwrap();
            std::mem::forget(turn.next());
            Box::new(move || drop(turn))
        }),
        ("a turn not used", |queue| {
            let [a] = conversations(queue);
            a.send(1).unwrap();
            let turn = turn(queue).unwrap();
            Box::new(move || drop(turn))
        }),
        ("a tier", |queue| {
            let [a, b] = conversations(queue);
            a.send_in(0, 1).unwrap();
            let first = take(queue).unwrap();
            b.send_in(1, 2).unwrap();
            Box::new(move || _ = first.complete())
        }),
    ];
    for (name, make) in makers {
        let queue = Queue::new();
        let happen = make(&queue);
        let mut waiting = [Waiting::new(&queue), Waiting::new(&queue)];
        happen();
        assert_eq!(rings(&waiting), [1, 0], "{name}");
        assert!(waiting[0].poll().is_ready(), "{name}");
    }
}

#[test]
fn a_woken_receive_that_finds_nothing_keeps_its_place() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting = [Waiting::new(&queue), Waiting::new(&queue)];
    a.send(1).unwrap();
    // Somebody is faster.
    assert_eq!(take(&queue).unwrap().complete(), 1);
    assert!(waiting[0].poll().is_pending());
    assert_eq!(receives(&queue), (2, 0));
    a.send(2).unwrap();
    assert_eq!(rings(&waiting), [2, 0]);
    assert_eq!(waiting[0].got(), 2);
}

#[test]
fn a_notified_receive_that_is_dropped_passes_it_on() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting: Vec<_> = (0..3).map(|_| Waiting::new(&queue)).collect();
    a.send(1).unwrap();
    for expected in [[1, 0], [1, 0]] {
        assert_eq!(waiting[0].bell.rings(), 1);
        drop(waiting.remove(0));
        assert_eq!(rings(&waiting), expected[..waiting.len()]);
    }
    assert_eq!(waiting[0].got(), 1);
    assert_eq!(receives(&queue), (0, 0));
}

/// Nothing is left of one that leaves un-notified, and it takes nobody's wake-up.
#[test]
fn a_receive_that_is_dropped_leaves_no_trace() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting: Vec<_> = (0..3).map(|_| Waiting::new(&queue)).collect();
    drop(waiting.remove(1));
    assert_eq!(receives(&queue), (2, 0));
    a.send(1).unwrap();
    assert_eq!(rings(&waiting), [1, 0]);
    let idle = Queue::new();
    for _ in 0..1000 {
        drop(Waiting::new(&idle));
    }
    let out = idle.receive().wait_timeout(std::time::Duration::ZERO);
    assert!(matches!(out, Err(TimedOut)));
    assert_eq!(receives(&idle), (0, 0));
}

/// A task that is woken and never polled again loses its own grant; every further turn wakes the
/// next, and the snapshot names it.
#[test]
fn a_task_that_is_never_polled_again_loses_at_most_its_own_grant() {
    let queue = Queue::new();
    let [a, b, c] = conversations(&queue);
    let mut waiting: Vec<_> = (0..3).map(|_| Waiting::new(&queue)).collect();
    a.send(1).unwrap();
    assert_eq!(rings(&waiting), [1, 0, 0]);
    // Nobody polls the first. The second and third unit wake the others.
    b.send(2).unwrap();
    assert_eq!(rings(&waiting), [1, 1, 0]);
    assert_eq!(waiting[1].got(), 1);
    c.send(3).unwrap();
    assert_eq!(rings(&waiting), [1, 1, 1]);
    assert_eq!(waiting[2].got(), 2);
    // What is left is the one turn that the sleeper was woken for.
    assert_eq!((queue.snapshot().eligible, receives(&queue)), (1, (0, 1)));
    // A new waiter does not miss it: its first look finds it.
    assert_eq!(serve(&queue), [3]);
}

#[test]
fn a_receive_that_moves_to_another_task_is_woken_there() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting = Waiting::new(&queue);
    let (bell, waker) = Bell::new();
    assert!(poll(&mut waiting.receive, &waker).is_pending());
    a.send(1).unwrap();
    assert_eq!((waiting.bell.rings(), bell.rings()), (0, 1));
    // Woken, polled with the first waker, nothing there any more: that one counts now.
    take(&queue).unwrap().complete();
    assert!(waiting.poll().is_pending());
    a.send(2).unwrap();
    assert_eq!((waiting.bell.rings(), bell.rings()), (1, 1));
}

#[test]
fn the_end_wakes_all_at_the_moment_it_comes() {
    // More than fit a batch of wakers.
    let queue = Queue::new();
    let [a] = conversations(&queue);
    a.send_all([1, 2]).unwrap();
    let first = take(&queue).unwrap();
    let mut waiting: Vec<_> = (0..100).map(|_| Waiting::new(&queue)).collect();
    let rung = |waiting: &[Waiting<'_>]| rings(waiting).iter().sum::<usize>();
    queue.close();
    assert_eq!(rung(&waiting), 0, "2 waits, and 1 may come back");
    first.complete();
    assert_eq!(rung(&waiting), 1, "2 can be had");
    let last = take(&queue).unwrap();
    assert!(waiting[0].poll().is_pending());
    assert_eq!(rung(&waiting), 1, "it may come back");
    drop(last);
    assert_eq!(rung(&waiting), 2);
    take(&queue).unwrap().complete();
    assert_eq!(receives(&queue), (0, 100));
    for mut waiting in waiting {
        assert!(matches!(waiting.poll(), Poll::Ready(Err(Closed))));
    }
    assert_eq!(receives(&queue), (0, 0));
}

#[test]
fn a_shutdown_that_takes_the_last_message_wakes_all() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::AtMost(0)).unwrap();
    lane.conversation().unwrap().send(1).unwrap();
    let mut waiting: Vec<_> = (0..2).map(|_| Waiting::new(&queue)).collect();
    queue.close();
    assert_eq!(
        rings(&waiting),
        [0, 0],
        "capped: they wait until it is resumed or shut down"
    );
    assert_eq!(queue.shutdown(), [1]);
    for waiting in &mut waiting {
        assert!(matches!(waiting.poll(), Poll::Ready(Err(Closed))));
    }
}

#[test]
fn an_owned_receive_keeps_the_queue_alive() {
    let queue = Arc::new(Queue::new());
    let [a] = conversations(&queue);
    let mut receive = Queue::receive_owned(&queue);
    let (bell, waker) = Bell::new();
    assert!(poll(&mut receive, &waker).is_pending());
    drop(queue);
    a.send(1).unwrap();
    assert_eq!(bell.rings(), 1);
    let Poll::Ready(Ok(mut turn)) = poll(&mut receive, &waker) else {
        panic!("a turn");
    };
    assert_eq!(turn.next().unwrap().complete(), 1);
    drop(receive);
    assert!(a.send(2).is_err(), "the queue is gone");
}

/// A waker that calls the queue it comes from, when it is woken and when it is dropped.
struct Reentrant {
    queue: Arc<Queue<u8>>,
    calls: Mutex<Vec<u64>>,
}

impl Wake for Reentrant {
    fn wake(self: Arc<Self>) {
        let snapshot = self.queue.snapshot();
        let lane = self.queue.lane(1, Limit::AtMost(0)).unwrap();
        lane.conversation().unwrap().send(9).unwrap();
        self.calls.lock().unwrap().push(snapshot.eligible);
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        _ = self.queue.snapshot();
    }
}

#[test]
fn a_waker_may_call_the_queue() {
    let queue = Arc::new(Queue::new());
    let [a] = conversations(&queue);
    let reentrant = Arc::new(Reentrant {
        queue: queue.clone(),
        calls: Mutex::default(),
    });
    let waker = Waker::from(reentrant.clone());
    let mut receive = queue.receive();
    assert!(poll(&mut receive, &waker).is_pending());
    a.send(1).unwrap();
    assert_eq!(*reentrant.calls.lock().unwrap(), [1]);
    assert!(poll(&mut receive, &waker).is_ready());
    assert_eq!(queue.snapshot().waiting, 1 + 1);
}

/// The last clone of a waker goes when its receive leaves, or gets another waker.
#[test]
fn a_waker_may_call_the_queue_when_it_is_dropped() {
    let queue = Arc::new(Queue::new());
    let waker = || {
        Waker::from(Arc::new(Reentrant {
            queue: queue.clone(),
            calls: Mutex::default(),
        }))
    };
    let mut receive = queue.receive();
    assert!(poll(&mut receive, &waker()).is_pending());
    assert!(poll(&mut receive, &waker()).is_pending());
    drop(receive);
    assert_eq!(Arc::strong_count(&queue), 1, "both are gone");
}

/// Panics when it is woken.
struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

fn panics(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

/// One waker that panics keeps neither the message nor the others from being served, in batches
/// beyond the first too.
#[test]
fn a_waker_that_panics_loses_nothing() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut bad = queue.receive();
    let panicking = Waker::from(Arc::new(Panicking));
    assert!(poll(&mut bad, &panicking).is_pending());
    let mut waiting: Vec<_> = (0..100).map(|_| Waiting::new(&queue)).collect();
    // The send that woke it panics, and is done.
    panics(|| a.send(1).unwrap());
    assert_eq!((queue.snapshot().waiting, receives(&queue)), (1, (100, 1)));
    drop(bad);
    assert_eq!(waiting.remove(0).got(), 1);
    // Closing wakes them in several batches: all of them all the same.
    let mut bad = queue.receive();
    assert!(poll(&mut bad, &panicking).is_pending());
    for _ in 0..70 {
        waiting.push(Waiting::new(&queue));
    }
    panics(|| queue.close());
    assert_eq!(receives(&queue), (0, 170));
    assert!(rings(&waiting).iter().all(|&rings| rings == 1));
}

/// What a panicking waker interrupts is done.
#[test]
fn a_completion_or_return_that_panics_is_done() {
    let queue = Queue::new();
    let [a, b] = conversations(&queue);
    a.send(1).unwrap();
    b.send(2).unwrap();
    let panicking = Waker::from(Arc::new(Panicking));
    let (first, second) = (take(&queue).unwrap(), take(&queue).unwrap());
    let mut bad = queue.receive();
    assert!(poll(&mut bad, &panicking).is_pending());
    panics(|| drop(first));
    assert_eq!(queue.snapshot().in_flight, 1);
    let again = take(&queue).unwrap();
    assert_eq!((*again, again.attempt()), (1, 2));
    assert!(poll(&mut bad, &panicking).is_pending());
    queue.close();
    second.complete();
    panics(|| _ = again.complete());
    assert_eq!(queue.snapshot().in_flight, 0);
    assert!(matches!(
        poll(&mut bad, &panicking),
        Poll::Ready(Err(Closed))
    ));
}

/// Its last waker panics when it is dropped.
struct DropPanics;

impl Wake for DropPanics {
    fn wake(self: Arc<Self>) {}
}

impl Drop for DropPanics {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// A receive that has its turn, and then a panic on its way out, gives the turn back.
#[test]
fn a_turn_that_is_lost_to_a_panic_is_given_back() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut good = Waiting::new(&queue);
    let mut bad = queue.receive();
    let waker = Waker::from(Arc::new(DropPanics));
    assert!(poll(&mut bad, &waker).is_pending());
    drop(waker);
    a.send(1).unwrap();
    // It finds the turn that the other was woken for, and drops its waker.
    panics(|| drop(poll(&mut bad, Waker::noop())));
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.eligible), (0, 1));
    drop(bad);
    assert_eq!(receives(&queue), (0, 1));
    assert_eq!(good.got(), 1);
}

/// A message whose drop panics, or calls the queue.
struct Touchy {
    queue: std::sync::Weak<Queue<Touchy>>,
    panics: bool,
}

impl Drop for Touchy {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.upgrade() {
            _ = queue.snapshot();
            assert!(queue.try_receive().is_err());
        }
        assert!(!self.panics, "on purpose");
    }
}

#[test]
fn messages_are_dropped_without_the_lock() {
    let queue = Arc::new(Queue::new());
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    let touchy = |panics| Touchy {
        queue: Arc::downgrade(&queue),
        panics,
    };
    assert!(one.send(touchy(false)).is_ok());
    drop(take(&queue).unwrap().complete());
    assert!(one.send(touchy(true)).is_ok());
    panics(|| drop(take(&queue).unwrap().complete()));
    assert_eq!(queue.snapshot().in_flight, 0);

    assert!(one.send_all((0..3).map(|n| touchy(n == 1))).is_ok());
    panics(|| drop(queue.shutdown()));
    assert!(queue.is_closed());
    // Refused, and dropped by the sender.
    drop(one.send(touchy(false)));
    panics(|| drop(one.send(touchy(true))));
}

#[test]
fn a_message_that_panics_in_drop_does_not_keep_the_queue_from_going() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    let touchy = |panics| Touchy {
        queue: std::sync::Weak::new(),
        panics,
    };
    assert!(
        one.send_all([touchy(true), touchy(false), touchy(true)])
            .is_ok()
    );
    let held = take(&queue).unwrap();
    panics(|| drop(queue));
    panics(|| drop(held));
    assert!(one.send(touchy(false)).is_err());
}

/// Also those that a call would have returned, had a waker not panicked; among so many wakers that
/// some are woken in the middle of it.
#[test]
fn what_a_panic_keeps_from_being_returned_is_dropped_without_the_lock() {
    let queue = Arc::new(Queue::new());
    let lane = queue.lane(1, Limit::AtMost(0)).unwrap();
    let touchy = Touchy {
        queue: Arc::downgrade(&queue),
        panics: false,
    };
    assert!(lane.conversation().unwrap().send(touchy).is_ok());
    let wakers = [Waker::from(Arc::new(Panicking)), Waker::noop().clone()];
    let wait = |n: usize| {
        let mut receive = queue.receive();
        assert!(poll(&mut receive, &wakers[n.min(1)]).is_pending());
        receive
    };
    let waiting: Vec<_> = (0..100).map(wait).collect();
    panics(|| _ = queue.shutdown());
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.waiting, snapshot.receives.notified), (0, 100));
    drop(waiting);
}
