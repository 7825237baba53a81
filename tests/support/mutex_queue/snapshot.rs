//! A snapshot of the queue, with those fields of the crate's snapshot that need no waits.

use conversant::limit::Limit;
use conversant::queue::Why;

use super::model::{Model, Phase};
use super::{GroupId, Shared, id};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) closed: bool,
    pub(crate) waiting: u64,
    pub(crate) in_flight: u64,
    pub(crate) counts: Counts,
    pub(crate) lanes: Vec<LaneStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) eligible: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneStatus {
    pub(crate) weight: u32,
    pub(crate) cap: Limit,
    pub(crate) in_flight: u32,
    pub(crate) open_tier: Option<u32>,
    pub(crate) ending: bool,
    pub(crate) groups: Vec<GroupStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupStatus {
    pub(crate) id: GroupId,
    pub(crate) limit: Limit,
    pub(crate) level: u8,
    pub(crate) bump: Option<u8>,
    pub(crate) waiting: usize,
    pub(crate) in_flight: u32,
    pub(crate) why: Why,
}

pub(super) fn take<T>(shared: &Shared<T>, model: &Model<T>) -> Snapshot {
    let eligible = |&lane: &u64| model.eligible_of(lane) as u64;
    Snapshot {
        closed: model.closed,
        waiting: model.waiting() as u64,
        in_flight: model.in_flight() as u64,
        counts: Counts {
            eligible: model.lanes.keys().map(eligible).sum(),
        },
        lanes: model
            .lanes
            .keys()
            .map(|&lane| of_lane(shared, model, lane))
            .collect(),
    }
}

fn of_lane<T>(shared: &Shared<T>, model: &Model<T>, lane: u64) -> LaneStatus {
    let l = &model.lanes[&lane];
    let groups = model.groups.iter().filter(|(_, g)| g.lane == lane);
    LaneStatus {
        weight: l.weight,
        cap: l.cap,
        in_flight: model.in_flight_of(lane) as u32,
        open_tier: l.open,
        ending: l.ending,
        groups: groups
            .map(|(&group, g)| GroupStatus {
                id: id(shared, group),
                limit: g.limit,
                level: g.level,
                // A turn that is about to begin has used its bump up.
                bump: g
                    .bump
                    .filter(|_| g.phase != Phase::Claimed)
                    .map(|(level, _)| level),
                waiting: g.waiting.len(),
                in_flight: g.units() as u32,
                why: model.why(group),
            })
            .collect(),
    }
}
