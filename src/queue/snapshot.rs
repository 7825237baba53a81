//! What a queue holds at one moment.

use std::collections::BTreeMap;

use crate::group::POISONED;
use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::semaphore::WaiterState;
use crate::wait::Waiters;

use super::Queue;
use super::capacity::Capacity;
use super::handles::GroupId;
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
    /// How many turns could begin now.
    pub eligible: u64,
    /// How often a delivery was dropped outside of a panic, neither completed nor
    /// given back in so many words: as when a `complete` was forgotten.
    pub dropped: u64,
    /// Receives in line.
    pub receives: ReceivesStatus,
    /// Receives that wait for a group by name.
    pub named: ReceivesStatus,
    /// Sends that wait for room.
    pub sends: SendsStatus,
    /// The lanes with their groups.
    pub lanes: Vec<LaneStatus>,
}

/// The receives in line for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivesStatus {
    /// Those that sleep.
    pub waiting: usize,
    /// Those that were woken and have not looked since, such as a task that is
    /// not polled: each keeps at most one turn from the others.
    pub notified: usize,
}

/// The sends in line for room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendsStatus {
    /// Those that sleep.
    pub waiting: usize,
    /// Those that were given room, and have not looked since: each keeps its own
    /// room from the others, and no more.
    pub notified: usize,
    /// How many permits all of them ask for: one for each message.
    pub permits: u64,
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
            let (mut waiting, mut in_flight) = (0, 0);
            for group in state.groups.all() {
                let mailbox = shared.lock_group(state, &group);
                let claimed = state.is_claimed(&mailbox);
                let status = GroupStatus {
                    id: GroupId::new(shared, group.key()),
                    limit: mailbox.limit(),
                    level: mailbox.level,
                    // A turn that is about to begin has used it up.
                    bump: mailbox.bump().filter(|_| !claimed).map(|(level, _)| level),
                    waiting: group.waiting() as usize,
                    in_flight: mailbox.units(claimed),
                    why: state.why(&group, &mailbox),
                };
                waiting += status.waiting as u64;
                in_flight += u64::from(status.in_flight);
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
                eligible: state.lanes.eligible(usize::MAX) as u64,
                dropped: shared.dropped.count(),
                receives: receives(std::iter::once(&state.receives)),
                named: receives(state.named.values()),
                sends: sends(&shared.capacity),
            }
        })
    }
}

fn sends(capacity: &Capacity) -> SendsStatus {
    let mut sends = SendsStatus::default();
    let permits = capacity.permits();
    for waiter in permits.map_or(Vec::new(), |permits| permits.snapshot().waiters) {
        match waiter.state {
            WaiterState::Waiting => sends.waiting += 1,
            _ => sends.notified += 1,
        }
        sends.permits += u64::from(waiter.count);
    }
    sends
}

fn receives<'a>(waiters: impl Iterator<Item = &'a Waiters<()>> + Clone) -> ReceivesStatus {
    ReceivesStatus {
        waiting: waiters.clone().map(Waiters::waiting).sum(),
        notified: waiters.map(Waiters::notified).sum(),
    }
}
