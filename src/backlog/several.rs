//! Messages that one worker claims together and does one after the other: of a run, or of serial
//! groups.
//!
//! The first message of a group is claimed, and those behind it are *lent*: for the group, its lane
//! and its tier they still wait, but nobody else finds them. The units that the claimed message
//! holds pass to each lent message in turn, and are returned after the last one of the group.

use std::vec::IntoIter;

use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::ready::Age;

use super::group::{Group, Place};
use super::member::{Member, Run};
use super::messages::Message;
use super::order::Order;
use super::{Backlog, Claim, GroupKey, InFlight, Item, Spot, at};

/// How many messages room is made for at first, at most.
const MANY: usize = 64;

/// Messages of one lane and tier: of a run; or of serial groups, of each the lent messages behind
/// one that was claimed or is in work.
#[derive(Debug)]
pub struct Several<T> {
    parts: Parts<T>,
    /// The units that the message in work holds, or that the first one will hold.
    holds: InFlight,
    /// How often the first had been overtaken; `None` once one of them, or one before them, is in
    /// work.
    overtaken: Option<u32>,
}

#[derive(Debug)]
pub(super) enum Parts<T> {
    Run(Run<T>),
    Groups(IntoIter<Part<T>>),
}

/// A message of a group.
#[derive(Debug)]
pub(super) struct Part<T> {
    group: GroupKey,
    seq: u64,
    /// When its group became ready; 0 for a lent message.
    ticket: u64,
    item: T,
}

impl<T> Several<T> {
    #[inline]
    pub(super) fn new(parts: Parts<T>, holds: InFlight, overtaken: Option<u32>) -> Self {
        Self {
            parts,
            holds,
            overtaken,
        }
    }

    /// How many are not in work yet.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.parts {
            Parts::Run(run) => run.len(),
            Parts::Groups(parts) => parts.len(),
        }
    }

    /// Whether none is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The units that the message in work holds.
    #[inline]
    pub fn holds(&self) -> InFlight {
        self.holds
    }

    /// Takes the next message if it `goes`, as what `part` makes of it. If it does not take over the
    /// units of the one in work, also gives that one's group.
    #[inline(always)]
    pub fn pop_if<R>(
        &mut self,
        goes: impl Fn(&T) -> bool,
        part: impl FnOnce(T) -> R,
    ) -> Option<(R, Option<GroupKey>)> {
        let popped = match &mut self.parts {
            Parts::Run(run) => (run.pop_if(goes, part)?, None),
            Parts::Groups(parts) => {
                parts.as_slice().first().filter(|next| goes(&next.item))?;
                let next = parts.next()?;
                let before = self.holds.group.replace(next.group);
                (part(next.item), before.filter(|_| next.ticket > 0))
            }
        };
        self.overtaken = None;
        Some(popped)
    }

    /// Whether one of them, or one before them, is in work.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.overtaken.is_none()
    }

    /// The messages that are not in work yet.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.spots().map(|(_, item)| item)
    }

    /// The same messages, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (run, parts) = match &mut self.parts {
            Parts::Run(run) => (Some(run), None),
            Parts::Groups(parts) => (None, Some(parts)),
        };
        let run = run.into_iter().flat_map(Run::iter_mut);
        let parts = parts.into_iter().flat_map(|parts| parts.as_mut_slice());
        run.chain(parts.map(|part| &mut part.item))
    }

    /// The same messages, each with the spot where it waited.
    pub fn spots(&self) -> impl Iterator<Item = (Spot, &T)> {
        let (run, parts) = match &self.parts {
            Parts::Run(run) => (Some(run), None),
            Parts::Groups(parts) => (None, Some(parts.as_slice())),
        };
        let InFlight { lane, tier, .. } = self.holds;
        let run = run.into_iter().flat_map(Run::iter);
        let run = run.map(move |(n, item)| (Spot::Alone(lane, tier, Place::new(n)), item));
        let parts = parts.into_iter().flatten();
        run.chain(parts.map(|part| (Spot::Group(part.group, part.seq), &part.item)))
    }
}

impl<T: Item> Backlog<T> {
    /// [`send`](Self::send) of each message into the group's last tier; the bump is that of the
    /// first. With `tell`, each learns where it waits.
    pub fn send_several(
        &mut self,
        group: GroupKey,
        bump: Option<u8>,
        items: Vec<Option<T>>,
        tell: bool,
    ) {
        let mut items = items.into_iter();
        let Some(first) = items.next().flatten() else {
            return;
        };
        let (seq, tier) = self.send(group, None, bump, first);
        let told = (seq + 1..).zip(items.as_slice()).filter(|_| tell);
        for (seq, item) in told.filter_map(|(seq, item)| Some((seq, item.as_ref()?))) {
            item.waits_at(Spot::Group(group, seq));
        }
        at(&mut self.groups, group).messages.extend(tier, items);
    }

