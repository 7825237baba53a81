//! What an item keeps of its place in an order.

use std::cell::Cell;

/// No item.
pub(super) const NONE: u32 = u32::MAX;
/// No items have these numbers either.
pub(super) const OUTSIDE: u32 = u32::MAX - 1;
const IN_RUN: u32 = u32::MAX - 2;

pub(super) const LEFT: usize = 0;
pub(super) const RIGHT: usize = 1;

/// The items by number, each with its links.
pub trait Items {
    /// The type of an item.
    type Item;

    /// An item.
    fn item(&self, item: u32) -> &Self::Item;

    /// Its links.
    fn links_of(item: &Self::Item) -> &Links;

    /// Its balance: beside the links and not among them, where it would take four bytes.
    fn balance_of(item: &Self::Item) -> &Balance;

    /// The links of an item.
    #[inline(always)]
    fn links(&self, item: u32) -> &Links {
        Self::links_of(self.item(item))
    }

    /// The balance of an item.
    #[inline(always)]
    fn balance(&self, item: u32) -> &Cell<i8> {
        &Self::balance_of(self.item(item)).0
    }
}

/// By how much the right subtree of an item is higher than the left one: -1, 0 or 1.
#[derive(Clone, Debug, Default)]
pub struct Balance(Cell<i8>);

/// One item's place in its order. In cells: a caller that has compared an item changes its links
/// without another look-up.
#[derive(Clone, Debug)]
pub struct Links {
    /// `NONE` at the root of a tree, `IN_RUN` in a run, `OUTSIDE` in no order.
    pub(super) parent: Cell<u32>,
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
