//! One resource of a path: what is to be done about it.

use super::bias::Bias;
use super::hold::HoldId;
use super::index::{Name, NodeId, State, spread};
use super::shards::{Locked, Shards};
use crate::modes::Mode;
use crate::slab::Key;

pub(super) struct Step<K> {
    /// None once it is in the holds.
    pub(super) key: Option<K>,
    /// For the table's entry, if that has to be made.
    pub(super) name: Option<K>,
    /// Spread.
    pub(super) hash: u64,
    pub(super) depth: usize,
    pub(super) parent: Option<usize>,
    /// The hold of the parent, if that is none of the steps.
    pub(super) above: Option<HoldId>,
    pub(super) hold: Option<HoldId>,
    /// The join of the modes asked for it by name, and how many there were.
    pub(super) asked: Option<Mode>,
    pub(super) times: u64,
    pub(super) action: Action,
}

#[derive(Clone, Copy)]
pub(super) enum Action {
    /// An ancestor of nothing but covered resources.
    Skip,
    /// Recorded, and no more.
    Covered { by: HoldId },
    /// Held in the table in at least this mode.
    Real {
        mode: Mode,
        had: Option<Mode>,
        node: Option<NodeId>,
    },
}

/// The result of an attempt without the wait table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    All,
    /// Somebody holds a conflicting mode.
    Nothing,
    /// Somebody waits here: ask the wait table.
    Unknown,
    /// The root that was kept is not any more: ask for it, too.
    Revoked,
}

/// Turns steps from leaf to root about, the first of this depth.
#[inline]
pub(super) fn number<K>(steps: &mut [Step<K>], first: usize, depth: usize) {
    steps[first..].reverse();
    for (at, step) in steps.iter_mut().enumerate().skip(first) {
        step.depth = depth + at - first;
        step.parent = (at > first).then(|| at - 1);
    }
}

impl<K: Eq> Step<K> {
    /// The whole of a path of one step.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        shards: &Shards<K>,
        (owner, kept): (Key, Option<&Bias>),
        gone: &mut Vec<Name<K>>,
    ) -> Taken {
        let Action::Real { mode, had, node } = &mut self.action else {
            return Taken::All;
        };
        let mut index = shards.lock_one(self.hash);
        let key = self.key.as_ref().expect("not in the holds yet");
        let found = match (*had, *node) {
            (Some(_), Some(id)) => Some(id),
            _ => index.find_mut(self.hash, key).map(|entry| entry.id),
        };
        if let Some(id) = found {
            index.make_room(id, (owner, *mode), gone);
        }
        let taken = || kept.is_none_or(Bias::take);
        let Some(entry) = found.and_then(|id| index.get_mut(id)) else {
            if !taken() {
                return Taken::Revoked;
            }
            let name = self.name.take().expect("made for this");
            *node = Some(index.insert(self.hash, name, owner, *mode));
            return Taken::All;
        };
        match &mut entry.state {
            State::Busy(_) => Taken::Unknown,
            State::Quiet(holders) if !holders.fit(owner, *mode) => Taken::Nothing,
            State::Quiet(_) if !taken() => Taken::Revoked,
            State::Quiet(holders) => {
                holders.set(owner, Some(*mode));
                *node = Some(entry.id);
                Taken::All
            }
        }
    }

    /// Its entry in the index, as it is now.
    #[inline]
    pub(super) fn find_entry<'a>(
        &mut self,
        locked: &'a mut Locked<'_, K>,
        owner: Key,
        gone: &mut Vec<Name<K>>,
    ) -> Option<&'a State> {
        let Action::Real { mode, had, node } = &mut self.action else {
            return None;
        };
        if *had == Some(*mode) {
            return None;
        }
        if had.is_none() {
            *node = locked.find(self.hash, self.key.as_ref()?);
        }
        let found = *node;
        locked.make_room(found?, (owner, *mode), gone);
        let entry = found.and_then(|id| locked.get(id));
        *node = entry.map(|entry| entry.id);
        entry.map(|entry| &entry.state)
    }
}

impl<K> Step<K> {
    #[inline]
    pub(super) fn key(&self) -> &K {
        self.key.as_ref().expect("not in the holds yet")
    }

    /// The mode to be asked for in the table, if that is more than it holds there.
    #[inline]
    pub(super) fn raised(&self) -> Option<Mode> {
        match self.action {
            Action::Real { mode, had, .. } if had != Some(mode) => Some(mode),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn of(key: K, hash: impl Fn(&K) -> u64) -> Self {
        Self {
            hash: spread(hash(&key)),
            key: Some(key),
            name: None,
            depth: 0,
            parent: None,
            above: None,
            hold: None,
            asked: None,
            times: 0,
            action: Action::Skip,
        }
    }

    /// The owner keeps it in this mode.
    pub(super) fn keep(&mut self, mode: Mode, node: NodeId) {
        self.action = Action::Real {
            mode,
            had: Some(mode),
            node: Some(node),
        };
    }

    /// It is asked for in this mode, too.
    #[inline]
    pub(super) fn want(&mut self, wanted: Mode) {
        let mode = match self.action {
            Action::Real { mode, .. } => mode.join(wanted),
            Action::Skip | Action::Covered { .. } => wanted,
        };
        self.action = Action::Real {
            mode,
            had: None,
            node: None,
        };
    }
}
