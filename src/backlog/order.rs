//! How the place of a group follows from its state.
//!
//! Protocol: take the group out of the ready queue, change it, and put it where it then belongs.
//! Its lane is updated once for each event.

use crate::lanes::Lanes;
use crate::limit::Bypass;
use crate::ready::Age;

use super::group::{Group, Place};
use super::member::Member;

/// The lanes with their ready queues.
#[derive(Debug)]
pub(super) struct Order<T> {
    pub(super) lanes: Lanes<Member<T>>,
    /// The last number given out, as a ticket or as the time of a bump.
    pub(super) clock: u64,
}

impl<T> Order<T> {
    pub(super) fn new(bypass: Bypass) -> Self {
        Self {
            lanes: Lanes::new(bypass),
            clock: 0,
        }
    }

    /// Gives out consecutive numbers. Returns the first.
    #[inline]
    pub(super) fn mint_many(&mut self, many: u64) -> u64 {
        let first = self.clock + 1;
        self.clock += many;
        first
    }

    pub(super) fn mint(&mut self) -> u64 {
        self.mint_many(1)
    }

    /// Takes a group out of the ready queue, if it is there.
    pub(super) fn dequeue(&mut self, g: &Group<T>) {
        if let Some(tier) = g.head.filter(|_| g.is_ready()) {
            let position = g.place.position(g.level);
            let old = self.lanes.remove(g.lane.index(), tier, position);
            debug_assert!(old.is_some(), "who is ready is in line");
        }
    }

    /// [`rejoin`](Self::rejoin), and the update of the lane.
    #[inline]
    pub(super) fn join_and_update(&mut self, index: u32, g: &mut Group<T>, age: Age) {
        self.rejoin(index, g, age);
        self.lanes.update(g.lane.index());
    }

    /// Puts a group that is in no ready queue where it belongs. The lane must be updated.
    #[inline]
    pub(super) fn rejoin(&mut self, index: u32, g: &mut Group<T>, age: Age) {
        let age = self.count_head(g, age);
        if age == Age::New {
            g.place.ticket = self.mint();
        }
        if let Some(tier) = g.head.filter(|_| g.is_ready()) {
            let ready = self.lanes.ready(g.lane.index(), tier);
            let (place, member) = (&g.place, Member::Group(index));
            ready.join(age, place.ticket, g.level, place.bump(), member);
        }
    }

    /// Counts the group in the tier of its first waiting message. A group that was empty becomes
    /// ready now.
    #[inline]
    pub(super) fn count_head(&mut self, g: &mut Group<T>, age: Age) -> Age {
        let head = g.messages.head_tier();
        let counted = std::mem::replace(&mut g.head, head);
        if counted == head {
            return age;
        }
        self.lanes.change_head(g.lane.index(), counted, head);
        match counted {
            None => Age::New,
            Some(_) => age,
        }
    }

    /// Bumps a place that is in no ready queue. A bump to the same level changes nothing.
    pub(super) fn bump(&mut self, place: &mut Place, level: u8) {
        let when = self.mint();
        if place.bump().is_none_or(|(old, _)| old != level) {
            place.set_bump(Some((level, when)));
        }
    }
}
