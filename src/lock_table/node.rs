//! One resource that somebody waits for: who holds it, and the queue.
//!
//! State: the holders, and the requests that wait, in order.
//!
//! Invariants:
//! 1. An owner has at most one request here; it is for more than the owner holds.
//! 2. Once scanned, every request conflicts with another's grant, or with a request ahead of it.

use super::entries::NodeId;
use super::holders::Holders;
use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::Arc;

pub(super) struct Node<K> {
    pub(super) key: Arc<K>,
    /// Its entry in the index.
    pub(super) id: NodeId,
    pub(super) holders: Holders,
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
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Cause {
    /// The other holds a conflicting mode.
    Holds,
    /// The other asked for a conflicting mode and is ahead in the queue.
    WaitsAhead,
}

impl<K> Node<K> {
    pub(super) fn new(key: Arc<K>, id: NodeId, holders: Holders) -> Self {
        Self {
            key,
            id,
            holders,
            queue: Vec::new(),
        }
    }

    /// Whether a request would be granted if it were made now: it conflicts neither with what
    /// others hold nor with what is ahead of its position.
    pub(super) fn grantable(&self, request: Request) -> bool {
        let held = self.holders.held(request.owner);
        let ahead = &self.queue[..self.position(held)];
        self.fits(request) && ahead.iter().all(|r| r.mode.compatible(request.mode))
    }

    /// Puts a request in the queue.
    pub(super) fn enqueue(&mut self, request: Request) {
        let position = self.position(self.holders.held(request.owner));
        self.queue.insert(position, request);
    }

    /// Takes an owner's request out of the queue.
    pub(super) fn withdraw(&mut self, owner: Key) {
        let at = self
            .queue
            .iter()
            .rposition(|request| request.owner == owner);
        at.map(|at| self.queue.remove(at));
    }

    /// Grants the first request that can be, by the rule for the whole queue, and returns its owner
    /// and what that held before.
    pub(super) fn grant_next(&mut self) -> Option<(Key, Option<Mode>)> {
        let mut staying = 0;
        for at in 0..self.queue.len() {
            let request = self.queue[at];
            if request.mode.conflicts() & staying == 0 && self.fits(request) {
                self.queue.remove(at);
                let held = self.holders.set(request.owner, Some(request.mode));
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
        let holders = self.holders.iter();
        let holders = holders
            .filter(move |&(owner, mode)| conflicting(owner, mode))
            .map(|(owner, mode)| (owner, mode, Cause::Holds));
        let ahead = self.queue.iter();
        let ahead = ahead
            .take_while(move |other| other.owner != request.owner)
            .filter(move |other| conflicting(other.owner, other.mode))
            .map(|other| (other.owner, other.mode, Cause::WaitsAhead));
        holders.chain(ahead)
    }

    /// The position of a request of somebody who holds this: at the end, but ahead of the first one
    /// that waits for what is held, or both would wait for ever.
    fn position(&self, held: Option<Mode>) -> usize {
        let waits_for = |held: Mode| self.queue.iter().position(|r| !r.mode.compatible(held));
        held.and_then(waits_for).unwrap_or(self.queue.len())
    }

    fn fits(&self, request: Request) -> bool {
        self.holders.fit(request.owner, request.mode)
    }
}
