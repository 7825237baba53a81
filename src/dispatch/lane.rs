//! One caller: its limits, its open tier, and its groups in line by tier.

use std::collections::BTreeMap;

use crate::limit::{Bypass, Limit};
use crate::line::{Choice, Line, Place};
use crate::tiers::Tiers;

/// Invariants:
/// 1. `front` is the line of tier `front_tier`; the lines of other tiers
///    stand in `parked`, and an empty one stands nowhere.
/// 2. After `eligible`, `front_tier` is the open tier, if one is open.
/// 3. `units` is what `eligible` gave when the lane was last settled; if that
///    is not 0 the lane is in the ring, else it is not.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) weight: u32,
    pub(super) cap: Limit,
    pub(super) in_flight: u32,
    pub(super) groups: u32,
    /// No more groups come: the lane goes with its last one.
    pub(super) closing: bool,
    pub(super) tiers: Tiers,
    pub(super) units: u32,
    overtaken: u32,
    pub(super) front_tier: u32,
    front: Line,
    parked: BTreeMap<u32, Box<Line>>,
}

impl Lane {
    pub(super) fn new(weight: u32, cap: Limit) -> Self {
        Self {
            weight,
            cap,
            in_flight: 0,
            groups: 0,
            closing: false,
            tiers: Tiers::new(),
            units: 0,
            overtaken: 0,
            front_tier: 0,
            front: Line::default(),
            parked: BTreeMap::new(),
        }
    }

    /// Brings the line of the open tier to the front, and counts how many
    /// turns could begin now.
    #[inline]
    pub(super) fn eligible(&mut self) -> u32 {
        let Some(open) = self.tiers.open() else {
            return 0;
        };
        if open != self.front_tier {
            self.turn_to(open);
        }
        if self.tiers.draining() {
            return 0;
        }
        let standing = u32::try_from(self.front.len()).unwrap_or(u32::MAX);
        standing.min(self.cap.room(self.in_flight))
    }

    /// Whether its cap lets another unit go.
    pub(super) fn has_room(&self) -> bool {
        self.cap.room(self.in_flight) > 0
    }

    #[cold]
    fn turn_to(&mut self, open: u32) {
        let next = self
            .parked
            .remove(&open)
            .map_or_else(Line::default, |line| *line);
        let last = std::mem::replace(&mut self.front, next);
        if !last.is_empty() {
            self.parked.insert(self.front_tier, Box::new(last));
        }
        self.front_tier = open;
    }

    /// The group whose turn it is; counts who is overtaken.
    pub(super) fn choose(
        &mut self,
        bypass: Bypass,
        place: impl Fn(u32) -> Option<Place>,
    ) -> Option<Choice> {
        let choice = self.front.choose(bypass.spent(self.overtaken), place)?;
        self.overtaken = match choice.oldest {
            true => 0,
            false => self.overtaken.saturating_add(1),
        };
        Some(choice)
    }

    /// How often in a row the oldest group has been overtaken.
    #[inline]
    pub(super) fn overtaken(&self) -> u32 {
        self.overtaken
    }

    /// A turn is taken back: that of the oldest, overtaken so often before, or one
    /// that overtook it.
    pub(super) fn undo(&mut self, oldest: Option<u32>) {
        self.overtaken = match oldest {
            Some(before) => self.overtaken.saturating_add(before),
            None => self.overtaken.saturating_sub(1),
        };
    }

    /// A group of this age is served by name: if nobody in line is older, the
    /// count starts anew.
    pub(super) fn served_by_name(&mut self, ready: u64, place: impl Fn(u32) -> Option<Place>) {
        if self
            .front
            .oldest(place)
            .is_none_or(|oldest| ready <= oldest)
        {
            self.overtaken = 0;
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, tier: u32, at: Place, group: u32) {
        self.line_or_new(tier).insert(at, group);
    }

    pub(super) fn leave(
        &mut self,
        (tier, group): (u32, u32),
        from: Place,
        place: impl Fn(u32) -> Option<Place>,
    ) {
        if tier == self.front_tier {
            return self.front.leave(group, from, place);
        }
        if let Some(line) = self.parked.get_mut(&tier) {
            line.leave(group, from, place);
            if line.is_empty() {
                self.parked.remove(&tier);
            }
        }
    }

    pub(super) fn rerank(
        &mut self,
        (tier, group): (u32, u32),
        from: Place,
        to: Place,
        place: impl Fn(u32) -> Option<Place>,
    ) {
        self.line_or_new(tier).rerank(group, from, to, place);
    }

    #[inline]
    fn line_or_new(&mut self, tier: u32) -> &mut Line {
        if tier == self.front_tier {
            return &mut self.front;
        }
        self.parked_line(tier)
    }

    #[cold]
    fn parked_line(&mut self, tier: u32) -> &mut Line {
        self.parked.entry(tier).or_default()
    }
}
