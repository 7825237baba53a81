//! What one request comes to: which nodes, in which modes, in which order.
//!
//! State: a step per resource asked for and per ancestor of one, by (depth, hash): from root to
//! leaf, and two paths that meet take what both want in the same order, save for equal hashes.
//!
//! Protocol: made without a lock, from what the owner holds, which cannot change meanwhile. Hashing,
//! comparing, cloning and asking for parents are the user's code. Then `take` gets all of it from
//! the index, if nobody is in the way; else `advance` takes steps under the lock of the wait table,
//! until one has to wait in a queue.

use super::bias::Bias;
use super::hold::{HoldId, HoldKind};
use super::holds::Holds;
use super::index::{Name, NodeId, State};
use super::merge::{has_repeats, merged};
use super::shards::{Locked, Set, Shards};
use super::step::{Action, Step, Taken, number};
use super::wait_table::WaitTable;
use super::{MAX_DEPTH, Resource};
use crate::modes::Mode;
use crate::slab::Key;

pub(super) struct Path<K> {
    steps: Vec<Step<K>>,
    /// How many of them are done.
    at: usize,
    /// Which of them is the root that the owner keeps.
    kept: Option<usize>,
    /// What the owner keeps will not do here, and has to be given up before.
    pub(super) gives_up: bool,
}

/// Longer lists of steps are not kept for the next path.
const KEPT: usize = 64;

impl<K: Resource> Path<K> {
    /// The way to one resource. It begins below the first ancestor that is held well enough, or at
    /// the root. None if the resource is too deep.
    #[inline]
    pub(super) fn to(
        key: K,
        mode: Mode,
        hash: impl Fn(&K) -> u64,
        holds: &Holds<K>,
        mut steps: Vec<Step<K>>,
    ) -> Option<Self> {
        let (mut above, mut kept, mut fresh, mut gives_up) = (None, None, true, false);
        let (mut next, mut wanted) = (Some(key), mode);
        while let Some(key) = next {
            if steps.len() > MAX_DEPTH {
                return None;
            }
            let mut step = Step::of(key, &hash);
            step.hold = holds.find(step.hash, step.key());
            if let Some(id) = step.hold {
                if fresh && !steps.is_empty() && holds.carries(id, wanted, mode) {
                    above = Some(id);
                    break;
                }
                fresh = false;
            } else if let Some((mode, node)) = holds.kept.idle(step.hash, step.key()) {
                if fresh && !steps.is_empty() && mode == wanted {
                    step.keep(mode, node);
                    kept = Some(0);
                    steps.push(step);
                    break;
                }
                gives_up = true;
            }
            step.want(wanted);
            wanted = wanted.parent_needs();
            next = step.key().parent();
            steps.push(step);
        }
        (steps[0].asked, steps[0].times) = (Some(mode), 1);
        let depth = above.map_or(0, |id| holds.get(id).depth + 1);
        if depth + steps.len() > MAX_DEPTH + 1 {
            return None;
        }
        number(&mut steps, 0, depth);
        steps[0].above = above;
        if has_repeats(&steps) {
            gives_up |= kept.take().is_some();
            (steps, fresh) = (merged(steps), false);
        }
        let at = 0;
        let mut path = Self {
            steps,
            at,
            kept,
            gives_up,
        };
        if !fresh {
            path.assign_actions(holds);
        }
        path.name_new();
        Some(path)
    }

    /// The way to several resources, or none. None if one is too deep.
    pub(super) fn to_all(
        asked: impl IntoIterator<Item = (K, Mode)>,
        hash: impl Fn(&K) -> u64,
        holds: &Holds<K>,
        mut steps: Vec<Step<K>>,
    ) -> Option<Self> {
        for (key, mode) in asked {
            let first = steps.len();
            let mut next = Some(key);
            while let Some(key) = next {
                if steps.len() - first > MAX_DEPTH {
                    return None;
                }
                next = key.parent();
                steps.push(Step::of(key, &hash));
            }
            (steps[first].asked, steps[first].times) = (Some(mode), 1);
            number(&mut steps, first, 0);
        }
        let mut steps = merged(steps);
        for step in &mut steps {
            step.hold = holds.find(step.hash, step.key());
        }
        let mut path = Self {
            steps,
            at: 0,
            kept: None,
            gives_up: false,
        };
        path.assign_actions(holds);
        path.use_kept(holds);
        path.name_new();
        Some(path)
    }

