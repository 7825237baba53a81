//! Ordered trees of the items that came late.
//!
//! Treaps with parent links: in order by position, and a heap by priority, which is a hash of the
//! item's number.
//!
//! # Invariants
//!
//! 1. An item's priority is at least that of its children.
//! 2. A tree's head is its first item, its tail the last.
//!
//! # Cost
//!
//! A position is found in O(log d) comparisons expected, where d is how many items come behind it:
//! the last position costs one. The rest compares nothing, and is O(1) expected.

use std::cell::Cell;
use std::cmp::Ordering;

/// No item.
pub(super) const NONE: u32 = u32::MAX;
/// No items have these numbers either.
const OUTSIDE: u32 = u32::MAX - 1;
const IN_RUN: u32 = u32::MAX - 2;

/// The items by number, each with its links.
pub trait Items {
    /// The type of an item.
    type Item;

    /// An item.
    fn item(&self, item: u32) -> &Self::Item;

    /// Its links.
    fn links_of(item: &Self::Item) -> &Links;

    /// The links of an item.
    #[inline(always)]
    fn links(&self, item: u32) -> &Links {
        Self::links_of(self.item(item))
    }
}

/// One item's place in its order. In cells: a caller that has compared an item changes its links
/// without another look-up.
#[derive(Clone, Debug)]
pub struct Links {
    /// `NONE` at the root of a tree, `IN_RUN` in a run, `OUTSIDE` in no order.
    parent: Cell<u32>,
    /// The left and the right child; in a run, the neighbours.
    pub(super) child: [Cell<u32>; 2],
}

impl Links {
    /// The links of an item that is in no order.
    pub const fn out() -> Self {
        Self {
            parent: Cell::new(OUTSIDE),
            child: [const { Cell::new(NONE) }; 2],
        }
    }

    /// Whether the item is in an order.
    #[inline]
    pub fn is_in(&self) -> bool {
        self.parent.get() != OUTSIDE
    }

    /// Marks the item as in no order.
    #[inline(always)]
    pub(super) fn set_out(&self) {
        self.parent.set(OUTSIDE);
    }

    /// Puts the item at this end of a run, next to the previous end.
    #[inline(always)]
    pub(super) fn set_beside(&self, side: usize, end: u32) {
        self.parent.set(IN_RUN);
        self.child[1 - side].set(end);
    }

    /// The neighbours of an item, if it is in a run.
    #[inline]
    pub(super) fn neighbours(&self) -> Option<[u32; 2]> {
        let [left, right] = &self.child;
        (self.parent.get() == IN_RUN).then(|| [left.get(), right.get()])
    }
}

/// Where an item is to be inserted; valid until its tree changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    parent: u32,
    side: usize,
}

pub(super) const LEFT: usize = 0;
pub(super) const RIGHT: usize = 1;

/// One tree: the numbers of its root, of its first item and of its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    root: u32,
    head: u32,
    tail: u32,
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
        // Each item on the right edge comes before all items in its right subtree.
        let mut parent = self.tail;
        loop {
            let above = items.links(parent).parent.get();
            if above == NONE || compare(above).is_ge() {
                break;
            }
            parent = above;
        }
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
        let own = priority(item);
        let mut above = parent;
        while above != NONE && priority(above) < own {
            above = self.rotate_up(items, item);
        }
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
        let below = loop {
            let [left, right] = [child[LEFT].get(), child[RIGHT].get()];
            if left == NONE || right == NONE {
                break if left == NONE { right } else { left };
            }
            let left_is_higher = priority(left) >= priority(right);
            self.rotate_up(items, if left_is_higher { left } else { right });
        };
        let above = parent.replace(OUTSIDE);
        self.replace(items, above, item, below);
    }

    /// Whether there is no item.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.root == NONE
    }

    /// The first item, or `NONE`.
    #[inline]
    pub(super) fn head(self) -> u32 {
        self.head
    }

    /// The last item, or `NONE`.
    #[inline]
    pub(super) fn tail(self) -> u32 {
        self.tail
    }

    /// The items in order.
    pub(super) fn iter(self, items: &impl Items) -> impl Iterator<Item = u32> {
        let first = Some(self.head).filter(|&head| head != NONE);
        std::iter::successors(first, move |&item| next(items, item))
    }

    /// Puts `child` (or nothing) in the place of `old`.
    #[inline]
    fn replace(&mut self, items: &impl Items, parent: u32, old: u32, child: u32) {
        if parent == NONE {
            self.root = child;
        } else {
            let children = &items.links(parent).child;
            children[usize::from(children[RIGHT].get() == old)].set(child);
        }
        if child != NONE {
            items.links(child).parent.set(parent);
        }
    }

    /// Exchanges an item and its parent; the order stays. Returns the item's new parent.
    fn rotate_up(&mut self, items: &impl Items, item: u32) -> u32 {
        let Links { parent, child } = items.links(item);
        let parent = parent.get();
        let links = items.links(parent);
        let side = usize::from(links.child[RIGHT].get() == item);
        let inner = child[1 - side].replace(parent);
        links.child[side].set(inner);
        let above = links.parent.replace(item);
        if inner != NONE {
            items.links(inner).parent.set(parent);
        }
        self.replace(items, above, parent, item);
        above
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

/// Splitmix of the item's number: as good as random for balance, and the same in every execution.
#[inline]
fn priority(item: u32) -> u32 {
    let mut z = (u64::from(item) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
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
        let [left, right] = [links.child[LEFT].get(), links.child[RIGHT].get()];
        for child in [left, right] {
            assert!(child == NONE || priority(child) <= priority(item));
        }
        let left = Self::check_below(items, left, item);
        1 + left.max(Self::check_below(items, right, item))
    }
}
