//! Messages that are alone and came one after the other: while they wait for the first time
//! they stand in line as one, so that what is done for each of them is done for all.
//!
//! Invariant: the first of a run waits. Others that were taken out have left their places.

use std::vec::IntoIter;

use crate::lanes::LaneKey;
use crate::ready::{Position, STANDING_LEVEL, Stands};

use super::group::Place;
use super::order::{Member, Order};
use super::{Backlog, InFlight, Item, Spot};

/// Messages with tickets one after the other.
#[derive(Debug)]
pub(crate) struct Run<T> {
    /// The ticket of the first.
    first: u64,
    items: IntoIter<Option<T>>,
    waiting: usize,
}

/// Messages of a run that were taken together, each with a unit of the lane's cap.
#[derive(Debug)]
pub struct RunClaim<T> {
    /// Their lane.
    pub lane: LaneKey,
    /// Their tier.
    pub tier: u32,
    run: Run<T>,
    /// How often the first of them had been overtaken.
    overtaken: u32,
    /// The first has been taken out.
    begun: bool,
}

impl<T> Run<T> {
    fn new(first: u64, items: Vec<Option<T>>) -> Self {
        let waiting = items.len();
        let items = items.into_iter();
        Self {
            first,
            items,
            waiting,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// All that wait, each with its ticket.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let items = (self.first..).zip(self.items.as_slice());
        items.filter_map(|(ticket, item)| Some((ticket, item.as_ref()?)))
    }

    /// Takes the first, with its ticket.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        let item = self.items.next()??;
        let ticket = self.first;
        self.first += 1;
        self.waiting -= 1;
        if self.waiting > 0 {
            self.close_gap();
        }
        Some((ticket, item))
    }

    /// By the invariant.
    #[inline]
    fn close_gap(&mut self) {
        while let [None, ..] = self.items.as_slice() {
            self.items.next();
            self.first += 1;
        }
    }

    /// Takes one that is not the first.
    fn take(&mut self, ticket: u64) -> Option<T> {
        let at = ticket.checked_sub(self.first).filter(|&at| at > 0)?;
        let items = self.items.as_mut_slice();
        let item = items.get_mut(usize::try_from(at).ok()?)?.take()?;
        self.waiting -= 1;
        Some(item)
    }

    /// Takes so many from the front, up to the first that `goes` refuses, but not the last.
    fn take_first(&mut self, n: usize, goes: impl Fn(&T) -> bool) -> Option<Self> {
        let most = n.min(self.waiting - 1);
        let (mut places, mut n) = (0, 0);
        for item in self.items.as_slice() {
            if n == most || item.as_ref().is_some_and(|item| !goes(item)) {
                break;
            }
            places += 1;
            n += usize::from(item.is_some());
        }
        if n == 0 {
            return None;
        }
        let taken = Self {
            first: self.first,
            items: self
                .items
                .by_ref()
                .take(places)
                .collect::<Vec<_>>()
                .into_iter(),
            waiting: n,
        };
        (self.first, self.waiting) = (self.first + places as u64, self.waiting - n);
        self.close_gap();
        Some(taken)
    }
}

impl<T> RunClaim<T> {
    /// How many of them have not been taken out.
    pub fn len(&self) -> usize {
        self.run.len()
    }

    /// Takes the next; and whether it is not the first.
    #[inline]
    pub fn pop(&mut self) -> Option<(T, bool)> {
        self.overtaken = 0;
        let joins = std::mem::replace(&mut self.begun, true);
        Some((self.run.pop()?.1, joins))
    }

    /// What each of them holds.
    pub fn holds(&self) -> InFlight {
        InFlight {
            lane: self.lane,
            group: None,
            tier: self.tier,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.run.iter().map(|(_, item)| item)
    }
}

impl<T> Stands for Member<T> {
    #[inline]
    fn split_first(&mut self) -> Option<(Self, u64)> {
        let Self::Run(run) = self else {
            return None;
        };
        if run.waiting == 1 {
            return None;
        }
        let (ticket, item) = run.pop()?;
        Some((Self::Alone(Place::new(ticket), item), run.first))
    }
}

impl<T: Item> Backlog<T> {
    /// Sends messages that are alone, at least one, into tier 0.
    pub fn send_run(&mut self, lane: LaneKey, items: Vec<Option<T>>) {
        let first = self.order.mint_many(items.len() as u64);
        let run = Run::new(first, items);
        for (ticket, item) in run.iter() {
            item.waits_at(Spot::Alone(lane, 0, Place::new(ticket)));
        }
        let count = run.waiting;
        let lanes = &mut self.order.lanes;
        if lanes.lane(lane.index()).is_tiered() {
            (0..count).for_each(|_| lanes.change_head(lane.index(), None, Some(0)));
        }
        let line = lanes.line(lane.index(), 0);
        line.push_several(first, STANDING_LEVEL, Member::Run(Box::new(run)), count);
        lanes.settle(lane.index());
    }

