//! Numbers out of range, stale names.

use std::collections::BTreeMap;

use conversant::error::{OutOfRange, Stale};
use conversant::limit::Limit;

use super::super::form::{LaneError, Queue};
use super::{TWO, plain, serve};

const HUGE: Limit = Limit::AtMost(Limit::MAX + 1);

fn out_of_range(what: &'static str, asked: u32, least: u32, most: u32) -> OutOfRange {
    OutOfRange {
        what,
        asked,
        least,
        most,
    }
}

#[test]
fn numbers_out_of_range_change_nothing() {
    let huge = out_of_range("limit", Limit::MAX + 1, 0, Limit::MAX);
    let queue = Queue::new();
    let weight = |asked| LaneError::OutOfRange(out_of_range("weight", asked, 1, 1_000_000));
    assert_eq!(queue.lane(0, TWO).unwrap_err(), weight(0));
    assert_eq!(queue.lane(1_000_001, TWO).unwrap_err(), weight(1_000_001));
    assert_eq!(
        queue.lane(1, HUGE).unwrap_err(),
        LaneError::OutOfRange(huge)
    );
    assert!(queue.snapshot().lanes.is_empty());

    let lane = queue.lane(1, TWO).unwrap();
    assert_eq!(
        lane.group(HUGE, 0).unwrap_err(),
        LaneError::OutOfRange(huge)
    );
    assert_eq!(lane.set_cap(HUGE), Err(huge));
    let group = lane.group(TWO, 0).unwrap();
    assert_eq!(group.set_limit(HUGE), Err(huge));
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.lanes[0].cap, TWO);
    assert_eq!(snapshot.lanes[0].groups[0].limit, TWO);
    group.conversation().unwrap().send(1).unwrap();
    group.set_limit(Limit::AtMost(Limit::MAX)).unwrap();
    assert_eq!(serve(&queue), [1]);

    let none = Queue::<u8>::builder().quantum(0).build().unwrap_err();
    assert_eq!(none, out_of_range("quantum", 0, 1, u32::MAX));
}

#[test]
fn stale_names() {
    let (queue, lane) = plain::<u8>();
    let mut seen = BTreeMap::new();
    for _ in 0..1000 {
        let one = lane.conversation().unwrap();
        let id = one.group_id();
        assert_eq!(seen.insert(id, ()), None, "a name is given once");
        drop(one);
        assert_eq!(queue.bump(id, 1), Err(Stale));
    }
}
