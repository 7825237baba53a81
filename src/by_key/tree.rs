//! Ordered trees of the items that came late.
//!
//! AVL trees with parent links (Adelson-Velsky and Landis, 1962).
//!
//! # Invariants
//!
//! 1. The heights of an item's subtrees differ by 1 at most. Its [balance](super::Balance) says
//!    which is higher.
//! 2. A tree's head is its first item, its tail the last.
//!
//! # Cost
//!
//! A position is found in O(log d) comparisons, where d is how many items come behind it: the last
//! position costs one. The rest compares nothing. It is O(log n) for a tree of n items. An item
//! that comes or goes changes O(1) others on average.

use std::cmp::Ordering;

use super::links::{Items, LEFT, Links, NONE, OUTSIDE, RIGHT};

/// Where an item is to be inserted; valid until its tree changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    parent: u32,
    side: usize,
}

/// One tree: the numbers of its root, of its first item and of its last; each `NONE` if there is
/// no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    root: u32,
    pub(super) head: u32,
    pub(super) tail: u32,
}

impl Tree {
    /// A tree without items.
    pub(super) const EMPTY: Self = Self {
        root: NONE,
        head: NONE,
        tail: NONE,
    };

    /// The position of an item that compares to the others as `compare` says;
    /// behind its equals.
    ///
    /// The only method that runs the caller's code.
    #[inline(never)]
    pub(super) fn position<I: Items>(
        self,
        items: &I,
        mut compare: impl FnMut(&I::Item) -> Ordering,
    ) -> Position {
        let mut compare = |other| compare(items.item(other));
        if self.tail == NONE {
            let (parent, side) = (NONE, LEFT);
            return Position { parent, side };
        }
        if compare(self.tail).is_ge() {
            return Position {
                parent: self.tail,
                side: RIGHT,
            };
        }
        // Each item on the right edge comes before all items in its right subtree. The edge is
        // searched from both ends: half of a tree is left of its root, and late items often come
        // near the tail.
        let (mut high, mut low) = (self.root, self.tail);
        let mut parent = loop {
            if high == low || compare(high).is_lt() {
                break high;
            }
            high = items.links(high).child[RIGHT].get();
            if high == low {
                break low;
            }
            let above = items.links(low).parent.get();
            if compare(above).is_ge() {
                break low;
            }
            low = above;
        };
        let mut side = LEFT;
        loop {
            let below = items.links(parent).child[side].get();
            if below == NONE {
                return Position { parent, side };
            }
            parent = below;
            side = usize::from(compare(parent).is_ge());
        }
    }

    /// Inserts an item where [`position`](Self::position) said.
    #[inline(never)]
    pub(super) fn insert(&mut self, items: &impl Items, position: Position, item: u32) {
        let Position { parent, side } = position;
        let links = items.links(item);
        links.parent.set(parent);
        links.child.iter().for_each(|child| child.set(NONE));
        items.balance(item).set(0);
        if parent == NONE {
            debug_assert_eq!(self.root, NONE, "the position of another tree");
            (self.root, self.head, self.tail) = (item, item, item);
            return;
        }
        items.links(parent).child[side].set(item);
        if side == LEFT && parent == self.head {
            self.head = item;
        } else if side == RIGHT && parent == self.tail {
            self.tail = item;
        }
        self.balance_after_insert(items, (parent, side));
    }

    /// Takes an item out.
    #[inline(never)]
    pub(super) fn remove(&mut self, items: &impl Items, item: u32) {
        let Links { parent, child } = items.links(item);
        let beside = |side: usize| match extreme(items, child[1 - side].get(), side) {
            NONE => parent.get(),
            below => below,
        };
        if item == self.head {
            self.head = beside(LEFT);
        }
        if item == self.tail {
            self.tail = beside(RIGHT);
        }
        let [left, right] = [child[LEFT].get(), child[RIGHT].get()];
        let lowered = match (left, right) {
            (NONE, below) | (below, NONE) => self.replace(items, parent.get(), item, below),
            _ => self.replace_by_next(items, item),
        };
        parent.set(OUTSIDE);
        self.balance_after_removal(items, lowered);
    }

    /// Puts the item after this one, which has two children, in its place. Returns whose subtree
    /// has become lower, and on which side.
    fn replace_by_next(&mut self, items: &impl Items, item: u32) -> (u32, usize) {
        let Links { parent, child } = items.links(item);
        let [left, right] = [child[LEFT].get(), child[RIGHT].get()];
        let next = extreme(items, right, LEFT);
        let links = items.links(next);
        let mut lowered = (next, RIGHT);
        if next != right {
            lowered = self.replace(items, links.parent.get(), next, links.child[RIGHT].get());
            links.child[RIGHT].set(right);
            items.links(right).parent.set(next);
        }
        links.child[LEFT].set(left);
        items.links(left).parent.set(next);
        items.balance(next).set(items.balance(item).get());
        self.replace(items, parent.get(), item, next);
        lowered
    }

