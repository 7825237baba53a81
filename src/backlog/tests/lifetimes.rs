//! Bounds of a backlog, lanes and groups that come and go, and its first tier.

use super::is_empty;
use crate::backlog::{Backlog, Blocked};
use crate::limit::{Bypass, Limit};
use crate::slab::tests::slots_visited;
use crate::wait::tests::heap::held_by_this_thread;

#[test]
fn numbers_out_of_range_are_refused_and_change_nothing() {
    let mut backlog = Backlog::new(Bypass::default());
    assert!(backlog.add_lane(0, Limit::Unlimited).is_err());
    assert!(backlog.add_lane(1_000_001, Limit::Unlimited).is_err());
    let above = Limit::AtMost(Limit::MAX + 1);
    assert!(backlog.add_lane(1, above).is_err() && is_empty(&backlog));
    let lane = backlog.add_lane(1, Limit::AtMost(Limit::MAX)).unwrap();
    assert!(backlog.add_group(lane, above, 0).is_err() && backlog.groups.len() == 0);
    assert!(backlog.set_cap(lane, above).is_err());
    let group = backlog.add_group(lane, Limit::SERIAL, 0).unwrap();
    assert!(backlog.set_limit(group, above).unwrap().is_err());
    backlog.send(group, Some(1), None, ());
    assert!(backlog.set_limit(group, above).unwrap().is_err());
    assert_eq!(
        (backlog.eligible(9), backlog.why(group)),
        (1, Blocked::InLine)
    );
}

#[test]
fn many_lanes_and_groups_used_once_leave_nothing_behind() {
    let before = held_by_this_thread();
    let mut backlog = Backlog::new(Bypass::default());
    for n in 0..20_000 {
        let lane = backlog.add_lane(1, Limit::SERIAL).unwrap();
        let group = backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
        backlog.send(group, Some(n % 3), None, n);
        backlog.unpin(group);
        backlog.close_lane(lane);
    }
    assert_eq!(backlog.eligible(u64::MAX), 20_000);
    for n in 0..20_000 {
        let claim = backlog.claim().unwrap();
        assert_eq!(claim.item, n);
        backlog.complete(claim.holds.group.unwrap(), claim.holds.tier);
        assert!(!backlog.contains(claim.holds.group.unwrap()));
    }
    assert!(backlog.claim().is_none() && is_empty(&backlog));
    let kept = held_by_this_thread() - before;
    assert!(kept < 200_000, "{kept} bytes are kept");
}

#[test]
fn the_first_tier_of_a_lane_is_no_matter_of_the_groups_of_others() {
    let mut backlog = Backlog::new(Bypass::default());
    let groups: Vec<_> = (0..100)
        .map(|_| {
            let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
            backlog.add_group(lane, Limit::AtMost(0), 100).unwrap()
        })
        .collect();
    let before = slots_visited();
    for &group in &groups {
        let lane = backlog.lane_of(group).unwrap();
        backlog.send(group, None, None, 0);
        backlog.send_alone(lane, 1, None, 1);
        // The paused messages wait in tier 0, so nothing of tier 1 starts.
        assert_eq!(backlog.why_alone(lane, 1), Blocked::Tier);
    }
    assert_eq!(slots_visited(), before);
}

#[test]
fn each_group_of_a_lane_is_known_until_it_has_gone() {
    let mut backlog = Backlog::<()>::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let mut groups: Vec<_> = (0..4)
        .map(|_| backlog.add_group(lane, Limit::AtMost(0), 100).unwrap())
        .collect();
    // First a group between two others, then the group that was added before it.
    for gone in [1, 0, 1] {
        backlog.unpin(groups.remove(gone));
        let known = backlog.paused_in(lane).into_iter().rev();
        assert!(known.eq(groups.iter().copied()));
    }
}
