//! The path of one request: which nodes, in which modes, in which order.
//!
//! State: a step per resource asked for and per ancestor of one, by (depth, hash), so from root to
//! leaf. Two paths that meet take the steps that both need in the same order, unless hashes are
//! equal. Resources of one path share their common ancestors: each name is in it once.
//!
//! Protocol: a path is made without a lock, from what the owner holds, which cannot change
//! meanwhile. Hashing, comparing, cloning and asking for parents are the user's code. Then `take`
//! takes the whole path from the index, if nobody is in the way. Otherwise `advance` takes steps
//! under the lock of the wait table, until a step has to wait in a queue.

use hashbrown::HashTable;

use super::entries::{Entry, NodeId};
use super::error::LockError;
use super::hold::{HoldId, HoldKind};
use super::holds::Holds;
use super::index::Room;
use super::kept::Bias;
use super::name::{Gone, empty};
use super::owners::OwnerKey;
use super::shards::{Locked, Shards};
use super::step::Step;
use super::wait_table::WaitTable;
use super::{MAX_DEPTH, Resource};
use crate::modes::{Mode, joined};

pub(super) struct Path<K> {
    steps: Vec<Step<K>>,
    /// How many steps are done.
    at: usize,
    /// It uses the intent that the owner keeps, at the step that is idle.
    pub(super) keeps: bool,
    /// The kept intent does not suffice here, and has to be given up first.
    pub(super) gives_up: bool,
    /// Why the request cannot be granted, whatever others hold.
    pub(super) unfit: Option<LockError<K>>,
}

impl<K: Resource> Path<K> {
    /// Plans the path to some resources.
    #[inline]
    pub(super) fn plan(
        &mut self,
        asked: impl IntoIterator<Item = (K, Mode)>,
        mut hash: impl FnMut(&K) -> u64,
        holds: &Holds<K>,
    ) {
        // Steps are left if a wait was forgotten.
        self.clear();
        (self.gives_up, self.unfit) = (false, None);
        let mut known = HashTable::new();
        for request in asked {
            // The steps of the resources before this one.
            for at in known.len()..self.steps.len() {
                let rehash = |&at: &usize| self.steps[at].hash;
                known.insert_unique(self.steps[at].hash, at, rehash);
            }
            if let Err(error) = self.walk(request, &mut hash, &known, holds) {
                return self.unfit = Some(error);
            }
        }
        if !known.is_empty() {
            self.sort();
        }
        self.assign(holds);
    }

    /// Adds the steps to one resource, from the root, or from where they meet a known step.
    #[inline]
    fn walk(
        &mut self,
        (key, mode): (K, Mode),
        mut hash: impl FnMut(&K) -> u64,
        known: &HashTable<usize>,
        holds: &Holds<K>,
    ) -> Result<(), LockError<K>> {
        let first = self.steps.len();
        let (mut next, mut above) = (Some(key), None);
        while let Some(key) = next.take() {
            let hash = hash(&key);
            if !known.is_empty() {
                let is_it = |&at: &usize| self.steps[at].is(hash, &key);
                above = known.find(hash, is_it).copied();
                if above.is_some() {
                    break;
                }
            }
            let below = &self.steps[first..];
            if below.iter().any(|step| step.is(hash, &key)) {
                return Err(LockError::OwnAncestor);
            }
            if below.len() > MAX_DEPTH {
                return Err(LockError::TooDeep);
            }
            let mut step = Step::of(key, hash);
            step.hold = holds.slots.find(step.hash, step.key());
            step.idle = step.hold.is_some() && step.hold == holds.idle();
            step.hold = step.hold.filter(|_| !step.idle);
            next = parent(&step, holds);
            self.steps.push(step);
        }
        self.steps[first..].reverse();
        let depth = above.map_or(0, |above| self.steps[above].depth + 1);
        for (at, step) in (first..).zip(&mut self.steps[first..]) {
            step.depth = depth + (at - first) as u32;
            step.parent = above.map(|above| above as u32);
            above = Some(at);
        }
        let step = &mut self.steps[above.expect("the resource itself")];
        let (asked, count) = step.asked.unwrap_or((mode, 0));
        step.asked = Some((asked.join(mode), count + 1));
        match step.depth as usize > MAX_DEPTH {
            true => Err(LockError::TooDeep),
            false => Ok(()),
        }
    }

