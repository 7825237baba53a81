//! Races: two readers' work, claims of one group, a close.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use conversant::limit::Limit;
use conversant::queue::{Detached, Queue, SendReason};

use crate::queue_support;

/// C.3 with real readers: what they do while they hold the turn is done in the order of receipt,
/// and the work overlaps.
#[test]
fn ordered_receipt_and_concurrent_work() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = queue_support::conversation(&lane, Limit::Unlimited, 100);
    one.send_all(0..600).unwrap();
    queue.close();
    let (log, overlap) = (Mutex::new(Vec::new()), Barrier::new(2));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut met = false;
                while let Ok(mut turn) = queue.receive().wait() {
                    let delivery = turn.next().unwrap().detach();
                    if log.try_lock().is_err() {
                        panic!("two at once");
                    }
                    log.lock().unwrap().push(*delivery);
                    drop(turn);
                    // Both must be in their work at once for either to go on.
                    if !std::mem::replace(&mut met, true) {
                        overlap.wait();
                    }
                    delivery.complete();
                }
            });
        }
    });
    assert!(log.into_inner().unwrap().into_iter().eq(0..600));
}

/// Two claimers and a limit: check and increment are one step.
#[test]
fn racing_claims_never_exceed_the_limit() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = queue_support::conversation(&lane, Limit::AtMost(2), 100);
    let start = Barrier::new(4);
    for _ in 0..200 {
        one.send_all([(); 12]).unwrap();
        let held: Vec<Detached<()>> = thread::scope(|scope| {
            let claim = || {
                start.wait();
                // A turn of another reader may be live for a moment: all try often enough.
                let claim = |_| Some(queue.try_receive().ok()?.next()?.detach());
                (0..4).filter_map(claim).collect::<Vec<_>>()
            };
            let claimers: Vec<_> = (0..3).map(|_| scope.spawn(claim)).collect();
            start.wait();
            claimers
                .into_iter()
                .flat_map(|c| c.join().unwrap())
                .collect()
        });
        assert!((1..=2).contains(&held.len()));
        held.into_iter().for_each(|held| held.complete());
        while let Some(delivery) = queue_support::take(&queue) {
            delivery.complete();
        }
    }
}

/// A close races sends: each message is returned or delivered, and every blocked reader comes back.
#[test]
fn a_close_that_races_senders_and_readers() {
    for round in 0..100 {
        let queue = Queue::<u32>::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let conversations: Vec<_> = (0..3).map(|_| lane.conversation().unwrap()).collect();
        let start = Barrier::new(6);
        let (taken, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    while let Ok(mut turn) = queue.receive().wait() {
                        let done = std::iter::from_fn(|| turn.next().map(|d| _ = d.complete()));
                        taken.fetch_add(done.count(), Ordering::SeqCst);
                    }
                });
            }
            for conversation in &conversations {
                let (start, refused) = (&start, &refused);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..20 {
                        if let Err(error) = conversation.send(n) {
                            assert_eq!((error.message, error.reason), (n, SendReason::Closed));
                            refused.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
            }
            start.wait();
            (0..round).for_each(|_| thread::yield_now());
            queue.close();
        });
        assert_eq!(taken.into_inner() + refused.into_inner(), 60);
    }
}
