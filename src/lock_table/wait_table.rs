//! The resources that have waiters, with their queues, and the waiters, under one lock.
//!
//! State: a node per resource that has waiters; a record per owner with an operation under way,
//! with the request that it waits for and what it has taken so far. A resource without waiters is
//! in the index alone (`shards`), and needs no lock of the wait table.
//!
//! Protocol: an operation that may have to wait asks for node after node, from root to leaf, with
//! their shards locked. What it takes is entered in `done`, with what was held before. If it fails
//! or gives up, `abort` puts everything back. A change that may let another request be granted
//! marks its node as dirty; `grant_dirty` scans dirty nodes before the lock is released. Where others
//! may overtake and nobody holds the resource, it grants nothing: it notifies the first waiter, which
//! is granted its request when it looks, or waits again if another was quicker.
//! `grant_dirty`, `abort` and `fail` lock shards: the caller must have none locked.
//!
//! Invariants:
//! 1. While the lock is free, a node has waiters, and its entry in the index is busy with it.
//! 2. An owner waits at one node at most: that whose queue has its request, until its outcome.
//! 3. After `grant_dirty` no node is dirty, and no request could be granted that is not, except where
//!    the first is notified. A wait without an outcome has a waker, unless its owner is notified.
//! 4. So all that a wait depends on is in here: the waiters, the holders in their way, and the
//!    requests ahead of them.
//! 5. Of the user's code only `Eq` runs in here, in the index. Names and wakers that are no longer
//!    needed go to `deferred`.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Poll, Waker};

use super::entries::NodeId;
use super::error::{Deadlock, LockError, OwnerId};
use super::index::Change;
use super::name::{Gone, Name};
use super::owners::{OwnerKey, Priority};
use super::queue::{Node, Request};
use super::shards::{Locked, Shards};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::slab::{Key, Slab};
use crate::sync::{Arc, UnmodelledArc};
use crate::wait::{ClonedWaker, WaitCounts, WakeBatch};

pub(super) struct WaitTable<K> {
    /// The number of the lock table.
    number: u64,
    pub(super) nodes: Slab<Node<K>>,
    shards: Arc<Shards<K>>,
    pub(super) owners: BTreeMap<OwnerKey, OwnerState<K>>,
    dirty: Vec<Key>,
    /// How often requests may overtake those that wait.
    pub(super) bypass: Bypass,
    /// The owners that wait; and those that were woken and have not looked since.
    pub(super) waits: WaitCounts,
    /// Deadlocks so far.
    pub(super) found: u64,
    pub(super) reports: VecDeque<UnmodelledArc<Deadlock<K>>>,
    pub(super) deferred: Deferred<K>,
}

/// The state of one owner, while one of its operations is under way.
pub(super) struct OwnerState<K> {
    pub(super) born: u64,
    pub(super) priority: Priority,
    /// How often it has retried after it gave up.
    pub(super) retries: u32,
    /// How many resources it held in the table before the operation.
    pub(super) held: u64,
    pub(super) wait: Option<Waiting<K>>,
    /// What the operation has raised, and the modes before.
    pub(super) done: Vec<Change>,
}

pub(super) struct Waiting<K> {
    pub(super) node: Key,
    pub(super) mode: Mode,
    waker: Option<Waker>,
    pub(super) outcome: Option<Result<(), LockError<K>>>,
}

impl<K> Waiting<K> {
    /// Wakes its owner, unless that was woken and has not looked since.
    fn wake(&mut self, waits: &mut WaitCounts, wakes: &mut WakeBatch) {
        if let Some(waker) = self.waker.take() {
            wakes.push(waker);
            waits.waiting -= 1;
            waits.notified += 1;
        }
    }
}

const BEGUN: &str = "an owner that has begun";
const QUEUED: &str = "its request is in a queue";

/// What must not be dropped under the lock.
pub(super) struct Deferred<K> {
    names: Gone<K>,
    wakers: Vec<ClonedWaker>,
    pub(super) reports: Vec<UnmodelledArc<Deadlock<K>>>,
}

