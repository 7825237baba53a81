//! Order by (key, sequence): many small orders of items that are stored elsewhere.
//!
//! An order knows no keys. The caller first finds an item's position with a comparison of its own,
//! and then inserts the item. So the user's `Ord` runs only in [`position`](Order::position),
//! [`head`](Order::head) and [`before`](Order::before), which change nothing, and in
//! [`pass`](Passing::pass) before it changes anything. The other methods compare nothing and cannot
//! fail.
//!
//! # State
//!
//! Items that came in order are in a list, the run. Items that belong before its last one are in a
//! tree ([`tree`]). The [`Links`] of an item are in the item: an order holds only its ends, and
//! allocates nothing.
//!
//! # Invariants
//!
//! 1. The run is in order, and so is the tree. [`head`](Order::head) compares their first items.
//! 2. The links of an end of the run that point out of the run are not read.
//! 3. An item is in one order at most, and does not move while it is in it. No method checks which
//!    order an item is in.
//!
//! # Cost
//!
//! An item that comes last costs one comparison and a few stores, and so does taking the first out
//! of the run. An earlier item is found in O(log d) comparisons, where d is how many items of the
//! tree come behind it.

use std::cmp::Ordering;

mod links;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod tree;

pub use links::{Balance, Items, Links};
use links::{LEFT, NONE, RIGHT};
use tree::Tree;

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

/// Moves items from other orders to one, whose last item is looked up once for all of them.
pub struct Passing<'a, I: Items> {
    to: &'a mut Order,
    items: &'a I,
    last: Option<&'a I::Item>,
}

impl<I: Items> Passing<'_, I> {
    /// Takes an item out of its order, and inserts it where it belongs in this one. If `compare`
    /// panics, nothing has changed.
    #[inline(always)]
    pub fn pass(
        &mut self,
        from: &mut Order,
        at: u32,
        compare: impl Fn(&I::Item, &I::Item) -> Ordering,
    ) {
        let Self { to, items, last } = self;
        let item = items.item(at);
        let is_late = last.is_some_and(|last| compare(item, last).is_lt());
        let late = is_late.then(|| to.late.position(*items, |other| compare(item, other)));
        let links = I::links_of(item);
        if !from.take_first(at, links) {
            from.remove(*items, at);
        }
        if let Some(position) = late {
            return to.late.insert(*items, position, at);
        }
        links.set_beside(RIGHT, to.ends[RIGHT]);
        to.set_end(RIGHT, at, |_| I::links_of(last.expect("there is an end")));
        *last = Some(item);
    }
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
        self.ends[LEFT] == NONE && self.late.head == NONE
    }

    /// The last item of the run, or of the tree if there is no run, or `NONE`.
    #[inline(always)]
    fn last(&self) -> u32 {
        match self.ends[RIGHT] {
            NONE => self.late.tail,
            last => last,
        }
    }

    /// The position of an item that compares to the others as `compare` says;
    /// behind its equals.
    #[inline(always)]
    pub fn position<I: Items>(
        &self,
        items: &I,
        mut compare: impl FnMut(&I::Item) -> Ordering,
    ) -> Position {
        let last = self.last();
        if last == NONE || compare(items.item(last)).is_ge() {
            return Position::Last;
        }
        Position::Late(self.late.position(items, compare))
    }

    /// Inserts an item where [`position`](Self::position) said.
    #[inline(always)]
    pub fn insert(&mut self, items: &impl Items, position: Position, item: u32) {
        let side = match position {
            Position::First => LEFT,
            Position::Last => RIGHT,
            Position::Late(position) => return self.late.insert(items, position, item),
        };
        items.links(item).set_beside(side, self.ends[side]);
        self.set_end(side, item, |end| items.links(end));
    }

    /// The links of an item that is to be [pushed](Self::push).
    #[inline(always)]
    pub fn next_links(&self) -> Links {
        let links = Links::out();
        links.set_beside(RIGHT, self.ends[RIGHT]);
        links
    }

    /// Inserts an item behind all others; it has its [links](Self::next_links) already.
    #[inline(always)]
    pub fn push(&mut self, items: &impl Items, item: u32) {
        self.set_end(RIGHT, item, |end| items.links(end));
    }

    /// Extends the run by an item on this side.
    #[inline(always)]
    fn set_end<'a>(&mut self, side: usize, item: u32, links_of: impl FnOnce(u32) -> &'a Links) {
        match std::mem::replace(&mut self.ends[side], item) {
            NONE => self.ends[1 - side] = item,
            end => links_of(end).child[side].set(item),
        }
    }

    /// Takes an item with these links out if it is the first of the run; whether it was.
    #[inline(always)]
    pub fn take_first(&mut self, item: u32, links: &Links) -> bool {
        let is_first = self.ends[LEFT] == item;
        if is_first {
            match self.ends[RIGHT] == item {
                true => self.ends = [NONE; 2],
                false => self.ends[LEFT] = links.child[RIGHT].get(),
            }
            links.set_out();
        }
        is_first
    }

    /// Takes an item out.
    #[inline(never)]
    pub fn remove(&mut self, items: &impl Items, item: u32) {
        let links = items.links(item);
        if self.take_first(item, links) {
            return;
        }
        let Some([before, next]) = links.neighbours() else {
            return self.late.remove(items, item);
        };
        links.set_out();
        items.links(before).child[RIGHT].set(next);
        match self.ends[RIGHT] == item {
            true => self.ends[RIGHT] = before,
            false => items.links(next).child[LEFT].set(before),
        }
    }

    /// Begins to move items of other orders to this one.
    #[inline(always)]
    pub fn passing<'a, I: Items>(&'a mut self, items: &'a I) -> Passing<'a, I> {
        let last = self.last_of(items);
        Passing {
            to: self,
            items,
            last,
        }
    }

    /// The last item of the run, or of the tree if there is no run.
    #[inline(always)]
    pub fn last_of<'a, I: Items>(&self, items: &'a I) -> Option<&'a I::Item> {
        let last = self.last();
        (last != NONE).then(|| items.item(last))
    }

    /// The first item: `compare` decides between the first of the run and that of the tree.
    #[inline(always)]
    pub fn head<I: Items>(
        &self,
        items: &I,
        compare: impl FnOnce(&I::Item, &I::Item) -> Ordering,
    ) -> Option<u32> {
        let is_late = |late, run| compare(items.item(late), items.item(run)).is_lt();
        match (self.ends[LEFT], self.late.head) {
            (NONE, NONE) => None,
            (NONE, only) | (only, NONE) => Some(only),
            (run, late) if is_late(late, run) => Some(late),
            (run, _) => Some(run),
        }
    }

    /// How many items come before one that compares to the others as `compare` says. Cost: a step
    /// for each of them.
    pub fn before<I: Items>(
        &self,
        items: &I,
        mut compare: impl FnMut(&I::Item) -> Ordering,
    ) -> usize {
        let mut is_before = |&other: &u32| compare(items.item(other)).is_gt();
        let run = self.run(items).take_while(&mut is_before).count();
        run + self.late.iter(items).take_while(is_before).count()
    }

    fn run(&self, items: &impl Items) -> impl Iterator<Item = u32> {
        let [first, last] = self.ends;
        let next = move |&item: &u32| (item != last).then(|| items.links(item).child[RIGHT].get());
        std::iter::successors((first != NONE).then_some(first), next)
    }

    /// The items of the run, and those of the tree, each in order.
    #[cfg(test)]
    pub fn parts(&self, items: &impl Items) -> [Vec<u32>; 2] {
        [self.run(items).collect(), self.late.iter(items).collect()]
    }
}
