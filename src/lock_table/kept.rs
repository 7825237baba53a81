//! The intent on a root that its owner keeps after its last use, until somebody is in conflict with
//! it: biased locking, as R. Johnson, I. Pandis and A. Ailamaki have it for hot roots ("Improving
//! OLTP Scalability using Speculative Lock Inheritance", 2009).
//!
//! State: a word that the owner shares with the shard of the root. While it is idle or used, the
//! owner stands among the holders of the root, and the word in the shard's list. Who looks at the
//! table passes over the idle ones.
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
//!
//! An owner keeps one at most: that of the root that it left last ([`Kept`]). Its hold stays where
//! it is, and is without a need while it is idle.

use std::collections::BTreeMap;

use super::entries::NodeId;
use super::owners::OwnerKey;
use crate::modes::Mode;
use crate::sync::{Arc, AtomicU8, Ordering};

const REVOKED: u8 = 0;
const IDLE: u8 = 1;
const USED: u8 = 2;

pub(super) struct Bias(AtomicU8);

/// Those of one shard: who keeps an intent on which entry.
pub(super) struct Biases(BTreeMap<NodeId, BTreeMap<OwnerKey, Arc<Bias>>>);

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

    fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE
    }

    /// By its owner: whether it is in a list.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.0.load(Ordering::Relaxed) != REVOKED
    }

    /// Whether it was idle.
    fn revoke(&self) -> bool {
        let idle = self.is_idle();
        self.0.store(REVOKED, Ordering::Relaxed);
        idle
    }
}

impl Biases {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// By its owner, which holds no more than an intent.
    pub(super) fn begin(&mut self, id: NodeId, owner: OwnerKey, bias: &Arc<Bias>) {
        bias.0.store(IDLE, Ordering::Relaxed);
        self.0.entry(id).or_default().insert(owner, bias.clone());
    }

    /// By its owner, if it keeps one there.
    pub(super) fn end(&mut self, id: NodeId, owner: OwnerKey) {
        let Some(all) = self.0.get_mut(&id) else {
            return;
        };
        if let Some(bias) = all.remove(&owner) {
            bias.revoke();
        }
        if all.is_empty() {
            self.0.remove(&id);
        }
    }

    pub(super) fn any_at(&self, id: NodeId) -> bool {
        self.0.contains_key(&id)
    }

    /// All of an entry. Gives whose were idle.
    pub(super) fn revoke_all(&mut self, id: NodeId) -> impl Iterator<Item = OwnerKey> {
        let all = self.0.remove(&id).into_iter().flatten();
        all.filter_map(|(owner, bias)| bias.revoke().then_some(owner))
    }

    /// Whose are idle at an entry.
    pub(super) fn idle_at(&self, id: NodeId) -> impl Fn(OwnerKey) -> bool {
        let all = self.0.get(&id);
        move |owner| all.is_some_and(|all| all.get(&owner).is_some_and(|bias| bias.is_idle()))
    }

    /// The entries at which all of them are idle, and how many those are.
    pub(super) fn all_idle(&self) -> impl Iterator<Item = (NodeId, usize)> {
        let idle = self
            .0
            .iter()
            .filter(|(_, all)| all.values().all(|bias| bias.is_idle()));
        idle.map(|(id, all)| (*id, all.len()))
    }
}

pub(super) struct Kept {
    /// Made when it is needed.
    word: Option<Arc<Bias>>,
    pub(super) due: Due,
    /// The root that it left last: its hash, and the intent.
    last: Option<(u64, Mode)>,
}

/// What is to be entered in the table with these changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// It is not needed any more.
    Rest,
    /// This root, which the changes release, stays.
    Begin(NodeId),
}

impl Kept {
    pub(super) const fn new() -> Self {
        Self {
            word: None,
            due: Due::Nothing,
            last: None,
        }
    }

    #[inline]
    pub(super) fn word(&mut self) -> &Arc<Bias> {
        self.word.get_or_insert_with(|| Arc::new(Bias::new()))
    }

    /// The same, if it was needed before.
    #[inline]
    pub(super) fn known(&self) -> Option<&Bias> {
        self.word.as_deref()
    }

    /// Whether it keeps any, in the table: to be asked under a lock.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.word.as_ref().is_some_and(|word| word.is_listed())
    }

    /// A root is left; whether it was so the time before.
    #[inline]
    pub(super) fn left(&mut self, hash: u64, mode: Mode) -> bool {
        let left = Some((hash, mode));
        std::mem::replace(&mut self.last, left) == left
    }
}