    /// Finds the root that the owner keeps.
    fn use_kept(&mut self, holds: &Holds<K>) {
        for (at, step) in self.steps.iter_mut().enumerate() {
            let Some((mode, node)) = holds.kept.idle(step.hash, step.key()) else {
                continue;
            };
            if step.asked.is_none() && step.raised() == Some(mode) {
                step.keep(mode, node);
                self.kept = Some(at);
            } else {
                self.gives_up = true;
            }
        }
    }

    /// What was kept is not any more: it has to be asked for.
    pub(super) fn forget_kept(&mut self) {
        if let Some(at) = self.kept.take() {
            let step = &mut self.steps[at];
            step.name = step.key.clone();
            step.want(Mode::Is);
        }
    }

    /// Whether it needs what the owner keeps.
    pub(super) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// Names for the entries that may have to be made.
    #[inline]
    fn name_new(&mut self) {
        for step in &mut self.steps {
            if let Action::Real { had: None, .. } = step.action {
                step.name = step.key.clone();
            }
        }
    }

    /// Gives each step its action.
    fn assign_actions(&mut self, holds: &Holds<K>) {
        for step in &mut self.steps {
            step.action = Action::Skip;
        }
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
                self.steps[parent].want(mode.parent_needs());
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
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        shards: &Shards<K>,
        (owner, kept): (Key, Option<&Bias>),
        gone: &mut Vec<Name<K>>,
    ) -> Taken {
        let step = match &mut self.steps[..] {
            [step] => step,
            [_, step] if self.kept == Some(0) => step,
            _ => return self.take_all(shards, (owner, kept), gone),
        };
        step.take(shards, (owner, kept), gone)
    }

    fn take_all(
        &mut self,
        shards: &Shards<K>,
        (owner, kept): (Key, Option<&Bias>),
        gone: &mut Vec<Name<K>>,
    ) -> Taken {
        let mut locked = shards.lock(self.set());
        let mut unknown = false;
        for step in &mut self.steps {
            let Some(mode) = step.raised() else { continue };
            match step.find_entry(&mut locked, owner, gone) {
                Some(State::Quiet(holders)) if !holders.fit(owner, mode) => return Taken::Nothing,
                Some(State::Quiet(_)) | None => {}
                Some(State::Busy(_)) => unknown = true,
            }
        }
        if unknown {
            return Taken::Unknown;
        }
        if kept.is_some_and(|word| !word.take()) {
            return Taken::Revoked;
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

    /// Takes step after step as far as can be had now. Gives the node that cannot, and the mode.
    ///
    /// The user's `Eq` runs first: if it panics, nothing has been taken by this call.
    pub(super) fn advance(
        &mut self,
        waits: &mut WaitTable<K>,
        locked: &mut Locked<'_, K>,
        owner: Key,
    ) -> Option<(NodeId, Mode)> {
        let mut gone = Vec::new();
        for step in &mut self.steps[self.at..] {
            step.find_entry(locked, owner, &mut gone);
        }
        waits.defer_names(gone);
        while let Some(step) = self.steps.get_mut(self.at) {
            if let Some(mode) = step.raised()
                && let Action::Real { node, .. } = &mut step.action
            {
                if let Some(id) = *node {
                    if !waits.try_raise(locked, owner, id, mode) {
                        return Some((id, mode));
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
        None
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
            let parent = match self.steps[at].parent {
                Some(parent) => self.steps[parent].hold,
                None => self.steps[at].above,
            };
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
        if self.kept.is_some() {
            holds.kept.taken();
        }
    }
}
