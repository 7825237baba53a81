//! A picture of a queue at one moment.

use std::collections::BTreeMap;

use crate::dispatch::{Blocked, GroupPicture, LaneKey, LanePicture};
use crate::limit::Limit;

use super::handles::GroupId;
use super::shared::Shared;

/// What a queue held at one moment: everything in it was true at once.
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
    /// Those that were woken and have not looked since. One that stays here is
    /// a task that is not polled: it keeps at most one turn from the others.
    pub notified: usize,
}

/// The sends in line for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendsStatus {
    /// Those that sleep.
    pub waiting: usize,
    /// Those that were woken and have not looked since. One that stays here is
    /// a task that is not polled: it keeps the room that it asks for, no more.
    pub notified: usize,
    /// How many places all of them ask for.
    pub places: u64,
}

/// One lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneStatus {
    /// Turns in a row.
    pub weight: u32,
    /// The most messages in flight.
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
    /// The most messages in flight.
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

/// What keeps a group's first message waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// Nothing waits.
    Idle,
    /// A turn of the group is live, or somebody looks at its first message.
    Held,
    /// A message of the group failed too often: it waits to be resumed.
    Poisoned,
    /// A message of the group failed: it waits for its next attempt.
    BackingOff,
    /// The group's limit is 0.
    Paused,
    /// As many as the group's limit allows are in flight.
    Limit,
    /// Another tier of the lane is open, or its own drains for a lower one.
    Tier,
    /// As many as the lane's cap allows are in flight.
    Cap,
    /// Nothing: the next receives take it.
    InLine,
}

impl From<Blocked> for Why {
    fn from(blocked: Blocked) -> Self {
        match blocked {
            Blocked::Empty => Self::Idle,
            Blocked::Held => Self::Held,
            Blocked::Poisoned => Self::Poisoned,
            Blocked::BackingOff => Self::BackingOff,
            Blocked::Paused => Self::Paused,
            Blocked::GroupLimit => Self::Limit,
            Blocked::Tier => Self::Tier,
            Blocked::Cap => Self::Cap,
            Blocked::InLine => Self::InLine,
        }
    }
}

/// What is copied out under the lock.
struct Copied {
    snapshot: Snapshot,
    lanes: Vec<LanePicture>,
    groups: Vec<(GroupPicture, usize)>,
}

/// Copies flat lists under the lock, and sorts groups into lanes after it.
pub(super) fn take<T>(shared: &Shared<T>) -> Snapshot {
    let Copied {
        mut snapshot,
        lanes,
        groups,
    } = shared.look(|books| Copied {
        snapshot: Snapshot {
            closed: books.closed,
            waiting: books.backlog.waiting(),
            in_flight: books.backlog.in_flight(),
            eligible: books.backlog.eligible(),
            receives: ReceivesStatus {
                waiting: books.receives.waiting(),
                notified: books.receives.notified(),
            },
            named: {
                let (waiting, notified) = books.named.counts();
                ReceivesStatus { waiting, notified }
            },
            sends: {
                let (waiting, notified, places) = books.room.counts();
                SendsStatus {
                    waiting,
                    notified,
                    places,
                }
            },
            lanes: Vec::new(),
        },
        lanes: books.backlog.lanes().collect(),
        groups: books.backlog.groups().collect(),
    });
    let mut of_lane: BTreeMap<LaneKey, Vec<GroupStatus>> = BTreeMap::new();
    for (group, waiting) in groups {
        let status = GroupStatus {
            id: GroupId::new(shared, group.group),
            limit: group.limit,
            level: group.level,
            bump: group.bump,
            waiting,
            in_flight: group.in_flight,
            why: group.why.into(),
        };
        of_lane.entry(group.lane).or_default().push(status);
    }
    snapshot.lanes = lanes
        .into_iter()
        .map(|lane| LaneStatus {
            weight: lane.weight,
            cap: lane.cap,
            in_flight: lane.in_flight,
            open_tier: lane.open_tier,
            ending: lane.closing,
            groups: of_lane.remove(&lane.lane).unwrap_or_default(),
        })
        .collect();
    snapshot
}
