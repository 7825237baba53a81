//! What comes into use, or is lowered, while turns are live.

use super::*;

/// A message in flight when its lane has its first message of another tier is of tier 0, which must
/// end before the other tier begins.
#[test]
fn tiers_first_used_while_a_turn_is_live() {
    for ending in [Ending::Complete, Ending::GiveBack, Ending::Detach] {
        let (queue, lane) = with_lane(Limit::Unlimited);
        let _stays = group(&lane, ONE, &[1]);
        let (_other, tiered) = group(&lane, ONE, &[]);
        let mut turn = queue.try_receive().unwrap();
        let delivery = turn.next().unwrap();
        tiered.send_in(1, 9).unwrap();
        assert!(nothing(&queue), "{ending:?}");
        let mut kept = None;
        match ending {
            Ending::Complete => _ = delivery.complete(),
            Ending::GiveBack => delivery.give_back(),
            Ending::Detach => kept = Some(delivery.detach()),
        }
        drop(turn);
        match ending {
            Ending::Complete => {}
            Ending::GiveBack => assert_eq!(first(&queue), Some(1)),
            Ending::Detach => assert!(nothing(&queue)),
        }
        kept.map(|delivery| delivery.complete());
        assert_eq!(first(&queue), Some(9), "{ending:?}");
        assert_eq!(queue.snapshot().lanes[0].open_tier, None);
    }
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Complete,
    GiveBack,
    Detach,
}

/// The same, where the turn has only been claimed, or goes on to its next message.
#[test]
fn tiers_first_used_before_a_turn_begins_and_while_it_goes_on() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let _stays = group(&lane, ONE, &[1, 2]);
    let (_other, tiered) = group(&lane, ONE, &[]);
    let mut turns = queue.try_receive_many(1).unwrap();
    tiered.send_in(1, 9).unwrap();
    assert!(nothing(&queue));
    let mut turn = turns.next().unwrap();
    assert_eq!(done(&mut turn), Some(1));
    assert!(nothing(&queue));
    assert_eq!(done(&mut turn), Some(2));
    assert_eq!(first(&queue), Some(9));
    drop(turn);
}

/// What a turn takes after that counts in its tier, even if the turn began before.
#[test]
fn tiers_first_used_while_a_turn_goes_on() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let _stays = group(&lane, ONE, &[1, 2, 3]);
    let (_other, tiered) = group(&lane, ONE, &[]);
    let mut turn = queue.try_receive().unwrap();
    tiered.send_in(1, 9).unwrap();
    let all = std::iter::from_fn(|| done(&mut turn));
    assert!(all.eq([1, 2, 3]));
    drop(turn);
    assert_eq!(first(&queue), Some(9));
}

/// As many units are in use as messages are in flight.
#[test]
fn a_cap_first_used_while_turns_are_live() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let _stays = [&[1, 2][..], &[3], &[4]].map(|messages| group(&lane, TWO, messages));
    let mut turn = queue.try_receive().unwrap();
    let delivery = turn.next().unwrap().detach();
    let mut other = queue.try_receive_many(1).unwrap();
    lane.set_cap(TWO).unwrap();
    assert!(nothing(&queue) && turn.next().is_none());
    delivery.complete();
    assert_eq!(done(&mut turn), Some(2));
    assert!(nothing(&queue));
    drop(turn);
    assert_eq!(first(&queue), Some(4));
    assert_eq!(other.next().as_mut().and_then(done), Some(3));
    assert_eq!(queue.snapshot().lanes[0].in_flight, 0);
}

#[test]
fn a_cap_that_is_lowered_holds_for_live_turns() {
    let (queue, lane) = with_lane(TWO);
    let _stays = group(&lane, ONE, &[1, 2]);
    let mut turn = queue.try_receive().unwrap();
    assert_eq!(done(&mut turn), Some(1));
    lane.set_cap(NONE).unwrap();
    assert!(turn.next().is_none());
    lane.set_cap(ONE).unwrap();
    assert_eq!(done(&mut turn), Some(2));
}

#[test]
fn a_limit_that_is_lowered_holds_for_live_turns() {
    let (queue, lane) = with_lane(Limit::Unlimited);
    let (group, _stays) = group(&lane, TWO, &[1, 2]);
    let mut turn = queue.try_receive().unwrap();
    assert_eq!(done(&mut turn), Some(1));
    group.set_limit(NONE).unwrap();
    assert!(turn.next().is_none());
    group.set_limit(ONE).unwrap();
    assert_eq!(done(&mut turn), Some(2));
}
