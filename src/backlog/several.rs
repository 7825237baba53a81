//! Messages of serial groups that one reader takes together, to do them one after the other.
//!
//! The first of each group is claimed. Those behind it are lent: for the group, its lane and its
//! tier they wait until it is their turn, but nobody else finds them. What the first holds is held
//! by the one at work, and completed after the last of the group.

use std::vec::IntoIter;

use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::ready::Age;

use super::group::{Group, Place};
use super::member::Member;
use super::messages::Message;
use super::order::Order;
use super::{Backlog, Claim, GroupKey, InFlight, Item, Spot, at};

/// Room is made for so many at first.
const MANY: usize = 64;

/// Messages of serial groups of one lane and tier: of each group those that were lent, behind
/// one that was claimed, or that is at work.
#[derive(Debug)]
pub struct GroupClaim<T> {
    parts: IntoIter<Part<T>>,
    /// What the one at work holds, or the first will.
    holds: InFlight,
    /// How often the first had been overtaken.
    overtaken: u32,
    /// One of them, or one before them, is at work.
    begun: bool,
}

#[derive(Debug)]
struct Part<T> {
    group: GroupKey,
    seq: u64,
    /// When its group had become ready; 0 if it was lent.
    ticket: u64,
    item: T,
}

impl<T> GroupClaim<T> {
    /// How many are not at work yet.
    #[inline]
    pub fn len(&self) -> usize {
        self.parts.len()
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
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let Part { group, item, .. } = self.parts.next()?;
        (self.holds.group, self.overtaken, self.begun) = (Some(group), 0, true);
        Some(item)
    }

    /// Whether one of them, or one before them, is at work.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether the next takes over what the one at work holds.
    pub fn goes_on(&self) -> bool {
        let next = self.parts.as_slice().first();
        self.begun && next.is_some_and(|next| next.ticket == 0)
    }

    /// All that are not at work yet.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.as_slice().iter().map(|part| &part.item)
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
        messages.reserve(items.size_hint().1.unwrap_or(0));
        for item in items {
            item.waits_at(Spot::Group(group, messages.next_seq()));
            messages.add(tier, item);
        }
    }

    /// As [`claim`](Self::claim) of the groups that are next, of at most so many, as long as they
    /// are serial, with all that is lent behind each; and how many these are. What `goes`
    /// refuses stays where it is, with all behind it. `None` if that is the first, if several
    /// lanes have work, or where the order is not that of age.
    #[inline]
    pub fn claim_groups(
        &mut self,
        turns: usize,
        mut goes: impl FnMut(LaneKey, &T) -> bool,
    ) -> Option<(GroupClaim<T>, usize)> {
        let Order { lanes, clock } = &mut self.order;
        let groups = &mut self.groups;
        // There is no other in a lane that is next without tiers.
        let tier = 0;
        let mut parts = Vec::new();
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
                parts.reserve(turns.min(MANY));
            }
            g.lend(GroupKey(key), tier, &mut parts, |_, item| goes(lane, item));
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
        let claim = GroupClaim {
            parts: parts.into_iter(),
            holds: InFlight { lane, group, tier },
            overtaken,
            begun: false,
        };
        Some((claim, turns))
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
    /// up to the first that `goes` refuses. None of another group, and none while other lanes
    /// have work.
    #[inline]
    pub fn lend(
        &mut self,
        holds: InFlight,
        most: usize,
        mut goes: impl FnMut(&T) -> bool,
    ) -> GroupClaim<T> {
        let mut parts = Vec::new();
        if let Some(group) = holds.group.filter(|_| self.has_behind(holds)) {
            let g = at(&mut self.groups, group);
            g.lend(group, holds.tier, &mut parts, |n, item| {
                n < most && goes(item)
            });
        }
        let (parts, overtaken, begun) = (parts.into_iter(), 0, true);
        GroupClaim {
            parts,
            holds,
            overtaken,
            begun,
        }
    }

    /// Those that are not at work wait again, where they waited.
    pub fn give_back(&mut self, claim: GroupClaim<T>) {
        let InFlight { lane, tier, .. } = claim.holds;
        let first = claim.parts.as_slice().first();
        let behind = first.filter(|part| part.ticket == 0).map(|part| part.group);
        for (n, part) in claim.parts.enumerate().rev() {
            let Part {
                group,
                seq,
                ticket,
                item,
            } = part;
            if ticket == 0 {
                let messages = &mut at(&mut self.groups, group).messages;
                messages.put(seq, Message { tier, item });
                continue;
            }
            let overtaken = if n == 0 { claim.overtaken } else { 0 };
            self.unclaim(Claim {
                lane,
                group: Some(group),
                seq,
                tier,
                item,
                old: Place::new(ticket),
                overtaken: Some(overtaken),
            });
        }
        if let Some(group) = behind {
            let g = at(&mut self.groups, group);
            self.order.join_and_update(group.0.index(), g, Age::Same);
        }
    }
}

impl<T> Group<T> {
    /// Moves what waits first to `parts`, as long as it is of this tier and `goes`, which is told
    /// how many are there.
    #[inline]
    fn lend(
        &mut self,
        group: GroupKey,
        tier: u32,
        parts: &mut Vec<Part<T>>,
        mut goes: impl FnMut(usize, &T) -> bool,
    ) {
        self.messages.pop_while(|seq, message| {
            if message.tier != tier || !goes(parts.len(), &message.item) {
                return Err(message);
            }
            let (ticket, item) = (0, message.item);
            parts.push(Part {
                group,
                seq,
                ticket,
                item,
            });
            Ok(())
        });
    }
}
