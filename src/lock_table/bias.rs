//! The intent on a root that its owner keeps after its last use, until somebody is in conflict with
//! it: biased locking, as R. Johnson, I. Pandis and A. Ailamaki have it for hot roots ("Improving
//! OLTP Scalability using Speculative Lock Inheritance", 2009).
//!
//! State: a word that the owner shares with the shard of the root. While it is idle or used, the
//! owner stands among the holders of the root, and the word in the shard's list.
//!
//! ```text
//!            begin                take
//!   revoked -------> idle <-----------------> used
//!      ^               |         rest          |
//!      +---------------+-----------------------+   somebody conflicts, or its owner gives it up
//! ```
//!
//! Protocol: the owner takes it and lets it rest under the locks of what it locks below, so that
//! nobody sees one without the other; the root's shard is not touched. It begins, and is given up
//! by its owner, under the lock of the root's shard. Somebody else revokes it under the locks of
//! all shards: so those who change it exclude each other, and its owner pays a load and a store.
//! Who revokes an idle one takes its owner out of the holders; a used one stays a holder like any
//! other, which its owner learns when it wants to let it rest.
//!
//! Invariants:
//! 1. The word is in one list if it is idle or used, else in none.
//! 2. Nobody waits for a resource that has a word in its list: who must wait has revoked them all.
//!
//! Memory ordering: that of the locks. Who revokes has the lock under which it was let rest last,
//! and so what the owner did below the root happens before what is granted after it.

use crate::sync::{AtomicU8, Ordering};

const REVOKED: u8 = 0;
const IDLE: u8 = 1;
const USED: u8 = 2;

pub(super) struct Bias(AtomicU8);

impl Bias {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(REVOKED))
    }

    /// Relaxed: under a lock, see the header.
    #[inline]
    fn change(&self, from: u8, to: u8) -> bool {
        let changes = self.0.load(Ordering::Relaxed) == from;
        if changes {
            self.0.store(to, Ordering::Relaxed);
        }
        changes
    }

    /// By its owner. False if it is revoked.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.change(IDLE, USED)
    }

    /// By its owner. False if it is revoked.
    #[inline]
    pub(super) fn rest(&self) -> bool {
        self.change(USED, IDLE)
    }

    /// Whether it was idle.
    pub(super) fn revoke(&self) -> bool {
        self.revoke_idle() || {
            self.0.store(REVOKED, Ordering::Relaxed);
            false
        }
    }

    /// Revokes it if it is idle.
    pub(super) fn revoke_idle(&self) -> bool {
        self.change(IDLE, REVOKED)
    }

    /// By its owner.
    pub(super) fn begin(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }
}