impl<K> Deferred<K> {
    pub(super) const fn new() -> Self {
        Self {
            names: Gone::new(),
            wakers: Vec::new(),
            reports: Vec::new(),
        }
    }
}

impl<K> OwnerState<K> {
    /// How many resources it holds in the table.
    pub(super) fn locks(&self) -> u64 {
        let new = self.done.iter().filter(|(_, before)| before.is_none());
        self.held + new.count() as u64
    }
}

impl<K> WaitTable<K> {
    pub(super) fn new(number: u64, shards: Arc<Shards<K>>) -> Self {
        Self {
            number,
            nodes: Slab::new(),
            shards,
            owners: BTreeMap::new(),
            dirty: Vec::new(),
            bypass: Bypass::AtMost(0),
            waits: WaitCounts::default(),
            found: 0,
            reports: VecDeque::new(),
            deferred: Deferred::new(),
        }
    }

    pub(super) fn name(&self, key: OwnerKey) -> OwnerId {
        let table = self.number;
        OwnerId { table, key }
    }

    /// Raises what an owner holds of an entry, if it need not wait.
    pub(super) fn try_raise(
        &mut self,
        locked: &mut Locked<'_, K>,
        owner: OwnerKey,
        id: NodeId,
        mode: Mode,
    ) -> bool {
        let entry = locked.index(id.hash).entries.get_mut(id);
        let entry = entry.expect("an entry that was found");
        let holders = match entry.busy {
            None if entry.holders.fit(owner, mode) => &mut entry.holders,
            None => return false,
            Some(node) => {
                let node = self.nodes.get_mut(node).expect("the node of an entry");
                if !node.admits(Request { owner, mode }, self.bypass) {
                    return false;
                }
                &mut node.holders
            }
        };
        let before = holders.set(owner, Some(mode));
        self.owner_mut(owner).done.push((id, before));
        true
    }

    /// Enqueues a request that cannot be granted yet.
    pub(super) fn enqueue(
        &mut self,
        locked: &mut Locked<'_, K>,
        (owner, (id, mode)): (OwnerKey, (NodeId, Mode)),
        waker: Waker,
    ) {
        let entry = locked.index(id.hash).entries.get_mut(id);
        let entry = entry.expect("an entry that was found");
        let node = *entry.busy.get_or_insert_with(|| {
            let holders = std::mem::take(&mut entry.holders);
            let node = Node::new(entry.name.share(), id, holders);
            self.nodes.insert(node)
        });
        let found = self.nodes.get_mut(node).expect("the node of an entry");
        found.enqueue(Request { owner, mode });
        self.waits.waiting += 1;
        self.owner_mut(owner).wait = Some(Waiting {
            node,
            mode,
            waker: Some(waker),
            outcome: None,
        });
    }

    /// Returns how the wait has ended, and removes it. An owner that was notified retries first. If
    /// the wait goes on, exchanges its waker for this one, if there is one. None if it has not begun.
    pub(super) fn look(
        &mut self,
        owner: OwnerKey,
        waker: &mut Option<Waker>,
        wakes: &mut WakeBatch,
    ) -> Option<Poll<Result<(), LockError<K>>>> {
        let mut state = self.owner_mut(owner);
        let wait = state.wait.as_ref()?;
        let (node, notified) = (wait.node, wait.outcome.is_none() && wait.waker.is_none());
        if notified {
            self.dirty.push(node);
            self.grant_dirty(wakes, true);
            state = self.owner_mut(owner);
        }
        let wait = state.wait.as_mut()?;
        let Some(outcome) = wait.outcome.take() else {
            if waker.is_some() {
                std::mem::swap(&mut wait.waker, waker);
                if notified {
                    // In vain.
                    self.waits.notified -= 1;
                    self.waits.waiting += 1;
                }
            }
            return Some(Poll::Pending);
        };
        state.wait = None;
        self.waits.notified -= 1;
        Some(Poll::Ready(outcome))
    }

