//! Queues that never hold more than their capacity, by key; the other tests are in
//! `queue_suite/capacity.rs`.

use std::task::Waker;
use std::thread;

use crate::queue_support;

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Queue, SendReason};

use queue_support::{poll, serve};

#[test]
fn by_key_too() {
    let queue = Queue::builder().capacity(Limit::AtMost(1)).build().unwrap();
    let orders = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap());
    orders.send("anna", 1).unwrap();
    let refused = orders.send("bert", 2).unwrap_err();
    assert_eq!((refused.message, refused.reason), (2, SendReason::Full));
    assert_eq!(serve(&queue), [1]);
    assert!(orders.is_empty(), "a key that was refused leaves nothing");
}

#[test]
fn what_is_done_in_its_turn_makes_room() {
    let queue = Queue::builder().capacity(Limit::AtMost(2)).build().unwrap();
    let one = queue.lane(1, Limit::Unlimited).unwrap();
    let one = one.conversation().unwrap();
    for n in 0..3 {
        one.send_all([n, n]).unwrap();
        let mut turn = queue.try_receive().unwrap();
        assert_eq!(turn.next().unwrap().complete(), n);
        one.send(n).unwrap();
        assert!(turn.next_batch(2).unwrap().complete().eq([n, n]));
    }
}

/// Each thread caches some permits of a large capacity. Apart from the cost nothing shows it.
#[test]
fn a_large_one_is_exact_whoever_frees_it() {
    const MOST: usize = 3000;
    let capacity = Limit::AtMost(MOST as u32);
    let queue = Queue::builder().capacity(capacity).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let wide = lane.group(Limit::Unlimited, 100).unwrap();
    let wide = wide.conversation().unwrap();
    let fill = |room: usize| {
        for n in 0..room {
            assert!(wide.send(n).is_ok(), "{n} of {room}");
        }
        assert_eq!(wide.send(0).unwrap_err().reason, SendReason::Full);
    };
    fill(MOST);
    for freed in [1, 100, 2500, 40, MOST] {
        let some = |n: usize| {
            for _ in 0..n {
                let mut turn = queue.receive().wait().unwrap();
                turn.next().unwrap().complete();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| some(freed / 2));
            scope.spawn(|| some(freed - freed / 2));
        });
        fill(freed);
    }
    assert_eq!(queue.shutdown().len(), MOST);
}

/// Waiting senders outrun the readers, which must wake them, also near the point where the queue
/// starts and stops caching permits.
#[test]
fn a_large_capacity_is_never_exceeded_and_wakes_who_waits() {
    const MOST: u64 = 2048;
    const EACH: u64 = 20_000;
    let capacity = Limit::AtMost(MOST as u32);
    let queue: Queue<u64> = Queue::builder().capacity(capacity).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    // One group: a snapshot reads one group after the other, so it could count a place of several
    // groups twice.
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let readers = [(); 2].map(|()| {
        let queue = queue.clone();
        thread::spawn(move || {
            let (mut sum, mut longest) = (0, 0);
            for n in 0_u64.. {
                let Ok(mut turn) = queue.receive().wait() else {
                    break;
                };
                while let Some(delivery) = turn.next() {
                    sum += delivery.complete();
                }
                if n.is_multiple_of(64) {
                    longest = longest.max(queue.snapshot().waiting);
                }
            }
            (sum, longest)
        })
    });
    thread::scope(|scope| {
        for _ in 0..3 {
            let own = group.conversation().unwrap();
            scope.spawn(move || {
                for n in 1..=EACH {
                    match n % 100 {
                        0 => own.send_all_wait([n; 50]).wait().unwrap(),
                        _ => own.send_wait(n).wait().unwrap(),
                    }
                }
            });
        }
    });
    queue.close();
    let read = readers.map(|reader| reader.join().unwrap());
    assert!(read.iter().all(|&(_, longest)| longest <= MOST), "{read:?}");
    let sum: u64 = read.iter().map(|&(sum, _)| sum).sum();
    let more: u64 = (1..=EACH).filter(|n| n.is_multiple_of(100)).sum();
    assert_eq!(sum, 3 * (EACH * (EACH + 1) / 2 + 49 * more));
}

#[test]
fn a_capacity_of_nothing_lets_nothing_in() {
    let queue = Queue::builder().capacity(0).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    assert_eq!(queue.capacity(), Limit::AtMost(0));
    assert_eq!(one.send(1).unwrap_err().reason, SendReason::Full);
    assert_eq!(one.send_all([1, 2]).unwrap_err().reason, SendReason::Full);
    one.send_all([]).unwrap();
    let mut sent = one.send_wait(1);
    assert!(poll(&mut sent, Waker::noop()).is_pending());
    queue.close();
    assert_eq!(serve(&queue), []);
    let refused = sent.wait().unwrap_err();
    assert_eq!((refused.message, refused.reason), (1, SendReason::Closed));
}

/// What another thread has cached is room for a handler, too, also if capacities of groups are in
/// use.
#[test]
fn a_handler_finds_what_other_threads_have_cached() {
    let queue = Queue::builder().capacity(2048).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let (one, bounded) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    bounded.set_capacity(1).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| [1, 2].map(|n| one.send(n).unwrap()));
    });
    // Then all that is left is cached by that thread.
    (2..2017).for_each(|n| one.send(n).unwrap());
    let turn = queue.try_receive().unwrap();
    for left in (0..31).rev() {
        one.send_wait(0).wait().unwrap();
        assert_eq!(queue.room(), Some(left));
    }
    let own = one.send_wait(7).wait().unwrap_err();
    assert_eq!((own.message, own.reason), (7, SendReason::OwnQueue));
    drop(turn);
}

/// All that is free is cached by this thread.
#[test]
fn a_wait_finds_at_its_first_look_what_threads_have_cached() {
    let queue = Queue::builder().capacity(2048).build().unwrap();
    let one = queue.lane(1, Limit::Unlimited).unwrap().conversation();
    let one = one.unwrap();
    (0..2048).for_each(|n| one.send(n).unwrap());
    let mut turn = queue.try_receive().unwrap();
    (0..5).for_each(|_| _ = turn.next().unwrap().complete());
    drop(turn);
    assert_eq!(queue.room(), Some(5));
    let mut sent = one.send_wait(1);
    assert!(poll(&mut sent, Waker::noop()).is_ready());
    assert_eq!(queue.room(), Some(4));
}
