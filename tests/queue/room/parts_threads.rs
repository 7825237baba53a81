//! Capacities of groups and lanes on threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use conversant::limit::Limit::{AtMost, Unlimited};

use super::*;

/// Receives until the queue is drained; gives every `back_every`th delivery back.
fn reader(queue: &Queue<u64>, sum: &AtomicU64, back_every: u64) {
    let mut n = 0;
    while let Ok(mut turn) = queue.receive().wait() {
        while let Some(delivery) = turn.next() {
            n += 1;
            match n % back_every {
                0 => delivery.give_back(),
                1 => _ = sum.fetch_add(delivery.detach().complete(), Ordering::Relaxed),
                _ => _ = sum.fetch_add(delivery.complete(), Ordering::Relaxed),
            }
        }
    }
}

/// Senders to a customer that is never served sleep, and all others are served.
#[test]
fn a_dead_customer_holds_nobody_up() {
    const EACH: u64 = 2_000;
    let (queue, lane) = bounded(8);
    let dead = conversation(&lane, AtMost(0), 100);
    dead.set_capacity(2).unwrap();
    let (sum, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(|| reader(&queue, &sum, u64::MAX)));
        let of_dead = [(); 3].map(|()| {
            scope.spawn(|| {
                let mut refused = 0;
                while refused == 0 {
                    refused += u64::from(dead.send_wait(0).wait().is_err());
                    sent.fetch_add(1 - refused, Ordering::Relaxed);
                }
            })
        });
        let alive = [(); 3].map(|()| {
            let own = lane.conversation().unwrap();
            own.set_capacity(3).unwrap();
            scope.spawn(move || {
                for n in 1..=EACH {
                    match n % 3 {
                        0 => own.send_wait(n).wait().unwrap(),
                        1 => own.send_all_wait([n]).wait().unwrap(),
                        _ => own.reserve().wait().unwrap().send(n).unwrap(),
                    }
                }
            })
        });
        alive.into_iter().for_each(|alive| alive.join().unwrap());
        assert_eq!(dead.group_id(), queue.groups().next().unwrap().id);
        queue.close();
        of_dead.into_iter().for_each(|dead| dead.join().unwrap());
        assert_eq!(queue.drain(dead.group_id()).unwrap(), [0, 0]);
    });
    assert_eq!(sent.into_inner(), 2);
    assert_eq!(sum.into_inner(), 3 * EACH * (EACH + 1) / 2);
}

/// Nothing is lost and no thread hangs while capacities come, change and go; at the end each admits
/// exactly its number of messages.
#[test]
fn they_change_while_all_is_at_work() {
    const EACH: u64 = 3_000;
    let queue = Queue::builder()
        .capacity(6)
        .attempts(Unlimited)
        .build()
        .unwrap();
    let lane = queue.lane(1, Unlimited).unwrap();
    let to = [1, 2, 8].map(|limit| conversation(&lane, AtMost(limit), 100));
    let (sum, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(|| reader(&queue, &sum, 16)));
        let senders = [0, 1, 2, 0].map(|at: usize| {
            let own = &to[at];
            scope.spawn(move || {
                for n in 1..=EACH {
                    if own.send(n).is_ok() {
                        continue;
                    }
                    own.send_wait(n).wait().unwrap();
                }
            })
        });
        scope.spawn(|| {
            let mut random = crate::queue_support::Random(7);
            while !over.load(Ordering::Relaxed) {
                let capacity = [Unlimited, AtMost(0), AtMost(1), AtMost(3)][random.below(4)];
                match random.below(4) {
                    3 => lane.set_capacity(capacity).unwrap(),
                    at => to[at].set_capacity(capacity).unwrap(),
                }
                thread::yield_now();
            }
            to.iter().for_each(|to| to.set_capacity(2).unwrap());
            lane.set_capacity(3).unwrap();
        });
        // The last setting lets them go on.
        thread::scope(|scope| {
            let waits = senders.map(|sender| scope.spawn(move || sender.join().unwrap()));
            let half = EACH * (EACH + 1);
            while sum.load(Ordering::Relaxed) < half && waits.iter().any(|w| !w.is_finished()) {
                thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
        });
        while queue.room() != Some(6) {
            thread::yield_now();
        }
        let all = to.each_ref().map(|to| to.try_reserve());
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(to[0].try_reserve().unwrap_err(), SendReason::LaneFull);
        lane.set_capacity(6).unwrap();
        let more = to.each_ref().map(|to| to.try_reserve());
        assert!(more.iter().all(Result::is_ok));
        let reasons = to.each_ref().map(|to| to.try_reserve().unwrap_err());
        assert_eq!(reasons, [SendReason::GroupFull; 3]);
        drop((all, more));
        queue.close();
    });
    assert_eq!(sum.into_inner(), 4 * EACH * (EACH + 1) / 2);
}

