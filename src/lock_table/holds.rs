//! What one owner holds, in its own words: no lock, and none of the other owners' business.
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

use std::collections::BTreeMap;

use super::error::ReleaseError;
use super::grants::Grants;
use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::Arc;

/// The hash of the resource, and a number where several have the same.
pub(super) type HoldId = (u64, u32);

/// What must be entered in the table: from leaf to root.
pub(super) type Changes = Vec<(Key, Option<Mode>)>;

pub(super) struct Holds<K> {
    map: BTreeMap<HoldId, Hold<K>>,
    /// Counts the savepoints.
    epoch: u64,
}

pub(super) struct Hold<K> {
    pub(super) key: Arc<K>,
    pub(super) depth: usize,
    pub(super) place: Place,
    grants: Grants,
    intents: Counts,
    covers: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Real {
        node: Key,
        mode: Mode,
        parent: Option<HoldId>,
    },
    Covered {
        by: HoldId,
    },
}

/// How many need the weaker and the stronger of two modes.
#[derive(Clone, Copy, Default)]
struct Counts {
    weak: u64,
    strong: u64,
}

impl<K> Holds<K> {
    pub(super) const fn new() -> Self {
        Self {
            map: BTreeMap::new(),
            epoch: 0,
        }
    }

    pub(super) fn find(&self, hash: u64, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        let mut same = self.map.range((hash, 0)..=(hash, u32::MAX));
        same.find(|(_, hold)| *hold.key == *key).map(|(&id, _)| id)
    }

    pub(super) fn get(&self, id: HoldId) -> &Hold<K> {
        self.map.get(&id).expect("a hold that was found")
    }

