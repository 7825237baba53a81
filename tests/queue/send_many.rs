//! Many messages to many groups by one call.

use crate::queue_support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::task::Poll;

use conversant::limit::Limit;
use conversant::queue::{Conversation, Queue, SendError, SendReason};

use queue_support::{Random, WakeCounter, poll, serve, take};

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

type Addressed<'a, T> = Vec<(&'a Conversation<T>, T)>;

/// The returned messages, and the reason.
fn back<T>(sent: Result<(), SendError<Addressed<'_, T>>>) -> (Vec<T>, SendReason) {
    let refused = sent.unwrap_err();
    let messages = refused.message.into_iter().map(|pair| pair.1);
    (messages.collect(), refused.reason)
}

/// From the first refused message on all are returned, wherever that one is.
#[test]
fn what_follows_a_refusal_comes_back() {
    for at in 1..40_u32 {
        let (queue, all) = queue_of(Limit::AtMost(at), 2);
        let messages = (0..40).map(|n| (&all[n as usize % 2], n));
        let sent = queue.send_many(messages);
        assert_eq!(back(sent), ((at..40).collect(), SendReason::Full));
        let mut served = serve(&queue);
        served.sort_unstable();
        assert_eq!(served, (0..at).collect::<Vec<_>>());
    }
}

#[test]
fn as_far_as_there_is_room() {
    let (queue, all) = queue_of(Limit::AtMost(20), 2);
    let [one, two] = &all[..] else { panic!("two") };
    let messages = (0..30).map(|n| ([one, two][n % 2], n));
    let (rest, reason) = back(queue.send_many(messages));
    assert_eq!((rest, reason), ((20..30).collect(), SendReason::Full));
    assert_eq!(serve(&queue).len(), 20);
    // Each permit has been returned.
    let messages = (0..20).map(|n| ([one, two][n % 2], n));
    queue.send_many(messages).unwrap();
    assert_eq!(serve(&queue).len(), 20);
    queue.close();
    let closed = back(queue.send_many([(one, 7), (one, 8)]));
    assert_eq!(closed, (vec![7, 8], SendReason::Closed));
}

#[test]
fn in_the_tier_of_its_group() {
    let (queue, all) = queue_of(Limit::Unlimited, 2);
    all[0].send_in(2, 4).unwrap();
    queue.send_many([(&all[0], 5), (&all[1], 6)]).unwrap();
    assert_eq!(serve(&queue), [6, 4, 5]);
}

/// Messages that were pulled ahead are dropped, all before those are sent, and sleepers are woken.
#[test]
fn an_iterator_panics() {
    for at in 0..40 {
        let (queue, all) = queue_of(Limit::Unlimited, 1);
        let (wakes, waker) = WakeCounter::new();
        let mut wait = queue.receive();
        assert!(poll(&mut wait, &waker).is_pending());
        let messages = (0..40).inspect(|&n| assert_ne!(n, at, "no more"));
        let sending = || queue.send_many(messages.map(|n| (&all[0], n)));
        assert!(catch_unwind(AssertUnwindSafe(sending)).is_err());
        assert_eq!(wakes.count(), usize::from(at >= 16));
        drop(wait);
        assert_eq!(serve(&queue), (0..at / 16 * 16).collect::<Vec<_>>());
    }
}

/// Before the iterator is asked for more, sleepers are woken for the messages that were sent.
#[test]
fn it_wakes_though_a_later_one_is_refused() {
    for capacity in 1..16 {
        let (queue, all) = queue_of(Limit::AtMost(capacity), 1);
        let (wakes, waker) = WakeCounter::new();
        let mut wait = queue.receive();
        assert!(poll(&mut wait, &waker).is_pending());
        let messages = (0..40).map(|n| {
            assert_eq!(wakes.count(), usize::from(n >= 16));
            (&all[0], n)
        });
        let (rest, _) = back(queue.send_many(messages));
        assert_eq!(rest, (capacity..40).collect::<Vec<_>>());
        let Poll::Ready(Ok(mut turn)) = poll(&mut wait, &waker) else {
            panic!("it was woken");
        };
        assert_eq!(turn.next().unwrap().complete(), 0);
    }
}

#[test]
fn not_on_conversations_of_others() {
    let (queue, all) = queue_of(Limit::Unlimited, 1);
    let (other, others) = queue_of(Limit::Unlimited, 1);
    let messages = (0..20).map(|n| (if n == 18 { &others[0] } else { &all[0] }, n));
    let sent = catch_unwind(AssertUnwindSafe(|| queue.send_many(messages)));
    let payload = sent.unwrap_err();
    assert_eq!(
        payload.downcast_ref(),
        Some(&"a conversation of another queue")
    );
    assert_eq!(serve(&queue), (0..16).collect::<Vec<_>>());
    assert!(serve(&other).is_empty());
}

/// One receive is woken for each group that became ready.
#[test]
fn it_wakes_as_many_as_can_begin() {
    let (queue, all) = queue_of(Limit::Unlimited, 2);
    let (counters, wakers): (Vec<_>, Vec<_>) = (0..3).map(|_| WakeCounter::new()).unzip();
    let mut waits = [(); 3].map(|()| queue.receive());
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(poll(wait, waker).is_pending());
    }
    queue
        .send_many([(&all[0], 1), (&all[1], 2), (&all[0], 3)])
        .unwrap();
    let count: Vec<_> = counters.iter().map(|wakes| wakes.count()).collect();
    assert_eq!(count, [1, 1, 0]);
    let turns = waits.iter_mut().zip(&wakers);
    let turns: Vec<_> = turns.map(|(wait, waker)| poll(wait, waker)).collect();
    let begun = turns.iter().map(|t| matches!(t, Poll::Ready(Ok(_))));
    assert_eq!(begun.collect::<Vec<_>>(), [true, true, false]);
}

/// Senders whose groups overlap in every order: each conversation is in order, also where the rest
/// of a call is sent again.
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
