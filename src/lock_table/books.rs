//! The table under its lock: resources, owners, grants and queues.
//!
//! State: a node per resource that somebody holds or waits for, found by its hash; a desk per
//! owner, with the request that it waits for and what that operation has taken so far.
//!
//! Protocol: an operation asks for node after node, from root to leaf. What it takes is entered in
//! `done`, with what was held before; the next operation's `begin` forgets the entries. If it fails
//! or gives up, `abort` puts everything back. Whatever may let somebody else in marks its node
//! as dirty; `settle` scans those, and is called before the lock is let go.
//!
//! Invariants:
//! 1. A node is in the index exactly while it has a holder or a request.
//! 2. An owner waits at one node at most: the one whose queue has its request, as long as its
//!    outcome is open.
//! 3. Once settled, no node is dirty, and no request could be granted that is not.
//! 4. Nothing of the user's runs in here but `Eq` in `find`, which changes nothing. Keys and wakers
//!    that are no longer needed go to `waste`.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::task::Waker;

use super::deadlock::Report;
use super::node::{Node, Request};
use crate::modes::Mode;
use crate::slab::{Key, Slab};
use crate::sync::Arc;
use crate::wait::WakeBatch;

pub(super) struct Books<K> {
    pub(super) nodes: Slab<Node<K>>,
    /// The first node of each hash.
    heads: HashMap<u64, Key, BuildHasherDefault<Spread>>,
    pub(super) owners: Slab<Desk<K>>,
    born: u64,
    dirty: Vec<Key>,
    pub(super) searches: u64,
    pub(super) reports: VecDeque<Arc<Report<K>>>,
    pub(super) waste: Vec<Waste<K>>,
    closed: bool,
}

/// What one owner is about.
pub(super) struct Desk<K> {
    pub(super) priority: i32,
    /// The younger, the higher.
    pub(super) born: u64,
    /// How many nodes it holds.
    pub(super) locks: u64,
    pub(super) wait: Option<Waiting<K>>,
    /// What the operation at hand has raised, and from what.
    done: Vec<(Key, Option<Mode>)>,
    /// For the deadlock search: in which one it was reached, and from whom.
    pub(super) reached: u64,
    pub(super) from: Option<Key>,
}

pub(super) struct Waiting<K> {
    pub(super) node: Key,
    pub(super) mode: Mode,
    waker: Option<Waker>,
    pub(super) outcome: Option<Outcome<K>>,
}

pub(super) enum Outcome<K> {
    Granted,
    Deadlock(Arc<Report<K>>),
    Closed,
}

/// What must not be dropped under the lock.
#[allow(dead_code, reason = "kept only to be dropped")]
pub(super) enum Waste<K> {
    Key(Arc<K>),
    Waker(Waker),
    Report(Arc<Report<K>>),
}

/// Hashes are hashed already; spreads those of a poor hasher.
#[derive(Default)]
pub(super) struct Spread(u64);

impl<K> Books<K> {
    pub(super) fn new() -> Self {
        Self {
            nodes: Slab::new(),
            heads: HashMap::default(),
            owners: Slab::new(),
            born: 0,
            dirty: Vec::new(),
            searches: 0,
            reports: VecDeque::new(),
            waste: Vec::new(),
            closed: false,
        }
    }

    pub(super) fn enrol(&mut self, priority: i32) -> Key {
        self.born += 1;
        self.owners.insert(Desk {
            priority,
            born: self.born,
            locks: 0,
            wait: None,
            done: Vec::new(),
            reached: 0,
            from: None,
        })
    }

