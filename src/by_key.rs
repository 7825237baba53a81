//! Order by (key, sequence): many small orders of items that stand elsewhere.
//!
//! An order knows no keys. Who adds an item first finds its position with a
//! comparison of its own, and then inserts it. So the user's `Ord` runs in
//! [`position`](Order::position), [`head`](Order::head) and [`before`](Order::before)
//! alone, which change nothing. The other methods compare nothing and cannot fail.
//!
//! # State
//!
//! Items that came in order stand in a list, the run. Those that came before its last
//! stand in a tree ([`tree`]). The [`Links`] of an item stand in the item: an order holds
//! nothing but its ends, and allocates nothing.
//!
//! # Invariants
//!
//! 1. The run is in order, and so is the tree. Which of their first items is first is
//!    compared when it is asked.
//! 2. What stands beside an end of the run, on the outside, is not looked at.
//! 3. An item is in one order at most, and does not move while it is in it. Which order
//!    that is, is not checked.
//!
//! # Cost
//!
//! What comes last costs one comparison and a few stores, and so does taking the first
//! out. What comes earlier is found in O(log d) comparisons expected, d being how many of
//! the tree come behind it.

use std::cmp::Ordering;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod tree;

pub use tree::{Items, Links};
use tree::{LEFT, NONE, RIGHT, Tree};

/// Where an item is to be inserted; valid until its order changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Before all others.
    First,
    /// Behind all of the run, and of the tree if there is no run.
    Last,
    /// In the tree.
    Late(tree::Position),
}

/// One order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The run's first item and its last.
    ends: [u32; 2],
    late: Tree,
}

impl Order {
    /// Without items.
    pub const EMPTY: Self = Self {
        ends: [NONE; 2],
        late: Tree::EMPTY,
    };

    /// Whether there is no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends[LEFT] == NONE && self.late.is_empty()
    }

    /// The position of an item that compares to the others as `compare` says;
    /// behind its equals.
    #[inline(always)]
    pub fn position(
        &self,
        items: &impl Items,
        mut compare: impl FnMut(u32) -> Ordering,
    ) -> Position {
        let last = match self.ends[RIGHT] {
            NONE => self.late.tail(),
            last => last,
        };
        if last == NONE || compare(last).is_ge() {
            return Position::Last;
        }
        Position::Late(self.late.position(items, compare))
    }

    /// Inserts an item where [`position`](Self::position) said.
    #[inline(always)]
    pub fn insert(&mut self, items: &mut impl Items, position: Position, item: u32) {
        match position {
            Position::First => self.extend(items, LEFT, item),
            Position::Last => self.extend(items, RIGHT, item),
            Position::Late(position) => self.late.insert(items, position, item),
        }
    }

    /// The run becomes longer on this side.
    #[inline(always)]
    fn extend(&mut self, items: &mut impl Items, side: usize, item: u32) {
        let end = self.ends[side];
        *items.links_mut(item) = Links::beside(side, end);
        self.ends[side] = item;
        match end {
            NONE => self.ends[1 - side] = item,
            end => items.links_mut(end).set_neighbour(side, item),
        }
    }

    /// Takes an item out.
    #[inline(always)]
    pub fn remove(&mut self, items: &mut impl Items, item: u32) {
        let links = items.links_mut(item);
        if self.take_first(item, links) {
            return;
        }
        let Some([before, next]) = links.neighbours() else {
            return self.late.remove(items, item);
        };
        *links = Links::OUT;
        items.links_mut(before).set_neighbour(RIGHT, next);
        if self.ends[RIGHT] == item {
            self.ends[RIGHT] = before;
        } else {
            items.links_mut(next).set_neighbour(LEFT, before);
        }
    }

    /// Takes the run's first item out, with these links; false if it is not that.
    #[inline(always)]
    pub fn take_first(&mut self, item: u32, links: &mut Links) -> bool {
        let is_first = self.ends[LEFT] == item;
        if is_first {
            let next = std::mem::replace(links, Links::OUT).child[RIGHT];
            match self.ends[RIGHT] == item {
                true => self.ends = [NONE; 2],
                false => self.ends[LEFT] = next,
            }
        }
        is_first
    }

    /// Takes an item out and inserts it into another order, where its position is.
    #[inline(always)]
    pub fn pass(&mut self, to: &mut Self, items: &mut impl Items, (item, position): (u32, Position)) {
        self.remove(items, item);
        to.insert(items, position, item);
    }

    /// The first item. Which of two that is `compare` says.
    #[inline]
    pub fn head(&self, compare: impl FnOnce(u32, u32) -> Ordering) -> Option<u32> {
        match (self.ends[LEFT], self.late.head()) {
            (NONE, NONE) => None,
            (NONE, only) | (only, NONE) => Some(only),
            (run, late) if compare(late, run).is_lt() => Some(late),
            (run, _) => Some(run),
        }
    }

    /// How many items come before this one, which compares to the others as `compare`
    /// says. A step for each of them.
    pub fn before(&self, items: &impl Items, mut compare: impl FnMut(u32) -> Ordering) -> usize {
        let mut is_before = |&other: &u32| compare(other).is_gt();
        let run = self.run(items).take_while(&mut is_before).count();
        run + self.late.iter(items).take_while(is_before).count()
    }

    fn run(&self, items: &impl Items) -> impl Iterator<Item = u32> {
        let [first, last] = self.ends;
        let next = move |&item: &u32| Some(items.links(item).neighbours()?[RIGHT]);
        let next = move |item: &u32| next(item).filter(|_| *item != last);
        std::iter::successors(Some(first).filter(|&first| first != NONE), next)
    }

    /// The items of the run, and those of the tree, each in order.
    #[cfg(test)]
    pub fn parts(&self, items: &impl Items) -> [Vec<u32>; 2] {
        [self.run(items).collect(), self.late.iter(items).collect()]
    }
}
