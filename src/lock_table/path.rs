//! What one request comes to: which nodes, in which modes, in which order.
//!
//! State: a step per resource asked for and per ancestor of one, by (depth, hash): from root to
//! leaf, and two paths that meet take what both want in the same order, save for equal hashes.
//!
//! Protocol: made without a lock, from what the owner holds, which cannot change meanwhile. Hashing,
//! comparing, cloning and asking for parents are the user's code. Then `take` gets all of it from
//! the index, if nobody is in the way; else `advance` takes steps under the lock of the wait table,
//! until one has to wait in a queue.

use super::hold::{HoldId, HoldKind};
use super::holds::Holds;
use super::merge::{has_repeats, merged};
use super::shards::{Locked, NodeId, Set, Shards, State};
use super::wait_table::WaitTable;
use super::{MAX_DEPTH, Resource};
use crate::modes::Mode;
use crate::slab::Key;

pub(super) struct Path<K> {
    steps: Vec<Step<K>>,
    /// How many of them are done.
    at: usize,
}

pub(super) struct Step<K> {
    /// None once it is in the holds.
    pub(super) key: Option<K>,
    /// For the table's entry, if that has to be made.
    name: Option<K>,
    pub(super) hash: u64,
    pub(super) depth: usize,
    pub(super) parent: Option<usize>,
    hold: Option<HoldId>,
    /// The join of the modes asked for it by name, and how many there were.
    pub(super) asked: Option<Mode>,
    pub(super) times: u64,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
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

/// How far an attempt came.
pub(super) enum Reached {
    All,
    /// This node cannot be had in this mode now.
    Busy(NodeId, Mode),
}

/// The result of an attempt without the wait table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    All,
    /// Somebody holds a conflicting mode.
    Nothing,
    /// Somebody waits here: ask the wait table.
    Unknown,
}

/// Longer lists of steps are not kept for the next path.
const KEPT: usize = 64;

impl<K: Resource> Path<K> {
    /// None if a resource is too deep.
    #[inline]
    pub(super) fn new(
        asked: impl IntoIterator<Item = (K, Mode)>,
        hash: impl Fn(&K) -> u64,
        holds: &Holds<K>,
        mut steps: Vec<Step<K>>,
    ) -> Option<Self> {
        let mut alone = true;
        for (key, mode) in asked {
            alone &= steps.is_empty();
            Self::add_path(&mut steps, key, mode, &hash)?;
        }
        if !alone || has_repeats(&steps) {
            steps = merged(steps);
        }
        for step in &mut steps {
            step.hold = holds.find(step.hash, step.key());
        }
        let mut path = Self { steps, at: 0 };
        path.assign_actions(holds);
        for step in &mut path.steps {
            if let Action::Real { had: None, .. } = step.action {
                step.name = step.key.clone();
            }
        }
        Some(path)
    }

    fn add_path(
        steps: &mut Vec<Step<K>>,
        key: K,
        mode: Mode,
        hash: &impl Fn(&K) -> u64,
    ) -> Option<()> {
        let first = steps.len();
        let mut next = key.parent();
        steps.push(Step::of(key, hash));
        while let Some(key) = next {
            if steps.len() - first > MAX_DEPTH {
                return None;
            }
            next = key.parent();
            steps.push(Step::of(key, hash));
        }
        (steps[first].asked, steps[first].times) = (Some(mode), 1);
        steps[first..].reverse();
        for (depth, step) in steps[first..].iter_mut().enumerate() {
            step.depth = depth;
            step.parent = (depth > 0).then(|| first + depth - 1);
        }
        Some(())
    }

    /// Gives each step its action.
    fn assign_actions(&mut self, holds: &Holds<K>) {
        for at in (0..self.steps.len()).rev() {
            let step = &self.steps[at];
            let asked = step.asked;
            let hold = step.hold.map(|id| holds.get(id));
            let kind = hold.map(|hold| hold.kind);
            let mut wanted = match step.action {
                Action::Real { mode, .. } => Some(mode),
                _ => None,
            };
            if let Some(mut asked) = asked {
                if !matches!(kind, Some(HoldKind::Real { .. })) {
                    let own = hold.and_then(|hold| hold.own());
                    asked = own.map_or(asked, |own| own.join(asked));
                    if wanted.is_none()
                        && let Some(by) = self.cover(at, asked, holds)
                    {
                        self.steps[at].action = Action::Covered { by };
                        continue;
                    }
                }
                wanted = Some(wanted.map_or(asked, |wanted| wanted.join(asked)));
            }
            let Some(mut mode) = wanted else { continue };
            let (had, node) = match kind {
                Some(HoldKind::Real { node, mode, .. }) => (Some(mode), Some(node)),
                Some(HoldKind::Covered { .. }) | None => (None, None),
            };
            let held = hold.and_then(|hold| hold.mode());
            mode = held.map_or(mode, |held| held.join(mode));
            self.steps[at].action = Action::Real { mode, had, node };
            if let Some(parent) = self.steps[at].parent {
                self.steps[parent].need(mode.parent_needs());
            }
        }
    }

    /// The cover that the hold has, or for a new one the uppermost that will do.
    fn cover(&self, at: usize, mode: Mode, holds: &Holds<K>) -> Option<HoldId> {
        let covers = |id: &HoldId| {
            let own = holds.get(*id).own();
            own.is_some_and(|own| own.covers_below(mode))
        };
        if let Some(id) = self.steps[at].hold
            && let HoldKind::Covered { by } = holds.get(id).kind
        {
            return Some(by).filter(covers);
        }
        let up = |&at: &usize| self.steps[at].parent;
        let ancestors = std::iter::successors(up(&at), up);
        let held = ancestors.filter_map(|at| self.steps[at].hold);
        held.filter(covers).last()
    }

