//! Messages of a serial group that one reader takes together, to do them one after the other.
//!
//! The first is claimed. The others are lent: for the group, its lane and its tier they wait
//! until it is their turn, but nobody else finds them. What the first holds is held by the one
//! at work, and completed after the last.

use std::vec::IntoIter;

use crate::limit::Limit;
use crate::ready::Age;

use super::messages::Message;
use super::{Backlog, Claim, GroupKey, InFlight, Item, Spot, at};

/// A claimed message of a serial group, and those that were lent behind it.
#[derive(Debug)]
pub struct GroupClaim<T> {
    /// `None` once it is at work.
    first: Option<Claim<T>>,
    lent: IntoIter<(u64, T)>,
    holds: InFlight,
}

impl<T> GroupClaim<T> {
    /// A claim, with what was lent for it.
    pub fn new(claim: Claim<T>, lent: Vec<(u64, T)>) -> Self {
        Self {
            holds: claim.holds(),
            first: Some(claim),
            lent: lent.into_iter(),
        }
    }

    /// What was lent behind a message that is at work, and holds this.
    pub fn behind(holds: InFlight, lent: Vec<(u64, T)>) -> Self {
        let (first, lent) = (None, lent.into_iter());
        Self { first, lent, holds }
    }

    /// How many are not at work yet.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.lent.len()
    }

    /// Whether all are at work, or have been.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the one at work holds.
    #[inline]
    pub fn holds(&self) -> InFlight {
        self.holds
    }

    /// Takes the next.
    pub fn pop(&mut self) -> Option<T> {
        match self.first.take() {
            Some(first) => Some(first.item),
            None => Some(self.lent.next()?.1),
        }
    }

    /// Takes the next if it takes over what the one before held.
    #[inline]
    pub fn pop_joined(&mut self) -> Option<T> {
        match self.first {
            Some(_) => None,
            None => Some(self.lent.next()?.1),
        }
    }

    /// Whether the next takes over what the one before held.
    pub fn goes_on(&self) -> bool {
        self.first.is_none() && self.lent.len() > 0
    }

    /// All that are not at work yet.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let first = self.first.iter().map(|first| &first.item);
        first.chain(self.lent.as_slice().iter().map(|(_, item)| item))
    }
}

impl<T: Item> Backlog<T> {
    /// As [`send`](Self::send) of each, of the first with this bump, all into the group's last
    /// tier.
    pub fn send_several(&mut self, group: GroupKey, bump: Option<u8>, items: Vec<Option<T>>) {
        let mut items = items.into_iter().flatten();
        let Some(first) = items.next() else {
            return;
        };
        let (_, tier) = self.send(group, None, bump, first);
        let messages = &mut at(&mut self.groups, group).messages;
        for item in items {
            item.waits_at(Spot::Group(group, messages.next_seq()));
            messages.add(tier, item);
        }
    }

    /// Whether anything could be lent behind what holds this: it is of a serial group in which
    /// more waits, no bump brought it forward, and no other lane has work.
    #[inline]
    pub fn has_behind(&self, holds: InFlight) -> bool {
        let group = holds.group.and_then(|group| self.groups.get(group.0));
        group.is_some_and(|g| !g.messages.is_empty() && g.limit == Limit::SERIAL && !g.by_bump)
            && self.order.lanes.is_alone(holds.lane.index())
    }

    /// Lends those behind the one that holds this of a serial group: at most so many, of its tier,
    /// up to the first that `goes` refuses, each with its number. None of another group, and
    /// none while other lanes have work.
    #[inline]
    pub fn lend(
        &mut self,
        holds: InFlight,
        most: usize,
        mut goes: impl FnMut(&T) -> bool,
    ) -> Vec<(u64, T)> {
        let mut lent = Vec::new();
        let group = holds.group.filter(|_| self.has_behind(holds));
        let Some(group) = group else {
            return lent;
        };
        let g = at(&mut self.groups, group);
        lent.reserve(most.min(g.messages.len()));
        while lent.len() < most
            && let Some((_, next)) = &g.messages.first
            && next.tier == holds.tier
            && goes(&next.item)
            && let Some((seq, message)) = g.messages.pop()
        {
            lent.push((seq, message.item));
        }
        lent
    }

    /// Those that are not at work wait again, where they waited.
    pub fn give_back(&mut self, claim: GroupClaim<T>) {
        let GroupClaim { first, lent, holds } = claim;
        let group = holds.group.expect("it is a group's");
        let g = at(&mut self.groups, group);
        for (seq, item) in lent.rev() {
            let tier = holds.tier;
            g.messages.put(seq, Message { tier, item });
        }
        match first {
            Some(first) => self.unclaim(first),
            None => self.order.join_and_settle(group.0.index(), g, Age::Same),
        }
    }
}
