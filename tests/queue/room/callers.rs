//! The threads and tasks that wait: owned waits, handlers of the same queue, wakers that panic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, channel};
use std::task::Wake;
use std::time::Duration;

use conversant::queue::Detached;

use super::*;

#[test]
fn an_owned_wait_keeps_its_conversation() {
    let (queue, _lane, wide) = full::<u32>(2);
    let wide = Arc::new(wide);
    let (_, waker) = WakeCounter::new();
    let to = wide.clone();
    let mut first = Box::pin(async move { to.send_wait(1).await });
    let to = wide.clone();
    let mut second = Box::pin(async move { to.send_all_wait([2]).await });
    drop(wide);
    assert!(poll(&mut first, &waker).is_pending());
    assert!(poll(&mut second, &waker).is_pending());
    complete_one(&queue);
    complete_one(&queue);
    assert!(matches!(poll(&mut first, &waker), Poll::Ready(Ok(()))));
    assert!(matches!(poll(&mut second, &waker), Poll::Ready(Ok(()))));
    assert_eq!(serve(&queue), [1, 2]);
}

/// The rule for handlers: only where it would wait, and while something received is live.
#[test]
fn a_handler_never_waits_for_room_in_its_own_full_queue() {
    let (queue, lane, wide) = full::<u32>(2);
    let own = |refused: Result<(), SendError<u32>>| {
        let refused = refused.unwrap_err();
        assert_eq!((refused.message, refused.reason), (7, SendReason::OwnQueue));
        assert_eq!(sends(&queue), (0, 0, 0), "it leaves the line");
    };
    let mut turn = queue.try_receive().unwrap();
    own(wide.send_wait(7).wait());
    let delivery = turn.next().unwrap().detach();
    own(wide.send_wait(7).wait());
    drop(turn);
    own(wide.send_wait(7).wait());
    // Also a wait that was queued as a task, and was not notified since.
    let waiting = one(&wide, 7);
    own(waiting.wait.wait());
    // Another queue does not count.
    let (other, _lane, elsewhere) = full::<u32>(1);
    let timed = elsewhere.send_wait(7).or_return_after(Duration::ZERO);
    assert_eq!(timed.unwrap_err().reason, SendReason::TimedOut);
    // A deadline ends the wait, so the handler may wait.
    let timed = wide.send_wait(7).or_return_after(Duration::ZERO);
    assert_eq!(timed.unwrap_err().reason, SendReason::TimedOut);
    // Nor is it an error where there is room.
    delivery.complete();
    let delivery = take(&queue).unwrap();
    wide.send_wait(1).wait().unwrap();
    // It counts for the thread that received it, wherever it is moved to.
    std::thread::scope(|scope| {
        let given = scope.spawn(move || delivery);
        let delivery = given.join().unwrap();
        own(wide.send_wait(7).wait());
        scope.spawn(move || delivery.give_back()).join().unwrap();
    });
    // Nothing is live any more: another thread makes room.
    waits(&queue, &wide);
    assert_eq!(serve(&queue).last(), Some(&8));
    drop((lane, other));
}

/// Turns that a thread claimed together count until the last begins.
#[test]
fn who_has_claimed_turns_never_waits_for_room_in_its_own_full_queue() {
    for way in 0..3 {
        let queue = Queue::builder().capacity(2).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let both = [(); 2].map(|()| lane.conversation().unwrap());
        let mut later = Box::pin(queue.receive_many(2));
        let (_, waker) = WakeCounter::new();
        assert!(poll(&mut later, &waker).is_pending());
        both.iter().for_each(|one| one.send(1).unwrap());
        let mut turns = match way {
            0 => queue.try_receive_many(2).unwrap(),
            1 => queue.receive_many(2).wait().unwrap(),
            _ => match poll(&mut later, &waker) {
                Poll::Ready(turns) => turns.unwrap(),
                Poll::Pending => panic!("two turns could begin"),
            },
        };
        drop(later);
        for _ in 0..2 {
            assert_eq!(refused(&queue, &both[0]), SendReason::OwnQueue);
            drop(turns.next().unwrap());
        }
        waits(&queue, &both[0]);
        drop(turns);
    }
}

/// Is refused. If it waits instead, another thread closes the queue.
fn refused(queue: &Queue<u32>, wide: &Conversation<u32>) -> SendReason {
    let returned = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !returned.load(Ordering::Relaxed) {
                if sends(queue).0 > 0 {
                    queue.close();
                }
                std::thread::yield_now();
            }
        });
        let sent = wide.send_wait(8).wait();
        returned.store(true, Ordering::Relaxed);
        sent.unwrap_err().reason
    })
}

/// Waits, and another thread makes room.
fn waits(queue: &Queue<u32>, wide: &Conversation<u32>) {
    let refused = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while sends(queue).0 == 0 && !refused.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            complete_one(queue);
        });
        let sent = wide.send_wait(8).wait();
        refused.store(sent.is_err(), Ordering::Relaxed);
        sent.unwrap();
    });
}