/// No more ever wait in a group than may. The lane's total cannot be read at one moment.
#[test]
fn no_more_wait_than_may() {
    const EACH: u64 = 3_000;
    let queue = Queue::new();
    let lane = queue.lane(1, Unlimited).unwrap();
    lane.set_capacity(3).unwrap();
    let to = [(); 2].map(|()| lane.conversation().unwrap());
    to.iter().for_each(|to| to.set_capacity(2).unwrap());
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        let senders = [0, 1, 0, 1].map(|at: usize| {
            let own = &to[at];
            scope.spawn(move || (1..=EACH).for_each(|n| own.send_wait(n).wait().unwrap()))
        });
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                while let Ok(mut turn) = queue.receive().wait() {
                    let waiting = to
                        .each_ref()
                        .map(|to| queue.waiting_in(to.group_id()).unwrap());
                    assert!(waiting.iter().all(|&waiting| waiting <= 2), "{waiting:?}");
                    while let Some(delivery) = turn.next() {
                        sum.fetch_add(delivery.complete(), Ordering::Relaxed);
                    }
                }
            })
        });
        senders
            .into_iter()
            .for_each(|sender| sender.join().unwrap());
        queue.close();
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(sum.into_inner(), 4 * EACH * (EACH + 1) / 2);
}

/// While one thread's sends are refused, another sends a message into the queue, which has room for
/// it, again and again: how often that is refused.
fn refused_beside(queue: &Queue<u64>, alive: &Conversation<u64>, other: impl Fn() + Sync) -> u32 {
    let (stop, tries) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut refused = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                other();
                tries.fetch_add(1, Ordering::Relaxed);
            }
        });
        while tries.load(Ordering::Relaxed) < 100 {
            thread::yield_now();
        }
        for n in 0..100_000 {
            match alive.send(n) {
                Ok(()) => _ = queue.try_receive().unwrap().next().unwrap().complete(),
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    refused
}

/// A send that its group refuses keeps no room of the queue from others, not for a moment.
#[test]
fn who_is_refused_by_its_group_takes_no_room_of_the_queue() {
    let queue = Queue::builder().capacity(1).build().unwrap();
    let lane = queue.lane(1, Unlimited).unwrap();
    let [dead, alive] = [(); 2].map(|()| lane.conversation().unwrap());
    dead.set_capacity(0).unwrap();
    let refused = refused_beside(&queue, &alive, || assert!(dead.send(0).is_err()));
    assert_eq!(refused, 0, "the queue is empty");
}

/// The same for a send whose tier is too low.
#[test]
fn who_is_refused_by_its_tier_takes_no_room_of_the_queue() {
    let queue = Queue::builder().capacity(2).build().unwrap();
    let lanes = [(); 2].map(|()| queue.lane(1, Unlimited).unwrap());
    let paused = lanes[0].group(0, 100).unwrap().conversation().unwrap();
    let alive = lanes[1].conversation().unwrap();
    paused.send_in(5, 0).unwrap();
    let refused = refused_beside(&queue, &alive, || assert!(paused.send_in(1, 0).is_err()));
    assert_eq!(refused, 0, "there is room for one");
}

/// A send that its lane refuses keeps no room of the group.
#[test]
fn who_is_refused_by_its_lane_takes_no_room_of_its_group() {
    let queue = Queue::new();
    let lane = queue.lane(1, Unlimited).unwrap();
    lane.set_capacity(3).unwrap();
    let paused = lane.group(0, 100).unwrap().conversation().unwrap();
    paused.send(0).unwrap();
    let alive = lane.conversation().unwrap();
    alive.set_capacity(3).unwrap();
    let refused = refused_beside(&queue, &alive, || assert!(alive.send_all([0; 3]).is_err()));
    assert_eq!(
        refused, 0,
        "the group is empty, and its lane has room for two"
    );
}
