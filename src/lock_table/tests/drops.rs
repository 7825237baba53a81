//! A name whose drop panics: the thread that drops it unwinds, and nothing is left of the owner.

use std::cell::Cell;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Waker};

use super::super::{LockTable, Resource};
use crate::modes::Mode::{S, X};

thread_local! {
    static FUSE: Cell<u32> = const { Cell::new(u32::MAX) };
}

#[derive(Clone, Debug)]
struct Sticky(u32);

impl Drop for Sticky {
    fn drop(&mut self) {
        let left = FUSE.get();
        FUSE.set(left.wrapping_sub(1));
        if left == 0 {
            std::panic::resume_unwind(Box::new("sticky"));
        }
    }
}

impl PartialEq for Sticky {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Sticky {}

impl Hash for Sticky {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Resource for Sticky {
    fn parent(&self) -> Option<Self> {
        (self.0 > 9).then(|| Sticky(self.0 / 10))
    }
}

/// The drop panics at every name in turn, while a forgotten wait has taken a part.
#[test]
fn an_owner_that_is_dropped_leaves_nothing() {
    let mut panics = 0;
    for fuse in 0.. {
        let locks = LockTable::new();
        let [mut a, mut b] = [(); 2].map(|()| locks.owner(0));
        a.try_lock(&Sticky(21), X).unwrap();
        for name in [11, 12, 31] {
            b.try_lock(&Sticky(name), S).unwrap();
        }
        let many = [(Sticky(13), X), (Sticky(21), X), (Sticky(41), X)];
        let mut wait = b.lock_many(many);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
        std::mem::forget(wait);
        FUSE.set(fuse);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(b)));
        FUSE.set(u32::MAX);
        assert_eq!(locks.snapshot().owners, 1, "fuse {fuse}");
        assert_eq!(locks.len(), 2, "fuse {fuse}");
        drop(a);
        assert!(locks.is_empty());
        if dropped.is_ok() {
            break;
        }
        panics += 1;
    }
    assert!(panics > 5, "{panics}");
}
