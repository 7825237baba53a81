//! Weighted round robin.
//!
//! Lanes take turns, each as many in a row as its weight. A lane is a number here, and the owner of
//! a ring keeps a [`Link`] for each lane. The members are linked in a circle: `current` is served
//! next, and its predecessor is the tail. A lane joins at the tail. Each turn costs the current
//! lane one unit of its credit. When that is used up, the lane goes to the tail with fresh credit.
//! A lane that leaves forfeits the credit that it has left.
//!
//! Invariant: a member's credit is from 1 to the weight that it had when it last got fresh credit;
//! lanes that are not members have no credit.
//!
//! Cost: O(1).

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// The largest weight of a lane.
pub const MAX_WEIGHT: u32 = 1_000_000;

/// The ring's data about a lane.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    prev: u32,
    next: u32,
    credit: u32,
    /// Turns in a row, from 1 to [`MAX_WEIGHT`]. A new weight counts from the next fresh credit on.
    pub weight: u32,
}

impl Link {
    /// The link of a lane that is not a member.
    pub const fn new(weight: u32) -> Self {
        Self {
            prev: 0,
            next: 0,
            credit: 0,
            weight,
        }
    }

    /// Whether the lane is in the ring.
    #[inline]
    pub fn is_member(&self) -> bool {
        self.credit > 0
    }

    #[inline]
    pub(crate) fn credit(&self) -> u32 {
        self.credit
    }

    /// So many turns have begun while the lane is alone in the ring.
    #[inline(always)]
    pub fn served_alone(&mut self, turns: u32) {
        if self.weight == 1 {
            return;
        }
        // Its credit is renewed whenever it is used up.
        self.credit = if turns < self.credit {
            self.credit - turns
        } else {
            self.weight - (turns - self.credit) % self.weight
        };
    }
}

/// The links of all lanes.
pub trait Links {
    /// The link of a lane.
    fn link(&self, lane: u32) -> &Link;
    /// As [`link`](Self::link), but mutable.
    fn link_mut(&mut self, lane: u32) -> &mut Link;
}

/// The members, which take turns. See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring {
    len: u32,
    /// The member that is served next; meaningless while there is none.
    current: u32,
}

impl Ring {
    /// The number of members.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The lane that is served next.
    #[inline]
    pub fn current(&self) -> Option<u32> {
        (self.len > 0).then_some(self.current)
    }

    /// The members, in the order in which their next turns begin.
    pub fn iter(&self, links: &impl Links) -> impl Iterator<Item = u32> {
        let next = move |&lane: &u32| Some(links.link(lane).next);
        std::iter::successors(Some(self.current), next).take(self.len as usize)
    }

    /// Adds a lane at the tail. A member stays where it is.
    pub fn join(&mut self, links: &mut impl Links, lane: u32) {
        let link = links.link_mut(lane);
        if link.is_member() {
            return;
        }
        (link.credit, link.prev) = (link.weight, lane);
        if self.len == 0 {
            self.current = lane;
        }
        self.len += 1;
        self.put_last(links, lane);
    }

    /// Removes a lane, if it is a member. If it was the current one, the next one becomes current.
    #[inline]
    pub fn leave(&mut self, links: &mut impl Links, lane: u32) {
        let link = links.link_mut(lane);
        if !link.is_member() {
            return;
        }
        link.credit = 0;
        if self.len > 1 {
            self.take_out(links, lane);
        }
        self.len -= 1;
    }

    /// The current lane, which has this link, took one turn.
    #[inline(always)]
    pub fn served(&mut self, link: &mut Link) {
        link.credit -= 1;
        if link.credit == 0 {
            link.credit = link.weight;
            self.current = link.next;
        }
    }

    /// Takes back a turn of a member: it becomes the current lane, and has that turn again. Of
    /// several turns take back the last first.
    pub fn unclaim(&mut self, links: &mut impl Links, lane: u32) {
        let link = links.link_mut(lane);
        if lane == self.current {
            link.credit = link.weight.min(link.credit + 1);
            return;
        }
        // Its credit was used up, or it left and came back: it is elsewhere in the circle.
        link.credit = 1;
        self.take_out(links, lane);
        self.put_last(links, lane);
        self.current = lane;
    }

    /// Links a lane in before the current one: this place is the tail.
    fn put_last(&mut self, links: &mut impl Links, lane: u32) {
        let next = self.current;
        let prev = links.link(next).prev;
        let link = links.link_mut(lane);
        (link.prev, link.next) = (prev, next);
        links.link_mut(prev).next = lane;
        links.link_mut(next).prev = lane;
    }

    fn take_out(&mut self, links: &mut impl Links, lane: u32) {
        let &Link { prev, next, .. } = links.link(lane);
        links.link_mut(prev).next = next;
        links.link_mut(next).prev = prev;
        if self.current == lane {
            self.current = next;
        }
    }
}

/// The one after `last`, in a circle.
pub(crate) fn next_in<T: Copy + Ord>(all: &BTreeSet<T>, last: Option<T>) -> Option<T> {
    let behind = last.map_or(Unbounded, Excluded);
    let next = all.range((behind, Unbounded)).next();
    next.or_else(|| all.first()).copied()
}
