//! What one request comes to: which nodes, in which modes, in which order.
//!
//! State: a step per resource asked for and per ancestor of one, by (depth, hash): from root to
//! leaf, and two paths that meet take what both want in the same order, save for equal hashes.
//!
//! Protocol: made without a lock, from what the owner holds, which cannot change meanwhile.
//! Hashing, comparing, cloning and asking for parents are the user's code. Then `take` gets all of
//! it from the index, if nobody is in the way; else `advance` takes steps under the lock of the
//! wait table, until one has to wait in a queue.

use super::entries::{Entry, NodeId};
use super::error::LockError;
use super::hold::{HoldId, HoldKind};
use super::holds::Holds;
use super::index::Room;
use super::kept::Bias;
use super::name::{Gone, KEPT};
use super::owners::OwnerKey;
use super::shards::{Locked, Shards};
use super::step::{Step, has_repeats, merged};
use super::wait_table::WaitTable;
use super::{MAX_DEPTH, Resource};
use crate::modes::Mode;

pub(super) struct Path<K> {
    steps: Vec<Step<K>>,
    /// How many of them are done.
    at: usize,
    /// Which of them is the root that the owner keeps.
    kept: Option<usize>,
    /// What the owner keeps will not do here, and has to be given up before.
    pub(super) gives_up: bool,
    /// Why it cannot be had, whoever holds what.
    pub(super) unfit: Option<LockError<K>>,
}

impl<K: Resource> Path<K> {
    /// The way to some resources.
    #[inline]
    pub(super) fn plan(
        &mut self,
        asked: impl IntoIterator<Item = (K, Mode)>,
        mut hash: impl FnMut(&K) -> u64,
        holds: &Holds<K>,
    ) {
        if !self.steps.is_empty() {
            // Of a wait that was forgotten.
            self.clear();
        }
        (self.at, self.kept) = (0, None);
        (self.gives_up, self.unfit) = (false, None);
        let mut fresh = true;
        for (key, mode) in asked {
            fresh &= self.steps.is_empty();
            match walk(&mut self.steps, (key, mode), &mut hash, holds) {
                Ok(alone) => fresh &= alone,
                Err(error) => return self.unfit = Some(error),
            }
        }
        if !fresh {
            self.steps = merged(std::mem::take(&mut self.steps));
            self.assign(holds);
        }
        for (at, step) in self.steps.iter_mut().enumerate() {
            if step.idle
                && let Some((node, mode)) = holds.idle()
            {
                if step.asked.is_none() && step.parent.is_none() && step.mode == Some(mode) {
                    (step.had, step.node) = (Some(mode), Some(node));
                    self.kept = Some(at);
                    continue;
                }
                self.gives_up = true;
            }
            step.name_new();
        }
    }

    /// What was kept is not any more: it has to be asked for.
    pub(super) fn forget_kept(&mut self) {
        if let Some(at) = self.kept.take() {
            (self.steps[at].had, self.steps[at].node) = (None, None);
            self.steps[at].name_new();
        }
    }

    /// Whether it needs what the owner keeps.
    pub(super) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// What is to be done where more is held or asked for than one way.
    fn assign(&mut self, holds: &Holds<K>) {
        for step in &mut self.steps {
            step.mode = None;
        }
        for at in (0..self.steps.len()).rev() {
            let step = &self.steps[at];
            let hold = step.hold.map(|id| holds.slots.get(id));
            let real = match hold.map(|hold| hold.kind) {
                Some(HoldKind::Real { node, mode, .. }) => Some((mode, node)),
                Some(HoldKind::Covered { .. } | HoldKind::Kept { .. }) | None => None,
            };
            let mut wanted = step.mode;
            if let Some((mut asked, _)) = step.asked {
                if real.is_none() {
                    let own = hold.and_then(|hold| hold.own());
                    asked = own.map_or(asked, |own| own.join(asked));
                    if wanted.is_none()
                        && let Some(by) = self.cover(at, asked, holds)
                    {
                        self.steps[at].cover = Some(by);
                        continue;
                    }
                }
                wanted = Some(wanted.map_or(asked, |wanted| wanted.join(asked)));
            }
            let Some(mut mode) = wanted else { continue };
            let held = hold.and_then(|hold| hold.mode());
            mode = held.map_or(mode, |held| held.join(mode));
            let step = &mut self.steps[at];
            step.mode = Some(mode);
            (step.had, step.node) = real.unzip();
            if let Some(parent) = step.parent {
                self.steps[parent as usize].want(mode.parent_needs());
            }
        }
    }

    /// The cover that the hold has, or for a new one the uppermost that will do.
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

