//! Order by (key, sequence): many small ordered trees of items that stand elsewhere.
//!
//! The trees know no keys. Who adds an item first finds its position with a
//! comparison of its own, and then inserts it. So the user's `Ord` runs in
//! [`position`](Tree::position) alone, which changes nothing. The other
//! methods compare nothing and cannot fail.
//!
//! # State
//!
//! Treaps with parent links: in order by position, a heap by a priority that is the
//! scrambled number of the item. The [`Links`] of an item stand in the item, one for
//! each order `W` that it may be in: a tree holds nothing, and allocates nothing. Every
//! item counts the marked ones below it and itself, so that the first marked one is
//! found without a look at the others. A tree knows the first of all its items: where
//! none is marked nothing is counted.
//!
//! # Invariants
//!
//! 1. An item's priority is at least that of its children.
//! 2. An item's count is its own mark and the counts of its children.
//! 3. A tree's head is its first item.
//! 4. An item is in one tree of an order at most, and stays where it is as long; whose
//!    it is is not checked.
//!
//! # Cost
//!
//! O(log n) expected in the size of the tree for everything.

use std::cmp::Ordering;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

const NONE: u32 = u32::MAX;

/// Where the items stand, by number; each with its links in order `W`.
pub trait Items<const W: usize> {
    /// The links of an item.
    fn links(&self, item: u32) -> &Links;

    /// The same, to change them.
    fn links_mut(&mut self, item: u32) -> &mut Links;
}

/// One item's place in its tree.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    parent: u32,
    /// At the left and at the right.
    child: [u32; 2],
    count: u32,
    marked: bool,
    is_in: bool,
}

impl Links {
    /// Those of an item that is in no tree.
    pub const OUT: Self = Self {
        parent: NONE,
        child: [NONE; 2],
        count: 0,
        marked: false,
        is_in: false,
    };

    /// Whether the item is in a tree.
    #[inline]
    pub fn is_in(&self) -> bool {
        self.is_in
    }
}

/// Where an item is to be inserted; valid until its tree changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    parent: u32,
    side: usize,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// One tree of order `W`: nothing but the numbers of its root and of its first item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree<const W: usize> {
    root: u32,
    head: u32,
}

impl<const W: usize> Tree<W> {
    /// A tree without items.
    pub const EMPTY: Self = Self {
        root: NONE,
        head: NONE,
    };

    /// The position of an item that compares to the others as `compare` says;
    /// behind its equals.
    ///
    /// The only method that runs code of the caller's.
    pub fn position(
        self,
        items: &impl Items<W>,
        mut compare: impl FnMut(u32) -> Ordering,
    ) -> Position {
        let (mut parent, mut side) = (NONE, LEFT);
        let mut at = self.root;
        while at != NONE {
            side = usize::from(compare(at).is_ge());
            (parent, at) = (at, items.links(at).child[side]);
        }
        Position { parent, side }
    }

    /// Inserts an item where [`position`](Self::position) said.
    pub fn insert(
        &mut self,
        items: &mut impl Items<W>,
        position: Position,
        item: u32,
        marked: bool,
    ) {
        let Position { parent, side } = position;
        *items.links_mut(item) = Links {
            parent,
            is_in: true,
            ..Links::OUT
        };
        if parent == NONE {
            debug_assert_eq!(self.root, NONE, "the position of another tree");
            self.root = item;
        } else {
            items.links_mut(parent).child[side] = item;
        }
        if side == LEFT && parent == self.head {
            self.head = item;
        }
        let mut above = parent;
        while above != NONE && priority(above) < priority(item) {
            above = self.rotate_up(items, item);
        }
        self.mark(items, item, marked);
    }

    /// Takes an item out.
    pub fn remove(&mut self, items: &mut impl Items<W>, item: u32) {
        self.mark(items, item, false);
        if item == self.head {
            let Links { parent, child, .. } = *items.links(item);
            let below = extreme(items, child[RIGHT], LEFT);
            self.head = if below == NONE { parent } else { below };
        }
        let child = loop {
            let [left, right] = items.links(item).child;
            if left == NONE || right == NONE {
                break if left == NONE { right } else { left };
            }
            let left_is_higher = priority(left) >= priority(right);
            self.rotate_up(items, if left_is_higher { left } else { right });
        };
        let links = items.links_mut(item);
        let parent = links.parent;
        *links = Links::OUT;
        self.replace(items, parent, item, child);
    }