    /// An owner that holds nothing and waits for nothing is gone.
    pub(super) fn strike_off(&mut self, owner: Key) {
        let desk = self.owners.remove(owner);
        debug_assert!(desk.is_some_and(|desk| desk.locks == 0 && desk.wait.is_none()));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nobody is granted anything any more. Returns who waits, to be failed one by one.
    pub(super) fn close(&mut self) -> Vec<Key> {
        self.closed = true;
        let waiting = self.owners.iter().filter(|(_, desk)| desk.wait.is_some());
        waiting.map(|(owner, _)| owner).collect()
    }

    /// The node of a resource, if somebody holds it or waits for it.
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<Key>
    where
        K: Eq,
    {
        let mut at = self.heads.get(&hash).copied();
        while let Some(found) = at {
            let node = self.nodes.get(found)?;
            if *node.key == *key {
                return Some(found);
            }
            at = node.next;
        }
        None
    }

    /// Makes the node of a resource that has none. Somebody must be entered in it at once.
    pub(super) fn make(&mut self, hash: u64, key: &Arc<K>) -> Key {
        let next = self.heads.get(&hash).copied();
        let node = self.nodes.insert(Node::new(key.clone(), hash, next));
        self.heads.insert(hash, node);
        node
    }

    /// Raises what an owner holds, if it need not wait.
    pub(super) fn ask(&mut self, owner: Key, node: Key, mode: Mode) -> bool {
        let found = self.nodes.get_mut(node).expect("a node that was found");
        let grantable = found.grantable(Request { owner, mode });
        if grantable {
            let before = found.set(owner, Some(mode));
            self.took(owner, node, before);
        }
        grantable
    }

    /// Enters a request that cannot be granted yet.
    pub(super) fn stand(&mut self, owner: Key, node: Key, mode: Mode, waker: Waker) {
        let found = self.nodes.get_mut(node).expect("a node that was found");
        found.enqueue(Request { owner, mode });
        self.desk(owner).wait = Some(Waiting {
            node,
            mode,
            waker: Some(waker),
            outcome: None,
        });
    }

    /// The wait goes on with this waker.
    pub(super) fn rewait(&mut self, owner: Key, waker: Waker) {
        let wait = self.desk(owner).wait.as_mut();
        let old = wait.and_then(|wait| wait.waker.replace(waker));
        self.waste_waker(old);
    }

    /// How the wait has ended, if it has; then there is none any more.
    pub(super) fn take_outcome(&mut self, owner: Key) -> Option<Outcome<K>> {
        let desk = self.desk(owner);
        let outcome = desk.wait.as_mut()?.outcome.take()?;
        desk.wait = None;
        Some(outcome)
    }

    pub(super) fn waits(&self, owner: Key) -> bool {
        let desk = self.owners.get(owner);
        desk.is_some_and(|desk| desk.wait.is_some())
    }

    /// A new operation: the last one has what it asked for.
    pub(super) fn begin(&mut self, owner: Key) {
        self.desk(owner).done.clear();
    }

    pub(super) fn waste_waker(&mut self, waker: Option<Waker>) {
        self.waste.extend(waker.map(Waste::Waker));
    }

    /// The operation has failed or given up: leaves the queue and puts back what it took.
    pub(super) fn abort(&mut self, owner: Key) {
        if let Some(wait) = self.desk(owner).wait.take() {
            self.waste_waker(wait.waker);
            if wait.outcome.is_none() {
                self.leave_queue(owner, wait.node);
            }
        }
        self.undo(owner);
    }

    /// Ends an open wait; its owner will learn of it when it looks.
    pub(super) fn fail(&mut self, owner: Key, outcome: Outcome<K>, wakes: &mut WakeBatch) {
        let desk = self.owners.get_mut(owner);
        let wait = desk.and_then(|desk| desk.wait.as_mut());
        let Some(wait) = wait.filter(|wait| wait.outcome.is_none()) else {
            return;
        };
        wait.outcome = Some(outcome);
        if let Some(waker) = wait.waker.take() {
            wakes.push(waker);
        }
        let node = wait.node;
        self.leave_queue(owner, node);
        self.undo(owner);
    }

    /// Lowers what an owner holds, or takes it away.
    pub(super) fn lower(&mut self, owner: Key, node: Key, mode: Option<Mode>) {
        let Some(found) = self.nodes.get_mut(node) else {
            debug_assert!(false, "a node that is held");
            return;
        };
        let before = found.set(owner, mode);
        let gone = before.is_some() && mode.is_none();
        self.desk(owner).locks -= u64::from(gone);
        self.touch(node);
    }

    /// Grants whatever can be granted. False if it is bounded and the batch is full: there may be
    /// more to do when that has been fired.
    pub(super) fn settle(&mut self, wakes: &mut WakeBatch, bounded: bool) -> bool {
        while let Some(&node) = self.dirty.last() {
            while let Some(found) = self.nodes.get_mut(node) {
                if bounded && wakes.is_full() {
                    return false;
                }
                let Some((owner, before)) = found.grant_next() else {
                    break;
                };
                self.took(owner, node, before);
                let wait = self.desk(owner).wait.as_mut().expect("its request stood");
                wait.outcome = Some(Outcome::Granted);
                if let Some(waker) = wait.waker.take() {
                    wakes.push(waker);
                }
            }
            self.dirty.pop();
        }
        true
    }

    /// Its resources go to the waste.
    pub(super) fn drop_oldest_report(&mut self) {
        let oldest = self.reports.pop_front();
        self.waste.extend(oldest.map(Waste::Report));
    }

    pub(super) fn desk(&mut self, owner: Key) -> &mut Desk<K> {
        self.owners
            .get_mut(owner)
            .expect("an owner that is enrolled")
    }

    fn took(&mut self, owner: Key, node: Key, before: Option<Mode>) {
        let desk = self.desk(owner);
        desk.locks += u64::from(before.is_none());
        desk.done.push((node, before));
    }

    fn leave_queue(&mut self, owner: Key, node: Key) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.withdraw(owner);
        }
        self.touch(node);
    }

    /// From leaf to root.
    fn undo(&mut self, owner: Key) {
        while let Some((node, before)) = self.desk(owner).done.pop() {
            self.lower(owner, node, before);
        }
    }

    /// Something left this node: it is gone, or must be scanned.
    fn touch(&mut self, node: Key) {
        let Some(found) = self.nodes.get(node) else {
            return;
        };
        if found.is_vacant() {
            self.forget(node);
        } else if !found.queue.is_empty() {
            self.dirty.push(node);
        }
    }

    /// Takes a node out of the chain of its hash, by its place and not by its key.
    fn forget(&mut self, node: Key) {
        let Some(gone) = self.nodes.remove(node) else {
            return;
        };
        if self.heads.get(&gone.hash) == Some(&node) {
            match gone.next {
                Some(next) => self.heads.insert(gone.hash, next),
                None => self.heads.remove(&gone.hash),
            };
            self.shrink();
        } else {
            let mut at = self.heads.get(&gone.hash).copied();
            while let Some(earlier) = at.and_then(|at| self.nodes.get_mut(at)) {
                at = earlier.next;
                if at == Some(node) {
                    earlier.next = gone.next;
                }
            }
        }
        self.waste.push(Waste::Key(gone.key));
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn index_capacity(&self) -> usize {
        self.heads.capacity()
    }

    fn shrink(&mut self) {
        let (len, capacity) = (self.heads.len(), self.heads.capacity());
        if capacity > 64 && len < capacity / 8 {
            self.heads.shrink_to(len * 2);
        }
    }
}

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }
}