    /// Restores invariant 1: the subtree on a side of an item has become higher.
    fn balance_after_insert(&mut self, items: &impl Items, (mut above, mut side): (u32, usize)) {
        while above != NONE {
            let balance = items.balance(above);
            match balance.get() * sign(side) {
                0 => balance.set(sign(side)),
                1 => {
                    self.rotate(items, above, side);
                    return;
                }
                _ => return balance.set(0),
            }
            (above, side) = step_up(items, above);
        }
    }

    /// Restores invariant 1: the subtree on a side of an item has become lower.
    fn balance_after_removal(&mut self, items: &impl Items, (mut above, mut side): (u32, usize)) {
        while above != NONE {
            let own = items.balance(above);
            match own.get() * sign(side) {
                0 => return own.set(-sign(side)),
                1 => own.set(0),
                _ => {
                    above = self.rotate(items, above, 1 - side);
                    if items.balance(above).get() != 0 {
                        // As high as before.
                        return;
                    }
                }
            }
            (above, side) = step_up(items, above);
        }
    }

    /// Balances an item whose subtree on this side is higher by two. Returns the item that takes
    /// its place.
    fn rotate(&mut self, items: &impl Items, item: u32, side: usize) -> u32 {
        let (sign, child) = (sign(side), items.links(item).child[side].get());
        let (own, outer) = (items.balance(item), items.balance(child));
        if outer.get() != -sign {
            self.rotate_up(items, child);
            own.set(sign - outer.get());
            outer.set(-own.get());
            return child;
        }
        let top = items.links(child).child[1 - side].get();
        self.rotate_up(items, top);
        self.rotate_up(items, top);
        let lean = items.balance(top).replace(0);
        own.set(if lean == sign { -sign } else { 0 });
        outer.set(if lean == -sign { sign } else { 0 });
        top
    }

    /// The items in order.
    pub(super) fn iter(self, items: &impl Items) -> impl Iterator<Item = u32> {
        let first = Some(self.head).filter(|&head| head != NONE);
        std::iter::successors(first, move |&item| next(items, item))
    }

    /// Puts `child` (or nothing) in the place of `old`: on this side of this parent, if any.
    #[inline]
    fn replace(&mut self, items: &impl Items, parent: u32, old: u32, child: u32) -> (u32, usize) {
        let side = side_of(items, parent, old);
        match parent {
            NONE => self.root = child,
            _ => items.links(parent).child[side].set(child),
        }
        if child != NONE {
            items.links(child).parent.set(parent);
        }
        (parent, side)
    }

    /// Exchanges an item and its parent; the order stays.
    fn rotate_up(&mut self, items: &impl Items, item: u32) {
        let Links { parent, child } = items.links(item);
        let parent = parent.get();
        let links = items.links(parent);
        let side = side_of(items, parent, item);
        let inner = child[1 - side].replace(parent);
        links.child[side].set(inner);
        let above = links.parent.replace(item);
        if inner != NONE {
            items.links(inner).parent.set(parent);
        }
        self.replace(items, above, parent, item);
    }
}

/// The outermost item on this side, among this item and all below it.
fn extreme(items: &impl Items, mut item: u32, side: usize) -> u32 {
    let mut last = NONE;
    while item != NONE {
        (last, item) = (item, items.links(item).child[side].get());
    }
    last
}

/// The item after this one.
fn next(items: &impl Items, item: u32) -> Option<u32> {
    let below = extreme(items, items.links(item).child[RIGHT].get(), LEFT);
    if below != NONE {
        return Some(below);
    }
    let (mut at, mut above) = (item, items.links(item).parent.get());
    while above != NONE && items.links(above).child[RIGHT].get() == at {
        (at, above) = (above, items.links(above).parent.get());
    }
    Some(above).filter(|&above| above != NONE)
}

/// On which side of its parent an item is; any if the parent is `NONE`.
#[inline]
fn side_of(items: &impl Items, parent: u32, item: u32) -> usize {
    let is_right = parent != NONE && items.links(parent).child[RIGHT].get() == item;
    usize::from(is_right)
}

/// The parent of an item, and the item's side of it.
#[inline]
fn step_up(items: &impl Items, item: u32) -> (u32, usize) {
    let parent = items.links(item).parent.get();
    (parent, side_of(items, parent, item))
}

/// The balance of an item of which only the subtree on this side has an item.
#[inline]
fn sign(side: usize) -> i8 {
    if side == LEFT { -1 } else { 1 }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl Tree {
    /// Checks the invariants; returns the height.
    pub(super) fn check(self, items: &impl Items) -> usize {
        assert_eq!(self.head, extreme(items, self.root, LEFT));
        assert_eq!(self.tail, extreme(items, self.root, RIGHT));
        Self::check_below(items, self.root, NONE)
    }

    fn check_below(items: &impl Items, item: u32, parent: u32) -> usize {
        if item == NONE {
            return 0;
        }
        let links = items.links(item);
        assert_eq!(links.parent.get(), parent);
        let heights = [LEFT, RIGHT].map(|side| {
            let child = links.child[side].get();
            Self::check_below(items, child, item)
        });
        let balance = items.balance(item).get();
        assert_eq!(heights[RIGHT] as i8 - heights[LEFT] as i8, balance);
        assert!((-1..=1).contains(&balance));
        1 + heights[LEFT].max(heights[RIGHT])
    }
}
