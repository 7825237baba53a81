//! What a live turn holds, for the turn, its deliveries and the special steps.

use std::mem::ManuallyDrop;

use crate::group::Taken;

use super::GroupRef;
use super::holders::Holder;

/// What a turn holds.
pub(super) struct Live<T> {
    /// `None` once it has ended, which it has before it is dropped.
    pub(super) group: ManuallyDrop<Option<GroupRef<T>>>,
    /// Out of its mailbox: with a delivery, or to be delivered next.
    pub(super) taken: Option<Taken<T>>,
    /// How many deliveries it may still make.
    pub(super) quota: u32,
    /// The queue's, when the cap was last looked at.
    pub(super) epoch: u32,
    /// Its group had no flag when it began, the queue has no capacity, and
    /// nothing was detached or counts in a tier.
    pub(super) plain: bool,
    /// It holds a unit: the last delivery was not detached.
    pub(super) unit: bool,
    /// What is taken counts as started in the lane's tiers.
    pub(super) counted: bool,
    /// For the thread that received it, if the queue has a capacity.
    pub(super) holder: Holder,
}

impl<T> Live<T> {
    #[inline]
    pub(super) fn group(&self) -> &GroupRef<T> {
        self.group.as_ref().expect(LIVE)
    }

    /// Whether a message that is done was counted: in its tier, or in the capacity.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        !self.plain && (self.counted || self.holder.is_some())
    }
}

pub(super) const LIVE: &str = "a turn is live until it is dropped";
