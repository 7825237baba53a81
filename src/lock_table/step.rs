//! One resource of a path: what is to be done about it.

use super::entries::NodeId;
use super::hold::HoldId;
use super::owners::OwnerKey;
use super::shards::Locked;
use crate::modes::Mode;

pub(super) struct Step<K> {
    /// None once it is in the holds.
    pub(super) key: Option<K>,
    /// The name for the table's entry, if one has to be made.
    pub(super) name: Option<K>,
    /// The spread hash.
    pub(super) hash: u64,
    pub(super) depth: u32,
    /// The step of its parent; none for a root.
    pub(super) parent: Option<u32>,
    pub(super) hold: Option<HoldId>,
    /// Its owner holds nothing of it, but keeps the intent.
    pub(super) idle: bool,
    /// The join of the modes asked for by name, and how many requests for it there were.
    pub(super) asked: Option<(Mode, u64)>,
    /// It is to be held in the table in at least this mode.
    pub(super) mode: Option<Mode>,
    /// The mode that its owner has there, or keeps.
    pub(super) had: Option<Mode>,
    pub(super) node: Option<NodeId>,
    /// The hold that covers it: it is then recorded, and no more.
    pub(super) cover: Option<HoldId>,
}

impl<K> Step<K> {
    #[inline]
    pub(super) fn of(key: K, hash: u64) -> Self {
        Self {
            hash,
            key: Some(key),
            name: None,
            depth: 0,
            parent: None,
            hold: None,
            idle: false,
            asked: None,
            mode: None,
            had: None,
            node: None,
            cover: None,
        }
    }

    #[inline]
    pub(super) fn key(&self) -> &K {
        self.key.as_ref().expect("not in the holds yet")
    }

    #[inline]
    pub(super) fn is(&self, hash: u64, key: &K) -> bool
    where
        K: Eq,
    {
        self.hash == hash && self.key() == key
    }

    /// The mode to ask for in the table, if that is more than the owner has there.
    #[inline]
    pub(super) fn raised(&self) -> Option<Mode> {
        self.mode.filter(|_| self.had != self.mode)
    }

    /// Makes its entry in the table.
    #[inline]
    pub(super) fn insert(
        &mut self,
        locked: &mut Locked<'_, K>,
        owner: OwnerKey,
        mode: Mode,
    ) -> NodeId {
        let name = self.name.take().expect("made for this");
        let entries = &mut locked.index(self.hash).entries;
        let id = entries.insert(self.hash, name, owner, mode);
        *self.node.insert(id)
    }
}
