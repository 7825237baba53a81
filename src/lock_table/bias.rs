//! The intent on a root that its owner keeps after its last use, until somebody is in conflict with
//! it: biased locking, as R. Johnson, I. Pandis and A. Ailamaki have it for hot roots ("Improving OLTP
//! Scalability using Speculative Lock Inheritance", 2009).
//!
//! State: a word that the owner shares with the shard of the root. While it is idle or used, the owner
//! stands among the holders of the root, and the word in the shard's list.
//!
//! ```text
//!            begin                take
//!   revoked -------> idle <-----------------> used
//!      ^               |         rest          |
//!      +---------------+-----------------------+   somebody conflicts, or its owner gives it up
//! ```
//!
//! Protocol: begin and revoke happen under the lock of the root's shard. The owner takes it and lets
//! it rest under the locks of what it locks below, so that nobody sees one without the other; the
//! root's shard is not touched. Who revokes an idle one takes its owner out of the holders; a used one
//! stays a holder like any other, which its owner learns when it wants to let it rest.
//!
//! Invariants:
//! 1. The word is in one list if it is idle or used, else in none.
//! 2. Nobody waits for a resource that has a word in its list: who must wait has revoked them all.
//!
//! Memory ordering: `rest` (release) pairs with `revoke` (acquire), and so what the owner did below
//! the root happens before what is granted after it; `take` orders nothing, as nobody was there.

use super::index::{Gone, Name, NodeId};
use super::shards::Changes;
use crate::modes::Mode;
use crate::sync::{Arc, AtomicU8, Ordering};

const REVOKED: u8 = 0;
const IDLE: u8 = 1;
const USED: u8 = 2;

pub(super) struct Bias(AtomicU8);

impl Bias {
    fn change(&self, from: u8, to: u8, success: Ordering) -> bool {
        let word = &self.0;
        word.compare_exchange(from, to, success, Ordering::Relaxed)
            .is_ok()
    }

    /// False if it is revoked.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.change(IDLE, USED, Ordering::Relaxed)
    }

    /// False if it is revoked.
    #[inline]
    pub(super) fn rest(&self) -> bool {
        // Pairs with `revoke` and `revoke_idle`.
        self.change(USED, IDLE, Ordering::Release)
    }

    /// Whether it was idle.
    pub(super) fn revoke(&self) -> bool {
        // Pairs with `rest`.
        self.0.swap(REVOKED, Ordering::Acquire) == IDLE
    }

    /// Revokes it if it is idle.
    pub(super) fn revoke_idle(&self) -> bool {
        // Pairs with `rest`.
        self.change(IDLE, REVOKED, Ordering::Acquire)
    }

    /// By its owner, under the lock of the root's shard.
    pub(super) fn begin(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }
}

/// What one owner keeps, as it sees it.
pub(super) struct Kept<K> {
    /// Made when it is needed.
    word: Option<Arc<Bias>>,
    root: Option<Root<K>>,
    /// Whether that is not used.
    idle: bool,
    pub(super) due: Due,
    /// The root that it left last: its hash, and the intent.
    last: Option<(u64, Mode)>,
}

/// A root that is held for the sake of what is below.
pub(super) struct Root<K> {
    pub(super) key: K,
    pub(super) hash: u64,
    pub(super) node: NodeId,
    pub(super) mode: Mode,
}

/// What is to be entered in the table with the changes at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// It is not needed any more.
    Rest,
    /// This root, which the changes release, stays.
    Begin(NodeId),
}

impl<K> Kept<K> {
    pub(super) fn new() -> Self {
        Self {
            word: None,
            root: None,
            idle: false,
            due: Due::Nothing,
            last: None,
        }
    }

    #[inline]
    pub(super) fn word(&mut self) -> &Arc<Bias> {
        let new = || Arc::new(Bias(AtomicU8::new(REVOKED)));
        self.word.get_or_insert_with(new)
    }

    /// The mode and the entry of an idle root, if this is it.
    #[inline]
    pub(super) fn idle(&self, hash: u64, key: &K) -> Option<(Mode, NodeId)>
    where
        K: Eq,
    {
        let root = self.root.as_ref().filter(|root| root.hash == hash)?;
        (self.idle && root.key == *key).then_some((root.mode, root.node))
    }

    /// The request that needs it has been granted.
    #[inline]
    pub(super) fn taken(&mut self) {
        self.idle = false;
    }

    /// A root is not needed any more. Worth keeping is what is left twice in a row: then it stays in
    /// the table, for another if need be.
    #[inline]
    pub(super) fn leave(&mut self, mut root: Root<K>, changes: &mut Changes, gone: &mut Gone<K>) {
        let left = Some((root.hash, root.mode));
        let again = std::mem::replace(&mut self.last, left) == left;
        match &mut self.root {
            Some(kept) if kept.node == root.node => {
                std::mem::swap(kept, &mut root);
                (self.idle, self.due) = (true, Due::Rest);
            }
            None if again => {
                changes.push((root.node, None));
                (self.idle, self.due) = (true, Due::Begin(root.node));
                self.root = Some(root);
                return;
            }
            kept => {
                changes.push((root.node, None));
                if again
                    && self.idle
                    && let Some(kept) = kept.take()
                {
                    changes.push((kept.node, None));
                    gone.push(Name::Own(kept.key));
                }
            }
        }
        gone.push(Name::Own(root.key));
    }

    /// It keeps nothing any more. Gives what it kept.
    pub(super) fn forget(&mut self, gone: &mut Gone<K>) -> Option<NodeId> {
        let root = self.root.take()?;
        self.due = Due::Nothing;
        gone.push(Name::Own(root.key));
        Some(root.node)
    }

    /// As `forget`, if this is what it keeps.
    #[inline]
    pub(super) fn forget_if(&mut self, node: NodeId, gone: &mut Gone<K>) {
        if self.node() == Some(node) {
            self.forget(gone);
        }
    }

    #[inline]
    pub(super) fn node(&self) -> Option<NodeId> {
        self.root.as_ref().map(|root| root.node)
    }
}
