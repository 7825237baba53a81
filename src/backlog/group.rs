//! One group: its limit, its age and its waiting messages.

use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::ready::Position;
use crate::slab::NO_INDEX;

use super::messages::Messages;

/// The place of a group, or of a message that is alone, in the ready queue, without its level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// When it became ready.
    pub(super) ticket: u64,
    /// When it was bumped, with the level in the highest byte; 0 if it was not.
    bump: u64,
}

const LEVEL: u32 = 56;

impl Place {
    /// A place that is not bumped.
    #[inline]
    pub(super) fn new(ticket: u64) -> Self {
        let bump = 0;
        Self { ticket, bump }
    }

    /// To which level it was bumped, and when.
    #[inline]
    pub(super) fn bump(&self) -> Option<(u8, u64)> {
        let when = self.bump & ((1 << LEVEL) - 1);
        (when > 0).then_some(((self.bump >> LEVEL) as u8, when))
    }

    #[inline]
    pub(super) fn set_bump(&mut self, bump: Option<(u8, u64)>) {
        self.bump = bump.map_or(0, |(level, when)| u64::from(level) << LEVEL | when);
    }

    #[inline]
    pub(super) fn position(&self, level: u8) -> Position {
        Position::new(level, self.ticket, self.bump())
    }
}

#[derive(Debug)]
pub(super) struct Group<T> {
    pub(super) lane: LaneKey,
    pub(super) limit: Limit,
    pub(super) in_flight: u32,
    pub(super) level: u8,
    /// Whether the last claim was by a bump: the messages behind it are not bumped.
    pub(super) by_bump: bool,
    /// How many owners keep it.
    pub(super) pins: u32,
    /// Its neighbours in the list of its lane's groups, by index.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// The tier in which it counts: that of its first waiting message.
    pub(super) head: Option<u32>,
    /// Its place in the ready queue, while it is ready.
    pub(super) place: Place,
    pub(super) messages: Messages<T>,
}

impl<T> Group<T> {
    /// An empty group with one pin.
    pub(super) fn new(lane: LaneKey, limit: Limit, level: u8) -> Self {
        Self {
            lane,
            limit,
            in_flight: 0,
            level,
            by_bump: false,
            pins: 1,
            prev: NO_INDEX,
            next: NO_INDEX,
            head: None,
            place: Place::default(),
            messages: Messages::new(),
        }
    }

    /// Whether none of its messages may start.
    pub(super) fn is_paused(&self) -> bool {
        self.limit == Limit::AtMost(0)
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.limit.room(self.in_flight) > 0
    }

    /// Whether it has work, and room under its own limit.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.head.is_some() && self.has_room()
    }

    /// Whether none of its messages waits or is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.in_flight == 0
    }

    /// The lowest tier that its next message may have.
    #[inline]
    pub(super) fn least_tier(&self) -> u32 {
        match self.is_idle() {
            true => 0,
            false => self.messages.last_tier,
        }
    }
}
