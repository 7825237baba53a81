//! What one request comes to: which nodes, in which modes, in which order.
//!
//! State: a step per resource asked for and per ancestor of one, by (depth, hash): from root to
//! leaf, and two plans that meet take what both want in the same order, save for equal hashes.
//!
//! Protocol: made without the table's lock, from what the owner holds, which cannot change
//! meanwhile. Hashing, comparing, cloning and asking for parents are the user's code.

use super::MAX_DEPTH;
use super::Resource;
use super::books::Books;
use super::holds::{HoldId, Holds, Place};
use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::Arc;

pub(super) struct Plan<K> {
    steps: Vec<Step<K>>,
    /// How many of them are done.
    at: usize,
}

struct Step<K> {
    key: Arc<K>,
    hash: u64,
    depth: usize,
    parent: Option<usize>,
    hold: Option<HoldId>,
    /// The join of the modes asked for it by name, and how many there were.
    asked: Option<Mode>,
    times: u64,
    part: Part,
}

#[derive(Clone, Copy)]
enum Part {
    /// An ancestor of nothing but covered resources.
    Idle,
    /// Recorded, and no more.
    Covered { by: HoldId },
    /// Held in the table in at least this mode.
    Real {
        mode: Mode,
        had: Option<Mode>,
        node: Option<Key>,
    },
}

/// How far an attempt came.
pub(super) enum Reached {
    All,
    /// This node cannot be had in this mode now.
    Busy(Key, Mode),
}