    /// Ends an operation that has failed or given up: leaves the queue and puts back what it took.
    pub(super) fn abort(&mut self, owner: OwnerKey) {
        let Some(state) = self.owners.remove(&owner) else {
            return;
        };
        if let Some(wait) = state.wait {
            match wait.waker {
                Some(_) => self.waits.waiting -= 1,
                None => self.waits.notified -= 1,
            }
            self.deferred
                .wakers
                .extend(wait.waker.map(ClonedWaker::from));
            match wait.outcome {
                None => self.leave_queue(owner, wait.node),
                // Nobody has taken it.
                Some(Err(LockError::Deadlock(report))) => self.deferred.reports.push(report),
                Some(_) => {}
            }
        }
        // From leaf to root.
        self.lower(owner, state.done.into_iter().rev());
    }

    /// Ends the wait of an owner, if it has an open one, with an error; the owner learns of it when
    /// it looks.
    pub(super) fn fail(&mut self, owner: OwnerKey, why: LockError<K>, wakes: &mut WakeBatch) {
        let Some(state) = self.owners.get_mut(&owner) else {
            return;
        };
        let wait = state.wait.as_mut();
        let Some(wait) = wait.filter(|wait| wait.outcome.is_none()) else {
            return;
        };
        wait.outcome = Some(Err(why));
        wait.wake(&mut self.waits, wakes);
        let (node, done) = (wait.node, std::mem::take(&mut state.done));
        self.leave_queue(owner, node);
        // From leaf to root.
        self.lower(owner, done.into_iter().rev());
    }

    /// Lowers or removes what an owner holds of these entries.
    pub(super) fn lower(&mut self, owner: OwnerKey, changes: impl Iterator<Item = Change> + Clone) {
        let mut locked = self.shards.lock(changes.clone().map(|(id, _)| id.hash));
        for (id, mode) in changes {
            let index = locked.index(id.hash);
            if let Some(node) = index.set(id, owner, mode, true, &mut self.deferred.names) {
                let found = self.nodes.get_mut(node).expect("the node of an entry");
                found.holders.set(owner, mode);
                self.dirty.push(node);
            }
        }
    }

    /// Grants all that can be granted. With `retries`, a request of the last dirty node retries.
    /// False if the batch is full: there may be more to do when that has been fired.
    pub(super) fn grant_dirty(&mut self, wakes: &mut WakeBatch, mut retries: bool) -> bool {
        while let Some(&node) = self.dirty.last() {
            while let Some(found) = self.nodes.get_mut(node) {
                if wakes.is_full() {
                    return false;
                }
                if !std::mem::take(&mut retries)
                    && let Some(owner) = found.retries(self.bypass)
                {
                    let state = self.owners.get_mut(&owner).expect(BEGUN);
                    let wait = state.wait.as_mut().expect(QUEUED);
                    wait.wake(&mut self.waits, wakes);
                    break;
                }
                let Some((owner, before)) = found.grant_next() else {
                    break;
                };
                let state = self.owners.get_mut(&owner).expect(BEGUN);
                state.done.push((found.id, before));
                let wait = state.wait.as_mut().expect(QUEUED);
                wait.outcome = Some(Ok(()));
                wait.wake(&mut self.waits, wakes);
            }
            self.dirty.pop();
            self.retire(node);
        }
        true
    }

    pub(super) fn owner_mut(&mut self, owner: OwnerKey) -> &mut OwnerState<K> {
        self.owners.get_mut(&owner).expect(BEGUN)
    }

    fn leave_queue(&mut self, owner: OwnerKey, node: Key) {
        if let Some(found) = self.nodes.get_mut(node) {
            found.queue.remove(owner);
        }
        self.dirty.push(node);
    }

    /// A node without waiters goes back to the index, or is gone.
    fn retire(&mut self, node: Key) {
        let found = self.nodes.get(node);
        if found.is_none_or(|found| !found.queue.is_empty()) {
            return;
        }
        let Some(gone) = self.nodes.remove(node) else {
            return;
        };
        let names = &mut self.deferred.names;
        let mut index = self.shards.lock_one(gone.id.hash);
        index.calm(gone.id, gone.holders, names);
        names.push(Name::Shared(gone.key));
    }
}
