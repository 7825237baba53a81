//! What a queue counts all the time, and what it holds at one moment.

use std::collections::BTreeMap;

use crate::error::Stale;
use crate::group::of_bound;
use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::wait::WaitCounts;

use super::id::GroupId;
use super::refuse::Why;
use super::shared::Shared;
use super::state::State;
use super::{GroupRef, Queue};

/// The counts of a queue. See [`Queue::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// Groups that have not ended.
    pub groups: usize,
    /// Turns that could begin now, except of groups for which a receive waits by name.
    pub eligible: u64,
    /// Turns that were claimed so far.
    pub turns: u64,
    /// How many deliveries so far were not completed, but given back or dropped, also by a
    /// panic. Their messages are delivered again, except in a poisoned group. A batch counts once.
    pub failed: u64,
    /// How many of them were dropped outside of a panic, neither completed nor explicitly given
    /// back: usually a `complete` was forgotten.
    pub dropped: u64,
    /// Groups that are [poisoned](Queue::poisoned).
    pub poisoned: usize,
    /// Groups that pause after a failure.
    pub backing_off: usize,
    /// In a queue with a capacity: messages that wait or are in flight, and room granted to
    /// sends that have not sent yet.
    pub outstanding: Option<u64>,
    /// Receives that wait for a turn of any group.
    pub receives: WaitCounts,
    /// Receives that wait for a group by name.
    pub named: WaitCounts,
    /// Sends that wait for room in the queue; those that wait for room in a group or lane are
    /// counted in [its status](GroupStatus::sends). A send that was granted room keeps its own room
    /// from the others, and no more.
    pub sends: WaitCounts,
    /// How many permits these sends ask for: one for each message.
    pub asked: u64,
}

/// The state of a queue. While it is taken, nothing is claimed or closed, but messages may be
/// sent and turns may end: each group is shown as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// Whether sends are refused.
    pub closed: bool,
    /// Messages that wait.
    pub waiting: u64,
    /// Units of the groups' limits in use. A turn holds one, with a message, a batch or nothing; a
    /// detached delivery keeps the one of its turn.
    pub in_flight: u64,
    /// Messages sent so far, also to groups that have ended. Those that do not wait are in flight,
    /// alone or in a batch, or were completed or taken out.
    pub sent: u64,
    /// The same as [`Queue::counts`].
    pub counts: Counts,
    /// The lanes with their groups.
    pub lanes: Vec<LaneStatus>,
}

/// One lane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LaneStatus {
    /// The lane's [number](super::Lane::number).
    pub number: u32,
    /// The most turns in a row.
    pub weight: u32,
    /// The most messages in flight at once.
    pub cap: Limit,
    /// The most messages that may wait in its groups.
    pub capacity: Limit,
    /// Sends that wait for room in it.
    pub sends: WaitCounts,
    /// Units in use, by turns and by detached deliveries.
    pub in_flight: u32,
    /// The open tier, if anything is outstanding; in a lane without tiers 0, also for a live turn.
    pub open_tier: Option<u32>,
    /// Whether its handle is gone: then the lane ends with its last group.
    pub ending: bool,
    /// The lane's groups.
    pub groups: Vec<GroupStatus>,
}

/// One group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GroupStatus {
    /// The group's name.
    pub id: GroupId,
    /// The group's [tag](super::Conversation::set_tag), or 0.
    pub tag: u64,
    /// The most messages in flight at once.
    pub limit: Limit,
    /// The most messages that may wait in it.
    pub capacity: Limit,
    /// Sends that wait for room in it.
    pub sends: WaitCounts,
    /// The group's standing level.
    pub level: u8,
    /// The level to which its next turn is bumped.
    pub bump: Option<u8>,
    /// Messages that wait.
    pub waiting: usize,
    /// Units of its limit in use, by its turn and by detached deliveries. A turn counts as one
    /// with a message, a batch or nothing: to count what is not done, count what you complete.
    pub in_flight: u32,
    /// Messages sent to it so far.
    pub sent: u64,
    /// What blocks its first message.
    pub why: Why,
}