    /// Takes all of it from the index, or changes nothing.
    pub(super) fn take(
        &mut self,
        shards: &Shards<K>,
        (owner, kept): (OwnerKey, Option<&Bias>),
        gone: &mut Gone<K>,
    ) -> Room {
        if self.hashes().next().is_none() {
            return Room::Free;
        }
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
                Some(id) => locked.index(id.hash).raise(id, owner, mode),
                None => drop(step.insert(&mut locked, owner, mode)),
            }
        }
        Room::Free
    }

    /// The shards of what is left to be taken, and what is in the way there: nothing that somebody
    /// keeps and does not use.
    ///
    /// The user's `Eq` runs here: if it panics, nothing has been taken.
    pub(super) fn lock<'a>(
        &mut self,
        shards: &'a Shards<K>,
        owner: OwnerKey,
        gone: &mut Gone<K>,
    ) -> (Locked<'a, K>, Room) {
        let mut locked = shards.lock(self.hashes());
        let mut room = look(&mut self.steps[self.at..], &mut locked, owner, gone);
        if room == Room::Kept {
            drop(locked);
            locked = shards.lock_all();
            room = look(&mut self.steps[self.at..], &mut locked, owner, gone);
        }
        (locked, room)
    }

    /// Takes step after step as far as can be had now, where it has looked. Gives the node that
    /// cannot, and the mode.
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
                    waits.record(owner, id, None);
                }
            }
            self.at += 1;
        }
        None
    }
}

/// Adds the way to one resource, from the first ancestor that is held well enough, or from the
/// root. Whether nothing on it is held below that one.
#[inline]
fn walk<K: Resource>(
    steps: &mut Vec<Step<K>>,
    (key, mode): (K, Mode),
    mut hash: impl FnMut(&K) -> u64,
    holds: &Holds<K>,
) -> Result<bool, LockError<K>> {
    let first = steps.len();
    let (mut fresh, mut too_deep) = (true, false);
    let (mut next, mut wanted) = (Some(key), mode);
    while let Some(key) = next.take() {
        if steps.len() - first > MAX_DEPTH {
            too_deep = true;
            break;
        }
        let hash = hash(&key);
        let mut step = Step::of(key, hash);
        step.hold = holds.slots.find(step.hash, step.key());
        step.idle = step.hold.is_some() && step.hold == holds.slots.idle;
        step.hold = step.hold.filter(|_| !step.idle);
        let carries = |id| holds.carries(id, wanted, mode);
        if !(fresh && steps.len() > first && step.hold.is_some_and(carries)) {
            fresh &= step.hold.is_none();
            step.mode = Some(wanted);
            wanted = wanted.parent_needs();
            next = parent(&step, holds);
        }
        steps.push(step);
    }
    if has_repeats(&steps[first..]) {
        return Err(LockError::OwnAncestor);
    }
    steps[first].asked = Some((mode, 1));
    steps[first..].reverse();
    let mut depth = 0;
    for (at, step) in steps.iter_mut().enumerate().skip(first) {
        if let Some(held) = step.hold.map(|id| holds.slots.get(id))
            && held.is_real()
        {
            depth = held.depth;
        }
        step.depth = depth;
        step.parent = (at > first).then(|| at as u32 - 1);
        depth += 1;
    }
    if too_deep || depth as usize > MAX_DEPTH + 1 {
        return Err(LockError::TooDeep);
    }
    Ok(fresh)
}

/// What a step is a part of. What is held in the table stands where it stood when it was granted,
/// whatever its name says now: its intents are held there.
#[inline]
fn parent<K: Resource>(step: &Step<K>, holds: &Holds<K>) -> Option<K> {
    match step.hold.map(|id| holds.slots.get(id).kind) {
        Some(HoldKind::Real { parent, .. }) => holds.slots.get(parent?).key.clone(),
        _ => step.key().parent(),
    }
}

/// Looks for the entries of these. What is in the way of any of them.
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
    /// Of what is to be taken.
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
            kept: None,
            gives_up: false,
            unfit: None,
        }
    }

    /// The next one uses its memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.steps.is_empty() {
            self.drop_steps();
        }
    }

    #[inline(never)]
    fn drop_steps(&mut self) {
        self.steps.clear();
        if self.steps.capacity() > KEPT {
            self.steps = Vec::new();
        }
    }

    /// The node that could not be had at once has been granted.
    pub(super) fn granted(&mut self) {
        self.at += 1;
    }

    /// Enters in the owner's holds what has been granted.
    #[inline]
    pub(super) fn commit(&mut self, holds: &mut Holds<K>) {
        if let Some(at) = self.kept {
            self.steps[at].hold = holds.slots.idle.take();
        }
        for at in 0..self.steps.len() {
            let parent = self.steps[at].parent;
            let parent = parent.and_then(|parent| self.steps[parent as usize].hold);
            holds.enter(&mut self.steps[at], parent);
        }
    }
}