    fn get_mut(&mut self, id: HoldId) -> &mut Hold<K> {
        self.map.get_mut(&id).expect("a hold that was found")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Hold<K>> {
        self.map.values()
    }

    /// Enters a real hold, or raises one, or makes a covered one real.
    pub(super) fn enter_real(
        &mut self,
        id: Option<HoldId>,
        hash: u64,
        (key, depth): (&Arc<K>, usize),
        (node, mode): (Key, Mode),
        parent: Option<HoldId>,
    ) -> HoldId {
        let id = id.unwrap_or_else(|| self.insert(hash, key, depth));
        let own = self.get(id).own();
        let parent = match self.get(id).place {
            Place::Covered { by } => {
                self.recover(by, own, None);
                parent
            }
            // Its parent is what it was, whatever the user's code says now.
            Place::Real { mode, parent, .. } => {
                self.uncount_intent(parent, mode);
                parent
            }
        };
        self.get_mut(id).place = Place::Real { node, mode, parent };
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
        (key, depth): (&Arc<K>, usize),
        by: HoldId,
        asked: (Mode, u64),
    ) -> HoldId {
        let id = id.unwrap_or_else(|| self.insert(hash, key, depth));
        self.get_mut(id).place = Place::Covered { by };
        let before = self.get(id).own();
        self.grant(id, asked);
        let after = self.get(id).own();
        self.recover(by, before, after);
        id
    }

    /// So many grants more, which together ask for a mode.
    pub(super) fn grant(&mut self, id: HoldId, (mode, times): (Mode, u64)) {
        let epoch = self.epoch;
        self.get_mut(id).grants.push(epoch, mode, times);
    }

    /// Gives one grant back.
    pub(super) fn release(&mut self, id: HoldId) -> Result<Changes, ReleaseError> {
        let hold = self.get(id);
        match hold.grants.count() {
            0 => return Err(ReleaseError::NotHeld),
            1 if hold.covers.any() => return Err(ReleaseError::StillCovers),
            _ => {}
        }
        let before = hold.own();
        self.get_mut(id).grants.pop();
        Ok(self.lowered(id, before))
    }

    /// Lowers the own mode.
    pub(super) fn downgrade(&mut self, id: HoldId, mode: Mode) -> Result<Changes, ReleaseError> {
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
        Ok(self.lowered(id, Some(own)))
    }

    /// What is granted from now on can be given back together.
    pub(super) fn savepoint(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// Gives back what was granted since, from the leaves up.
    pub(super) fn release_to(&mut self, epoch: u64) -> Changes {
        let since = |hold: &Hold<K>| hold.grants.last_epoch().is_some_and(|last| last >= epoch);
        let touched = self.map.iter().filter(|(_, hold)| since(hold));
        let mut touched: Vec<(usize, HoldId)> =
            touched.map(|(&id, hold)| (hold.depth, id)).collect();
        touched.sort_unstable_by(|a, b| b.cmp(a));
        let mut changes = Changes::new();
        for (_, id) in touched {
            let before = self.get(id).own();
            self.get_mut(id).grants.cut(epoch);
            changes.append(&mut self.lowered(id, before));
        }
        changes
    }

    /// Forgets everything: from the leaves up.
    pub(super) fn clear(&mut self) -> (Changes, Vec<Arc<K>>) {
        let mut all: Vec<Hold<K>> = std::mem::take(&mut self.map).into_values().collect();
        all.sort_by_key(|hold| std::cmp::Reverse(hold.depth));
        let nodes = all.iter().filter_map(|hold| match hold.place {
            Place::Real { node, .. } => Some((node, None)),
            Place::Covered { .. } => None,
        });
        let changes = nodes.collect();
        (changes, all.into_iter().map(|hold| hold.key).collect())
    }

    fn insert(&mut self, hash: u64, key: &Arc<K>, depth: usize) -> HoldId {
        let same = self.map.range((hash, 0)..=(hash, u32::MAX));
        let taken = same.zip(0..).take_while(|((id, _), n)| id.1 == *n);
        let id = (hash, taken.count() as u32);
        let hold = Hold {
            key: key.clone(),
            depth,
            // Overwritten at once: a cover that counts nothing.
            place: Place::Covered { by: id },
            grants: Grants::default(),
            intents: Counts::default(),
            covers: Counts::default(),
        };
        self.map.insert(id, hold);
        id
    }

    /// The own mode of a hold went down: what follows from it for the hold and all above it.
    fn lowered(&mut self, id: HoldId, before: Option<Mode>) -> Changes {
        let mut changes = Changes::new();
        let mut at = id;
        if let Place::Covered { by } = self.get(at).place {
            let after = self.get(at).own();
            self.recover(by, before, after);
            if after.is_none() {
                self.map.remove(&at);
            }
            return changes;
        }
        while let Place::Real { node, mode, parent } = self.get(at).place {
            let hold = self.get(at);
            let target = hold.own_and_intents();
            if target == Some(mode) {
                break;
            }
            debug_assert!(target.is_some() || !hold.covers.any());
            changes.push((node, target));
            self.uncount_intent(parent, mode);
            match target {
                Some(mode) => {
                    self.get_mut(at).place = Place::Real { node, mode, parent };
                    if let Some(parent) = parent {
                        self.get_mut(parent).intents.count(strong_intent(mode));
                    }
                }
                None => drop(self.map.remove(&at)),
            }
            match parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        changes
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

impl<K> Hold<K> {
    /// Granted and not given up.
    pub(super) fn own(&self) -> Option<Mode> {
        self.grants.mode()
    }

    pub(super) fn grants(&self) -> u64 {
        self.grants.count()
    }

    /// What it amounts to: in the table, or as covered.
    pub(super) fn mode(&self) -> Option<Mode> {
        match self.place {
            Place::Real { mode, .. } => Some(mode),
            Place::Covered { .. } => self.own(),
        }
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn entries(&self) -> usize {
        self.grants.entries()
    }

    fn own_and_intents(&self) -> Option<Mode> {
        let intents = self.intents.map(Mode::Is, Mode::Ix);
        match (self.own(), intents) {
            (Some(own), Some(intents)) => Some(own.join(intents)),
            (own, intents) => own.or(intents),
        }
    }
}

impl Counts {
    fn count(&mut self, strong: bool) {
        *self.pick(strong) += 1;
    }

    fn uncount(&mut self, strong: bool) {
        *self.pick(strong) -= 1;
    }

    fn any(self) -> bool {
        self.weak + self.strong > 0
    }

    /// The stronger of the modes that are needed.
    fn map(self, weak: Mode, strong: Mode) -> Option<Mode> {
        match self {
            Self { strong: 1.., .. } => Some(strong),
            Self { weak: 1.., .. } => Some(weak),
            _ => None,
        }
    }

    fn pick(&mut self, strong: bool) -> &mut u64 {
        if strong {
            &mut self.strong
        } else {
            &mut self.weak
        }
    }
}