    /// Takes all of it from the index, or changes nothing.
    #[inline]
    pub(super) fn take(&mut self, shards: &Shards<K>, owner: Key) -> Taken {
        let mut locked = shards.lock(self.set());
        let mut unknown = false;
        for step in &mut self.steps {
            let Some(mode) = step.raised() else { continue };
            match step.find_entry(&locked) {
                Some(State::Quiet(holders)) if !holders.fit(owner, mode) => return Taken::Nothing,
                Some(State::Quiet(_)) | None => {}
                Some(State::Busy(_)) => unknown = true,
            }
        }
        if unknown {
            return Taken::Unknown;
        }
        for step in &mut self.steps {
            let Some(mode) = step.raised() else { continue };
            let Action::Real { node, .. } = &mut step.action else {
                continue;
            };
            if let Some(id) = *node {
                locked.raise(id, owner, mode);
            } else {
                let name = step.name.take().expect("made for this");
                *node = Some(locked.insert(step.hash, name, owner, mode));
            }
        }
        Taken::All
    }

    /// Takes step after step as far as can be had now.
    ///
    /// The user's `Eq` runs first: if it panics, nothing has been taken by this call.
    pub(super) fn advance(
        &mut self,
        waits: &mut WaitTable<K>,
        locked: &mut Locked<'_, K>,
        owner: Key,
    ) -> Reached {
        for step in &mut self.steps[self.at..] {
            step.find_entry(locked);
        }
        while let Some(step) = self.steps.get_mut(self.at) {
            if let Some(mode) = step.raised()
                && let Action::Real { node, .. } = &mut step.action
            {
                if let Some(id) = *node {
                    if !waits.try_raise(locked, owner, id, mode) {
                        return Reached::Busy(id, mode);
                    }
                } else {
                    let name = step.name.take().expect("made for this");
                    let id = locked.insert(step.hash, name, owner, mode);
                    *node = Some(id);
                    waits.record(owner, id, None);
                }
            }
            self.at += 1;
        }
        Reached::All
    }
}

impl<K> Path<K> {
    /// The shards of what is to be taken.
    #[inline]
    pub(super) fn set(&self) -> Set {
        let mut set = Set::default();
        for step in self.steps[self.at..]
            .iter()
            .filter(|s| s.raised().is_some())
        {
            set.add(step.hash);
        }
        set
    }

    /// The emptied list, whose memory the next path uses.
    pub(super) fn into_steps(mut self) -> Vec<Step<K>> {
        self.steps.clear();
        if self.steps.capacity() > KEPT {
            self.steps = Vec::new();
        }
        self.steps
    }

    /// The node that could not be had at once has been granted.
    pub(super) fn granted(&mut self) {
        self.at += 1;
    }

    /// Whether nothing of it concerns the table.
    pub(super) fn is_local(&self) -> bool {
        self.steps.iter().all(|step| step.raised().is_none())
    }

    /// Enters in the owner's holds what has been granted.
    pub(super) fn commit(&mut self, holds: &mut Holds<K>) {
        for at in 0..self.steps.len() {
            let parent = self.steps[at].parent;
            let parent = parent.and_then(|parent| self.steps[parent].hold);
            let step = &mut self.steps[at];
            let key = &mut step.key;
            let key = || key.take().expect("a key is entered once");
            let resource = (key, step.depth);
            match step.action {
                Action::Skip => {}
                Action::Covered { by } => {
                    let asked = step.asked.expect("what is covered was asked for");
                    let times = (asked, step.times);
                    let id = holds.enter_covered(step.hold, step.hash, resource, by, times);
                    step.hold = Some(id);
                }
                Action::Real { mode, node, .. } => {
                    let node = node.expect("granted");
                    let real = (node, mode);
                    let asked = step.asked.map(|asked| (asked, step.times));
                    let (hold, hash) = (step.hold, step.hash);
                    let id = holds.enter_real(hold, hash, resource, real, parent, asked);
                    step.hold = Some(id);
                }
            }
        }
    }
}

impl<K: Eq> Step<K> {
    /// Its entry in the index, as it is now.
    #[inline]
    fn find_entry<'a>(&mut self, locked: &'a Locked<'_, K>) -> Option<&'a State> {
        let Action::Real { mode, had, node } = &mut self.action else {
            return None;
        };
        if *had == Some(*mode) {
            return None;
        }
        if had.is_some() {
            return locked.get((*node)?).map(|entry| &entry.state);
        }
        let found = locked.find(self.hash, self.key.as_ref()?);
        *node = found.map(|(id, _)| id);
        found.map(|(_, state)| state)
    }
}

impl<K> Step<K> {
    fn key(&self) -> &K {
        self.key.as_ref().expect("not in the holds yet")
    }

    /// The mode to be asked for in the table, if that is more than it holds there.
    #[inline]
    fn raised(&self) -> Option<Mode> {
        match self.action {
            Action::Real { mode, had, .. } if had != Some(mode) => Some(mode),
            _ => None,
        }
    }

    fn of(key: K, hash: impl Fn(&K) -> u64) -> Self {
        Self {
            hash: hash(&key),
            key: Some(key),
            name: None,
            depth: 0,
            parent: None,
            hold: None,
            asked: None,
            times: 0,
            action: Action::Skip,
        }
    }

    /// A child needs this intent.
    fn need(&mut self, intent: Mode) {
        let mode = match self.action {
            Action::Real { mode, .. } => mode.join(intent),
            Action::Skip | Action::Covered { .. } => intent,
        };
        self.action = Action::Real {
            mode,
            had: None,
            node: None,
        };
    }
}
