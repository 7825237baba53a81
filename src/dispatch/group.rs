//! One group: its limit, what waits first in it, and where it stands.

use crate::limit::Limit;
use crate::line::Place;
use crate::rank::Slot;

use super::lane::Lane;
use super::{Aside, Blocked, LaneKey, Stood, Touched};

/// The tier in whose line a group stands, and where; or nowhere.
type Standing = Option<(u32, Place)>;

/// From where to where a group goes.
pub(super) type Moved = (Standing, Standing);

/// Invariant: `place` is `Some` if and only if the group is ready and not
/// reserved, but for the moment between a change and the `stand` that follows it.
#[derive(Debug)]
pub(super) struct Group<G> {
    pub(super) lane: LaneKey,
    pub(super) limit: Limit,
    pub(super) in_flight: u32,
    /// A turn is live.
    pub(super) held: bool,
    /// Set aside; if poisoned, `head` is not counted in the lane's tiers.
    pub(super) aside: Option<Aside>,
    /// Reserved for whoever asks for it by name.
    pub(super) named: bool,
    /// The tier of the message that waits first.
    pub(super) head: Option<u32>,
    pub(super) level: u8,
    /// The level it is bumped to, and when.
    pub(super) bump: Option<(u8, u64)>,
    /// When it became ready.
    pub(super) ready: u64,
    pub(super) place: Standing,
    pub(super) data: G,
}

impl<G> Group<G> {
    pub(super) fn new(lane: LaneKey, limit: Limit, level: u8, data: G) -> Self {
        Self {
            lane,
            limit,
            in_flight: 0,
            held: false,
            aside: None,
            named: false,
            head: None,
            level,
            bump: None,
            ready: 0,
            place: None,
            data,
        }
    }

    /// A turn of it begins, which uses up its bump.
    #[inline]
    pub(super) fn begin(&mut self, overtaken: Option<u32>) -> Stood {
        self.held = true;
        Stood {
            ready: self.ready,
            bump: self.bump.take(),
            overtaken,
        }
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.limit.room(self.in_flight) > 0
    }

    /// Work, room under its own limit, and nobody's turn, and not set aside.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.head.is_some() && !self.held && self.aside.is_none() && self.has_room()
    }

    /// What keeps its work waiting while it is set aside.
    pub(super) fn blocked_aside(&self) -> Blocked {
        match self.aside {
            Some(Aside::Poisoned) => Blocked::Poisoned,
            _ => Blocked::BackingOff,
        }
    }

    pub(super) fn touched(&self, head: Option<u32>) -> Touched {
        Touched {
            lane: self.lane,
            changed: self.head != head,
            poisoned: self.aside == Some(Aside::Poisoned),
        }
    }

    /// Something else waits first in it, for the tiers of its lane, too.
    #[inline]
    pub(super) fn set_head(&mut self, head: Option<u32>, lane: &mut Lane, clock: &mut u64) {
        let old = std::mem::replace(&mut self.head, head);
        if old == head {
            return;
        }
        if old.is_none() {
            *clock += 1;
            self.ready = *clock;
        }
        if self.aside != Some(Aside::Poisoned) {
            if let Some(tier) = head {
                _ = lane.tiers.arrive(tier);
            }
            if let Some(tier) = old {
                _ = lane.tiers.leave(tier);
            }
        }
    }

    /// One unit for the message that waits first, whose tier it returns.
    #[inline]
    pub(super) fn take_unit(&mut self, lane: &mut Lane) -> Option<u32> {
        let tier = self.head.take()?;
        self.in_flight += 1;
        lane.in_flight += 1;
        lane.tiers.start(tier);
        Some(tier)
    }

    /// Changes its place to where it belongs now, if that is elsewhere. Its
    /// lane is to be told.
    #[inline]
    pub(super) fn stand(&mut self) -> Option<Moved> {
        let wanted = self.wanted();
        let had = self.place;
        if had == wanted {
            return None;
        }
        self.place = wanted;
        Some((had, wanted))
    }

    /// Where it belongs now.
    #[inline]
    fn wanted(&self) -> Standing {
        let tier = self.head.filter(|_| self.is_ready() && !self.named)?;
        let (slot, ranked) = match self.bump {
            Some((level, when)) => (Slot::bumped(level), when.max(self.ready)),
            None => (Slot::standing(self.level), self.ready),
        };
        let ready = self.ready;
        Some((
            tier,
            Place {
                slot,
                ranked,
                ready,
            },
        ))
    }
}
