//! One resource that has waiters: its holders ([`Node`]), its waiters in order, and which of them
//! is next ([`Queue`]).
//!
//! State: for each mode, the owners that ask for it, by positions that rise along the queue; and
//! the position of each owner. A new request goes to the end, or between another request and the
//! one before that. If no position is left there, all requests get new ones, with room between.
//!
//! Invariants:
//! 1. An owner is in here once, no two owners have one position, and none has 0.
//! 2. A mode that conflicts with a weaker one conflicts with itself. So of the requests for one
//!    mode the first is granted first, whatever their owners hold: if the mode is compatible with
//!    itself, no owner's own mode is in the way; if it is not, no request goes past the first.
//! 3. A request is for more than its owner holds. Once scanned, each conflicts with another owner's
//!    grant, or with a request ahead of it; or nobody holds the resource, and the first is to
//!    retry.
//!
//! Cost: O(log n) to enqueue, to leave and to find the next; O(n log n) to give new positions to
//! all. Each request then has room for 2^17 ahead of it, and most of those for 2^9.

use std::collections::BTreeMap;
use std::ops::Range;

use super::entries::NodeId;
use super::holders::Holders;
use super::owners::OwnerKey;
use crate::limit::Bypass;
use crate::modes::{Mode, modes_in};
use crate::shown::says;
use crate::sync::UnmodelledArc as Arc;

pub(super) type Position = u64;

/// The distance between two requests at the end. In tests it is soon used up.
const ROOM: Position = if cfg!(test) { 2 } else { 1 << 32 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) owner: OwnerKey,
    /// What the owner will hold once this is granted: joined with what it holds.
    pub(super) mode: Mode,
}

#[derive(Default)]
pub(super) struct Queue {
    by_mode: [BTreeMap<Position, OwnerKey>; Mode::ALL.len()],
    places: BTreeMap<OwnerKey, (Position, Mode)>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn position(&self, owner: OwnerKey) -> Option<Position> {
        self.places.get(&owner).map(|place| place.0)
    }

    /// What `other` asks for, if it is ahead of `owner`.
    pub(super) fn ahead_of(&self, owner: OwnerKey, other: OwnerKey) -> Option<Mode> {
        let &(position, mode) = self.places.get(&other)?;
        (position < self.position(owner)?).then_some(mode)
    }

    /// Whether a new request of an owner that holds this conflicts with nobody ahead of it.
    pub(super) fn lets_pass(&self, mode: Mode, held: Option<Mode>) -> bool {
        let Some(conflicting) = self.first_conflicting(mode) else {
            return true;
        };
        let next = held.and_then(|held| self.first_conflicting(held));
        next.is_some_and(|next| next <= conflicting)
    }

    /// Enqueues the request of an owner that holds this: at the end, but ahead of the first that
    /// waits for what is held, or both would wait for ever.
    pub(super) fn insert(&mut self, request: Request, held: Option<Mode>) {
        let position = self.new_position(held).unwrap_or_else(|| {
            self.renumber();
            self.new_position(held).expect("there is room now")
        });
        self.enter(position, request);
    }

    pub(super) fn remove(&mut self, owner: OwnerKey) {
        if let Some((position, mode)) = self.places.remove(&owner) {
            self.by_mode[mode as usize].remove(&position);
        }
    }

    /// The first request that conflicts with nobody ahead of it and `fits`.
    pub(super) fn next(&self, fits: impl Fn(Request) -> bool) -> Option<Request> {
        let first = |mode: Mode| {
            let (&position, &owner) = self.by_mode[mode as usize].first_key_value()?;
            Some((position, Request { owner, mode }))
        };
        let goes = |&(position, request): &(Position, Request)| {
            let ahead = self.first_conflicting(request.mode);
            ahead.is_none_or(|first| first >= position) && fits(request)
        };
        let all = Mode::ALL.into_iter().filter_map(first).filter(goes);
        let next = all.min_by_key(|(position, _)| *position)?;
        Some(next.1)
    }

    /// The owners in this part of the queue that ask for a mode that conflicts with `mode`.
    pub(super) fn conflicting(
        &self,
        mode: Mode,
        part: Range<Position>,
    ) -> impl Iterator<Item = OwnerKey> {
        let those = modes_in(mode.conflicts());
        those.flat_map(move |mode| {
            self.by_mode[mode as usize]
                .range(part.clone())
                .map(|(_, owner)| *owner)
        })
    }

