//! Lanes: the shares of a queue.

use crate::error::{Closed, OutOfRange};
use crate::group::{self, CAPPED, Flags, LANE, Mailbox, TIERED, of_bound};
use crate::lanes::LaneKey;
use crate::limit::{DEFAULT_LEVEL, Limit};
use crate::shown::shows;
use crate::sync::{Arc, Ordering};

use super::Pinned;
use super::bounds;
use super::handles::{Conversation, Group};
use super::refuse::LaneError;
use super::shared::Shared;
use super::state::State;

/// One caller's share of a queue: its weight, its cap and its groups.
///
/// A handle: clones are the same lane. Dropping the last handle does not end the lane's groups; the
/// lane ends with the last of them.
#[must_use = "a lane ends with its last handle and group"]
pub struct Lane<T>(Arc<Owner<T>>);

/// Shared by all handles of a lane.
struct Owner<T> {
    shared: Arc<Shared<T>>,
    key: LaneKey,
}

impl<T> Clone for Lane<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Lane<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, key: LaneKey) -> Self {
        Self(Arc::new(Owner { shared, key }))
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.0.shared
    }

    #[inline]
    pub(super) fn key(&self) -> LaneKey {
        self.0.key
    }

    /// Makes a group with at most `limit` messages in flight (1: serial; 0: paused) and this
    /// standing level (255 is served first; see [`DEFAULT_LEVEL`]).
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the queue is closed, or the limit is above [`Limit::MAX`].
    pub fn group(&self, limit: impl Into<Limit>, level: u8) -> Result<Group<T>, LaneError> {
        let pin = self.add_group(limit.into(), level)?;
        Ok(Group { pin })
    }

    /// A conversation in a new serial group, at the [`DEFAULT_LEVEL`].
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed.
    pub fn conversation(&self) -> Result<Conversation<T>, Closed> {
        let pin = self.add_group(Limit::SERIAL, DEFAULT_LEVEL);
        let pin = pin.map_err(|_| Closed)?;
        Ok(Conversation { pin })
    }

    /// The lane's number in the queue, which a [snapshot](super::LaneStatus::number) gives too.
    /// After the lane and its groups are gone, a new lane may have the same number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.key().index()
    }

    /// Changes how many messages of this lane may be in flight at once; 0 is a pause. A lower
    /// cap takes nothing back, it leaves a debt: turns that were claimed before still begin, with
    /// their first message.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_cap(&self, cap: impl Into<Limit>) -> Result<(), OutOfRange> {
        let (shared, lane) = (self.shared(), self.key().index());
        let cap = cap.into();
        shared.with_state(|state| {
            state.lanes.set_cap(lane, cap)?;
            if cap != Limit::Unlimited && state.lanes.count_units(lane) {
                self.count_units(state);
            }
            // Relaxed: live turns look at the cap under the lock.
            shared.epoch.fetch_add(1, Ordering::Relaxed);
            state.lanes.update(lane);
            Ok(())
        })
    }

    /// Sets how many messages may wait in all groups of this lane together, in addition to the
    /// [queue's](super::Builder::capacity) capacity; no limit at first. Otherwise like
    /// [`Conversation::set_capacity`].
    ///
    /// While the first capacity is being set, sends into the lane may be refused as
    /// [`LaneFull`](super::SendReason::LaneFull), although there is room.
    ///
    /// Cost: O(groups of the queue) for the first capacity and for none, and some 150 bytes
    /// in each group of the lane. Lowering it, or raising it from 0, takes a step for each send
    /// that waits for room in the lane.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`], or if there is no capacity yet and more than 2^30
    /// messages wait; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        let (shared, capacity) = (self.shared(), capacity.into().checked("capacity")?);
        shared.capacity.use_parts();
        let changed = shared.with_state(|state| state.change_lane(self.key(), capacity))?;
        bounds::finish_change(changed, capacity);
        Ok(())
    }

    /// How many messages may wait in all groups of this lane together.
    #[must_use]
    pub fn capacity(&self) -> Limit {
        let (shared, lane) = (self.shared(), self.number());
        shared.with_state(|state| of_bound(state.lane_bounds.get(&lane)).0)
    }

    /// The lane has a cap for the first time: counts the units in use.
    fn count_units(&self, state: &mut State<T>) {
        state.capped = true;
        for group in state.groups_of(self.key()) {
            let mut mailbox = self.shared().lock_group(state, &group);
            mailbox.flags |= CAPPED;
            let units = mailbox.units(state.is_claimed(&mailbox));
            state.lanes.lane_mut(self.key().index()).in_use += units;
        }
    }

    /// Adds a group with one pin.
    pub(crate) fn add_group(&self, limit: Limit, level: u8) -> Result<Pinned<T>, LaneError> {
        let shared = self.shared();
        shared.with_state(|state| {
            state.open()?;
            let limit = limit.checked("limit")?;
            let lane = state.lanes.lane(self.key().index());
            let mut flags: Flags = 0;
            if lane.counts {
                flags |= CAPPED;
            }
            if lane.is_tiered() {
                flags |= TIERED;
            }
            if *state.level.get_or_insert(level) != level {
                shared.submissions.mix();
            }
            let mut mailbox = Mailbox::new(self.key(), limit, level, flags);
            if let Some(bound) = state.lane_bounds.get(&self.key().index()) {
                _ = mailbox.set_bound(0, LANE, Some(Arc::clone(bound)));
            }
            let group = group::Group::new(mailbox, shared.capacity.is_limited());
            let pin = state.groups.add(group, shared);
            state.add_to_lane(self.key(), pin.key());
            Ok(pin)
        })
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        self.shared.with_state(|state| {
            if state.lanes.end_lane(self.key) {
                state.lane_bounds.remove(&self.key.index());
            }
        });
    }
}

shows!([T] Lane<T>, |lane| number: lane.number());
