//! What a lock table leaves in the allocator: nothing that grows with the number of locked names.

#[path = "support/counting_heap/mod.rs"]
mod counting_heap;

use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode;

use counting_heap::live;

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

/// All at once, and one after the other.
#[test]
fn keys_used_once_leave_nothing() {
    let locks = LockTable::new();
    let mut owner = locks.owner(0);
    // Every shard of the index keeps room for a few entries, once it has had more than one.
    (0..10_000).for_each(|n| lock(&mut owner, n));
    for n in 0..10_000 {
        owner.release(&Name(Some(n))).unwrap();
    }
    let before = live();
    (0..KEYS).for_each(|n| lock(&mut owner, n));
    let full = live() - before;
    assert!(full > KEYS as isize * 100);
    println!("{} bytes a lock", full / KEYS as isize);
    // One lock stays, and does not keep the memory of the others.
    for n in 1..KEYS {
        owner.release(&Name(Some(n))).unwrap();
    }
    assert!(
        live() - before < full / 5,
        "{} of {full} with one lock",
        live() - before
    );
    owner.release_all();
    let left = live() - before;
    assert!(left < 4_096, "{left} bytes left of {full}");
    for n in 0..KEYS {
        lock(&mut owner, n);
        owner.release(&Name(Some(n))).unwrap();
    }
    assert!(live() - before < 4_096, "one at a time");
    // One lock, granted once more behind each savepoint.
    for _ in 0..KEYS {
        lock(&mut owner, 7);
        owner.savepoint();
    }
    let full = live() - before;
    for _ in 1..KEYS {
        owner.release(&Name(Some(7))).unwrap();
    }
    let left = live() - before;
    assert!(
        left < 8_192,
        "{left} bytes of {full} remember what was released"
    );
    owner.release_all();
    drop(owner);
    for _ in 0..1_000 {
        lock(&mut locks.owner(0), 7);
    }
    assert!(live() - before < 4_096, "owners");
    drop(locks);
}
