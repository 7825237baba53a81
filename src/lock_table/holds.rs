//! What one owner holds, as it sees it: without a lock, and without the other owners.
//!
//! State: a hold per resource that was granted, or that is held for the sake of something below.
//!
//! ```text
//!            covered by an ancestor          more than that covers is granted
//!   absent ------------------------> covered ---------------------------------> real
//!      |                                                                          ^
//!      +--------------------------------------------------------------------------+
//! ```
//!
//! A *real* hold is entered in the table, and so is every ancestor's. A *covered* one is known only
//! here: its cover, an ancestor that is real, keeps everybody out who could conflict.
//!
//! Invariants:
//! 1. The mode of a real hold in the table is the join of its own mode (granted and not given up)
//!    and of the intents that its real children need; there is no hold without any.
//! 2. `intents` of a hold counts its real children by the intent they need; `covers` counts the
//!    covered holds that name it as their cover, by the mode their own needs above it.
//! 3. A covered hold keeps its cover, and a real one stays real, until it is gone: so what was
//!    granted before a savepoint never comes to rest on something granted after it.
//! 4. The own mode of a cover covers what `covers` counts.

use std::cmp::Reverse;

use hashbrown::HashTable;

use super::error::ReleaseError;
use super::grants::Grants;
use super::hold::{Counts, Hold, HoldId, HoldKind};
use super::shards::{NodeId, spread};
use crate::modes::Mode;

/// What must be entered in the table: from leaf to root.
pub(super) type Changes = Vec<(NodeId, Option<Mode>)>;

pub(super) struct Holds<K> {
    map: HashTable<Hold<K>>,
    /// How many of them are real.
    real: u64,
    /// Counts the savepoints.
    epoch: u64,
    /// What the last call asks to be entered.
    pub(super) changes: Changes,
}

