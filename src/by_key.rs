//! Order by (key, sequence): many small ordered trees in one store.
//!
//! The trees know no keys. Who adds an item first looks for its seat with a
//! comparison of its own, and then sits it down. So the user's `Ord` runs in
//! [`seat`](Orders::seat) alone, which changes nothing; sitting down, marking
//! and leaving compare nothing and cannot fail.
//!
//! # State
//!
//! Treaps with parent links: in order by seat, a heap by a priority that is a
//! scrambled count. Every node counts the marked ones below it and itself, so
//! that the first marked one is found without a look at the others.
//!
//! # Invariants
//!
//! 1. A node's priority is at least that of its children.
//! 2. A node's count is its own mark and the counts of its children.
//! 3. Nobody but the owner of a tree has its root and the names of its nodes:
//!    they are not checked.
//!
//! # Cost
//!
//! O(log n) expected in the size of the tree for everything; a node is 24
//! bytes in its slot. Nodes that leave give their memory back.

use std::cmp::Ordering;

use crate::slab::Slab;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

const NONE: u32 = u32::MAX;

/// One tree: nothing but the name of its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree(u32);

impl Tree {
    /// A tree without nodes.
    pub const EMPTY: Self = Self(NONE);
}

/// One item's place in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(u32);

/// Where an item is to sit; good until its tree changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    parent: u32,
    right: bool,
}

#[derive(Debug)]
struct Links {
    item: u32,
    parent: u32,
    left: u32,
    right: u32,
    priority: u32,
    count: u32,
    marked: bool,
}

/// The store of many trees. Items are numbers of the owner's.
#[derive(Debug, Default)]
pub struct Orders {
    nodes: Slab<Links>,
    made: u64,
}

impl Orders {
    /// No tree has a node.
    pub const fn new() -> Self {
        Self {
            nodes: Slab::new(),
            made: 0,
        }
    }

    /// How many nodes all trees have.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no tree has a node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where one sits that compares as `compare` says to those that sit there;
    /// behind its equals.
    ///
    /// The only method that runs code of the caller's.
    pub fn seat(&self, tree: Tree, mut compare: impl FnMut(u32) -> Ordering) -> Seat {
        let mut seat = Seat {
            parent: NONE,
            right: false,
        };
        let mut at = tree.0;
        while at != NONE {
            let links = self.at(at);
            let right = compare(links.item).is_ge();
            seat = Seat { parent: at, right };
            at = if right { links.right } else { links.left };
        }
        seat
    }

    /// Sits an item down where [`seat`](Self::seat) said.
    pub fn sit(&mut self, tree: &mut Tree, seat: Seat, item: u32, marked: bool) -> Node {
        self.made += 1;
        let links = Links {
            item,
            parent: seat.parent,
            left: NONE,
            right: NONE,
            priority: scrambled(self.made),
            count: u32::from(marked),
            marked,
        };
        let priority = links.priority;
        let node = self.nodes.insert(links).index();
        if seat.parent == NONE {
            debug_assert_eq!(tree.0, NONE, "the seat of another tree");
            tree.0 = node;
            return Node(node);
        }
        let parent = self.at_mut(seat.parent);
        *(if seat.right {
            &mut parent.right
        } else {
            &mut parent.left
        }) = node;
        if marked {
            self.count_up(seat.parent);
        }
        while let Some(parent) = self.parent_of(node) {
            if self.at(parent).priority >= priority {
                break;
            }
            self.rotate_up(tree, node);
        }
        Node(node)
    }

    /// Takes a node out.
    pub fn leave(&mut self, tree: &mut Tree, node: Node) {
        let node = node.0;
        loop {
            let &Links { left, right, .. } = self.at(node);
            if left == NONE || right == NONE {
                break;
            }
            let higher = self.at(left).priority >= self.at(right).priority;
            self.rotate_up(tree, if higher { left } else { right });
        }
        let &Links {
            left,
            right,
            parent,
            marked,
            ..
        } = self.at(node);
        let child = if left == NONE { right } else { left };
        self.replace(tree, parent, node, child);
        if marked {
            self.count_down(parent);
        }
        let key = self.nodes.key_at(node).expect(SITS);
        _ = self.nodes.remove(key);
    }

