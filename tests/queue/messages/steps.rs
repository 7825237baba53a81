//! Step by step: what happens to a message, one thing at a time.

use std::mem;

use conversant::limit::Limit;
use conversant::queue::{Conversation, Queue, SendReason};

use crate::messages::{Build, alive, number_of, of_every_build};
use crate::queue_support::{conversation, plain, serve, take, turn};

of_every_build! {
    in_order,
    given_back,
    detached,
    taken_out,
    sent_in_vain,
    dropped_with_the_queue,
    in_hand_when_the_queue_goes,
    a_forgotten_turn_keeps_its_own,
}

fn send<M: Build>(to: &Conversation<M>, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert!(to.send(M::make(number)).is_ok());
    }
}

/// All messages that can be received now, by number.
fn numbers<M: Build>(queue: &Queue<M>) -> Vec<Option<usize>> {
    serve(queue).iter().map(Build::number).collect()
}

fn expected<M: Build>(numbers: impl IntoIterator<Item = usize>) -> Vec<Option<usize>> {
    numbers.into_iter().map(number_of::<M>).collect()
}

/// Bursts of all sizes, with receives between them: the storage wraps, grows and is given back.
fn in_order<M: Build>() {
    let (queue, lane) = plain::<M>();
    let one = lane.conversation().unwrap();
    let (mut sent, mut received) = (0, 0);
    let number = |n: usize| number_of::<M>(n % 200);
    for round in 0..60 {
        for burst in [round % 7, 1, round] {
            let messages = (sent..sent + burst).map(|n| M::make(n % 200));
            match burst % 2 {
                0 => messages.for_each(|message| assert!(one.send(message).is_ok())),
                _ => assert!(one.send_all(messages).is_ok()),
            }
            sent += burst;
            let leave = if round % 5 == 4 { 0 } else { burst / 2 };
            while sent - received > leave {
                let mut turn = turn(&queue).unwrap();
                while let Some(delivery) = turn.next() {
                    assert_eq!(delivery.number(), number(received));
                    assert_eq!(delivery.complete().number(), number(received));
                    received += 1;
                }
            }
        }
    }
    assert_eq!(numbers(&queue).len(), sent - received);
    assert!(alive().is_empty());
}

/// Back to its place: alone, several of a batch, before others that came.
fn given_back<M: Build>() {
    let (queue, lane) = plain::<M>();
    let one = lane.conversation().unwrap();
    send(&one, 0..6);
    for _ in 0..3 {
        let mut turn = turn(&queue).unwrap();
        let delivery = turn.next().unwrap();
        assert_eq!(delivery.number(), number_of::<M>(0));
        delivery.give_back();
    }
    let mut turn = turn(&queue).unwrap();
    let batch = turn.next_batch(4).unwrap();
    let seen: Vec<_> = batch.iter().map(Build::number).collect();
    assert_eq!(seen, expected::<M>(0..4));
    drop(batch.complete_up_to(2));
    assert_eq!(turn.next().unwrap().complete().number(), number_of::<M>(2));
    send(&one, 6..8);
    // The turn has taken one message that nobody looked at.
    drop(turn);
    assert_eq!(numbers(&queue), expected::<M>(3..8));
    assert!(alive().is_empty());
}

/// Several detached deliveries at once, ended in any order, some of them given back.
fn detached<M: Build>() {
    let (queue, lane) = plain::<M>();
    let wide = conversation(&lane, Limit::AtMost(4), 100);
    send(&wide, 0..9);
    let mut out: Vec<_> = (0..4).map(|_| take(&queue).unwrap()).collect();
    assert!(take(&queue).is_none());
    out.swap(0, 3);
    drop(out.remove(1));
    assert_eq!(out.remove(0).complete().number(), number_of::<M>(3));
    drop(out);
    let left = [0, 1, 2, 4, 5, 6, 7, 8];
    assert_eq!(numbers(&queue), expected::<M>(left));
    assert!(alive().is_empty());
}

/// Drained, shut down; eligible, behind others, given back, in tiers, peeked at.
fn taken_out<M: Build>() {
    let (queue, lane) = plain::<M>();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    send(&one, 0..5);
    drop(take(&queue).unwrap());
    let drained = queue.drain(one.group_id()).unwrap();
    let seen: Vec<_> = drained.iter().map(Build::number).collect();
    assert_eq!(seen, expected::<M>(0..5));
    drop(drained);
    assert!(alive().is_empty());

    send(&one, 5..8);
    for tier in 0..3 {
        assert!(two.send_in(tier, M::make(8 + tier as usize)).is_ok());
    }
    let look = queue.try_peek(two.group_id()).unwrap();
    assert_eq!(look.number(), 1);
    assert_eq!(Build::number(&*look), number_of::<M>(8));
    let held = take(&queue).unwrap();
    let shut = queue.shutdown();
    let seen: Vec<_> = shut.iter().map(Build::number).collect();
    assert_eq!(seen, expected::<M>([6, 7, 9, 10]));
    drop(shut);
    drop((held, look));
    let left: Vec<_> = queue.shutdown();
    assert_eq!(left.len(), 2);
    drop(left);
    assert!(alive().is_empty());
}

