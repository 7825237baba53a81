//! Which groups are eligible: limits, caps, pauses, and what the snapshot says of them.

use conversant::limit::Limit;

use super::super::form::{NoTurn, Why};
use super::{PAUSED, TWO, conversation, plain, serve, take, turn, why};

#[test]
fn arrival_is_never_blocked_by_the_lock_of_a_group() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let mut turn = turn(&queue).unwrap();
    one.send(2).unwrap();
    turn.next().unwrap().complete();
    one.send(3).unwrap();
    assert_eq!(turn.next().unwrap().complete(), 2);
    assert_eq!(turn.next().unwrap().complete(), 3);
}

#[test]
fn without_related_conversations_each_is_its_own_group() {
    let (queue, lane) = plain();
    let (a, b) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    assert_ne!(a.group_id(), b.group_id());
    a.send('a').unwrap();
    b.send('b').unwrap();
    let held = take(&queue).unwrap();
    assert_eq!(take(&queue).unwrap().complete(), 'b');
    assert_eq!(held.complete(), 'a');
}

/// 12 items of one key and limit 1: exactly one, then none; and so for every limit.
#[test]
fn a_limit_of_messages_in_flight() {
    for n in [1, 2, 5] {
        let (queue, lane) = plain();
        let one = conversation(&lane, Limit::AtMost(n), 100);
        one.send_all(0..12).unwrap();
        let held: Vec<_> = std::iter::from_fn(|| take(&queue)).collect();
        assert!(held.iter().map(|d| **d).eq(0..n));
        assert_eq!(why(&queue), Why::Limit);
    }
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all(0..12).unwrap();
    let held: Vec<_> = std::iter::from_fn(|| take(&queue)).collect();
    assert_eq!(held.len(), 12);
}

#[test]
fn lowering_a_limit_leaves_a_debt() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::AtMost(3), 100).unwrap();
    let one = group.conversation().unwrap();
    one.send_all(0..9).unwrap();
    let mut held: Vec<_> = std::iter::from_fn(|| take(&queue)).collect();
    assert_eq!(held.len(), 3);
    group.set_limit(Limit::SERIAL).unwrap();
    held.pop().unwrap().complete();
    assert!(take(&queue).is_none(), "two for a limit of one");
    held.pop().unwrap().complete();
    assert!(take(&queue).is_none(), "one for a limit of one");
    held.pop().unwrap().complete();
    held.push(take(&queue).unwrap());
    assert!(take(&queue).is_none());
    group.set_limit(TWO).unwrap();
    held.push(take(&queue).unwrap());
    assert!(take(&queue).is_none());
}

#[test]
fn a_pause_keeps_the_age() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let old = group.conversation().unwrap();
    let young = lane.conversation().unwrap();
    old.send("old").unwrap();
    young.send("young").unwrap();
    group.set_limit(PAUSED).unwrap();
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.waiting, snapshot.counts.eligible), (2, 1));
    group.set_limit(Limit::SERIAL).unwrap();
    assert_eq!(serve(&queue), ["old", "young"]);
}

#[test]
fn a_cap_counts_the_whole_lane_and_is_exact() {
    let (queue, lane) = plain();
    lane.set_cap(TWO).unwrap();
    let conversations: Vec<_> = (0..4).map(|_| lane.conversation().unwrap()).collect();
    for (n, conversation) in conversations.iter().enumerate() {
        conversation.send(n).unwrap();
    }
    // A turn has its first unit even before `next`.
    let one = turn(&queue).unwrap();
    let two = turn(&queue).unwrap();
    assert_eq!(queue.snapshot().lanes[0].in_flight, 2);
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    let waits = queue.snapshot().lanes[0].groups[3].why;
    assert_eq!(waits, Why::Cap);
    lane.set_cap(Limit::AtMost(3)).unwrap();
    let three = take(&queue).unwrap();
    assert!(take(&queue).is_none());
    lane.set_cap(PAUSED).unwrap();
    drop((one, two, three));
    assert!(take(&queue).is_none());
    lane.set_cap(Limit::Unlimited).unwrap();
    // A group whose message was given back is the youngest.
    assert_eq!(serve(&queue), [3, 0, 1, 2]);
}

#[test]
fn a_blocked_group_costs_the_others_nothing() {
    let (queue, lane) = plain();
    let blocked: Vec<_> = (0..100).map(|_| conversation(&lane, PAUSED, 255)).collect();
    for conversation in &blocked {
        conversation.send("never").unwrap();
        queue.bump(conversation.group_id(), 255).unwrap();
    }
    let free = conversation(&lane, Limit::SERIAL, 0);
    free.send("served").unwrap();
    assert_eq!(queue.counts().eligible, 1);
    assert_eq!(serve(&queue), ["served"]);
}

#[test]
fn the_snapshot_says_why() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let one = group.conversation().unwrap();
    assert_eq!(why(&queue), Why::Idle);
    one.send_all([1, 2]).unwrap();
    assert_eq!(why(&queue), Why::InLine);
    let mut held = turn(&queue).unwrap();
    assert_eq!(why(&queue), Why::Held);
    let delivery = held.next().unwrap().detach();
    drop(held);
    assert_eq!(why(&queue), Why::Limit);
    drop(delivery);
    group.set_limit(PAUSED).unwrap();
    assert_eq!(why(&queue), Why::Paused);
    group.set_limit(Limit::SERIAL).unwrap();
    lane.set_cap(PAUSED).unwrap();
    assert_eq!(why(&queue), Why::Cap);
    lane.set_cap(Limit::Unlimited).unwrap();
    let other = lane.conversation().unwrap();
    other.send_in(7, 3).unwrap();
    assert_eq!(queue.snapshot().lanes[0].groups[1].why, Why::Tier);
    assert_eq!(queue.snapshot().lanes[0].open_tier, Some(0));
}
