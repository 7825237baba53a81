//! Single rules, with the expected order written out: for the lanes alone, and again for a backlog,
//! whose tests include this file.

use super::{Op, Setup, World};
use crate::backlog::Blocked;
use crate::lanes::tests::bound::Watch;
use crate::limit::{Bypass, Limit};

fn world(bypass: Bypass, lanes: &[(u32, Limit)], groups: &[(usize, u8)], watch: Watch) -> World {
    let groups = groups
        .iter()
        .map(|&(lane, level)| (lane, Limit::SERIAL, level))
        .collect();
    let setup = Setup {
        bypass,
        lanes: lanes.to_vec(),
        groups,
    };
    World::new(&setup, watch)
}

const FREE: (u32, Limit) = (1, Limit::Unlimited);

fn send(world: &mut World, groups: &[usize]) {
    for &g in groups {
        world.apply(&Op::Send(g, 0, None));
    }
}

/// Starts this many turns of one message each, one after the other.
fn serve(world: &mut World, turns: usize) -> Vec<usize> {
    let mut order = Vec::new();
    for _ in 0..turns {
        order.extend(world.start());
        world.apply(&Op::Finish(0));
    }
    order
}

#[test]
fn the_oldest_is_overtaken_at_most_k_times_in_a_row() {
    let order = |bypass| {
        let mut world = world(
            bypass,
            &[FREE],
            &[(0, 1), (0, 2), (0, 200)],
            Watch::letter(),
        );
        send(&mut world, &[0, 1]);
        (0..7).for_each(|_| send(&mut world, &[2]));
        serve(&mut world, 9)
    };
    assert_eq!(order(Bypass::AtMost(0)), [0, 1, 2, 2, 2, 2, 2, 2, 2]);
    assert_eq!(order(Bypass::AtMost(1)), [2, 0, 2, 1, 2, 2, 2, 2, 2]);
    assert_eq!(order(Bypass::AtMost(3)), [2, 2, 2, 0, 2, 2, 2, 1, 2]);
    assert_eq!(order(Bypass::Unbounded), [2, 2, 2, 2, 2, 2, 2, 1, 0]);
}

#[test]
fn the_count_belongs_to_the_lane() {
    let groups = [(0, 1), (1, 1), (0, 9), (1, 9)];
    let mut world = world(Bypass::AtMost(2), &[FREE, FREE], &groups, Watch::letter());
    send(&mut world, &[0, 1]);
    (0..4).for_each(|_| send(&mut world, &[2, 3]));
    assert_eq!(serve(&mut world, 10), [2, 3, 2, 3, 0, 1, 2, 3, 2, 3]);
}

#[test]
fn when_the_oldest_goes_the_count_stays_for_the_next_one() {
    let mut world = world(
        Bypass::AtMost(2),
        &[FREE],
        &[(0, 1), (0, 1), (0, 9)],
        Watch::letter(),
    );
    send(&mut world, &[0, 1, 2, 2, 2, 2]);
    assert_eq!(serve(&mut world, 2), [2, 2]);
    world.apply(&Op::Remove(0, 0));
    assert_eq!(serve(&mut world, 3), [1, 2, 2]);
}

#[test]
fn when_another_tier_opens_the_count_stays() {
    let groups = [(0, 1), (0, 9), (0, 1), (0, 9)];
    let mut world = world(Bypass::AtMost(2), &[FREE], &groups, Watch::amended());
    for g in [0, 1, 1] {
        let tier = if world.model.groups[g].is_idle() {
            5
        } else {
            0
        };
        world.apply(&Op::Send(g, tier, None));
    }
    assert_eq!(serve(&mut world, 1), [1]);
    send(&mut world, &[2, 3, 3]);
    assert_eq!(serve(&mut world, 5), [3, 2, 3, 1, 0]);
    world.drain();
}

#[test]
fn lanes_take_turns_by_weight_and_a_capped_one_forfeits() {
    let lanes = [(3, Limit::Unlimited), (1, Limit::Unlimited)];
    let groups = [(0, 9), (1, 9), (0, 9), (1, 9)];
    let mut world = world(Bypass::AtMost(64), &lanes, &groups, Watch::letter());
    (0..9).for_each(|_| send(&mut world, &[0, 1, 2, 3]));
    assert_eq!(serve(&mut world, 5), [0, 2, 0, 1, 2]);
    // The lane leaves and comes back: it is at the tail, with fresh credit.
    world.apply(&Op::SetCap(0, Limit::AtMost(0)));
    assert_eq!(serve(&mut world, 2), [3, 1]);
    world.apply(&Op::SetCap(0, Limit::AtMost(2)));
    assert_eq!(serve(&mut world, 5), [3, 0, 2, 0, 1]);
}

/// One serial group alone is not eligible while its message is in flight.
#[test]
fn a_lane_that_has_nothing_eligible_after_a_dispatch_forfeits() {
    let lanes = [(3, Limit::Unlimited), (1, Limit::Unlimited)];
    let mut world = world(
        Bypass::AtMost(64),
        &lanes,
        &[(0, 9), (1, 9)],
        Watch::letter(),
    );
    (0..3).for_each(|_| send(&mut world, &[0, 1]));
    assert_eq!(serve(&mut world, 6), [0, 1, 0, 1, 0, 1]);
}

