//! Bumps, standing levels, weights, the bypass.

use conversant::error::Stale;
use conversant::limit::{Bypass, Limit};

use super::super::MANY;
use super::super::form::Queue;
use super::{conversation, plain, serve, take, turn};

#[test]
fn any_bump_is_ahead_of_any_standing_level() {
    let (queue, lane) = plain();
    let top = conversation(&lane, Limit::SERIAL, 255);
    let bumped = conversation(&lane, Limit::SERIAL, 0);
    top.send("standing 255").unwrap();
    bumped.send("bumped to 0").unwrap();
    queue.bump(bumped.group_id(), 0).unwrap();
    assert_eq!(queue.snapshot().lanes[0].groups[1].bump, Some(0));
    assert_eq!(serve(&queue), ["bumped to 0", "standing 255"]);
}

#[test]
fn ties_go_to_the_later_of_bump_and_ready() {
    let (queue, lane) = plain();
    let [a, b, c] = [(); 3].map(|()| lane.group(Limit::SERIAL, 100).unwrap());
    let [a1, b1, c1] = [&a, &b, &c].map(|group| group.conversation().unwrap());
    // a is bumped first and ready last.
    a.bump(5);
    b1.send('b').unwrap();
    c1.send('c').unwrap();
    c.bump(5);
    b.bump(5);
    a1.send('a').unwrap();
    // Bumped to the level that it has, it keeps its place.
    c.bump(5);
    assert_eq!(serve(&queue), ['c', 'b', 'a']);
}

#[test]
fn a_bump_to_another_level_replaces_the_old_one() {
    let (queue, lane) = plain();
    let [a, b] = [(); 2].map(|()| lane.group(Limit::SERIAL, 100).unwrap());
    a.conversation().unwrap().send('a').unwrap();
    b.conversation().unwrap().send('b').unwrap();
    b.bump(9);
    a.bump(10);
    a.bump(8);
    assert_eq!(queue.snapshot().waiting, 2, "the length is what it was");
    assert_eq!(serve(&queue), ['b', 'a']);
}

/// Pending, held, idle, ended.
#[test]
fn a_bump_is_used_up_by_the_next_turn() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let bumped = group.conversation().unwrap();
    let other = lane.conversation().unwrap();
    // Idle: the bump waits with the group.
    group.bump(1);
    other.send("other 1").unwrap();
    bumped.send("bumped 1").unwrap();
    let first = take(&queue).unwrap();
    assert_eq!(*first, "bumped 1");
    // Even if that turn fails.
    drop(first);
    assert_eq!(take(&queue).unwrap().complete(), "other 1");
    // Held: the bump is for the next turn.
    let held = turn(&queue).unwrap();
    group.bump(1);
    other.send("other 2").unwrap();
    drop(held);
    assert_eq!(serve(&queue), ["bumped 1", "other 2"]);
    // Idle for good: the bump ends with the group, and a later group is not bumped.
    group.bump(1);
    let id = group.id();
    drop((group, bumped));
    assert_eq!(queue.bump(id, 1), Err(Stale));
    other.send("other 3").unwrap();
    let reused = lane.conversation().unwrap();
    reused.send("reused").unwrap();
    assert_eq!(queue.bump(id, 1), Err(Stale));
    assert_eq!(serve(&queue), ["other 3", "reused"]);
}

/// SEMANTICS 1E: a bumped group that is locked stalls no reader, and keeps its bump until it is
/// free.
#[test]
fn a_bumped_group_that_is_held_stalls_nobody() {
    let (queue, lane) = plain();
    let [a, b, c] = [(); 3].map(|()| lane.conversation().unwrap());
    a.send_all(["a1", "a2"]).unwrap();
    b.send("b").unwrap();
    c.send("c").unwrap();
    let mut held = turn(&queue).unwrap();
    queue.bump(a.group_id(), 255).unwrap();
    assert_eq!(take(&queue).unwrap().complete(), "b");
    held.next().unwrap().complete();
    drop(held);
    assert_eq!(serve(&queue), ["a2", "c"]);
}

#[test]
fn standing_levels_and_fifo_within_one() {
    let (queue, lane) = plain();
    let levels = [3, 255, 100, 3, 255, 0];
    let conversations = levels.map(|level| conversation(&lane, Limit::SERIAL, level));
    for (n, conversation) in conversations.iter().enumerate() {
        conversation.send(n).unwrap();
    }
    assert_eq!(serve(&queue), [1, 4, 2, 0, 3, 5]);
    let group = lane.group(Limit::SERIAL, 1).unwrap();
    group.conversation().unwrap().send(7).unwrap();
    conversations[2].send(2).unwrap();
    group.set_level(101);
    assert_eq!(serve(&queue), [7, 2]);
}

#[test]
fn lanes_take_turns_by_weight() {
    let queue = Queue::new();
    let heavy = queue.lane(3, Limit::Unlimited).unwrap();
    let light = queue.lane(1, Limit::Unlimited).unwrap();
    let fill = |lane: &super::super::form::Lane<char>, name: char| {
        let conversations: Vec<_> = (0..6).map(|_| lane.conversation().unwrap()).collect();
        for conversation in &conversations {
            conversation.send(name).unwrap();
        }
    };
    fill(&heavy, 'h');
    fill(&light, 'l');
    let order: String = serve(&queue).into_iter().collect();
    assert_eq!(order, "hhhlhhhlllll");
}

/// Within (active tenants x quantum).
#[test]
fn a_backlog_of_100_000_does_not_hold_up_a_single_item() {
    let queue = Queue::builder().quantum(5).build().unwrap();
    let lanes = [(); 3].map(|()| queue.lane(1, Limit::Unlimited).unwrap());
    for lane in &lanes[..2] {
        lane.conversation()
            .unwrap()
            .send_all(vec![0; 50_000])
            .unwrap();
    }
    let single = lanes[2].conversation().unwrap();
    single.send(1).unwrap();
    let mut served = 0;
    'served: while let Some(mut turn) = turn(&queue) {
        while let Some(delivery) = turn.next() {
            served += 1;
            if delivery.complete() == 1 {
                break 'served;
            }
        }
    }
    assert!(served <= 3 * 5, "after {served}");
    // Within a lane: bounded bypass, though the group has the lowest level.
    let low = conversation(&lanes[0], Limit::SERIAL, 0);
    low.send(2).unwrap();
    let turns = (1..)
        .find(|_| take(&queue).unwrap().complete() == 2)
        .unwrap();
    assert!(turns <= 2 * (65 + 1), "after {turns} turns");
}

#[test]
fn the_oldest_is_overtaken_at_most_k_times_in_a_row() {
    for k in [0, 1, 5] {
        let queue = Queue::builder().bypass(Bypass::AtMost(k)).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let low = conversation(&lane, Limit::SERIAL, 0);
        let high: Vec<_> = (0..8)
            .map(|_| conversation(&lane, Limit::SERIAL, 9))
            .collect();
        low.send_all([0; 3]).unwrap();
        for conversation in &high {
            conversation.send_all([1; 9]).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| Some(take(&queue)?.complete())).collect();
        assert_eq!(order.iter().position(|&n| n == 0), Some(k as usize));
    }
}

#[test]
fn a_thousand_of_equal_priority_are_strictly_fifo() {
    let (queue, lane) = plain();
    let conversations: Vec<_> = (0..MANY).map(|_| lane.conversation().unwrap()).collect();
    for round in 0..2 {
        for n in 0..MANY {
            conversations[n * 7 % MANY].send(n + round).unwrap();
        }
        assert!(serve(&queue).into_iter().eq(round..MANY + round));
    }
}
