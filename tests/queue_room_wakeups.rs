//! Nothing polls: while senders wait for room no sender leaves its sleep, and for each free place
//! one does. A binary of its own, because the count of wake-ups belongs to the process.

use std::sync::mpsc;
use std::thread;

use conversant::limit::Limit;
use conversant::queue::{Queue, SendReason};
use conversant::wait::wakeups;

const SENDERS: usize = 4;

#[test]
fn blocked_senders_sleep_until_there_is_room_for_them() {
    let queue = Queue::builder().capacity(Limit::AtMost(2)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let other = lane.conversation().unwrap();
    let wide = lane.group(Limit::Unlimited, 100).unwrap();
    let wide = wide.conversation().unwrap();
    wide.send_all([100, 101]).unwrap();
    let (sent, log) = mpsc::channel();
    thread::scope(|scope| {
        for n in 0..SENDERS {
            let (wide, sent) = (&wide, sent.clone());
            scope.spawn(move || {
                wide.send_wait(n).wait().unwrap();
                sent.send(n).unwrap();
            });
        }
        // All are queued; a thread that still spins will not be counted when it falls asleep.
        while queue.counts().sends.waiting < SENDERS {
            thread::yield_now();
        }
        let before = wakeups();
        for _ in 0..1000 {
            assert_eq!(other.send(9).unwrap_err().reason, SendReason::Full);
            queue.bump(wide.group_id(), 7).unwrap();
            queue.try_receive().unwrap().next().unwrap().give_back();
            queue.resume(wide.group_id()).unwrap();
        }
        assert_eq!(queue.counts().sends.waiting, SENDERS);
        assert_eq!(wakeups(), before, "nobody looked");
        for left in (0..SENDERS).rev() {
            queue.try_receive().unwrap().next().unwrap().complete();
            log.recv().unwrap();
            let sends = queue.counts().sends;
            assert_eq!((sends.waiting, sends.notified), (left, 0));
        }
        // A sender that had not fallen asleep by then did not have to be woken.
        assert!(wakeups() - before <= SENDERS as u64);
    });
    assert_eq!(queue.shutdown().len(), 2);
}
