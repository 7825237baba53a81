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

use super::bias::Kept;
use super::error::ReleaseError;
use super::grants::Grants;
use super::hold::{Counts, Hold, HoldId, HoldKind};
use super::index::NodeId;
use super::slots::Slots;
use crate::modes::Mode;

/// What must be entered in the table: from leaf to root.
pub(super) type Changes = Vec<(NodeId, Option<Mode>)>;

/// What was kept, to be dropped when all is entered.
type Forgotten<K> = Option<(NodeId, K)>;

pub(super) struct Holds<K> {
    slots: Slots<K>,
    /// How many of them are real.
    real: u64,
    /// Counts the savepoints.
    epoch: u64,
    /// What the last call asks to be entered.
    pub(super) changes: Changes,
    pub(super) kept: Kept<K>,
}

impl<K> Holds<K> {
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::new(),
            real: 0,
            epoch: 0,
            changes: Changes::new(),
            kept: Kept::new(),
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        self.slots.find(hash, key)
    }

    #[inline]
    pub(super) fn get(&self, id: HoldId) -> &Hold<K> {
        self.slots.get(id)
    }

    /// How many resources it holds in the table.
    pub(super) fn real(&self) -> u64 {
        self.real
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Hold<K>> {
        self.slots.iter().map(|(_, hold)| hold)
    }

    /// Whether `intent` is held here in the table, and neither this nor what is above covers `mode`
    /// below: then a request below has nothing to do here or above.
    #[inline]
    pub(super) fn carries(&self, id: HoldId, intent: Mode, mode: Mode) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            let hold = self.get(id);
            let covers = hold.own().is_some_and(|own| own.covers_below(mode));
            match hold.kind {
                HoldKind::Real { mode, parent, .. } if !covers && mode.covers(intent) => {
                    at = parent
                }
                _ => return false,
            }
        }
        true
    }

    /// After an operation: gives back memory that is not used any more.
    #[inline]
    pub(super) fn compact(&mut self) {
        self.slots.compact();
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
                let hold = self.slots.get_mut(id);
                hold.kind = HoldKind::Real { node, mode, parent };
                hold.grant(epoch, asked);
                id
            }
        };
        if let Some(parent) = parent {
            self.slots
                .get_mut(parent)
                .intents
                .count(strong_intent(mode));
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
        let hold = self.slots.get_mut(id);
        let before = hold.own();
        hold.kind = kind;
        hold.grant(epoch, Some(asked));
        let after = hold.own();
        self.recover(by, before, after);
        id
    }

    /// Gives one grant back.
    #[inline]
    pub(super) fn release(&mut self, id: HoldId) -> Result<(), ReleaseError> {
        let hold = self.slots.get_mut(id);
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
            let gone = self.slots.remove(id);
            self.changes.push((node, None));
            self.real -= 1;
            let kept = match parent {
                Some(parent) => {
                    self.uncount_intent(Some(parent), mode);
                    self.propagate(parent);
                    None
                }
                None => self.kept.forget_if(node),
            };
            drop((gone, kept));
            return Ok(());
        }
        let before = hold.own();
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
        self.slots.get_mut(id).grants.cap(mode);
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
        let touched = self.slots.iter().filter(|(_, hold)| since(hold));
        let mut touched: Vec<(usize, HoldId)> =
            touched.map(|(id, hold)| (hold.depth, id)).collect();
        touched.sort_unstable_by(|a, b| b.cmp(a));
        for (_, id) in touched {
            let before = self.get(id).own();
            self.slots.get_mut(id).grants.cut(epoch);
            self.lowered(id, before);
        }
    }

    /// Forgets everything: from the leaves up. Gives what is to be dropped when it is entered.
    pub(super) fn clear(&mut self) -> (Vec<Option<Hold<K>>>, Forgotten<K>) {
        let mut all = self.slots.take_all();
        all.sort_by_key(|hold| Reverse(hold.as_ref().map(|hold| hold.depth)));
        self.real = 0;
        let mut forgotten = None;
        for slot in &mut all {
            let Some(hold) = slot else { continue };
            let HoldKind::Real { node, mode, parent } = hold.kind else {
                continue;
            };
            let (hash, intent) = (hold.hash, parent.is_none() && hold.own().is_none());
            let take = || slot.take().expect("taken once").key;
            if intent && self.kept.leave((take, hash), node, mode) {
                continue;
            }
            self.changes.push((node, None));
            if parent.is_none() {
                forgotten = self.kept.forget_unless_due(node).or(forgotten);
            }
        }
        (all, forgotten)
    }

    #[inline]
    fn insert(
        &mut self,
        hash: u64,
        (key, depth): (K, usize),
        kind: HoldKind,
        asked: Option<(Mode, u64)>,
    ) -> HoldId {
        self.slots.insert(Hold {
            hash,
            key,
            depth,
            kind,
            grants: Grants::new(self.epoch, asked),
            intents: Counts::default(),
            covers: Counts::default(),
        })
    }

    /// The own mode of a hold went down: what follows from it for the hold and all above it.
    fn lowered(&mut self, at: HoldId, before: Option<Mode>) {
        if let HoldKind::Covered { by } = self.get(at).kind {
            let after = self.get(at).own();
            self.recover(by, before, after);
            if after.is_none() {
                drop(self.slots.remove(at));
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
            let Some(parent) = parent else {
                return self.lower_root(at, node, mode, target);
            };
            self.changes.push((node, target));
            self.uncount_intent(Some(parent), mode);
            match target {
                Some(mode) => {
                    let intents = &mut self.slots.get_mut(parent).intents;
                    intents.count(strong_intent(mode));
                    let parent = Some(parent);
                    self.slots.get_mut(at).kind = HoldKind::Real { node, mode, parent };
                }
                None => {
                    self.real -= 1;
                    drop(self.slots.remove(at));
                }
            }
            at = parent;
        }
    }

    fn lower_root(&mut self, at: HoldId, node: NodeId, mode: Mode, target: Option<Mode>) {
        if let Some(mode) = target {
            self.changes.push((node, target));
            let parent = None;
            self.slots.get_mut(at).kind = HoldKind::Real { node, mode, parent };
            return;
        }
        self.real -= 1;
        let hash = self.get(at).hash;
        let mut key = Some(self.slots.remove(at));
        let mut forgotten = None;
        let take = || key.take().expect("taken once");
        if !self.kept.leave((take, hash), node, mode) {
            self.changes.push((node, None));
            forgotten = self.kept.forget_unless_due(node);
        }
        drop((key, forgotten));
    }

    /// The own mode of something covered has changed.
    fn recover(&mut self, by: HoldId, before: Option<Mode>, after: Option<Mode>) {
        let covers = &mut self.slots.get_mut(by).covers;
        if let Some(before) = before {
            covers.uncount(covered(before));
        }
        if let Some(after) = after {
            covers.count(covered(after));
        }
    }

    fn uncount_intent(&mut self, parent: Option<HoldId>, mode: Mode) {
        if let Some(parent) = parent {
            self.slots
                .get_mut(parent)
                .intents
                .uncount(strong_intent(mode));
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
