//! Fixed scenarios of special steps: turns that are claimed and not begun, detached deliveries and
//! their units, batches, and limits that come into use while a turn is live.

mod live;

use conversant::limit::Limit;
use conversant::queue::{Conversation, Group, GroupStatus, Lane, NoMore, NoTurn, Queue, Turn, Why};

const ONE: Limit = Limit::SERIAL;
const TWO: Limit = Limit::AtMost(2);
const NONE: Limit = Limit::AtMost(0);

fn with_lane(cap: Limit) -> (Queue<u8>, Lane<u8>) {
    let queue = Queue::new();
    let lane = queue.lane(1, cap).unwrap();
    (queue, lane)
}

/// A group with these messages.
fn group(lane: &Lane<u8>, limit: Limit, messages: &[u8]) -> (Group<u8>, Conversation<u8>) {
    let group = lane.group(limit, 100).unwrap();
    let conversation = group.conversation().unwrap();
    conversation.send_all(messages.iter().copied()).unwrap();
    (group, conversation)
}

fn nothing(queue: &Queue<u8>) -> bool {
    queue.try_receive().err() == Some(NoTurn::Empty)
}

/// The first message of a turn, completed.
fn done(turn: &mut Turn<'_, u8>) -> Option<u8> {
    turn.next().map(|delivery| delivery.complete())
}

/// The first message of the next turn, which ends.
fn first(queue: &Queue<u8>) -> Option<u8> {
    done(&mut queue.try_receive().ok()?)
}

fn status(queue: &Queue<u8>, group: &Group<u8>) -> GroupStatus {
    let snapshot = queue.snapshot();
    let mut groups = snapshot.lanes.iter().flat_map(|lane| &lane.groups);
    *groups.find(|status| status.id == group.id()).unwrap()
}

#[test]
fn a_claimed_group_is_in_line_no_more_whatever_changes() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let (group, _stays) = group(&lane, ONE, &[1, 2]);
    let mut turns = queue.try_receive_many(2).unwrap();
    assert_eq!(turns.len(), 1);
    group.set_level(7);
    group.set_limit(TWO).unwrap();
    assert!(nothing(&queue));
    let claimed = status(&queue, &group);
    assert_eq!((claimed.why, claimed.in_flight), (Why::Held, 1));
    let mut turn = turns.next().unwrap();
    assert_eq!(done(&mut turn), Some(1));
    drop((turn, turns));
    assert_eq!(first(&queue), Some(2));
}

#[test]
fn a_claimed_group_uses_its_bump_up_at_once() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let (group, _stays) = group(&lane, ONE, &[1, 2]);
    let turns = queue.try_receive_many(1).unwrap();
    group.bump(255);
    assert_eq!(status(&queue, &group).bump, None);
    drop(turns);
    group.bump(255);
    assert_eq!(status(&queue, &group).bump, Some(255));
    let turn = queue.try_receive().unwrap();
    assert_eq!(status(&queue, &group).bump, None);
    drop(turn);
}

/// The next claim sees a bump of a queued group, though other groups are queued already; of several
/// bumps the last counts.
#[test]
fn a_bump_in_line_is_seen_by_the_next_claim() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let [_a, _b, c, d] = [1, 2, 3, 4].map(|message| group(&lane, ONE, &[message]));
    assert_eq!(first(&queue), Some(1));
    c.0.bump(5);
    d.0.bump(9);
    d.0.bump(4);
    let mut turns = queue.try_receive_many(3).unwrap();
    let served = std::array::from_fn(|_| done(&mut turns.next().unwrap()).unwrap());
    assert_eq!(served, [3, 4, 2]);
}

/// A bumped group that becomes ready joins the lanes' round when it does.
#[test]
fn a_bumped_group_that_is_sent_to_keeps_the_order_of_lanes() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let other = queue.lane(1, Limit::Unlimited).unwrap();
    let (bumped, to_bumped) = group(&lane, ONE, &[]);
    let (_plain, to_plain) = group(&other, ONE, &[]);
    bumped.bump(7);
    to_bumped.send(1).unwrap();
    to_plain.send(2).unwrap();
    let served: Vec<_> = std::iter::from_fn(|| first(&queue)).collect();
    assert_eq!(served, [1, 2]);
}

/// A change finds the group at its new place.
#[test]
fn a_bump_in_line_and_a_pause() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let [_a, (b, _to_b), _c] = [1, 2, 3].map(|message| group(&lane, ONE, &[message]));
    b.bump(5);
    b.set_limit(Limit::AtMost(0)).unwrap();
    assert_eq!(first(&queue), Some(1));
    b.set_limit(ONE).unwrap();
    assert_eq!(status(&queue, &b).bump, Some(5));
    let served: Vec<_> = std::iter::from_fn(|| first(&queue)).collect();
    assert_eq!(served, [2, 3]);
}