impl<K> Holds<K> {
    pub(super) const fn new() -> Self {
        Self {
            map: HashTable::new(),
            real: 0,
            epoch: 0,
            changes: Changes::new(),
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        let is_it = |hold: &Hold<K>| hold.id.0 == hash && hold.key == *key;
        self.map.find(spread(hash), is_it).map(|hold| hold.id)
    }

    #[inline]
    pub(super) fn get(&self, id: HoldId) -> &Hold<K> {
        let hold = self.map.find(spread(id.0), |hold| hold.id == id);
        hold.expect("a hold that was found")
    }

    #[inline]
    fn get_mut(&mut self, id: HoldId) -> &mut Hold<K> {
        let hold = self.map.find_mut(spread(id.0), |hold| hold.id == id);
        hold.expect("a hold that was found")
    }

    /// How many resources it holds in the table.
    pub(super) fn real(&self) -> u64 {
        self.real
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Hold<K>> {
        self.map.iter()
    }

    /// Enters a real hold, or raises one, or makes a covered one real; with so many grants by name,
    /// which together ask for a mode.
    #[inline]
    pub(super) fn enter_real(
        &mut self,
        id: Option<HoldId>,
        hash: u64,
        (key, depth): (impl FnOnce() -> K, usize),
        (node, mode): (NodeId, Mode),
        mut parent: Option<HoldId>,
        asked: Option<(Mode, u64)>,
    ) -> HoldId {
        let id = match id {
            None => {
                self.real += 1;
                let kind = HoldKind::Real { node, mode, parent };
                self.insert(hash, (key(), depth), kind, asked)
            }
            Some(id) => {
                let (own, kind) = (self.get(id).own(), self.get(id).kind);
                match kind {
                    HoldKind::Covered { by } => {
                        self.real += 1;
                        self.recover(by, own, None);
                    }
                    // Its parent is what it was, whatever the user's code says now.
                    HoldKind::Real {
                        mode, parent: up, ..
                    } => {
                        self.uncount_intent(up, mode);
                        parent = up;
                    }
                }
                let epoch = self.epoch;
                let hold = self.get_mut(id);
                hold.kind = HoldKind::Real { node, mode, parent };
                hold.grant(epoch, asked);
                id
            }
        };
        if let Some(parent) = parent {
            self.get_mut(parent).intents.count(strong_intent(mode));
        }
        id
    }

    /// Enters a resource that an ancestor covers, or raises one.
    pub(super) fn enter_covered(
        &mut self,
        id: Option<HoldId>,
        hash: u64,
        (key, depth): (impl FnOnce() -> K, usize),
        by: HoldId,
        asked: (Mode, u64),
    ) -> HoldId {
        let kind = HoldKind::Covered { by };
        let id = id.unwrap_or_else(|| self.insert(hash, (key(), depth), kind, None));
        let epoch = self.epoch;
        let hold = self.get_mut(id);
        let before = hold.own();
        hold.kind = kind;
        hold.grant(epoch, Some(asked));
        let after = hold.own();
        self.recover(by, before, after);
        id
    }

    /// Gives one grant back.
    #[inline]
    pub(super) fn release(&mut self, hash: u64, key: &K) -> Result<(), ReleaseError>
    where
        K: Eq,
    {
        let is_it = |hold: &Hold<K>| hold.id.0 == hash && hold.key == *key;
        let found = self.map.find_entry(spread(hash), is_it);
        let mut found = found.map_err(|_| ReleaseError::NotHeld)?;
        let hold = found.get_mut();
        let count = hold.grants.count();
        match count {
            0 => return Err(ReleaseError::NotHeld),
            1 if hold.covers.any() => return Err(ReleaseError::StillCovers),
            _ => {}
        }
        if let HoldKind::Real { node, mode, parent } = hold.kind
            && count == 1
            && !hold.intents.any()
        {
            // All that there was of it, which is what mostly happens.
            let (gone, _) = found.remove();
            self.changes.push((node, None));
            self.real -= 1;
            self.uncount_intent(parent, mode);
            self.shrink();
            if let Some(parent) = parent {
                self.propagate(parent);
            }
            drop(gone);
            return Ok(());
        }
        let (id, before) = (hold.id, hold.own());
        hold.grants.pop();
        self.lowered(id, before);
        Ok(())
    }

    /// Lowers the own mode.
    pub(super) fn downgrade(&mut self, id: HoldId, mode: Mode) -> Result<(), ReleaseError> {
        let hold = self.get(id);
        let own = hold.own().ok_or(ReleaseError::NotHeld)?;
        if !own.covers(mode) {
            return Err(ReleaseError::NotWeaker);
        }
        let needed = hold.covers.map(Mode::S, Mode::X);
        if needed.is_some_and(|needed| !mode.covers_below(needed)) {
            return Err(ReleaseError::StillCovers);
        }
        self.get_mut(id).grants.cap(mode);
        self.lowered(id, Some(own));
        Ok(())
    }

    /// What is granted from now on can be given back together.
    pub(super) fn savepoint(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// Gives back what was granted since, from the leaves up.
    pub(super) fn release_to(&mut self, epoch: u64) {
        let since = |hold: &Hold<K>| hold.grants.last_epoch().is_some_and(|last| last >= epoch);
        let touched = self.map.iter().filter(|hold| since(hold));
        let mut touched: Vec<(usize, HoldId)> = touched.map(|hold| (hold.depth, hold.id)).collect();
        touched.sort_unstable_by(|a, b| b.cmp(a));
        for (_, id) in touched {
            let before = self.get(id).own();
            self.get_mut(id).grants.cut(epoch);
            self.lowered(id, before);
        }
    }

    /// Forgets everything: from the leaves up. Gives what is to be dropped when it is entered.
    pub(super) fn clear(&mut self) -> Vec<Hold<K>> {
        let mut all: Vec<Hold<K>> = if self.map.len() < 16 {
            self.map.drain().collect()
        } else {
            std::mem::take(&mut self.map).into_iter().collect()
        };
        all.sort_by_key(|hold| Reverse(hold.depth));
        let nodes = all.iter().filter_map(|hold| match hold.kind {
            HoldKind::Real { node, .. } => Some((node, None)),
            HoldKind::Covered { .. } => None,
        });
        self.changes.extend(nodes);
        self.real = 0;
        all
    }

    #[inline]
    fn insert(
        &mut self,
        hash: u64,
        (key, depth): (K, usize),
        kind: HoldKind,
        asked: Option<(Mode, u64)>,
    ) -> HoldId {
        let same = self.map.iter_hash(spread(hash));
        let same = same.filter(|hold| hold.id.0 == hash);
        let id = (hash, same.map(|hold| hold.id.1 + 1).max().unwrap_or(0));
        let mut hold = Hold {
            id,
            key,
            depth,
            kind,
            grants: Grants::default(),
            intents: Counts::default(),
            covers: Counts::default(),
        };
        hold.grant(self.epoch, asked);
        let rehash = |hold: &Hold<K>| spread(hold.id.0);
        self.map.insert_unique(spread(hash), hold, rehash);
        id
    }

    fn remove(&mut self, id: HoldId) {
        let found = self.map.find_entry(spread(id.0), |hold| hold.id == id);
        let (gone, _) = found.ok().expect("a hold that was found").remove();
        self.shrink();
        drop(gone);
    }

    #[inline]
    fn shrink(&mut self) {
        let (len, capacity) = (self.map.len(), self.map.capacity());
        if capacity > 16 && len < capacity / 8 {
            self.map.shrink_to(len * 2, |hold| spread(hold.id.0));
        }
    }

    /// The own mode of a hold went down: what follows from it for the hold and all above it.
    fn lowered(&mut self, at: HoldId, before: Option<Mode>) {
        if let HoldKind::Covered { by } = self.get(at).kind {
            let after = self.get(at).own();
            self.recover(by, before, after);
            if after.is_none() {
                self.remove(at);
            }
            return;
        }
        self.propagate(at);
    }

    /// Less is needed of this: what follows from it, up to where nothing changes.
    fn propagate(&mut self, mut at: HoldId) {
        while let HoldKind::Real { node, mode, parent } = self.get(at).kind {
            let hold = self.get(at);
            let target = hold.own_and_intents();
            if target == Some(mode) {
                break;
            }
            debug_assert!(target.is_some() || !hold.covers.any());
            self.changes.push((node, target));
            self.uncount_intent(parent, mode);
            match target {
                Some(mode) => {
                    self.get_mut(at).kind = HoldKind::Real { node, mode, parent };
                    if let Some(parent) = parent {
                        self.get_mut(parent).intents.count(strong_intent(mode));
                    }
                }
                None => {
                    self.real -= 1;
                    self.remove(at);
                }
            }
            match parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
    }

    /// The own mode of something covered has changed.
    fn recover(&mut self, by: HoldId, before: Option<Mode>, after: Option<Mode>) {
        let covers = &mut self.get_mut(by).covers;
        if let Some(before) = before {
            covers.uncount(covered(before));
        }
        if let Some(after) = after {
            covers.count(covered(after));
        }
    }

    fn uncount_intent(&mut self, parent: Option<HoldId>, mode: Mode) {
        if let Some(parent) = parent {
            self.get_mut(parent).intents.uncount(strong_intent(mode));
        }
    }
}

/// Whether a child in this mode needs the stronger intent above it.
fn strong_intent(mode: Mode) -> bool {
    mode.parent_needs() == Mode::Ix
}

/// Whether nothing but X covers this mode.
fn covered(mode: Mode) -> bool {
    !Mode::S.covers(mode)
}