/// A thread that receives from many queues is a handler of those of which anything is live.
#[test]
fn a_handler_of_many_queues_is_known_in_each() {
    let own = |wide: &Conversation<u32>| {
        let reason = wide.send_wait(7).wait().unwrap_err().reason;
        assert_eq!(reason, SendReason::OwnQueue);
    };
    let all = [(); 20].map(|()| full::<u32>(1));
    let (few, others) = all.split_at(3);
    let mut live: Vec<_> = few.iter().map(|(queue, ..)| take(queue).unwrap()).collect();
    for (queue, _, wide) in others {
        complete_one(queue);
        wide.send(1).unwrap();
    }
    few.iter().for_each(|(.., wide)| own(wide));
    while let Some(delivery) = live.pop() {
        let (queue, _, wide) = &few[live.len()];
        delivery.complete();
        wide.send(1).unwrap();
        waits(queue, wide);
        few[..live.len()].iter().for_each(|(.., wide)| own(wide));
    }
    others
        .iter()
        .for_each(|(queue, _, wide)| waits(queue, wide));
}

/// A delivery that another thread finishes is not live any more for the thread that received it,
/// also if other threads have received since.
#[test]
fn a_handler_that_gave_its_deliveries_away_waits() {
    let (queue, _lane, wide) = full::<u32>(3);
    let delivery = take(&queue).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| complete_one(&queue));
        other.join().unwrap();
        let other = scope.spawn(|| {
            complete_one(&queue);
            delivery.complete();
            wide.send_all([1, 1, 1]).unwrap();
        });
        other.join().unwrap();
    });
    waits(&queue, &wide);
}

/// A thread that had forgotten a queue, and receives from it again, is told again of deliveries
/// that others finish for it.
#[test]
fn a_handler_that_comes_back_is_known_once() {
    let (queue, _lane, wide) = full::<u32>(3);
    complete_one(&queue);
    std::thread::scope(|scope| {
        // Two others receive, and stay: so the queue does not check for threads that ended.
        let _stay = [(); 2].map(|()| {
            let ((done, is_done), (stay, stays)) = (channel::<()>(), channel::<()>());
            let queue = &queue;
            scope.spawn(move || {
                complete_one(queue);
                done.send(()).unwrap();
                _ = stays.recv();
            });
            is_done.recv().unwrap();
            stay
        });
        for (other, ..) in &[(); 20].map(|()| full::<u32>(1)) {
            complete_one(other);
        }
        wide.send_all([1, 1, 1]).unwrap();
        let delivery = take(&queue).unwrap();
        let other = scope.spawn(move || delivery.complete());
        other.join().unwrap();
        wide.send(1).unwrap();
        waits(&queue, &wide);
    });
}

/// As above, and the thread has received from so many other queues meanwhile that it has forgotten
/// this one; the thread that finishes for it remembers both.
#[test]
fn a_handler_is_known_again() {
    let (queue, _lane, wide) = full::<u32>(1);
    std::thread::scope(|scope| {
        let (given, gets) = mpsc::channel::<Detached<u32>>();
        let (tells, done) = mpsc::channel();
        scope.spawn(move || {
            gets.iter()
                .for_each(|one| tells.send(one.complete()).unwrap())
        });
        for _ in 0..3 {
            let delivery = take(&queue).unwrap();
            let reason = wide.send_wait(7).wait().unwrap_err().reason;
            assert_eq!(reason, SendReason::OwnQueue);
            given.send(delivery).unwrap();
            done.recv().unwrap();
            wide.send(1).unwrap();
            waits(&queue, &wide);
            for _ in 0..20 {
                complete_one(&full::<u32>(1).0);
            }
        }
    });
}

/// A waker that panics when it is woken.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker");
    }
}

/// A refused send passes its room on to the next, whose waker panics: the refused send gets its
/// message back, and the next its room.
#[test]
fn a_waker_that_panics_loses_no_message_and_no_room() {
    let (queue, lane) = bounded(2);
    let [high, other] = [(); 2].map(|()| conversation(&lane, Limit::Unlimited, 100));
    high.send_in(3, 0).unwrap();
    high.send_in(3, 0).unwrap();
    let mut down = Waiting::of(high.send_wait(1).in_tier(1));
    let mut bad = other.send_wait(2);
    let panics = Waker::from(Arc::new(Panics));
    assert!(poll(&mut bad, &panics).is_pending());
    complete_one(&queue);
    assert_eq!(down.wakes.count(), 1);
    assert_eq!(down.refused().0, 1);
    assert_eq!(sends(&queue), (0, 1, 1));
    // A message that is sent while a receive's waker panics is sent.
    let mut receive = queue.receive();
    let (_, waker) = WakeCounter::new();
    serve(&queue);
    assert!(poll(&mut receive, &panics).is_pending());
    assert!(matches!(poll(&mut bad, &waker), Poll::Ready(Ok(()))));
    assert_eq!(serve(&queue), [2]);
}
