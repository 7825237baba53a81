//! Bounds of lanes, lanes that come and go, and turns by name.

use crate::lanes::lane_level::MAX_LANES;
use crate::lanes::{LaneKey, LaneLevel, Lanes};
use crate::limit::{Bypass, Limit};
use crate::ready::Position;

#[test]
fn numbers_out_of_range_are_refused_and_change_nothing() {
    let mut core = Lanes::<u8>::new(Bypass::default());
    assert!(core.add_lane(0, Limit::Unlimited).is_err());
    assert!(core.add_lane(1_000_001, Limit::Unlimited).is_err());
    let above = Limit::AtMost(Limit::MAX + 1);
    assert!(core.add_lane(1, above).is_err() && core.len() == 0);
    let lane = core.add_lane(1, Limit::AtMost(Limit::MAX)).unwrap();
    let index = lane.index();
    assert!(core.set_cap(index, above).is_err());
    core.add_group(lane);
    core.push(index, 1, 0, 7);
    assert_eq!((core.len(), core.eligible(9)), (1, 1));
    assert_eq!(core.get(lane).unwrap().cap, Limit::AtMost(Limit::MAX));
}

#[test]
fn many_lanes_and_groups_used_once_leave_nothing_behind() {
    let mut core = Lanes::new(Bypass::default());
    for n in 0..20_000_u32 {
        let lane = core.add_lane(1, Limit::SERIAL).unwrap();
        core.add_group(lane);
        core.push(lane.index(), u64::from(n), 100, (n, lane));
        core.end_lane(lane);
    }
    assert_eq!(core.eligible(usize::MAX), 20_000);
    for n in 0..20_000 {
        let ((number, lane), index, tiered) = core.pop().unwrap();
        assert_eq!((number, index, tiered), (n, lane.index(), false));
        core.return_units(index, 1);
        core.update(index);
        core.remove_group(lane);
        assert!(core.get(lane).is_none());
    }
    assert!(core.pop().is_none() && core.len() == 0);
    assert_eq!(core.lanes.capacity() + core.free.len(), 0);
}

/// The others leave from the front, from the back, and every other one first.
#[test]
fn a_lane_that_stays_keeps_nothing_of_the_others() {
    let mut core = Lanes::<u8>::new(Bypass::default());
    let add = |core: &mut Lanes<u8>| core.add_lane(1, Limit::SERIAL).unwrap();
    let stays = add(&mut core);
    for round in 0..3 {
        let mut others: Vec<_> = (0..10_000).map(|_| add(&mut core)).collect();
        match round {
            0 => {}
            1 => others.reverse(),
            _ => others.sort_by_key(|lane| lane.index() % 2),
        }
        for lane in others {
            core.end_lane(lane);
            assert_eq!(core.places() - core.free.len(), core.len());
        }
        assert_eq!((core.len(), core.places()), (1, 1));
        assert!(core.lanes.capacity() <= 4 && core.free.is_empty());
    }
    // The lowest place is used first.
    let [next, last] = [(); 2].map(|()| add(&mut core));
    core.end_lane(next);
    assert_eq!((add(&mut core), core.len()), (next, 3));
    core.end_lane(stays);
    assert_eq!((add(&mut core), last.index()), (stays, 2));
}

/// A turn by name resets the count if no ready group is older.
#[test]
fn a_turn_by_name_resets_the_count_of_the_oldest_only() {
    for (served, next) in [(1, 30), (2, 0)] {
        let mut core = Lanes::new(Bypass::AtMost(1));
        let lane = core.add_lane(1, Limit::Unlimited).unwrap().index();
        for (n, level) in [0, 0, 9, 9, 9].into_iter().enumerate() {
            let ticket = n as u64 + 1;
            core.push(lane, ticket, level, 10 * n);
        }
        assert_eq!(core.pop().map(|(g, ..)| g), Some(20));
        core.served_by_name(lane, served);
        assert_eq!(
            core.remove(lane, 0, Position::new(0, served, None)),
            Some(10 * (served as usize - 1))
        );
        core.update(lane);
        // If the count was reset, another group may overtake.
        let second = core.pop().map(|(g, ..)| g);
        assert_eq!(second, Some(next));
    }
}

/// Four bytes hold a group's lane and level.
#[test]
fn a_name_and_a_level_fit_four_bytes() {
    for (lane, level) in [(0, 255), (1, 0), (MAX_LANES - 1, 100)] {
        let standing = LaneLevel::new(LaneKey(lane), level);
        assert_eq!((standing.index(), standing.level()), (lane, level));
    }
    let mut lanes: Lanes<usize> = Lanes::new(Bypass::default());
    lanes.free.insert(MAX_LANES);
    let refused = lanes.add_lane(1, Limit::Unlimited).unwrap_err();
    assert_eq!((refused.what, refused.most), ("lanes", MAX_LANES));
}