    /// Sorts the steps by (depth, hash). Parents are less deep.
    #[inline(never)]
    fn sort(&mut self) {
        let mut numbered: Vec<_> = self.steps.drain(..).enumerate().collect();
        numbered.sort_by_key(|(_, step)| (step.depth, step.hash));
        let mut places = vec![0; numbered.len()];
        for (place, (number, _)) in (0..).zip(&numbered) {
            places[*number] = place;
        }
        self.steps.extend(numbered.into_iter().map(|(_, mut step)| {
            step.parent = step.parent.map(|parent| places[parent as usize]);
            step
        }));
    }

    /// The intent is not kept any more: it has to be asked for.
    pub(super) fn forget_kept(&mut self) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.idle) {
            // First, because it may panic: the intent is kept then.
            step.name.clone_from(&step.key);
            (step.idle, step.had, step.node) = (false, None, None);
        }
        (self.keeps, self.gives_up) = (false, false);
    }

    /// Decides what to do at each step, from the leaves up.
    fn assign(&mut self, holds: &Holds<K>) {
        for at in (0..self.steps.len()).rev() {
            let step = &self.steps[at];
            let hold = step.hold.map(|id| holds.slots.get(id));
            let mut real = hold.and_then(|hold| hold.real());
            let asked = step.asked.map(|(mode, _)| mode);
            let Some(needed) = joined(step.mode, asked) else {
                continue;
            };
            let held = hold.and_then(|hold| hold.mode());
            let mode = held.map_or(needed, |held| held.join(needed));
            if real.is_none()
                && step.mode.is_none()
                && let Some(by) = self.cover(at, mode, holds)
            {
                // A name has one hold, so the idle one goes first.
                self.gives_up |= step.idle;
                self.steps[at].cover = Some(by);
                continue;
            }
            let step = &mut self.steps[at];
            if step.idle {
                let kept = holds.idle().and_then(|id| holds.slots.get(id).real());
                let fits = asked.is_none() && step.parent.is_none();
                real = kept.filter(|(_, kept)| fits && *kept == mode);
                step.idle = real.is_some();
                (self.keeps, self.gives_up) = (step.idle, !step.idle);
            }
            step.mode = Some(mode);
            (step.node, step.had) = real.unzip();
            // For an entry that may have to be made.
            if step.had.is_none() {
                step.name.clone_from(&step.key);
            }
            if let Some(parent) = step.parent {
                let parent = &mut self.steps[parent as usize];
                parent.mode = joined(parent.mode, Some(mode.parent_needs()));
            }
        }
    }

    /// The cover that the hold has; for a new hold, the uppermost ancestor that will do.
    fn cover(&self, at: usize, mode: Mode, holds: &Holds<K>) -> Option<HoldId> {
        let covers = |id: &HoldId| {
            let hold = holds.slots.get(*id);
            hold.is_real() && hold.own().is_some_and(|own| own.covers_below(mode))
        };
        if let Some(id) = self.steps[at].hold
            && let HoldKind::Covered { by } = holds.slots.get(id).kind
        {
            return Some(by).filter(covers);
        }
        let up = |&at: &u32| self.steps[at as usize].parent;
        let ancestors = std::iter::successors(self.steps[at].parent, up);
        let held = ancestors.filter_map(|at| self.steps[at as usize].hold);
        held.filter(covers).last()
    }

    /// Takes the whole path from the index, or changes nothing.
    pub(super) fn take(
        &mut self,
        shards: &Shards<K>,
        (owner, kept): (OwnerKey, Option<&Bias>),
        gone: &mut Gone<K>,
    ) -> Room {
        let (mut locked, room) = self.lock(shards, owner, gone);
        if room != Room::Free {
            return room;
        }
        if kept.is_some_and(|word| !word.take()) {
            return Room::Revoked;
        }
        for step in &mut self.steps {
            let Some(mode) = step.raised() else { continue };
            match step.node {
                Some(id) => {
                    _ = locked
                        .index(id.hash)
                        .set(id, owner, Some(mode), false, gone)
                }
                None => _ = step.insert(&mut locked, owner, mode),
            }
        }
        Room::Free
    }

    /// Locks the shards of what is left to be taken, and says what is in the way there. An intent
    /// that is kept and not used is not in the way: it is revoked.
    ///
    /// The user's `Eq` runs here: if it panics, nothing has been taken.
    #[inline]
    pub(super) fn lock<'a>(
        &mut self,
        shards: &'a Shards<K>,
        owner: OwnerKey,
        gone: &mut Gone<K>,
    ) -> (Locked<'a, K>, Room) {
        let mut locked = shards.lock(self.hashes());
        loop {
            let room = look(&mut self.steps[self.at..], &mut locked, owner, gone);
            if room != Room::Kept {
                return (locked, room);
            }
            drop(locked);
            locked = shards.lock_all();
        }
    }

    /// Takes step after step, while they can be had now, in the shards that `lock` has locked.
    /// Returns the node that cannot be had, and the mode.
    pub(super) fn advance(
        &mut self,
        waits: &mut WaitTable<K>,
        locked: &mut Locked<'_, K>,
        owner: OwnerKey,
    ) -> Option<(NodeId, Mode)> {
        while let Some(step) = self.steps.get_mut(self.at) {
            if let Some(mode) = step.raised() {
                if let Some(id) = step.node {
                    if !waits.try_raise(locked, owner, id, mode) {
                        return Some((id, mode));
                    }
                } else {
                    let id = step.insert(locked, owner, mode);
                    waits.owner_mut(owner).done.push((id, None));
                }
            }
            self.at += 1;
        }
        None
    }
}