/// Removing a waiting message moves its group to another tier, with the same ticket. Its old place,
/// behind another group, must not be taken for a live one.
#[test]
fn a_group_whose_first_message_is_removed_does_not_stay_in_the_old_tier() {
    let mut world = world(
        Bypass::AtMost(64),
        &[FREE],
        &[(0, 9), (0, 9), (0, 9)],
        Watch::amended(),
    );
    send(&mut world, &[1]);
    world.apply(&Op::Send(0, 0, None));
    world.apply(&Op::Send(0, 1, None));
    send(&mut world, &[2]);
    world.apply(&Op::Remove(0, 0));
    assert_eq!(world.model.why(0), Blocked::Tier);
    assert_eq!(serve(&mut world, 3), [1, 2, 0]);
    world.drain();
}

#[test]
fn a_late_lower_tier_waits_for_one_drain() {
    let mut world = world(
        Bypass::AtMost(64),
        &[FREE],
        &[(0, 9), (0, 9), (0, 9), (0, 9)],
        Watch::amended(),
    );
    for g in 0..3 {
        world.apply(&Op::Send(g, 5, None));
    }
    assert_eq!((world.start(), world.start()), (Some(0), Some(1)));
    world.apply(&Op::Send(3, 0, Some(0)));
    assert_eq!(world.start(), None);
    world.apply(&Op::Finish(0));
    assert_eq!(world.start(), None);
    world.apply(&Op::Finish(0));
    assert_eq!(serve(&mut world, 2), [3, 2]);
    world.drain();
}

/// The letter of the bound fails here, because the count belongs to the lane: while the oldest is
/// away another group resets it. With K = 3 and one lane of weight 1 the letter allows `4 + L`
/// dispatches, and L is 2.
#[test]
fn each_pause_in_which_the_count_is_reset_costs_k_more_turns() {
    let groups = [(0, 1), (0, 9), (0, 5)];
    let mut world = world(Bypass::AtMost(3), &[FREE], &groups, Watch::amended());
    send(&mut world, &[0, 2, 2]);
    (0..20).for_each(|_| send(&mut world, &[1]));
    let mut counted = 0;
    for _ in 0..2 {
        assert_eq!(serve(&mut world, 3), [1, 1, 1]);
        counted += 3;
        world.apply(&Op::SetLimit(0, Limit::AtMost(0)));
        assert_eq!(serve(&mut world, 1), [2], "the count is used up");
        world.apply(&Op::SetLimit(0, Limit::SERIAL));
    }
    assert_eq!(serve(&mut world, 4), [1, 1, 1, 0]);
    counted += 4;
    let (letter, amended) = (4 + 2, 4 + 2 * 3 + 2);
    assert!(counted > letter && counted <= amended);
    world.drain();
}

/// The letter of the bound fails here, too: the older group is not ready when the wait starts, and
/// keeps its age.
#[test]
fn a_pause_that_ends_puts_an_older_group_in_front() {
    let groups = [(0, 9), (0, 9), (0, 9)];
    let mut world = world(Bypass::AtMost(0), &[FREE], &groups, Watch::amended());
    world.apply(&Op::SetLimit(0, Limit::AtMost(0)));
    send(&mut world, &[0, 1]);
    world.apply(&Op::SetLimit(0, Limit::SERIAL));
    assert_eq!(serve(&mut world, 2), [0, 1]);
    world.drain();
}

/// As with a pause: a lower tier that comes and goes resets the count.
#[test]
fn each_lower_tier_that_resets_the_count_costs_k_more_turns() {
    let groups = [(0, 1), (0, 9), (0, 5)];
    let mut world = world(Bypass::AtMost(3), &[FREE], &groups, Watch::amended());
    world.apply(&Op::Send(0, 5, None));
    for _ in 0..20 {
        let tier = if world.model.groups[1].is_idle() {
            5
        } else {
            0
        };
        world.apply(&Op::Send(1, tier, None));
    }
    for _ in 0..3 {
        assert_eq!(serve(&mut world, 3), [1, 1, 1]);
        world.apply(&Op::Send(2, 0, None));
        assert_eq!(serve(&mut world, 1), [2]);
    }
    assert_eq!(serve(&mut world, 4), [1, 1, 1, 0]);
    world.drain();
}

#[test]
fn a_lowered_cap_leaves_a_debt() {
    let mut world = world(
        Bypass::AtMost(64),
        &[FREE],
        &[(0, 9), (0, 9), (0, 9), (0, 9)],
        Watch::letter(),
    );
    send(&mut world, &[0, 1, 2, 3]);
    (0..3).for_each(|_| assert!(world.start().is_some()));
    world.apply(&Op::SetCap(0, Limit::AtMost(1)));
    for _ in 0..2 {
        world.apply(&Op::Finish(0));
        assert_eq!(world.start(), None);
    }
    world.apply(&Op::Finish(0));
    assert_eq!(world.start(), Some(3));
    world.drain();
}
