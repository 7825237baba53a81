//! One resource that somebody waits for: who holds it, and the queue.
//!
//! Invariants:
//! 1. An owner has at most one request here; it is for more than the owner holds.
//! 2. Once scanned, every request conflicts with another's grant, or with a request ahead of it.

use super::entries::NodeId;
use super::holders::Holders;
use super::queue::{Queue, Request};
use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::Arc;

pub(super) struct Node<K> {
    pub(super) key: Arc<K>,
    /// Its entry in the index.
    pub(super) id: NodeId,
    pub(super) holders: Holders,
    pub(super) queue: Queue,
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
            queue: Queue::default(),
        }
    }

    /// Whether a request would be granted if it were made now: it conflicts neither with what
    /// others hold nor with what would be ahead of it.
    pub(super) fn grantable(&self, request: Request) -> bool {
        let held = self.holders.held(request.owner);
        self.fits(request) && self.queue.lets_pass(request.mode, held)
    }

    pub(super) fn enqueue(&mut self, request: Request) {
        let held = self.holders.held(request.owner);
        self.queue.insert(request, held);
    }

    /// Grants the first request that can be, by the rule for the whole queue, and returns its owner
    /// and what that held before.
    pub(super) fn grant_next(&mut self) -> Option<(Key, Option<Mode>)> {
        let Request { owner, mode } = self.queue.next(|request| self.fits(request))?;
        self.queue.remove(owner);
        Some((owner, self.holders.set(owner, Some(mode))))
    }

    /// Why a request waits for this other owner, and in which mode that has or wants the resource.
    pub(super) fn blocks(&self, request: Request, other: Key) -> Option<(Mode, Cause)> {
        let conflicts = |mode: &Mode| !mode.compatible(request.mode);
        let held = self.holders.held(other).filter(conflicts);
        let ahead = self.queue.ahead_of(request.owner, other);
        let ahead = ahead
            .filter(conflicts)
            .map(|mode| (mode, Cause::WaitsAhead));
        held.map(|mode| (mode, Cause::Holds)).or(ahead)
    }

    fn fits(&self, request: Request) -> bool {
        self.holders.fit(request.owner, request.mode)
    }
}
