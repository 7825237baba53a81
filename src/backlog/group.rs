//! One group: its limit, its age, and what waits in it.

use crate::lanes::LaneKey;
use crate::limit::Limit;

use super::messages::{Entry, Messages};

#[derive(Debug)]
pub(super) struct Group<T> {
    pub(super) lane: LaneKey,
    pub(super) limit: Limit,
    pub(super) in_flight: u32,
    pub(super) level: u8,
    /// Those who keep it.
    pub(super) pins: u32,
    /// The tier in which it counts: that of the message that waits first.
    pub(super) head: Option<u32>,
    /// The level it is bumped to, and when.
    pub(super) bump: Option<(u8, u64)>,
    /// When it became ready.
    pub(super) ticket: u64,
    pub(super) messages: Messages<T>,
}

impl<T> Group<T> {
    /// With one pin.
    pub(super) fn new(lane: LaneKey, limit: Limit, level: u8) -> Self {
        Self {
            lane,
            limit,
            in_flight: 0,
            level,
            pins: 1,
            head: None,
            bump: None,
            ticket: 0,
            messages: Messages::new(),
        }
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.limit.room(self.in_flight) > 0
    }

    /// Work, and room under its own limit: it is in line.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.head.is_some() && self.has_room()
    }

    /// Whether nothing of it waits or is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.len() == 0 && self.in_flight == 0
    }

    /// The lowest tier that its next message may have.
    #[inline]
    pub(super) fn least_tier(&self) -> u32 {
        match self.is_idle() {
            true => 0,
            false => self.messages.last_tier,
        }
    }

    /// Whether it is to end.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.pins == 0 && self.is_idle()
    }

    /// Takes out the first message, which has started in its tier.
    #[inline]
    pub(super) fn start_head(&mut self) -> Option<Entry<T>> {
        self.head = None;
        self.in_flight += 1;
        self.messages.pop()
    }
}