#[test]
fn turns_that_are_not_asked_for_begin_and_end() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let [_a, _b, _c] = [1, 2, 3].map(|message| group(&lane, ONE, &[message]));
    let mut turns = queue.try_receive_many(3).unwrap();
    assert_eq!(turns.next().as_mut().and_then(done), Some(1));
    let _d = group(&lane, ONE, &[4]);
    drop(turns);
    // They are the youngest.
    let served: Vec<_> = std::iter::from_fn(|| first(&queue)).collect();
    assert_eq!(served, [4, 2, 3]);
}

#[test]
fn a_paused_group_is_out_of_line() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let (group, _stays) = group(&lane, ONE, &[1, 2]);
    for expected in 1..3 {
        group.set_limit(NONE).unwrap();
        assert!(nothing(&queue));
        assert_eq!(status(&queue, &group).why, Why::Paused);
        group.set_limit(ONE).unwrap();
        assert_eq!(first(&queue), Some(expected));
    }
}

/// By its ready time, also where its end was no plain step: a group that moves to another level
/// keeps its ready time.
#[test]
fn whose_turn_ends_is_the_youngest() {
    for tiered in [false, true] {
        let (queue, lane) = with_lane(Limit::Unlimited);
        let (a, _a) = group(&lane, ONE, &[1, 3]);
        let (b, _b) = group(&lane, ONE, &[2]);
        let later = lane.conversation().unwrap();
        if tiered {
            later.send_in(1, 4).unwrap();
        }
        assert_eq!(first(&queue), Some(1));
        for group in [&a, &b] {
            group.set_level(150);
        }
        assert_eq!([(); 2].map(|()| first(&queue)), [Some(2), Some(3)]);
    }
}

#[test]
fn a_batch_is_done_up_to_a_number() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let _stays = group(&lane, ONE, &[1, 2, 3, 4]);
    let mut turn = queue.try_receive().unwrap();
    let batch = turn.next_batch(3).unwrap();
    assert_eq!((batch.len(), batch.attempt()), (3, 1));
    assert!(batch.complete_up_to(1).eq([1]));
    // The first message that was not completed has failed.
    for expected in [(2, 2), (3, 1), (4, 1)] {
        let delivery = turn.next().unwrap();
        assert_eq!((*delivery, delivery.attempt()), expected);
        delivery.complete();
    }
}

/// All remaining messages, batch by batch.
fn batches(turn: &mut Turn<'_, u8>) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| Some(turn.next_batch(9)?.complete().collect())).collect()
}

#[test]
fn a_batch_takes_nothing_beyond_a_cap_that_was_lowered_meanwhile() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let _stays = group(&lane, TWO, &[1, 2, 3]);
    let mut turn = queue.try_receive().unwrap();
    lane.set_cap(0).unwrap();
    assert_eq!(batches(&mut turn), [[1]]);
    lane.set_cap(1).unwrap();
    assert_eq!(batches(&mut turn).concat(), [2, 3]);
}

#[test]
fn a_batch_ends_before_a_failed_message_and_before_a_gap() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let _stays = group(&lane, TWO, &[1, 2, 3, 4]);
    let mut turn = queue.try_receive().unwrap();
    let out = turn.next().unwrap().detach();
    // Both are given back, and the second, too, has failed.
    for attempt in [1, 2] {
        let batch = turn.next_batch(2).unwrap();
        assert_eq!(batch.attempt(), attempt);
        drop(batch.complete_up_to(0));
    }
    drop(out);
    assert_eq!(batches(&mut turn), [&[1][..], &[2, 3, 4]]);
    drop(turn);

    // Behind the gap are plain messages, and one that was given back but has not failed.
    for (behind, comes_back) in [(&[3, 4, 5][..], false), (&[4, 5], true)] {
        let _stays = group(&lane, TWO, &[1, 2, 3, 4, 5]);
        let mut turn = queue.try_receive().unwrap();
        let out = turn.next().unwrap().detach();
        turn.next().unwrap().complete();
        if comes_back {
            drop(turn.next_batch(3).unwrap().complete_up_to(0));
            turn.next().unwrap().complete();
        }
        drop(out);
        assert_eq!(batches(&mut turn), [&[1], behind]);
    }
}

#[test]
fn an_owned_turn_is_the_same_turn() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let _stays = group(&lane, ONE, &[1, 2]);
    let mut turn = queue.try_receive().unwrap().into_owned();
    assert!(nothing(&queue));
    assert_eq!(done(&mut turn), Some(1));
    drop(turn);
    assert_eq!(first(&queue), Some(2));
}

#[test]
fn an_owned_turn_outlives_the_queue_and_does_not_keep_it() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let stays = group(&lane, ONE, &[1, 2]);
    let mut turn = queue.try_receive().unwrap().into_owned();
    drop(queue);
    assert_eq!(done(&mut turn), Some(1));
    assert_eq!(done(&mut turn), None);
    assert!(stays.1.send(3).is_err());
}

#[test]
fn a_turn_in_a_capped_lane_gives_its_unit_back() {
    let (queue, lane) = with_lane(ONE);
    let _stays = [&[1, 2][..], &[3]].map(|messages| group(&lane, ONE, messages));
    // With work left, and without.
    for expected in [1, 3, 2] {
        let mut turn = queue.try_receive().unwrap();
        assert!(nothing(&queue));
        assert_eq!(done(&mut turn), Some(expected));
    }
    assert_eq!(queue.snapshot().lanes[0].in_flight, 0);
}