    /// Claims the next groups while they are serial, up to `turns` of them, and lends the messages
    /// behind the first of each. Also returns how many groups these are. `limits` gets their lane
    /// and the first message, and says how many messages to take at most, and which ones: a refused
    /// message stays, with all behind it. `None` if the first is refused, if several lanes have
    /// work, or if the order is not that of age.
    #[inline]
    pub fn claim_groups<F: Fn(&T) -> bool>(
        &mut self,
        turns: usize,
        limits: impl Fn(LaneKey, &T) -> (usize, F),
    ) -> Option<(Several<T>, usize)> {
        let Order { lanes, clock } = &mut self.order;
        let groups = &mut self.groups;
        // `begin_while` takes only from lanes without tiers.
        let tier = 0;
        let (mut parts, mut limit) = (Vec::new(), None);
        let (lane, turns, overtaken) = lanes.begin_while(turns, |member| {
            let &Member::Group(index) = member else {
                return false;
            };
            let group = groups.entry_at(index);
            let Some((key, g)) = group.filter(|(_, g)| g.limit == Limit::SERIAL) else {
                return false;
            };
            let (before, lane) = (parts.len(), g.lane);
            if before == 0 {
                // A guess: as many of each group.
                parts.reserve(turns.saturating_mul(g.messages.len()).min(MANY));
            }
            g.lend(GroupKey(key), tier, &mut parts, |n, item| {
                let (most, goes) = limit.get_or_insert_with(|| limits(lane, item));
                n < *most && goes(item)
            });
            let [first, behind @ ..] = &mut parts[before..] else {
                return false;
            };
            *clock += 1;
            first.ticket = std::mem::replace(&mut g.place.ticket, *clock);
            let lent = (!behind.is_empty()).then_some(tier);
            (g.head, g.by_bump) = (lent.or(g.messages.head_tier()), false);
            g.in_flight += 1;
            true
        })?;
        let group = parts.first().map(|part| part.group);
        let holds = InFlight { lane, group, tier };
        let parts = Parts::Groups(parts.into_iter());
        Some((Several::new(parts, holds, Some(overtaken)), turns))
    }

    /// Whether messages could be lent behind the one that holds these units: it is of a serial
    /// group in which more wait, it was not claimed by a bump, and no other lane has work.
    #[inline]
    pub fn has_behind(&self, holds: InFlight) -> bool {
        let group = holds.group.and_then(|group| self.groups.get(group.0));
        group.is_some_and(|g| !g.messages.is_empty() && g.limit == Limit::SERIAL && !g.by_bump)
            && self.order.lanes.is_alone(holds.lane.index())
    }

    /// Lends up to `most` messages behind the one that holds these units of a serial group, of its
    /// tier, up to the first that `goes` refuses. Lends none while other lanes have work.
    #[inline]
    pub fn lend(
        &mut self,
        holds: InFlight,
        most: usize,
        mut goes: impl FnMut(&T) -> bool,
    ) -> Several<T> {
        let mut parts = Vec::new();
        if let Some(group) = holds.group.filter(|_| self.has_behind(holds)) {
            let g = at(&mut self.groups, group);
            g.lend(group, holds.tier, &mut parts, |n, item| {
                n < most && goes(item)
            });
        }
        Several::new(Parts::Groups(parts.into_iter()), holds, None)
    }

    /// The messages that are not in work wait again, where they waited.
    pub fn give_back(&mut self, claim: Several<T>) {
        let (holds, overtaken) = (claim.holds, claim.overtaken.unwrap_or(0));
        let back = |is_first, group, (seq, ticket), item| Claim {
            holds: InFlight { group, ..holds },
            seq,
            item,
            old: Place::new(ticket),
            overtaken: Some(if is_first { overtaken } else { 0 }),
        };
        let parts = match claim.parts {
            Parts::Run(run) => {
                let first = run.first();
                for (ticket, item) in run.into_last_first() {
                    self.unclaim(back(ticket == first, None, (0, ticket), item));
                }
                return;
            }
            Parts::Groups(parts) => parts,
        };
        let first = parts.as_slice().first();
        let behind = first.filter(|part| part.ticket == 0).map(|part| part.group);
        for (n, part) in parts.enumerate().rev() {
            let (group, tier, item) = (part.group, holds.tier, part.item);
            if part.ticket > 0 {
                self.unclaim(back(n == 0, Some(group), (part.seq, part.ticket), item));
                continue;
            }
            let messages = &mut at(&mut self.groups, group).messages;
            messages.put(part.seq, Message { tier, item });
        }
        if let Some(group) = behind {
            let g = at(&mut self.groups, group);
            self.order.join_and_update(group.0.index(), g, Age::Same);
        }
    }
}

impl<T> Group<T> {
    /// Moves the first messages to `parts`, while they are of this tier and `goes` accepts them. It
    /// gets the number of parts so far.
    #[inline]
    fn lend(
        &mut self,
        group: GroupKey,
        tier: u32,
        parts: &mut Vec<Part<T>>,
        mut goes: impl FnMut(usize, &T) -> bool,
    ) {
        let mut n = parts.len();
        let goes = |message: &Message<T>| {
            let goes = message.tier == tier && goes(n, &message.item);
            n += 1;
            goes
        };
        let take = |seq, Message { item, .. }| {
            parts.push(Part {
                group,
                seq,
                ticket: 0,
                item,
            });
        };
        self.messages.pop_while(goes, take);
    }
}
