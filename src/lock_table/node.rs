//! One resource in the table: who holds it, and who waits for it.
//!
//! State: the mode of each holder, how many hold each mode, and the requests that wait, in order.
//!
//! Invariants:
//! 1. The modes of two holders are compatible.
//! 2. `counts` says how often each mode occurs in `granted`.
//! 3. An owner has at most one grant and at most one request here; its request is for more than it
//!    holds.
//! 4. Once scanned, every request conflicts with another's grant, or with a request ahead of it.

use std::collections::BTreeMap;

use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::Arc;

pub(super) struct Node<K> {
    pub(super) key: Arc<K>,
    pub(super) hash: u64,
    /// The next node of the same hash.
    pub(super) next: Option<Key>,
    pub(super) granted: BTreeMap<Key, Mode>,
    counts: [u32; Mode::ALL.len()],
    pub(super) queue: Vec<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) owner: Key,
    /// What it will hold when it is granted: joined with what it holds.
    pub(super) mode: Mode,
}

/// Why a request waits for another owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The other holds a conflicting mode.
    Holds,
    /// The other asked for a conflicting mode and stands ahead in the queue.
    WaitsAhead,
}

impl<K> Node<K> {
    pub(super) fn new(key: Arc<K>, hash: u64, next: Option<Key>) -> Self {
        Self {
            key,
            hash,
            next,
            granted: BTreeMap::new(),
            counts: [0; Mode::ALL.len()],
            queue: Vec::new(),
        }
    }

    pub(super) fn held(&self, owner: Key) -> Option<Mode> {
        self.granted.get(&owner).copied()
    }

    /// Whether nobody holds it and nobody waits, so that it can go.
    pub(super) fn is_vacant(&self) -> bool {
        self.granted.is_empty() && self.queue.is_empty()
    }

    /// Sets what an owner holds; returns what it held.
    pub(super) fn set(&mut self, owner: Key, mode: Option<Mode>) -> Option<Mode> {
        let before = match mode {
            Some(mode) => self.granted.insert(owner, mode),
            None => self.granted.remove(&owner),
        };
        if let Some(before) = before {
            self.counts[before as usize] -= 1;
        }
        if let Some(mode) = mode {
            self.counts[mode as usize] += 1;
        }
        before
    }

    /// Whether a request would be granted if it were made now: it conflicts neither with what
    /// others hold nor with what stands ahead of the place it would take.
    pub(super) fn grantable(&self, request: Request) -> bool {
        let held = self.held(request.owner);
        let ahead = &self.queue[..self.place(held)];
        self.fits(held, request.mode) && ahead.iter().all(|r| r.mode.compatible(request.mode))
    }

    /// Puts a request in the queue.
    pub(super) fn enqueue(&mut self, request: Request) {
        let place = self.place(self.held(request.owner));
        self.queue.insert(place, request);
    }

    /// Takes an owner's request out of the queue.
    pub(super) fn withdraw(&mut self, owner: Key) {
        self.queue.retain(|request| request.owner != owner);
        self.give_memory_back();
    }

    /// Grants the first request that can be, by the rule for the whole queue, and returns its owner
    /// and what that held before.
    pub(super) fn grant_next(&mut self) -> Option<(Key, Option<Mode>)> {
        let mut staying = 0;
        for at in 0..self.queue.len() {
            let request = self.queue[at];
            let held = self.held(request.owner);
            if request.mode.conflicts() & staying == 0 && self.fits(held, request.mode) {
                self.queue.remove(at);
                self.give_memory_back();
                self.set(request.owner, Some(request.mode));
                return Some((request.owner, held));
            }
            staying |= request.mode.bit();
            if request.mode == Mode::X {
                // Nothing goes past it.
                break;
            }
        }
        None
    }

    /// Whom this request waits for, and in which mode the other has or wants the resource.
    pub(super) fn blockers(&self, request: Request) -> impl Iterator<Item = (Key, Mode, Cause)> {
        let conflicting =
            move |owner: Key, mode: Mode| owner != request.owner && !mode.compatible(request.mode);
        let holders = self.granted.iter();
        let holders = holders
            .filter(move |&(&owner, &mode)| conflicting(owner, mode))
            .map(|(&owner, &mode)| (owner, mode, Cause::Holds));
        let ahead = self.queue.iter();
        let ahead = ahead
            .take_while(move |other| other.owner != request.owner)
            .filter(move |other| conflicting(other.owner, other.mode))
            .map(|other| (other.owner, other.mode, Cause::WaitsAhead));
        holders.chain(ahead)
    }

    /// Where a request of somebody who holds this stands: at the end, but ahead of the first one
    /// that waits for what is held, or both would wait for ever.
    fn place(&self, held: Option<Mode>) -> usize {
        let waits_for = |held: Mode| self.queue.iter().position(|r| !r.mode.compatible(held));
        held.and_then(waits_for).unwrap_or(self.queue.len())
    }

    /// Whether the grants of all but one, which holds `held`, are compatible with `mode`.
    fn fits(&self, held: Option<Mode>, mode: Mode) -> bool {
        Mode::ALL.into_iter().all(|other| {
            let own = u32::from(held == Some(other));
            self.counts[other as usize] == own || other.compatible(mode)
        })
    }

    fn give_memory_back(&mut self) {
        if self.queue.is_empty() {
            self.queue = Vec::new();
        }
    }
}
