//! Order by (key, sequence): many small ordered trees in one store.
//!
//! The trees know no keys. Who adds an item first finds its position with a
//! comparison of its own, and then inserts it. So the user's `Ord` runs in
//! [`position`](Orders::position) alone, which changes nothing. The other
//! methods compare nothing and cannot fail.
//!
//! # State
//!
//! Treaps with parent links: in order by position, a heap by a priority that is the
//! scrambled number of the node. Every node counts the marked ones below it and
//! itself, so that the first marked one is found without a look at the others. A
//! tree knows the first of all its nodes: where none is marked nothing is counted.
//!
//! # Invariants
//!
//! 1. A node's priority is at least that of its children.
//! 2. A node's count is its own mark and the counts of its children.
//! 3. A tree's head is its first node.
//! 4. Nobody but the owner of a tree has its root and the names of its nodes:
//!    they are not checked.
//!
//! # Cost
//!
//! O(log n) expected in the size of the tree for everything. The
//! memory of removed nodes is freed.

use std::cmp::Ordering;

use crate::slab::Slab;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

const NONE: u32 = u32::MAX;

/// One tree: nothing but the names of its root and of its first node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    root: u32,
    head: u32,
}

impl Tree {
    /// A tree without nodes.
    pub const EMPTY: Self = Self {
        root: NONE,
        head: NONE,
    };
}

/// One item's place in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(u32);

/// Where an item is to be inserted; valid until its tree changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    parent: u32,
    side: usize,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

#[derive(Debug)]
struct Links {
    item: u32,
    parent: u32,
    /// At the left and at the right.
    child: [u32; 2],
    count: u32,
    marked: bool,
}

/// The store of many trees. Items are numbers of the owner's.
#[derive(Debug, Default)]
pub struct Orders {
    nodes: Slab<Links>,
}

impl Orders {
    /// No tree has a node.
    pub const fn new() -> Self {
        Self { nodes: Slab::new() }
    }

    /// The position of an item that compares to the others as `compare` says;
    /// behind its equals.
    ///
    /// The only method that runs code of the caller's.
    pub fn position(&self, tree: Tree, mut compare: impl FnMut(u32) -> Ordering) -> Position {
        let (mut parent, mut side) = (NONE, LEFT);
        let mut at = tree.root;
        while at != NONE {
            let links = self.at(at);
            side = usize::from(compare(links.item).is_ge());
            (parent, at) = (at, links.child[side]);
        }
        Position { parent, side }
    }

    /// Inserts an item where [`position`](Self::position) said.
    pub fn insert(&mut self, tree: &mut Tree, position: Position, item: u32, marked: bool) -> Node {
        let Position { parent, side } = position;
        let links = Links {
            item,
            parent,
            child: [NONE; 2],
            count: 0,
            marked: false,
        };
        let node = self.nodes.insert(links).index();
        if parent == NONE {
            debug_assert_eq!(tree.root, NONE, "the position of another tree");
            tree.root = node;
        } else {
            self.at_mut(parent).child[side] = node;
        }
        if side == LEFT && parent == tree.head {
            tree.head = node;
        }
        loop {
            let parent = self.at(node).parent;
            if parent == NONE || priority(parent) >= priority(node) {
                break;
            }
            self.rotate_up(tree, node);
        }
        self.mark(Node(node), marked);
        Node(node)
    }

    /// Takes a node out.
    pub fn remove(&mut self, tree: &mut Tree, node: Node) {
        self.mark(node, false);
        let node = node.0;
        if node == tree.head {
            let Links { parent, child, .. } = *self.at(node);
            let below = self.leftmost(child[RIGHT]);
            tree.head = if below == NONE { parent } else { below };
        }
        let child = loop {
            let [left, right] = self.at(node).child;
            if left == NONE || right == NONE {
                break if left == NONE { right } else { left };
            }
            let left_is_higher = priority(left) >= priority(right);
            self.rotate_up(tree, if left_is_higher { left } else { right });
        };
        self.replace(tree, self.at(node).parent, node, child);
        let key = self.nodes.key_at(node).expect(IN_TREE);
        _ = self.nodes.remove(key);
    }