    /// All requests, in order.
    pub(super) fn in_order(&self) -> Vec<Request> {
        let place =
            |(&owner, &(position, mode)): (&OwnerKey, &(_, _))| (position, Request { owner, mode });
        let mut all: Vec<_> = self.places.iter().map(place).collect();
        all.sort_unstable_by_key(|(position, _)| *position);
        all.into_iter().map(|(_, request)| request).collect()
    }

    /// The position of the first request that conflicts with `mode`.
    fn first_conflicting(&self, mode: Mode) -> Option<Position> {
        self.first_of(modes_in(mode.conflicts()))
    }

    /// The position of the first request for one of these modes.
    fn first_of(&self, modes: impl IntoIterator<Item = Mode>) -> Option<Position> {
        let all = modes.into_iter().map(|mode| &self.by_mode[mode as usize]);
        all.filter_map(|of| of.first_key_value())
            .map(|(&at, _)| at)
            .min()
    }

    /// A position for an owner that holds this, if one is left.
    fn new_position(&self, held: Option<Mode>) -> Option<Position> {
        let Some(next) = held.and_then(|held| self.first_conflicting(held)) else {
            return self.last(Position::MAX).checked_add(ROOM);
        };
        let before = self.last(next - 1);
        let room = next - before;
        // Leaves room for many here, and for some ahead of each of those.
        (room > 1).then(|| before + (1 << (room.ilog2() / 2)))
    }

    /// The last position up to this one, or 0.
    fn last(&self, most: Position) -> Position {
        let last = |of: &BTreeMap<Position, OwnerKey>| Some(*of.range(..=most).next_back()?.0);
        self.by_mode.iter().filter_map(last).max().unwrap_or(0)
    }

    #[cold]
    fn renumber(&mut self) {
        let all = self.in_order();
        *self = Self::default();
        for (request, number) in all.into_iter().zip(1..) {
            self.enter(number * ROOM, request);
        }
    }

    fn enter(&mut self, position: Position, request: Request) {
        let Request { owner, mode } = request;
        self.by_mode[mode as usize].insert(position, owner);
        self.places.insert(owner, (position, mode));
    }
}

pub(super) struct Node<K> {
    pub(super) key: Arc<K>,
    /// Its entry in the index.
    pub(super) id: NodeId,
    pub(super) holders: Holders,
    pub(super) queue: Queue,
    /// How many requests have overtaken others here since a front that is no conversion was granted.
    overtaken: u32,
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

says!(Cause {
    Self::Holds => "holds",
    Self::WaitsAhead => "asks first for",
});

impl<K> Node<K> {
    pub(super) fn new(key: Arc<K>, id: NodeId, holders: Holders) -> Self {
        Self {
            key,
            id,
            holders,
            queue: Queue::default(),
            overtaken: 0,
        }
    }

    /// Whether a new request is granted: it does not conflict with what others hold; and with no
    /// request that would be ahead of it, unless it may overtake these. Counts that.
    pub(super) fn admits(&mut self, request: Request, bypass: Bypass) -> bool {
        let held = self.holders.held(request.owner);
        let (fits, passes) = (self.fits(request), self.queue.lets_pass(request.mode, held));
        let overtakes = fits && !passes && !bypass.spent(self.overtaken);
        if overtakes {
            self.overtaken = self.overtaken.saturating_add(1);
        }
        fits && (passes || overtakes)
    }

    /// The owner of the first request, if it is to retry and not to be granted it: nobody holds the
    /// resource, and others may overtake.
    pub(super) fn retries(&self, bypass: Bypass) -> Option<OwnerKey> {
        if bypass.spent(self.overtaken) || !self.holders.is_empty() {
            return None;
        }
        Some(self.queue.next(|_| true)?.owner)
    }

    pub(super) fn enqueue(&mut self, request: Request) {
        let held = self.holders.held(request.owner);
        self.queue.insert(request, held);
    }

    /// Grants the first request that can be granted, by the rule for the whole queue. Returns its
    /// owner and what the owner held before.
    pub(super) fn grant_next(&mut self) -> Option<(OwnerKey, Option<Mode>)> {
        let Request { owner, mode } = self.queue.next(|request| self.fits(request))?;
        let first =
            self.overtaken > 0 && self.queue.position(owner) == self.queue.first_of(Mode::ALL);
        self.queue.remove(owner);
        let before = self.holders.set(owner, Some(mode));
        // A conversion restarts nothing: holders in turn could overtake, and convert ahead, for ever.
        if first && before.is_none() {
            self.overtaken = 0;
        }
        Some((owner, before))
    }

    /// Why a request waits for this other owner, and in which mode that one has or wants it.
    pub(super) fn blocks(&self, request: Request, other: OwnerKey) -> Option<(Mode, Cause)> {
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