fn sent_in_vain<M: Build>() {
    let full = Queue::<M>::builder().capacity(Limit::AtMost(2)).build();
    let full = full.unwrap();
    let lane = full.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    send(&one, 0..2);
    let refused = one.send(M::make(2)).unwrap_err();
    assert_eq!(refused.reason, SendReason::Full);
    assert_eq!(refused.message.number(), number_of::<M>(2));
    let both = one.send_all([2, 3].map(M::make)).unwrap_err();
    assert_eq!(both.message.len(), 2);
    let waits = one.send_wait(M::make(4));
    drop(waits);
    full.close();
    let late = one.send(M::make(5)).unwrap_err();
    assert_eq!(late.message.number(), number_of::<M>(5));
    drop((refused, both, late));
    assert_eq!(numbers(&full), expected::<M>(0..2));
    assert!(alive().is_empty());
}

/// Wherever they wait: one message, a burst, given back, in tiers, poisoned, paused, in a group
/// that has no handle any more.
fn dropped_with_the_queue<M: Build>() {
    for order in 0..2 {
        let (queue, lane) = plain::<M>();
        let tiered = queue.lane(1, Limit::SERIAL).unwrap();
        let all: Vec<_> = (0..5).map(|_| lane.conversation().unwrap()).collect();
        send(&all[0], 0..1);
        send(&all[1], 10..50);
        send(&all[2], 60..70);
        let paused = lane.group(Limit::AtMost(0), 100).unwrap();
        let one = paused.conversation().unwrap();
        send(&one, 80..90);
        let tiers = tiered.conversation().unwrap();
        for tier in 0..4 {
            assert!(tiers.send_in(tier, M::make(100 + tier as usize)).is_ok());
        }
        for _ in 0..5 {
            let mut turn = queue.try_receive_from(all[2].group_id()).unwrap();
            drop(turn.next());
        }
        assert_eq!(queue.poisoned().len(), 1);
        drop(queue.try_receive().unwrap().next());
        send(&all[4], 110..120);
        if order == 0 {
            drop((all, one, paused, tiers, lane, tiered));
            assert!(!alive().is_empty());
            drop(queue);
            assert!(alive().is_empty());
        } else {
            drop(queue);
            assert!(alive().is_empty(), "{:?}", alive());
            drop((all, one, paused, tiers, lane, tiered));
        }
    }
}

/// A turn that has taken a message, a delivery, a batch, a detached delivery, a peek.
fn in_hand_when_the_queue_goes<M: Build>() {
    let (queue, lane) = plain::<M>();
    let all: Vec<_> = (0..5).map(|_| lane.conversation().unwrap()).collect();
    for (at, one) in all.iter().enumerate() {
        send(one, 10 * at..10 * at + 5);
    }
    let owned = |at: usize| {
        let turn = queue.try_receive_from(all[at].group_id()).unwrap();
        turn.into_owned()
    };
    let (at_hand, mut one, mut batch) = (owned(0), owned(1), owned(2));
    let mut bare = owned(3);
    let detached = [(); 1].map(|()| bare.next().unwrap().detach());
    let look = queue.try_peek(all[4].group_id()).unwrap();
    let delivery = one.next().unwrap();
    let lent = batch.next_batch(3).unwrap();
    drop(queue);
    let mut left = if size_of::<M>() == 0 {
        vec![0]
    } else {
        vec![0, 10, 20, 21, 22, 30, 40]
    };
    assert_eq!(alive(), left);
    assert_eq!(delivery.complete().number(), number_of::<M>(10));
    drop(one);
    let done = lent.complete_up_to(2);
    assert_eq!(done.len(), 2);
    drop((done, batch, at_hand));
    left.retain(|&number| size_of::<M>() == 0 || number >= 30);
    assert_eq!(alive(), left);
    drop((look, bare));
    let [detached] = detached;
    drop(detached);
    assert!(alive().is_empty(), "{:?}", alive());
}

/// The message that the turn has taken is leaked, and nothing else.
fn a_forgotten_turn_keeps_its_own<M: Build>() {
    let (queue, lane) = plain::<M>();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    send(&one, 1..4);
    send(&two, 4..6);
    mem::forget(turn(&queue).unwrap());
    send(&one, 6..8);
    let mut other = turn(&queue).unwrap();
    mem::forget(other.next().unwrap());
    drop(other);
    assert_eq!(numbers(&queue), expected::<M>([4, 5]));
    drop(queue);
    let left = if size_of::<M>() == 0 { 0 } else { 1 };
    assert_eq!(alive(), [left]);
    crate::messages::gone(left);
    assert!(alive().is_empty());
}