    /// Marks a node, or takes its mark away.
    pub fn mark(&mut self, node: Node, marked: bool) {
        let links = self.at_mut(node.0);
        if std::mem::replace(&mut links.marked, marked) == marked {
            return;
        }
        let mut at = node.0;
        while at != NONE {
            let links = self.at_mut(at);
            links.count = links.count + u32::from(marked) - u32::from(!marked);
            at = links.parent;
        }
    }

    /// How many nodes of a tree are marked.
    pub fn marked(&self, tree: Tree) -> u32 {
        self.count(tree.root)
    }

    /// The item of the first node, marked or not.
    pub fn head(&self, tree: Tree) -> Option<u32> {
        self.nodes.by_index(tree.head).map(|links| links.item)
    }

    /// The first node at and below this one.
    fn leftmost(&self, mut node: u32) -> u32 {
        let mut first = NONE;
        while node != NONE {
            (first, node) = (node, self.at(node).child[LEFT]);
        }
        first
    }

    /// The item of the first marked node.
    pub fn first(&self, tree: Tree) -> Option<u32> {
        let head = self.nodes.by_index(tree.head)?;
        if head.marked {
            return Some(head.item);
        }
        let with_marked = |node| self.nodes.by_index(node).filter(|links| links.count > 0);
        let mut links = with_marked(tree.root)?;
        loop {
            if let Some(left) = with_marked(links.child[LEFT]) {
                links = left;
            } else if links.marked {
                return Some(links.item);
            } else {
                links = with_marked(links.child[RIGHT])?;
            }
        }
    }

    /// How many marked nodes are before this one.
    pub fn marked_before(&self, node: Node) -> u32 {
        let mut before = self.count(self.at(node.0).child[LEFT]);
        let mut at = node.0;
        loop {
            let parent = self.at(at).parent;
            if parent == NONE {
                return before;
            }
            let links = self.at(parent);
            if links.child[RIGHT] == at {
                before += self.count(links.child[LEFT]) + u32::from(links.marked);
            }
            at = parent;
        }
    }

    /// The bytes of heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.heap_bytes()
    }

    #[inline]
    fn at(&self, node: u32) -> &Links {
        self.nodes.by_index(node).expect(IN_TREE)
    }

    #[inline]
    fn at_mut(&mut self, node: u32) -> &mut Links {
        self.nodes.by_index_mut(node).expect(IN_TREE)
    }

    #[inline]
    fn count(&self, node: u32) -> u32 {
        if node == NONE { 0 } else { self.at(node).count }
    }

    /// Puts `child` (or nothing) in the place of `old`.
    #[inline]
    fn replace(&mut self, tree: &mut Tree, parent: u32, old: u32, child: u32) {
        if parent == NONE {
            tree.root = child;
        } else {
            let side = self.side_of(old, parent);
            self.at_mut(parent).child[side] = child;
        }
        if child != NONE {
            self.at_mut(child).parent = parent;
        }
    }

    #[inline]
    fn side_of(&self, node: u32, parent: u32) -> usize {
        usize::from(self.at(parent).child[RIGHT] == node)
    }

    /// A node and its parent change places; the order stays.
    fn rotate_up(&mut self, tree: &mut Tree, node: u32) {
        let parent = self.at(node).parent;
        let side = self.side_of(node, parent);
        let inner = self.at(node).child[1 - side];
        let whole = self.at(parent).count;
        let lower = whole - self.at(node).count + self.count(inner);
        self.replace(tree, self.at(parent).parent, parent, node);
        self.replace(tree, parent, node, inner);
        let links = self.at_mut(node);
        (links.child[1 - side], links.count) = (parent, whole);
        let links = self.at_mut(parent);
        (links.parent, links.count) = (node, lower);
    }
}

const IN_TREE: &str = "a node is in its tree until it is removed";

/// Splitmix of its number: as good as random for balance, and the same in every
/// run.
fn priority(node: u32) -> u32 {
    let mut z = (u64::from(node) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}
