//! Contenders that lock by key. Those that take a hasher all take the same.

use std::collections::HashMap;
use std::sync::Arc;

use conversant::limit::Bypass;
use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode;
use dashmap::DashMap;
use lockable::LockPool;
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxBuildHasher;

use super::{Locks, Node};

impl Resource for Node {
    fn parent(&self) -> Option<Self> {
        match self {
            Node::Root => None,
            Node::Leaf(_) => Some(Node::Root),
        }
    }
}

/// Ours; each thread is an owner.
pub struct Table(LockTable<Node, FxBuildHasher>);

impl Table {
    pub fn new() -> Self {
        Self(LockTable::with_hasher(FxBuildHasher))
    }

    /// With the usual bound on overtaking.
    pub fn with_bypass() -> Self {
        Self(Self::new().0.with_bypass(Bypass::default()))
    }
}

impl Locks for Table {
    type Access<'a> = Owner<Node, FxBuildHasher>;

    fn access(&self) -> Self::Access<'_> {
        self.0.owner(0)
    }

    fn with(owner: &mut Self::Access<'_>, node: Node, mode: Mode, f: impl FnOnce()) {
        owner.lock(&node, mode).wait().expect("no deadlock");
        f();
        owner.release(&node).expect("it was granted");
    }
}

/// Ours; each turn has an owner of its own, like a transaction.
pub struct Owners(LockTable<Node, FxBuildHasher>);

impl Owners {
    pub fn new() -> Self {
        Self(LockTable::with_hasher(FxBuildHasher))
    }
}

impl Locks for Owners {
    type Access<'a> = &'a LockTable<Node, FxBuildHasher>;

    fn access(&self) -> Self::Access<'_> {
        &self.0
    }

    fn with(table: &mut Self::Access<'_>, node: Node, mode: Mode, f: impl FnOnce()) {
        let mut owner = table.owner(0);
        owner.lock(&node, mode).wait().expect("no deadlock");
        f();
    }
}

/// Ours; each thread has one owner for all its turns, and each turn is a transaction.
pub struct Renewed(Table);

impl Renewed {
    pub fn new() -> Self {
        Self(Table::new())
    }
}

impl Locks for Renewed {
    type Access<'a> = Owner<Node, FxBuildHasher>;

    fn access(&self) -> Self::Access<'_> {
        self.0.access()
    }

    fn with(owner: &mut Self::Access<'_>, node: Node, mode: Mode, f: impl FnOnce()) {
        owner.lock(&node, mode).wait().expect("no deadlock");
        f();
        owner.renew();
    }
}

/// The simplest lock manager: counts by mode in a map under one mutex; a vacant entry is removed.
#[derive(Default)]
pub struct Naive {
    map: Mutex<HashMap<Node, Counts, FxBuildHasher>>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    held: [u32; Mode::ALL.len()],
    /// Threads that wait for a change here.
    waiting: u32,
}

impl Counts {
    fn free(&self, mode: Mode) -> bool {
        let conflict = |&other: &Mode| self.held[other as usize] > 0 && !mode.compatible(other);
        !Mode::ALL.iter().any(conflict)
    }

    fn vacant(&self) -> bool {
        self.waiting == 0 && self.held.iter().all(|&count| count == 0)
    }
}

impl Naive {
    fn path(node: Node, mode: Mode) -> impl DoubleEndedIterator<Item = (Node, Mode)> {
        let root = node.parent().map(|root| (root, mode.parent_needs()));
        root.into_iter().chain([(node, mode)])
    }

    fn lock(&self, node: Node, mode: Mode) {
        let mut map = self.map.lock();
        for (node, mode) in Self::path(node, mode) {
            let mut counts = map.entry(node).or_default();
            while !counts.free(mode) {
                counts.waiting += 1;
                self.changed.wait(&mut map);
                counts = map.entry(node).or_default();
                counts.waiting -= 1;
            }
            counts.held[mode as usize] += 1;
        }
    }

    fn unlock(&self, node: Node, mode: Mode) {
        let mut map = self.map.lock();
        let mut wakes = false;
        for (node, mode) in Self::path(node, mode).rev() {
            let counts = map.get_mut(&node).expect("it is held");
            counts.held[mode as usize] -= 1;
            wakes |= counts.waiting > 0;
            if counts.vacant() {
                map.remove(&node);
            }
        }
        drop(map);
        if wakes {
            self.changed.notify_all();
        }
    }
}

impl Locks for Naive {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, node: Node, mode: Mode, f: impl FnOnce()) {
        access.lock(node, mode);
        f();
        access.unlock(node, mode);
    }
}

/// A mutex per key, made on first use and never removed: no modes, no hierarchy.
pub struct Mutexes(DashMap<Node, Arc<Mutex<()>>, FxBuildHasher>);

impl Mutexes {
    /// Has the mutexes of this many leaves from the beginning.
    pub fn new(leaves: u32) -> Self {
        let map = DashMap::with_hasher(FxBuildHasher);
        for leaf in 0..leaves {
            map.insert(Node::Leaf(leaf), Arc::default());
        }
        Self(map)
    }
}

impl Locks for Mutexes {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, node: Node, _: Mode, f: impl FnOnce()) {
        let known = access.0.get(&node).map(|mutex| mutex.clone());
        let mutex = known.unwrap_or_else(|| access.0.entry(node).or_default().clone());
        let _guard = mutex.lock();
        f();
    }
}

/// Exclusive only: no modes, no hierarchy.
#[derive(Default)]
pub struct Lockable(LockPool<Node>);

impl Locks for Lockable {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, node: Node, _: Mode, f: impl FnOnce()) {
        let _guard = access.0.blocking_lock(node);
        f();
    }
}