    /// Takes messages of a run that are next, but not its last: `limits` is told their lane
    /// and the first, and says how many, and which of them. `None` if no two of a run are
    /// next.
    #[inline]
    pub fn claim_run<F: Fn(&T) -> bool>(
        &mut self,
        limits: impl FnOnce(LaneKey, &T) -> (usize, F),
    ) -> Option<RunClaim<T>> {
        let lanes = &mut self.order.lanes;
        let (run, lane, overtaken) = lanes.begin_several(|member, lane, room| {
            let Member::Run(run) = member else {
                return None;
            };
            let (most, goes) = limits(lane, run.iter().next()?.1);
            let taken = run.take_first(most.min(room), goes)?;
            let count = taken.len();
            Some((taken, count, run.first))
        })?;
        Some(RunClaim {
            lane: lanes.key(lane),
            tier: lanes.lane(lane).open_tier().unwrap_or(0),
            run,
            overtaken,
            begun: false,
        })
    }

    /// What is left of them goes back to its place, and their lane has those turns again.
    pub fn unclaim_run(&mut self, claim: RunClaim<T>) {
        let RunClaim {
            lane,
            tier,
            run,
            overtaken,
            ..
        } = claim;
        let (index, count) = (lane.index(), run.len());
        let lanes = &mut self.order.lanes;
        for (ticket, item) in run.into_iter().rev() {
            // It waits before it ceases to run, so that its tier stays outstanding.
            lanes.change_head(index, None, Some(tier));
            let place = Place::new(ticket);
            let position = place.position(STANDING_LEVEL);
            let line = lanes.line(index, tier);
            line.insert(ticket, position, Member::Alone(place, item));
        }
        self.complete_alone(lane, tier, count as u32);
        let lanes = &mut self.order.lanes;
        for n in (0..count).rev() {
            let overtaken = if n == 0 { overtaken } else { 0 };
            lanes.unclaim(index, Some(overtaken));
        }
    }
}

impl<T> Order<T> {
    /// Takes one of a run that is not its first. To be settled.
    pub(super) fn take_of_run(&mut self, lane: LaneKey, tier: u32, at: Position) -> Option<T> {
        let lanes = &mut self.lanes;
        lanes.take_covered(lane.index(), tier, at, |member| match member {
            Member::Run(run) => run.take(at.number()),
            _ => None,
        })
    }

    /// Whether one of a run that is not its first waits there.
    pub(super) fn is_in_run(&mut self, lane: LaneKey, tier: u32, at: Position) -> bool {
        let mut is_there = false;
        // It is looked at, and stays.
        _ = self
            .lanes
            .take_covered(lane.index(), tier, at, |member| -> Option<()> {
                if let Member::Run(run) = member {
                    is_there = run.iter().any(|(ticket, _)| ticket == at.number());
                }
                None
            });
        is_there
    }
}

impl<T> Member<T> {
    /// All of it that is alone, each with its place.
    pub(super) fn alone(&self) -> impl Iterator<Item = (Place, &T)> {
        let (one, run) = match self {
            Self::Alone(place, item) => (Some((*place, item)), None),
            Self::Run(run) => (None, Some(run)),
            Self::Group(_) => (None, None),
        };
        let run = run.into_iter().flat_map(|run| run.iter());
        let run = run.map(|(ticket, item)| (Place::new(ticket), item));
        one.into_iter().chain(run)
    }

    /// What is alone, or the only one of a run.
    #[inline]
    pub(super) fn into_alone(self) -> Option<(Place, T)> {
        match self {
            Self::Alone(place, item) => Some((place, item)),
            Self::Run(mut run) => {
                let (ticket, item) = run.pop()?;
                Some((Place::new(ticket), item))
            }
            Self::Group(_) => None,
        }
    }
}

impl<T> Run<T> {
    fn into_iter(self) -> impl DoubleEndedIterator<Item = (u64, T)> {
        let items = self.items.enumerate();
        items.filter_map(move |(n, item)| Some((self.first + n as u64, item?)))
    }
}
