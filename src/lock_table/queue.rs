//! One resource that somebody waits for: who holds it ([`Node`]), and those who wait, in order, and
//! which of them is next ([`Queue`]).
//!
//! State: for each mode, who asks for it, by positions that rise along the queue; and the position
//! of each. Who comes stands at the end, or ahead of another, between that and the one before it.
//! Where there is no position left all get new ones, with room between them.
//!
//! Invariants:
//! 1. An owner is in here once, no two have one position, and none has 0.
//! 2. A mode that conflicts with a weaker one conflicts with itself. So of those who ask for one
//!    mode the first is granted first, whatever they hold: in a mode that is compatible with itself
//!    nobody's own mode is in the way, and in another nobody goes past the first.
//! 3. A request is for more than its owner holds. Once scanned, each conflicts with another's
//!    grant, or with a request ahead of it.
//!
//! Cost: O(log n) for each that comes, leaves or is next; O(n log n) where all get new positions:
//! each has room for 2^17 ahead of it then, and most of those for 2^9.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::entries::NodeId;
use super::holders::Holders;
use super::owners::OwnerKey;
use crate::modes::{Mode, modes_in};
use crate::sync::UnmodelledArc as Arc;

pub(super) type Position = u64;

/// Between two that come to the end. The tests use up what there is.
const ROOM: Position = if cfg!(test) { 2 } else { 1 << 32 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) owner: OwnerKey,
    /// What it will hold when it is granted: joined with what it holds.
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

    /// What this other one asks for, if it is ahead of an owner.
    pub(super) fn ahead_of(&self, owner: OwnerKey, other: OwnerKey) -> Option<Mode> {
        let &(position, mode) = self.places.get(&other)?;
        (position < self.position(owner)?).then_some(mode)
    }

    /// Whether a new request conflicts with nobody ahead of it, if its owner holds this.
    pub(super) fn lets_pass(&self, mode: Mode, held: Option<Mode>) -> bool {
        let Some(conflicting) = self.first_conflicting(mode) else {
            return true;
        };
        let next = held.and_then(|held| self.first_conflicting(held));
        next.is_some_and(|next| next <= conflicting)
    }

    /// Puts the request of one who holds this in the queue: at the end, but ahead of the first that
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

    /// The first that conflicts with nobody ahead of it and `fits`.
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

    /// Those in this part of the queue who ask for what conflicts with `mode`.
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

    /// All of it.
    pub(super) fn in_order(&self) -> Vec<Request> {
        let place =
            |(&owner, &(position, mode)): (&OwnerKey, &(_, _))| (position, Request { owner, mode });
        let mut all: Vec<_> = self.places.iter().map(place).collect();
        all.sort_unstable_by_key(|(position, _)| *position);
        all.into_iter().map(|(_, request)| request).collect()
    }

    /// The first whose request conflicts with `mode`.
    fn first_conflicting(&self, mode: Mode) -> Option<Position> {
        let all = modes_in(mode.conflicts()).map(|mode| &self.by_mode[mode as usize]);
        all.filter_map(|of| of.first_key_value())
            .map(|(&at, _)| at)
            .min()
    }

    /// For one who holds this, if there is any left.
    fn new_position(&self, held: Option<Mode>) -> Option<Position> {
        let Some(next) = held.and_then(|held| self.first_conflicting(held)) else {
            return self.last(Position::MAX).checked_add(ROOM);
        };
        let before = self.last(next - 1);
        let room = next - before;
        // So that many find room here, and some ahead of each of those.
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

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::WaitsAhead => "asks first for",
        })
    }
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
    pub(super) fn grant_next(&mut self) -> Option<(OwnerKey, Option<Mode>)> {
        let Request { owner, mode } = self.queue.next(|request| self.fits(request))?;
        self.queue.remove(owner);
        Some((owner, self.holders.set(owner, Some(mode))))
    }

    /// Why a request waits for this other owner, and in which mode that has or wants the resource.
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
