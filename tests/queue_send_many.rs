//! Many messages to many groups as one.

mod queue_support;

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::task::Poll;

use conversant::limit::Limit;
use conversant::queue::{Conversation, Queue, SendReason};

use queue_support::{Bell, Random, poll, serve, take};

fn queue_of<T>(capacity: Limit, conversations: usize) -> (Queue<T>, Vec<Conversation<T>>) {
    let queue = Queue::builder().capacity(capacity).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let all = (0..conversations).map(|_| lane.conversation().unwrap());
    let all = all.collect();
    (queue, all)
}

/// Groups become ready in the order of their first messages, whatever their addresses.
#[test]
fn in_the_order_of_the_first_messages() {
    let (queue, all) = queue_of(Limit::Unlimited, 9);
    let mut random = Random(1);
    for _ in 0..100 {
        let mut to: Vec<usize> = (0..all.len()).collect();
        for at in 1..to.len() {
            to.swap(at, random.below(at + 1));
        }
        all[to[0]].send((to[0], 0)).unwrap();
        let twice = to.iter().chain(&to);
        let messages = twice.enumerate().map(|(n, &to)| (&all[to], (to, n + 1)));
        queue.send_many(messages).unwrap();
        let expected = to.iter().enumerate().flat_map(|(n, &to)| {
            let two = [(to, n + 1), (to, n + 10)];
            (n == 0).then_some((to, 0)).into_iter().chain(two)
        });
        assert_eq!(serve(&queue), expected.collect::<Vec<_>>());
    }
    queue.send_many([]).unwrap();
}

#[test]
fn all_or_none() {
    let (queue, all) = queue_of(Limit::AtMost(3), 3);
    let [one, two, ended] = &all[..] else {
        panic!("three");
    };
    let _ = ended;
    let above = queue.send_many([(one, 1); 4]).unwrap_err();
    assert_eq!(above.reason, SendReason::AboveCapacity);
    queue.send_many([(one, 1), (two, 2)]).unwrap();
    let full = queue.send_many([(one, 3), (two, 4)]).unwrap_err();
    assert_eq!((full.message.len(), full.reason), (2, SendReason::Full));
    two.send(3).unwrap();
    assert_eq!(serve(&queue), [1, 2, 3]);
    // In a lane with tiers, as by every rule.
    one.send_in(2, 4).unwrap();
    queue.send_many([(one, 5), (two, 6)]).unwrap();
    assert_eq!(serve(&queue), [6, 4, 5]);
    queue.close();
    let closed = queue.send_many([(one, 7), (two, 8)]).unwrap_err();
    assert_eq!(closed.reason, SendReason::Closed);
}

#[test]
#[should_panic(expected = "of another queue")]
fn not_on_conversations_of_others() {
    let (queue, all) = queue_of(Limit::Unlimited, 1);
    let (_other, others) = queue_of(Limit::Unlimited, 1);
    let _ = queue.send_many([(&all[0], 1), (&others[0], 2)]);
}

/// A receive for each group that became ready.
#[test]
fn it_wakes_as_many_as_can_begin() {
    let (queue, all) = queue_of(Limit::Unlimited, 2);
    let (bells, wakers): (Vec<_>, Vec<_>) = (0..3).map(|_| Bell::new()).unzip();
    let mut waits = [(); 3].map(|()| queue.receive());
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(poll(wait, waker).is_pending());
    }
    queue
        .send_many([(&all[0], 1), (&all[1], 2), (&all[0], 3)])
        .unwrap();
    let rings: Vec<_> = bells.iter().map(|bell| bell.rings()).collect();
    assert_eq!(rings, [1, 1, 0]);
    let turns = waits.iter_mut().zip(&wakers);
    let turns: Vec<_> = turns.map(|(wait, waker)| poll(wait, waker)).collect();
    let begun = turns.iter().map(|t| matches!(t, Poll::Ready(Ok(_))));
    assert_eq!(begun.collect::<Vec<_>>(), [true, true, false]);
}

/// Senders whose groups overlap in every order: nobody waits in a circle, and each conversation is in
/// order.
#[test]
fn threads_whose_groups_overlap() {
    const EACH: u32 = 2_000;
    let (queue, all) = queue_of(Limit::AtMost(64), 4);
    let start = Barrier::new(3);
    let mut seen: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let senders = [0, 1, 2].map(|who| {
            let (queue, all, start) = (&queue, &all, &start);
            scope.spawn(move || {
                let mut random = Random(who as u64);
                start.wait();
                for n in 0..EACH {
                    let mut first = random.below(4);
                    let mut messages: Vec<_> = (0..3)
                        .map(|_| {
                            first = (first + [1, 3][who % 2]) % 4;
                            (&all[first], (who, first, n))
                        })
                        .collect();
                    while let Err(back) = queue.send_many(messages) {
                        assert_eq!(back.reason, SendReason::Full);
                        messages = back.message;
                        std::thread::yield_now();
                    }
                }
            })
        });
        let mut left = 3 * 3 * EACH;
        while left > 0 {
            if let Some(delivery) = take(&queue) {
                let (who, to, n) = delivery.complete();
                seen.entry((who, to)).or_default().push(n);
                left -= 1;
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
    assert!(seen.values().all(|seen| seen.is_sorted()));
    assert!(serve(&queue).is_empty());
}