/// The parent of a step. A real hold keeps the parent that it had when it was granted, whatever its
/// name says now: its intents are held there.
#[inline]
fn parent<K: Resource>(step: &Step<K>, holds: &Holds<K>) -> Option<K> {
    match step.hold.map(|id| holds.slots.get(id).kind) {
        Some(HoldKind::Real { parent, .. }) => holds.slots.get(parent?).key.clone(),
        _ => step.key().parent(),
    }
}

/// Looks for the entries of these steps, and says what is in the way of any of them.
#[inline]
fn look<K: Eq>(
    steps: &mut [Step<K>],
    locked: &mut Locked<'_, K>,
    owner: OwnerKey,
    gone: &mut Gone<K>,
) -> Room {
    let mut room = Room::Free;
    for step in steps {
        let Some(mode) = step.raised() else { continue };
        let (hash, key) = (step.hash, step.key());
        let known = step.had.and(step.node);
        let is_it = |entry: &Entry<K>| match known {
            Some(id) => entry.id == id,
            None => entry.is(hash, key),
        };
        let (mut node, mut found) = locked.index(hash).look((hash, is_it), (owner, mode));
        if found == Room::Kept
            && locked.is_all()
            && let Some(id) = node
        {
            (node, found) = locked.index(hash).revoke(id, (owner, mode), gone);
        }
        step.node = node;
        room = room.max(found);
    }
    room
}

impl<K> Path<K> {
    /// The hashes of what is left to be taken.
    #[inline]
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> {
        let left = self.steps[self.at..].iter();
        left.filter(|step| step.raised().is_some())
            .map(|step| step.hash)
    }

    pub(super) const fn new() -> Self {
        Self {
            steps: Vec::new(),
            at: 0,
            keeps: false,
            gives_up: false,
            unfit: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Clears the path. The next one uses its memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.steps.is_empty() {
            self.drop_steps();
        }
    }

    /// Clears the path, and drops the error that nobody took.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.clear();
        self.unfit = None;
    }

    #[inline(never)]
    fn drop_steps(&mut self) {
        (self.at, self.keeps) = (0, false);
        empty(&mut self.steps);
    }

    /// The step that had to wait has been granted.
    pub(super) fn granted(&mut self) {
        self.at += 1;
    }

    /// Enters in the owner's holds what has been granted.
    #[inline]
    pub(super) fn commit(&mut self, holds: &mut Holds<K>) {
        for at in 0..self.steps.len() {
            if self.keeps && self.steps[at].idle {
                self.steps[at].hold = holds.idle();
            }
            let parent = self.steps[at].parent;
            let parent = parent.and_then(|parent| self.steps[parent as usize].hold);
            holds.enter(&mut self.steps[at], parent);
        }
        // Here, so that nothing is left to be taken if the drop of a name panics.
        self.clear();
    }
}
