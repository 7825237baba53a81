//! Real threads, blocked until there is room.

use std::sync::Mutex;
use std::time::Duration;

use super::*;

/// Real threads: never more than the capacity, nothing lost, each conversation in order.
#[test]
fn threads_that_wait_for_room() {
    const EACH: u32 = 2_000;
    const CAPACITY: u32 = 3;
    const READERS: u32 = 2;
    // "A turn holds one unit of the group's limit from its claim to its end": the turns of the
    // other readers may have no message at this moment.
    const HELD: u64 = (CAPACITY + READERS - 1) as u64;
    let (queue, lane) = bounded(CAPACITY);
    let served = Mutex::new(vec![Vec::new(); 4]);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|who| {
                let conversation = lane.conversation().unwrap();
                scope.spawn(move || {
                    for n in 0..EACH {
                        if n % 7 == 0 {
                            let late = conversation.send_wait((who, n));
                            match late.or_return_after(Duration::ZERO) {
                                Ok(()) => continue,
                                Err(late) => assert_eq!(late.reason, SendReason::TimedOut),
                            }
                        }
                        conversation.send_wait((who, n)).wait().unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..READERS {
            scope.spawn(|| {
                while let Ok(mut turn) = queue.receive().wait() {
                    while let Some(delivery) = turn.next() {
                        assert!(held(&queue) <= HELD);
                        let (who, n): (usize, u32) = *delivery;
                        served.lock().unwrap()[who].push(n);
                        delivery.complete();
                    }
                }
            });
        }
        senders.into_iter().for_each(|s| s.join().unwrap());
        assert_eq!(sends(&queue), (0, 0, 0));
        queue.close();
    });
    for served in served.into_inner().unwrap() {
        assert_eq!(served, (0..EACH).collect::<Vec<_>>());
    }
}