impl<K: Resource> Plan<K> {
    /// None if a resource is too deep.
    pub(super) fn new(
        asked: impl IntoIterator<Item = (K, Mode)>,
        hash: impl Fn(&K) -> u64,
        holds: &Holds<K>,
    ) -> Option<Self> {
        let mut steps = Vec::new();
        let mut alone = true;
        for (key, mode) in asked {
            alone &= steps.is_empty();
            Self::add_path(&mut steps, key, mode, &hash)?;
        }
        if !alone {
            steps = merged(steps);
        }
        for step in &mut steps {
            step.hold = holds.find(step.hash, &step.key);
        }
        let mut plan = Self { steps, at: 0 };
        plan.cast(holds);
        Some(plan)
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

    /// Gives each step its part.
    fn cast(&mut self, holds: &Holds<K>) {
        for at in (0..self.steps.len()).rev() {
            let step = &self.steps[at];
            let asked = step.asked;
            let hold = step.hold.map(|id| holds.get(id));
            let place = hold.map(|hold| hold.place);
            let mut wanted = match step.part {
                Part::Real { mode, .. } => Some(mode),
                _ => None,
            };
            if let Some(mut asked) = asked {
                if !matches!(place, Some(Place::Real { .. })) {
                    let own = hold.and_then(|hold| hold.own());
                    asked = own.map_or(asked, |own| own.join(asked));
                    if wanted.is_none()
                        && let Some(by) = self.cover(at, asked, holds)
                    {
                        self.steps[at].part = Part::Covered { by };
                        continue;
                    }
                }
                wanted = Some(wanted.map_or(asked, |wanted| wanted.join(asked)));
            }
            let Some(mut mode) = wanted else { continue };
            let (had, node) = match place {
                Some(Place::Real { node, mode, .. }) => (Some(mode), Some(node)),
                Some(Place::Covered { .. }) | None => (None, None),
            };
            let held = hold.and_then(|hold| hold.mode());
            mode = held.map_or(mode, |held| held.join(mode));
            self.steps[at].part = Part::Real { mode, had, node };
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
            && let Place::Covered { by } = holds.get(id).place
        {
            return Some(by).filter(covers);
        }
        let up = |&at: &usize| self.steps[at].parent;
        let ancestors = std::iter::successors(up(&at), up);
        let held = ancestors.filter_map(|at| self.steps[at].hold);
        held.filter(covers).last()
    }

    /// Takes step after step as far as can be had now.
    ///
    /// The user's `Eq` runs first: if it panics, nothing has been taken by this call.
    pub(super) fn advance(&mut self, books: &mut Books<K>, owner: Key) -> Reached {
        for step in &mut self.steps[self.at..] {
            if let Part::Real {
                had: None, node, ..
            } = &mut step.part
            {
                *node = books.find(step.hash, &step.key);
            }
        }
        while let Some(step) = self.steps.get_mut(self.at) {
            if let Part::Real { mode, had, node } = &mut step.part
                && *had != Some(*mode)
            {
                let node = *node.get_or_insert_with(|| books.make(step.hash, &step.key));
                if !books.ask(owner, node, *mode) {
                    return Reached::Busy(node, *mode);
                }
            }
            self.at += 1;
        }
        Reached::All
    }
}

impl<K> Plan<K> {
    /// The node that could not be had at once has been granted.
    pub(super) fn granted(&mut self) {
        self.at += 1;
    }

    /// Whether nothing of it concerns the table.
    pub(super) fn is_local(&self) -> bool {
        let free = |step: &Step<K>| match step.part {
            Part::Real { mode, had, .. } => had == Some(mode),
            Part::Idle | Part::Covered { .. } => true,
        };
        self.steps.iter().all(free)
    }

    /// Enters in the owner's holds what has been granted.
    pub(super) fn commit(&mut self, holds: &mut Holds<K>) {
        for at in 0..self.steps.len() {
            let parent = self.steps[at].parent;
            let parent = parent.and_then(|parent| self.steps[parent].hold);
            let step = &mut self.steps[at];
            let resource = (&step.key, step.depth);
            match step.part {
                Part::Idle => {}
                Part::Covered { by } => {
                    let asked = step.asked.expect("what is covered was asked for");
                    let times = (asked, step.times);
                    let id = holds.enter_covered(step.hold, step.hash, resource, by, times);
                    step.hold = Some(id);
                }
                Part::Real { mode, node, .. } => {
                    let node = node.expect("granted");
                    let real = (node, mode);
                    let id = holds.enter_real(step.hold, step.hash, resource, real, parent);
                    step.hold = Some(id);
                    if let Some(asked) = step.asked {
                        holds.grant(id, (asked, step.times));
                    }
                }
            }
        }
    }
}

impl<K> Step<K> {
    fn of(key: K, hash: impl Fn(&K) -> u64) -> Self {
        Self {
            hash: hash(&key),
            key: Arc::new(key),
            depth: 0,
            parent: None,
            hold: None,
            asked: None,
            times: 0,
            part: Part::Idle,
        }
    }

    /// A child needs this intent.
    fn need(&mut self, intent: Mode) {
        let mode = match self.part {
            Part::Real { mode, .. } => mode.join(intent),
            Part::Idle | Part::Covered { .. } => intent,
        };
        self.part = Part::Real {
            mode,
            had: None,
            node: None,
        };
    }
}

/// Several paths in one: each node once, by (depth, hash).
fn merged<K: Eq>(steps: Vec<Step<K>>) -> Vec<Step<K>> {
    let mut places = vec![0; steps.len()];
    let mut numbered: Vec<(usize, Step<K>)> = steps.into_iter().enumerate().collect();
    numbered.sort_by_key(|(_, step)| (step.depth, step.hash));
    let mut merged: Vec<Step<K>> = Vec::new();
    for (number, mut step) in numbered {
        let alike = merged
            .iter()
            .rev()
            .take_while(|other| (other.depth, other.hash) == (step.depth, step.hash));
        let same = alike.zip(1..).find(|(other, _)| other.key == step.key);
        if let Some(back) = same.map(|(_, back)| back) {
            places[number] = merged.len() - back;
            let found = &mut merged[places[number]];
            found.asked = match (found.asked, step.asked) {
                (Some(one), Some(other)) => Some(one.join(other)),
                (one, other) => one.or(other),
            };
            found.times += step.times;
        } else {
            // Less deep, so it has its place already.
            step.parent = step.parent.map(|parent| places[parent]);
            places[number] = merged.len();
            merged.push(step);
        }
    }
    merged
}
