//! What a lock table leaves in the allocator: nothing that grows with what was locked.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode;

struct Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: both hand on to the system's allocator what they were given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as above; all memory came from there.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name(Option<u32>);

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        self.0.map(|_| Name(None))
    }
}

const KEYS: u32 = if cfg!(debug_assertions) {
    50_000
} else {
    1_000_000
};

fn lock(owner: &mut Owner<Name>, n: u32) {
    assert!(owner.try_lock(&Name(Some(n)), Mode::X).is_ok());
}

fn bytes() -> i64 {
    BYTES.load(Ordering::Relaxed)
}

/// All at once, and one after the other.
#[test]
fn keys_used_once_leave_nothing() {
    let locks = LockTable::new();
    let mut owner = locks.owner(0);
    // Every shard of the index keeps room for a few.
    for n in 0..10_000 {
        lock(&mut owner, n);
        owner.release(&Name(Some(n))).unwrap();
    }
    let before = bytes();
    (0..KEYS).for_each(|n| lock(&mut owner, n));
    let full = bytes() - before;
    assert!(full > i64::from(KEYS) * 100);
    println!("{} bytes a lock", full / i64::from(KEYS));
    // One stays, and does not keep the memory of the others.
    for n in 1..KEYS {
        owner.release(&Name(Some(n))).unwrap();
    }
    assert!(
        bytes() - before < full / 5,
        "{} of {full} with one lock",
        bytes() - before
    );
    owner.release_all();
    let left = bytes() - before;
    assert!(left < 4_096, "{left} bytes left of {full}");
    for n in 0..KEYS {
        lock(&mut owner, n);
        owner.release(&Name(Some(n))).unwrap();
    }
    assert!(bytes() - before < 4_096, "one at a time");
    drop(owner);
    for _ in 0..1_000 {
        lock(&mut locks.owner(0), 7);
    }
    assert!(bytes() - before < 4_096, "owners");
    drop(locks);
}
