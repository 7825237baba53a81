//! Contenders that lock by key. Those with a choice of hasher all have the same one.

use std::collections::HashMap;
use std::sync::Arc;

use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode;
use dashmap::DashMap;
use lockable::LockPool;
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxBuildHasher;

use super::{At, Locks};

impl Resource for At {
    fn parent(&self) -> Option<Self> {
        match self {
            At::Root => None,
            At::Leaf(_) => Some(At::Root),
        }
    }
}

/// Ours; each thread is an owner.
pub struct Table(LockTable<At, FxBuildHasher>);

impl Table {
    pub fn new() -> Self {
        Self(LockTable::with_hasher(FxBuildHasher))
    }
}

impl Locks for Table {
    type Access<'a> = Owner<At, FxBuildHasher>;

    fn access(&self) -> Self::Access<'_> {
        self.0.owner(0)
    }

    fn with(owner: &mut Self::Access<'_>, at: At, mode: Mode, f: impl FnOnce()) {
        owner.lock(&at, mode).wait().expect("no deadlock");
        f();
        owner.release(&at).expect("it was granted");
    }
}

/// Ours; each turn has a new owner, as a transaction has.
pub struct Owners(LockTable<At, FxBuildHasher>);

impl Owners {
    pub fn new() -> Self {
        Self(LockTable::with_hasher(FxBuildHasher))
    }
}

impl Locks for Owners {
    type Access<'a> = &'a LockTable<At, FxBuildHasher>;

    fn access(&self) -> Self::Access<'_> {
        &self.0
    }

    fn with(table: &mut Self::Access<'_>, at: At, mode: Mode, f: impl FnOnce()) {
        let mut owner = table.owner(0);
        owner.lock(&at, mode).wait().expect("no deadlock");
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
    type Access<'a> = Owner<At, FxBuildHasher>;

    fn access(&self) -> Self::Access<'_> {
        self.0.access()
    }

    fn with(owner: &mut Self::Access<'_>, at: At, mode: Mode, f: impl FnOnce()) {
        owner.lock(&at, mode).wait().expect("no deadlock");
        f();
        owner.renew();
    }
}

/// What one would write first: counts by mode in a map under one mutex, removed when unused.
#[derive(Default)]
pub struct Naive {
    map: Mutex<HashMap<At, Counts, FxBuildHasher>>,
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
    fn path(at: At, mode: Mode) -> impl DoubleEndedIterator<Item = (At, Mode)> {
        let root = at.parent().map(|root| (root, mode.parent_needs()));
        root.into_iter().chain([(at, mode)])
    }

    fn lock(&self, at: At, mode: Mode) {
        let mut map = self.map.lock();
        for (at, mode) in Self::path(at, mode) {
            let mut counts = map.entry(at).or_default();
            while !counts.free(mode) {
                counts.waiting += 1;
                self.changed.wait(&mut map);
                counts = map.entry(at).or_default();
                counts.waiting -= 1;
            }
            counts.held[mode as usize] += 1;
        }
    }

    fn unlock(&self, at: At, mode: Mode) {
        let mut map = self.map.lock();
        let mut wakes = false;
        for (at, mode) in Self::path(at, mode).rev() {
            let counts = map.get_mut(&at).expect("it is held");
            counts.held[mode as usize] -= 1;
            wakes |= counts.waiting > 0;
            if counts.vacant() {
                map.remove(&at);
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

    fn with(access: &mut &Self, at: At, mode: Mode, f: impl FnOnce()) {
        access.lock(at, mode);
        f();
        access.unlock(at, mode);
    }
}

/// A mutex per key, made on first use and never removed: no modes, no hierarchy.
pub struct Mutexes(DashMap<At, Arc<Mutex<()>>, FxBuildHasher>);

impl Mutexes {
    /// With the mutexes of this many leaves already made.
    pub fn new(leaves: u32) -> Self {
        let map = DashMap::with_hasher(FxBuildHasher);
        for leaf in 0..leaves {
            map.insert(At::Leaf(leaf), Arc::default());
        }
        Self(map)
    }
}

impl Locks for Mutexes {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, at: At, _: Mode, f: impl FnOnce()) {
        let known = access.0.get(&at).map(|mutex| mutex.clone());
        let mutex = known.unwrap_or_else(|| access.0.entry(at).or_default().clone());
        let _guard = mutex.lock();
        f();
    }
}

/// Exclusive only: no modes, no hierarchy.
#[derive(Default)]
pub struct Lockable(LockPool<At>);

impl Locks for Lockable {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, at: At, _: Mode, f: impl FnOnce()) {
        let _guard = access.0.blocking_lock(at);
        f();
    }
}
