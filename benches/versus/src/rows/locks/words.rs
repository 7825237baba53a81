//! Contenders for one resource, or for a dense array of resources.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use conversant::intent::IntentLock;
use conversant::modes::Mode;
use crossbeam_utils::CachePadded;

use super::{Locks, Node};
use crate::drive::drive;
use crate::race::wait_until;

/// The least that modes can cost: one compare-and-swap to be granted, one subtraction to leave; a
/// thread that must wait spins. Leaves are bytes in an array.
pub struct Word {
    root: CachePadded<AtomicU64>,
    leaves: Vec<AtomicU8>,
}

impl Word {
    pub fn new(leaves: u32) -> Self {
        Self {
            root: CachePadded::default(),
            leaves: (0..leaves).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    fn try_root(&self, mode: Mode) -> bool {
        let now = self.root.load(Ordering::Relaxed);
        let free = now & conflicts(mode) == 0;
        let (ok, lax) = (Ordering::Acquire, Ordering::Relaxed);
        free && self
            .root
            .compare_exchange_weak(now, now + unit(mode), ok, lax)
            .is_ok()
    }

    fn leave_root(&self, mode: Mode) {
        self.root.fetch_sub(unit(mode), Ordering::Release);
    }
}

/// A count of 20 bits for each of S, IX and X.
fn unit(mode: Mode) -> u64 {
    match mode {
        Mode::S => 1,
        Mode::Ix => 1 << 20,
        _ => 1 << 40,
    }
}

fn conflicts(mode: Mode) -> u64 {
    const COUNT: u64 = (1 << 20) - 1;
    match mode {
        Mode::S => COUNT << 20 | COUNT << 40,
        Mode::Ix => COUNT | COUNT << 40,
        _ => u64::MAX,
    }
}

impl Locks for Word {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, node: Node, mode: Mode, f: impl FnOnce()) {
        let Node::Leaf(leaf) = node else {
            wait_until(|| access.try_root(mode));
            f();
            return access.leave_root(mode);
        };
        wait_until(|| access.try_root(Mode::Ix));
        let leaf = &access.leaves[leaf as usize];
        wait_until(|| leaf.swap(1, Ordering::Acquire) == 0);
        f();
        leaf.store(0, Ordering::Release);
        access.leave_root(Mode::Ix);
    }
}

/// Each thread has a cache line for its weak modes, and checks that no strong mode is there.
#[derive(Default)]
pub struct Striped {
    strong: CachePadded<AtomicU32>,
    lines: [CachePadded<AtomicU32>; 8],
    threads: AtomicUsize,
}

impl Locks for Striped {
    type Access<'a> = (&'a AtomicU32, &'a AtomicU32);

    fn access(&self) -> Self::Access<'_> {
        let access = self.threads.fetch_add(1, Ordering::Relaxed);
        (&self.lines[access % self.lines.len()], &self.strong)
    }

    fn with((line, strong): &mut Self::Access<'_>, _: Node, _: Mode, f: impl FnOnce()) {
        line.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        assert_eq!(
            strong.load(Ordering::Acquire),
            0,
            "nobody wants a strong mode here"
        );
        f();
        line.store(0, Ordering::Release);
    }
}

impl Locks for IntentLock {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, _: Node, mode: Mode, f: impl FnOnce()) {
        let _guard = access.lock(mode).wait();
        f();
    }
}

impl Locks for parking_lot::RwLock<()> {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, _: Node, mode: Mode, f: impl FnOnce()) {
        if mode == Mode::S {
            let _guard = access.read();
            f();
        } else {
            let _guard = access.write();
            f();
        }
    }
}

impl Locks for parking_lot::Mutex<()> {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, _: Node, _: Mode, f: impl FnOnce()) {
        let _guard = access.lock();
        f();
    }
}

#[derive(Default)]
pub struct Std(std::sync::RwLock<()>);

impl Locks for Std {
    type Access<'a> = &'a std::sync::RwLock<()>;

    fn access(&self) -> &std::sync::RwLock<()> {
        &self.0
    }

    fn with(access: &mut Self::Access<'_>, _: Node, mode: Mode, f: impl FnOnce()) {
        if mode == Mode::S {
            let _guard = access.read().expect("not poisoned");
            f();
        } else {
            let _guard = access.write().expect("not poisoned");
            f();
        }
    }
}

pub struct Tokio {
    lock: tokio::sync::RwLock<()>,
    waits: bool,
}

impl Tokio {
    pub fn new(waits: bool) -> Self {
        Self {
            lock: tokio::sync::RwLock::new(()),
            waits,
        }
    }
}

impl Locks for Tokio {
    type Access<'a> = &'a Self;

    fn access(&self) -> &Self {
        self
    }

    fn with(access: &mut &Self, _: Node, mode: Mode, f: impl FnOnce()) {
        if mode == Mode::S {
            let _guard = drive(access.lock.read(), access.waits);
            f();
        } else {
            let _guard = drive(access.lock.write(), access.waits);
            f();
        }
    }
}
