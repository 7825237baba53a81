//! Nothing polls: while readers are blocked and all ready groups are paused, capped or behind a
//! closed tier, no reader leaves its sleep. A binary of its own, because the count of wake-ups
//! belongs to the process.

use std::sync::mpsc;
use std::thread;

use conversant::limit::Limit;
use conversant::queue::Queue;
use conversant::wait::wakeups;

const READERS: usize = 4;

#[test]
fn blocked_readers_sleep_while_nothing_is_eligible() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let capped = queue.lane(1, Limit::SERIAL).unwrap();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let paused = group.conversation().unwrap();
    let (low, high) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    let (one, two) = (
        capped.conversation().unwrap(),
        capped.conversation().unwrap(),
    );
    low.send_in(0, "low").unwrap();
    one.send("one").unwrap();
    let take = |()| queue.try_receive().unwrap().next().unwrap().detach();
    let [low_in_hand, one_in_hand] = [(); 2].map(take);
    group.set_limit(Limit::AtMost(0)).unwrap();

    let (served, log) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..READERS {
            let (queue, served) = (&queue, served.clone());
            scope.spawn(move || {
                while let Ok(mut turn) = queue.receive().wait() {
                    served.send(turn.next().unwrap().complete()).unwrap();
                }
            });
        }
        wait_until_asleep(&queue);
        let before = wakeups();
        for n in 0..1000 {
            paused.send("paused").unwrap();
            high.send_in(1, "high").unwrap();
            two.send("two").unwrap();
            queue.bump(two.group_id(), (n % 256) as u8).unwrap();
            queue.bump(high.group_id(), (n % 256) as u8).unwrap();
            group.set_level((n % 256) as u8);
        }
        let snapshot = queue.snapshot();
        assert_eq!((snapshot.waiting, snapshot.counts.eligible), (3000, 0));
        assert_eq!(
            snapshot.counts.receives.waiting, READERS,
            "nobody was told to look"
        );
        assert_eq!(wakeups(), before, "nobody looked");

        // And each group becomes eligible by one event.
        one_in_hand.complete();
        assert_eq!(log.recv().unwrap(), "two");
        low_in_hand.complete();
        group.set_limit(Limit::SERIAL).unwrap();
        queue.close();
    });
    drop(served);
    let mut counts = [0; 3];
    for message in log {
        counts[["paused", "high", "two"]
            .iter()
            .position(|m| *m == message)
            .unwrap()] += 1;
    }
    assert_eq!(counts, [1000, 1000, 999]);
}

/// All are queued un-notified, and are past their spin: the count has stopped, and a spinning
/// thread does not count. A thread that is not asleep yet will not be counted when it falls asleep.
fn wait_until_asleep<T>(queue: &Queue<T>) {
    while queue.counts().receives.waiting < READERS {
        thread::yield_now();
    }
}
