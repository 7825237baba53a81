//! What a queue holds at one moment.

use std::collections::BTreeMap;

use crate::group::POISONED;
use crate::lanes::LaneKey;
use crate::limit::Limit;

use super::Queue;
use super::counts::{Counts, counts};
use super::id::GroupId;
use super::refuse::Why;

/// What a queue held. Nothing is claimed or closed while it is taken, but messages
/// may be sent and turns may end: each group is shown as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Nothing more can be sent.
    pub closed: bool,
    /// Messages that wait.
    pub waiting: u64,
    /// Messages received and neither completed nor given back.
    pub in_flight: u64,
    /// Messages sent so far, also to groups that have ended. Those that neither wait
    /// nor are in flight were completed or taken out.
    pub sent: u64,
    /// What [`Queue::counts`] says.
    pub counts: Counts,
    /// The lanes with their groups.
    pub lanes: Vec<LaneStatus>,
}

/// One lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneStatus {
    /// Turns in a row.
    pub weight: u32,
    /// The most messages in flight at once.
    pub cap: Limit,
    /// Messages in flight.
    pub in_flight: u32,
    /// The tier that is open, if anything is outstanding.
    pub open_tier: Option<u32>,
    /// Whether its handle is gone, so that it goes with its last group.
    pub ending: bool,
    /// Its groups.
    pub groups: Vec<GroupStatus>,
}

/// One group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its name.
    pub id: GroupId,
    /// The most messages in flight at once.
    pub limit: Limit,
    /// Its standing level.
    pub level: u8,
    /// The level that its next turn is bumped to.
    pub bump: Option<u8>,
    /// Messages that wait.
    pub waiting: usize,
    /// Messages in flight.
    pub in_flight: u32,
    /// Messages sent to it so far.
    pub sent: u64,
    /// What keeps its first message waiting.
    pub why: Why,
}

impl<T> Queue<T> {
    /// What the queue holds, and why what waits waits.
    ///
    /// Cost: O(lanes and groups) under the queue's lock.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shared = self.shared();
        shared.with_state(|state| {
            // Of each lane: whether anything is outstanding, and the groups.
            let mut by_lane: BTreeMap<LaneKey, (bool, Vec<GroupStatus>)> = BTreeMap::new();
            let (mut waiting, mut in_flight, mut sent) = (0, 0, state.sent_to_ended);
            for group in state.groups.all() {
                let mailbox = shared.lock_group(state, &group);
                let claimed = state.is_claimed(&mailbox);
                let status = GroupStatus {
                    id: shared.id(group.key()),
                    limit: mailbox.limit(),
                    level: mailbox.level,
                    // A turn that is about to begin has used it up.
                    bump: mailbox.bump().filter(|_| !claimed).map(|(level, _)| level),
                    waiting: group.waiting() as usize,
                    in_flight: mailbox.units(claimed),
                    sent: group.sent(&mailbox),
                    why: state.why(&group, &mailbox),
                };
                waiting += status.waiting as u64;
                in_flight += u64::from(status.in_flight);
                sent += status.sent;
                let waits = status.waiting > 0 && mailbox.flags & POISONED == 0;
                let (outstanding, groups) = by_lane.entry(mailbox.lane).or_default();
                *outstanding |= waits || status.in_flight > 0;
                groups.push(status);
            }
            let lanes = state.lanes.iter().map(|(key, lane)| {
                let (outstanding, groups) = by_lane.remove(&key).unwrap_or_default();
                let untiered = outstanding && !lane.is_tiered();
                LaneStatus {
                    weight: lane.link.weight,
                    cap: lane.cap,
                    in_flight: groups.iter().map(|group| group.in_flight).sum(),
                    open_tier: lane.open_tier().or(untiered.then_some(0)),
                    ending: lane.ending,
                    groups,
                }
            });
            Snapshot {
                lanes: lanes.collect(),
                closed: state.closed,
                waiting,
                in_flight,
                sent,
                counts: counts(shared, state),
            }
        })
    }
}
