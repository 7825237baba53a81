//! No wake-up is lost, neither in a race nor by a cancelled wait.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use conversant::limit::Limit;
use conversant::queue::{NoMore, Queue, Turn};

/// A first wait races the send, and a last completion races an arrival: no reader sleeps while
/// there is work. A lost wake-up hangs here.
#[test]
fn ping_pong_loses_no_wake() {
    let (there, back) = (Queue::new(), Queue::new());
    let lanes = [&there, &back].map(|queue| queue.lane(1, Limit::Unlimited).unwrap());
    let [ping, pong] = lanes.each_ref().map(|lane| lane.conversation().unwrap());
    let one = |queue: &Queue<u32>| -> Result<u32, NoMore> {
        let mut turn: Turn<u32> = queue.receive().wait()?;
        Ok(turn.next().unwrap().complete())
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(n) = one(&there) {
                pong.send(n).unwrap();
            }
        });
        for n in 0..5_000 {
            ping.send(n).unwrap();
            assert_eq!(one(&back), Ok(n));
        }
        there.close();
    });
}

/// Receives that are cancelled while they are being woken pass the wake-up on.
#[test]
fn cancelled_waits_lose_no_work() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let stop = AtomicBool::new(false);
    let received = Mutex::new(BTreeMap::new());
    let note = |mut turn: Turn<u32>| {
        let n = turn.next().unwrap().complete();
        assert_eq!(received.lock().unwrap().insert(n, ()), None);
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let timeout = std::time::Duration::from_nanos(1);
                    if let Ok(Ok(turn)) = queue.receive().wait_timeout(timeout) {
                        note(turn);
                    }
                }
            });
        }
        scope.spawn(|| {
            while let Ok(turn) = queue.receive().wait() {
                note(turn);
            }
        });
        for n in 0..3_000 {
            lane.conversation().unwrap().send(n).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        queue.close();
    });
    let received = received.into_inner().unwrap();
    assert!(received.into_keys().eq(0..3_000));
    let receives = queue.counts().receives;
    assert_eq!((receives.waiting, receives.notified), (0, 0));
}