    /// Moves an item to a position that was found while it was in.
    pub fn reposition(&mut self, items: &mut impl Items<W>, position: Position, item: u32) {
        let Position { parent, side } = position;
        if parent == item {
            return;
        }
        let marked = items.links(item).marked;
        self.remove(items, item);
        let below = items.links(parent).child[side];
        let position = match extreme(items, below, 1 - side) {
            NONE => position,
            parent => Position {
                parent,
                side: 1 - side,
            },
        };
        self.insert(items, position, item, marked);
    }

    /// Marks an item, or takes its mark away.
    pub fn mark(self, items: &mut impl Items<W>, item: u32, marked: bool) {
        let links = items.links_mut(item);
        if std::mem::replace(&mut links.marked, marked) == marked {
            return;
        }
        let mut at = item;
        while at != NONE {
            let links = items.links_mut(at);
            links.count = links.count + u32::from(marked) - u32::from(!marked);
            at = links.parent;
        }
    }

    /// The first item, marked or not.
    pub fn head(self) -> Option<u32> {
        Some(self.head).filter(|&head| head != NONE)
    }

    /// The first marked item.
    pub fn first(self, items: &impl Items<W>) -> Option<u32> {
        if items.links(self.head()?).marked {
            return self.head();
        }
        let mut at = self.root;
        if count(items, at) == 0 {
            return None;
        }
        loop {
            let links = items.links(at);
            let [left, right] = links.child;
            if count(items, left) > 0 {
                at = left;
            } else if links.marked {
                return Some(at);
            } else {
                at = right;
            }
        }
    }

    /// How many marked items are before this one.
    pub fn marked_before(self, items: &impl Items<W>, item: u32) -> u32 {
        let mut before = count(items, items.links(item).child[LEFT]);
        let mut at = item;
        loop {
            let parent = items.links(at).parent;
            if parent == NONE {
                return before;
            }
            let links = items.links(parent);
            if links.child[RIGHT] == at {
                before += count(items, links.child[LEFT]) + u32::from(links.marked);
            }
            at = parent;
        }
    }

    /// Puts `child` (or nothing) in the place of `old`.
    #[inline]
    fn replace(&mut self, items: &mut impl Items<W>, parent: u32, old: u32, child: u32) {
        if parent == NONE {
            self.root = child;
        } else {
            let children = &mut items.links_mut(parent).child;
            children[usize::from(children[RIGHT] == old)] = child;
        }
        if child != NONE {
            items.links_mut(child).parent = parent;
        }
    }

    /// An item and its parent change places; the order stays. What is above now.
    fn rotate_up(&mut self, items: &mut impl Items<W>, item: u32) -> u32 {
        let Links {
            parent,
            child,
            count: own,
            ..
        } = *items.links(item);
        let Links {
            parent: above,
            child: beside,
            count: whole,
            ..
        } = *items.links(parent);
        let side = usize::from(beside[RIGHT] == item);
        let inner = child[1 - side];
        let lower = whole - own + count(items, inner);
        self.replace(items, above, parent, item);
        if inner != NONE {
            items.links_mut(inner).parent = parent;
        }
        let links = items.links_mut(item);
        (links.child[1 - side], links.count) = (parent, whole);
        let links = items.links_mut(parent);
        links.child[side] = inner;
        (links.parent, links.count) = (item, lower);
        above
    }
}

#[inline]
fn count<const W: usize>(items: &impl Items<W>, item: u32) -> u32 {
    if item == NONE {
        0
    } else {
        items.links(item).count
    }
}

/// The last item on this side, at and below this one.
fn extreme<const W: usize>(items: &impl Items<W>, mut item: u32, side: usize) -> u32 {
    let mut last = NONE;
    while item != NONE {
        (last, item) = (item, items.links(item).child[side]);
    }
    last
}

/// Splitmix of its number: as good as random for balance, and the same in every
/// run.
fn priority(item: u32) -> u32 {
    let mut z = (u64::from(item) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}