#[test]
fn units_of_many_lanes_come_back_together() {
    let queue = Queue::new();
    let lanes = [(); 20].map(|()| queue.lane(1, Limit::AtMost(3)).unwrap());
    let message = |lane| [(); 4].map(|()| group(lane, ONE, &[1]));
    let _stay = lanes.each_ref().map(message);
    for at_once in [60, 20] {
        let mut turns = Vec::new();
        while let Ok(turn) = queue.try_receive() {
            turns.push(turn);
        }
        assert_eq!(turns.len(), at_once);
        for mut turn in turns {
            assert_eq!(done(&mut turn), Some(1));
        }
        let left = queue.snapshot().lanes;
        assert!(left.iter().all(|lane| lane.in_flight == 0), "{left:?}");
    }
}

#[test]
fn a_lane_in_debt_has_its_units_back_in_order() {
    let (queue, debtor) = with_lane(Limit::AtMost(3));
    let other = queue.lane(1, Limit::Unlimited).unwrap();
    let other = other.conversation().unwrap();
    let _stay = [1, 2, 3, 4].map(|message| group(&debtor, ONE, &[message]));
    let mut turns: Vec<_> = queue.try_receive_many(32).unwrap().collect();
    for turn in &mut turns {
        done(turn).unwrap();
    }
    debtor.set_cap(ONE).unwrap();
    turns.truncate(1);
    other.send(5).unwrap();
    drop(turns);
    for expected in [5, 4] {
        assert_eq!(done(&mut queue.try_receive().unwrap()), Some(expected));
    }
}

#[test]
fn no_more_turns_at_once_than_a_cap_has_room_for() {
    let (queue, lane) = with_lane(Limit::AtMost(3));
    let _stays = [1, 2, 3, 4, 5].map(|message| group(&lane, ONE, &[message]));
    let first: Vec<_> = queue.try_receive_many(2).unwrap().collect();
    let mut second: Vec<_> = queue.try_receive_many(32).unwrap().collect();
    assert_eq!((first.len(), second.len()), (2, 1));
    assert!(nothing(&queue));
    assert_eq!(done(&mut second[0]), Some(3));
    drop((first, second));
    let served = |n| {
        let turns = queue.try_receive_many(n).unwrap();
        turns.map(|mut turn| done(&mut turn)).collect::<Vec<_>>()
    };
    assert_eq!(served(32), [4, 5, 1].map(Some));
    assert_eq!(served(32), [Some(2)]);
    assert_eq!(queue.snapshot().lanes[0].in_flight, 0);
}

#[test]
fn a_detached_delivery_gives_its_unit_of_the_limit_back() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let (group, _stays) = group(&lane, ONE, &[1, 2]);
    let mut turn = queue.try_receive().unwrap();
    let delivery = turn.next().unwrap().detach();
    assert!(turn.next().is_none());
    drop(turn);
    assert!(nothing(&queue));
    assert_eq!(status(&queue, &group).why, Why::Limit);
    delivery.complete();
    assert_eq!(first(&queue), Some(2));
}

#[test]
fn a_detached_delivery_gives_its_unit_of_the_cap_back() {
    let (queue, lane) = with_lane(ONE);
    let _stays = [&[1, 2][..], &[3]].map(|messages| group(&lane, Limit::Unlimited, messages));
    let mut turn = queue.try_receive().unwrap();
    let delivery = turn.next().unwrap().detach();
    // Its next message asks for another unit.
    assert!(turn.next().is_none());
    drop(turn);
    assert!(nothing(&queue));
    delivery.complete();
    assert_eq!(first(&queue), Some(3));
    assert_eq!(first(&queue), Some(2));
}

/// A turn that has given its unit to a detached delivery takes another, and so does the next turn.
#[test]
fn each_message_in_hand_is_in_flight() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let (group, _stays) = group(&lane, Limit::Unlimited, &[1, 2, 3]);
    let mut turn = queue.try_receive().unwrap();
    let one = turn.next().unwrap().detach();
    assert_eq!(status(&queue, &group).in_flight, 1);
    let two = turn.next().unwrap();
    assert_eq!(status(&queue, &group).in_flight, 2);
    let two = two.detach();
    drop(turn);
    assert_eq!(status(&queue, &group).in_flight, 2);
    let turn = queue.try_receive().unwrap();
    assert_eq!(status(&queue, &group).in_flight, 3);
    drop((turn, one, two));
    assert_eq!(status(&queue, &group).in_flight, 0);
}

#[test]
fn a_closed_queue_waits_for_what_is_detached() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let (_group, conversation) = group(&lane, ONE, &[1]);
    let mut turn = queue.try_receive().unwrap();
    let delivery = turn.next().unwrap().detach();
    drop(turn);
    queue.close();
    assert!(nothing(&queue));
    drop((delivery, conversation));
    assert_eq!(first(&queue), Some(1));
    assert_eq!(queue.receive().wait().err(), Some(NoMore::Drained));
}
