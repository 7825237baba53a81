//! The intent on a root that its owner keeps after its last use, until a request conflicts with it:
//! biased locking, as R. Johnson, I. Pandis and A. Ailamaki use it for hot roots ("Improving OLTP
//! Scalability using Speculative Lock Inheritance", 2009).
//!
//! State: a word that the owner shares with the shard of the root. While the word is idle or used,
//! the owner is among the holders of the root, and the word is in the shard's list. A thread that
//! looks at the table passes over the idle ones.
//!
//! ```text
//!            begin                take
//!   revoked -------> idle <-----------------> used
//!      ^               |         rest          |
//!      +---------------+-----------------------+   somebody conflicts, or its owner gives it up
//! ```
//!
//! Protocol: the owner takes the word, and makes it idle again, under the locks of what it locks
//! below, so that no thread sees one without the other; the root's shard is not touched. The owner
//! begins it, and gives it up, under the lock of the root's shard. Any other thread revokes it
//! under the locks of all shards. So all changes exclude each other, and the owner pays a load and
//! a store. A thread that revokes an idle word takes its owner out of the holders. The owner of a
//! used word stays a holder like any other, and learns of it when it wants to make the word idle.
//!
//! Invariants:
//! 1. The word is in one list if it is idle or used, else in none.
//! 2. A resource with a word in its list has no waiters: a request that must wait has revoked it.
//!
//! Memory ordering: that of the locks. A thread that revokes has the lock under which the word last
//! became idle. So what the owner did below the root happens before what is granted after it.
//!
//! An owner keeps one intent at most: that on the root that it left last ([`Kept`]). Its hold keeps
//! its slot, and nothing needs the hold while it is idle.

use std::collections::BTreeMap;

use super::entries::NodeId;
use super::owners::OwnerKey;
use crate::modes::Mode;
use crate::sync::{Arc, AtomicU8, Ordering};

const REVOKED: u8 = 0;
const IDLE: u8 = 1;
const USED: u8 = 2;

pub(super) struct Bias(AtomicU8);

/// The words of one shard: for each entry, the owners that keep an intent on it.
pub(super) struct Biases(BTreeMap<NodeId, BTreeMap<OwnerKey, Arc<Bias>>>);

impl Bias {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(REVOKED))
    }

    /// Relaxed: the caller has a lock, see the header.
    #[inline]
    fn change(&self, from: u8, to: u8) -> bool {
        let changes = self.0.load(Ordering::Relaxed) == from;
        if changes {
            self.0.store(to, Ordering::Relaxed);
        }
        changes
    }

    /// Called by its owner. False if it is revoked.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.change(IDLE, USED)
    }

    /// Called by its owner. False if it is revoked.
    #[inline]
    pub(super) fn rest(&self) -> bool {
        self.change(USED, IDLE)
    }

    fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE
    }

    /// Returns whether it was idle.
    fn revoke(&self) -> bool {
        self.0.swap(REVOKED, Ordering::Relaxed) == IDLE
    }
}

impl Biases {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Called by its owner, which holds no more than an intent.
    pub(super) fn begin(&mut self, id: NodeId, owner: OwnerKey, bias: &Arc<Bias>) {
        bias.0.store(IDLE, Ordering::Relaxed);
        self.0.entry(id).or_default().insert(owner, bias.clone());
    }

    /// Called by its owner, if it keeps one there.
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

    /// Revokes all words of an entry. Returns the owners whose words were idle.
    pub(super) fn revoke_all(&mut self, id: NodeId) -> impl Iterator<Item = OwnerKey> {
        let all = self.0.remove(&id).into_iter().flatten();
        all.filter_map(|(owner, bias)| bias.revoke().then_some(owner))
    }

    /// Tells of an owner whether its word at this entry is idle.
    pub(super) fn idle_at(&self, id: NodeId) -> impl Fn(OwnerKey) -> bool {
        let all = self.0.get(&id);
        move |owner| all.is_some_and(|all| all.get(&owner).is_some_and(|bias| bias.is_idle()))
    }

    /// The entries whose words are all idle, each with the number of its words.
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
    /// The root that the owner left last: its hash, and the intent.
    last: Option<(u64, Mode)>,
}

/// What else is to be entered in the table with these changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// The word becomes idle.
    Rest,
    /// The intent on this root, which the changes release, is kept.
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

    /// The word, if it was needed before.
    #[inline]
    pub(super) fn known(&self) -> Option<&Bias> {
        self.word.as_deref()
    }

    /// Whether it keeps any, in the table. Others may revoke that meanwhile.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        let is_listed = |word: &Bias| word.0.load(Ordering::Relaxed) != REVOKED;
        self.known().is_some_and(is_listed)
    }

    /// Notes that a root is left. True if the root left before, and its intent, were the same.
    #[inline]
    pub(super) fn left(&mut self, hash: u64, mode: Mode) -> bool {
        let left = Some((hash, mode));
        std::mem::replace(&mut self.last, left) == left
    }
}