    /// Marks a node, or takes its mark away.
    pub fn mark(&mut self, node: Node, marked: bool) {
        let links = self.at_mut(node.0);
        if std::mem::replace(&mut links.marked, marked) == marked {
            return;
        }
        if marked {
            self.count_up(node.0);
        } else {
            self.count_down(node.0);
        }
    }

    /// How many nodes of a tree are marked.
    pub fn marked(&self, tree: Tree) -> u32 {
        self.count(tree.0)
    }

    /// The item of the first marked node.
    pub fn first(&self, tree: Tree) -> Option<u32> {
        if self.count(tree.0) == 0 {
            return None;
        }
        let mut at = tree.0;
        loop {
            let links = self.at(at);
            if self.count(links.left) > 0 {
                at = links.left;
            } else if links.marked {
                return Some(links.item);
            } else {
                at = links.right;
            }
        }
    }

    /// The item that sits first, marked or not.
    pub fn leftmost(&self, tree: Tree) -> Option<u32> {
        let mut item = None;
        let mut at = tree.0;
        while at != NONE {
            let links = self.at(at);
            (item, at) = (Some(links.item), links.left);
        }
        item
    }

    /// How many marked nodes sit ahead of this one.
    pub fn ahead(&self, node: Node) -> u32 {
        let mut ahead = self.count(self.at(node.0).left);
        let mut at = node.0;
        while let Some(parent) = self.parent_of(at) {
            let links = self.at(parent);
            if links.right == at {
                ahead += self.count(links.left) + u32::from(links.marked);
            }
            at = parent;
        }
        ahead
    }

    /// The items of a tree in order, marked or not.
    pub fn iter(&self, tree: Tree) -> impl Iterator<Item = u32> {
        let mut stack = Vec::new();
        let mut at = tree.0;
        std::iter::from_fn(move || {
            while at != NONE {
                stack.push(at);
                at = self.at(at).left;
            }
            let links = self.at(stack.pop()?);
            at = links.right;
            Some(links.item)
        })
    }

    /// The bytes of heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.heap_bytes()
    }

    #[inline]
    fn at(&self, node: u32) -> &Links {
        self.nodes.by_index(node).expect(SITS)
    }

    #[inline]
    fn at_mut(&mut self, node: u32) -> &mut Links {
        self.nodes.by_index_mut(node).expect(SITS)
    }

    #[inline]
    fn parent_of(&self, node: u32) -> Option<u32> {
        let parent = self.at(node).parent;
        (parent != NONE).then_some(parent)
    }

    #[inline]
    fn count(&self, node: u32) -> u32 {
        if node == NONE { 0 } else { self.at(node).count }
    }

    #[inline]
    fn count_up(&mut self, mut at: u32) {
        while at != NONE {
            let links = self.at_mut(at);
            links.count += 1;
            at = links.parent;
        }
    }

    #[inline]
    fn count_down(&mut self, mut at: u32) {
        while at != NONE {
            let links = self.at_mut(at);
            links.count -= 1;
            at = links.parent;
        }
    }

    /// Has `child` (or nothing) hang where `old` hung.
    #[inline]
    fn replace(&mut self, tree: &mut Tree, parent: u32, old: u32, child: u32) {
        if parent == NONE {
            tree.0 = child;
        } else {
            let links = self.at_mut(parent);
            if links.left == old {
                links.left = child;
            } else {
                links.right = child;
            }
        }
        if child != NONE {
            self.at_mut(child).parent = parent;
        }
    }

    /// A node and its parent change places; the order stays.
    fn rotate_up(&mut self, tree: &mut Tree, node: u32) {
        let parent = self.at(node).parent;
        let above = self.at(parent).parent;
        self.replace(tree, above, parent, node);
        let inner = if self.at(parent).left == node {
            let inner = self.at(node).right;
            self.at_mut(node).right = parent;
            self.at_mut(parent).left = inner;
            inner
        } else {
            let inner = self.at(node).left;
            self.at_mut(node).left = parent;
            self.at_mut(parent).right = inner;
            inner
        };
        self.at_mut(parent).parent = node;
        if inner != NONE {
            self.at_mut(inner).parent = parent;
        }
        let whole = self.at(parent).count;
        let lower = whole - self.at(node).count + self.count(inner);
        self.at_mut(node).count = whole;
        self.at_mut(parent).count = lower;
    }
}

const SITS: &str = "a node sits until it leaves";

/// Splitmix: as good as random for balance, and the same in every run.
fn scrambled(n: u64) -> u32 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}