impl<T> Queue<T> {
    /// The counts of the queue, cheap enough to read each second, however many groups there
    /// are.
    ///
    /// How many messages wait, are in flight or were sent is not included: each group counts
    /// its own, since a common sum would be a word that every thread changes with every
    /// message. [`snapshot`](Self::snapshot) adds them up, in O(groups). A queue with a
    /// [capacity](super::Builder::capacity) has such a word, and returns it as
    /// [`outstanding`](Counts::outstanding).
    ///
    /// Cost: O(1) under the queue's lock, and a step for each lane with eligible work, for each
    /// level of its ready groups, and for each send that was granted room and has not been polled
    /// since.
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let anna = lane.conversation()?;
    /// anna.send("fails once")?;
    /// queue.try_receive()?.next().expect("a message").give_back();
    /// let counts = queue.counts();
    /// assert_eq!((counts.groups, counts.eligible), (1, 1));
    /// assert_eq!((counts.turns, counts.failed, counts.dropped), (1, 1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        let shared = self.shared();
        shared.with_state(|state| counts(shared, state))
    }

    /// The state of one group. Cost: O(1) under the queue's lock.
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::{Queue, Why};
    /// let queue = Queue::new();
    /// let anna = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// anna.send_all(["at work", "waits"])?;
    /// let turn = queue.receive().wait()?;
    /// // A pause lets go on what is in flight.
    /// queue.group(anna.group_id())?.set_limit(0)?;
    /// assert_eq!(queue.status(anna.group_id())?.in_flight, 1);
    /// drop(turn);
    /// let status = queue.status(anna.group_id())?;
    /// assert_eq!((status.in_flight, status.waiting, status.why), (0, 2, Why::Paused));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn status(&self, group: GroupId) -> Result<GroupStatus, Stale> {
        self.by_name(group, |state, group| status(self.shared(), state, group).1)
    }

    /// The groups of the queue, one after the other, in the order of their names: for a queue
    /// with so many groups that a [`snapshot`](Self::snapshot) would block others for long.
    ///
    /// Takes the queue's lock again for every hundred groups or so. Each group is shown as it was
    /// at one moment. A group that is made or ends meanwhile may be missing; none is shown twice.
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// let queue = Queue::<&str>::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let groups: Vec<_> = (0..1_000).map(|_| lane.conversation()).collect::<Result<_, _>>()?;
    /// groups[7].send("a message")?;
    /// let waiting = queue.groups().filter(|group| group.waiting > 0);
    /// assert_eq!(waiting.map(|group| group.id).collect::<Vec<_>>(), [groups[7].group_id()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn groups(&self) -> impl Iterator<Item = GroupStatus> + '_ {
        let (shared, mut next) = (self.shared(), Some(0));
        std::iter::from_fn(move || page(shared, &mut next)).flatten()
    }

    /// The state of the queue, and what blocks each group.
    ///
    /// Cost: O(lanes and groups) under the queue's lock; [`groups`](Self::groups) takes the
    /// lock for a few groups at a time.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shared = self.shared();
        shared.with_state(|state| {
            let mut by_lane: BTreeMap<LaneKey, Vec<GroupStatus>> = BTreeMap::new();
            for group in state.groups.all() {
                let (lane, status) = status(shared, state, &group);
                by_lane.entry(lane).or_default().push(status);
            }
            let is_poisoned = |group: &GroupStatus| state.suspended.poison(group.id.key).is_some();
            let is_outstanding = |group: &GroupStatus| {
                group.in_flight > 0 || group.waiting > 0 && !is_poisoned(group)
            };
            let lanes = state.lanes.iter().map(|(key, lane)| {
                let groups = by_lane.remove(&key).unwrap_or_default();
                let untiered = !lane.is_tiered() && groups.iter().any(is_outstanding);
                let (capacity, sends) = of_bound(state.lane_bounds.get(&key.index()));
                LaneStatus {
                    number: key.index(),
                    weight: lane.link.weight,
                    cap: lane.cap,
                    capacity,
                    sends,
                    in_flight: groups.iter().map(|group| group.in_flight).sum(),
                    open_tier: lane.open_tier().or(untiered.then_some(0)),
                    ending: lane.ending,
                    groups,
                }
            });
            let lanes: Vec<LaneStatus> = lanes.collect();
            let groups = || lanes.iter().flat_map(|lane| &lane.groups);
            Snapshot {
                closed: state.closed,
                waiting: groups().map(|group| group.waiting as u64).sum(),
                in_flight: groups().map(|group| u64::from(group.in_flight)).sum(),
                sent: state.sent_to_ended + groups().map(|group| group.sent).sum::<u64>(),
                counts: counts(shared, state),
                lanes,
            }
        })
    }
}

/// About how many groups are read under one lock.
const AT_ONCE: usize = 64;

/// The next groups from a place on, which moves behind them; `None` if there are none.
fn page<T>(shared: &Shared<T>, next: &mut Option<u32>) -> Option<Vec<GroupStatus>> {
    let first = (*next)?;
    let page: Vec<_> = shared.with_state(|state| {
        let groups = state.groups.from(first, AT_ONCE).into_iter();
        groups
            .map(|group| status(shared, state, &group).1)
            .collect()
    });
    *next = page.last()?.id.key.0.index().checked_add(1);
    Some(page)
}

/// A group, and its lane.
fn status<T>(
    shared: &Shared<T>,
    state: &mut State<T>,
    group: &GroupRef<T>,
) -> (LaneKey, GroupStatus) {
    let mut mailbox = shared.lock_group(state, group);
    let claimed = state.is_claimed(&mailbox);
    let (capacity, sends) = mailbox.own_bound();
    let status = GroupStatus {
        id: shared.id(group.key()),
        tag: mailbox.tag(),
        limit: mailbox.limit(),
        capacity,
        sends,
        level: mailbox.lane.level(),
        // A turn that is about to begin has used it up.
        bump: mailbox.bump().filter(|_| !claimed).map(|(level, _)| level),
        waiting: group.waiting() as usize,
        in_flight: mailbox.units(claimed),
        sent: group.sent(&mailbox),
        why: state.why(group, &mailbox),
    };
    (mailbox.lane.key(), status)
}

pub(super) fn counts<T>(shared: &Shared<T>, state: &State<T>) -> Counts {
    let poisoned = state.suspended.poisoned.len();
    let sends = shared.capacity.permits().map(|permits| permits.counts());
    Counts {
        groups: state.groups.len(),
        eligible: state.lanes.eligible(usize::MAX) as u64,
        turns: state.lanes.begun,
        failed: shared.failures.get(),
        dropped: shared.dropped.get(),
        poisoned,
        backing_off: state.suspended.groups.len() - poisoned,
        outstanding: shared.capacity.outstanding(),
        receives: state.receives.counts(),
        named: state.named.counts(),
        sends: sends.map_or_else(WaitCounts::default, |sends| sends.acquires),
        asked: sends.map_or(0, |sends| sends.asked),
    }
}
