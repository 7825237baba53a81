//! Runs: messages without a group that were sent together are one entry of the ready queue until
//! they are claimed, so that its steps are done once for all of them.
//!
//! Invariant: the first place of a run is no gap. Other messages that were taken out left gaps.

use crate::lanes::LaneKey;
use crate::limit::DEFAULT_LEVEL;

use super::group::Place;
use super::member::{Member, Run};
use super::several::{Parts, Several};
use super::{Backlog, InFlight, Item, Spot};

impl<T: Item> Backlog<T> {
    /// The two lanes that have work and room, if there are two.
    #[inline]
    pub fn pair(&self) -> Option<(LaneKey, LaneKey)> {
        self.order.lanes.pair()
    }

    /// Where the messages of the next [`send_run`](Self::send_run) will wait.
    pub fn next_spots(&self, lane: LaneKey) -> impl Iterator<Item = Spot> + use<T> {
        let tickets = self.order.clock + 1..;
        tickets.map(move |ticket| Spot::Alone(lane, 0, Place::new(ticket)))
    }

    /// Sends at least one message as a run, into tier 0. With `tell`, each learns where it waits.
    /// With `mark`, some may be marked (see `Item`).
    pub fn send_run(&mut self, lane: LaneKey, items: Vec<Option<T>>, tell: bool, mark: bool) {
        let first = self.order.mint_many(items.len() as u64);
        let mut run = Run::new(first, items, mark);
        for (ticket, item) in run.iter().filter(|_| tell) {
            item.waits_at(Spot::Alone(lane, 0, Place::new(ticket)));
        }
        let count = run.len();
        let lanes = &mut self.order.lanes;
        if lanes.lane(lane.index()).is_tiered() {
            (0..count).for_each(|_| lanes.change_head(lane.index(), None, Some(0)));
        }
        let ready = lanes.ready(lane.index(), 0);
        // The message before these, if it waits alone, begins the run.
        let is_alone = |member: &_| matches!(member, Member::Alone(..));
        if let Some(Member::Alone(_, item)) = ready.take_only(first - 1, DEFAULT_LEVEL, is_alone) {
            let mark = item.is_marked();
            run.put_first(item, mark);
        }
        let (first, count) = (run.first(), run.len());
        ready.push_several(first, DEFAULT_LEVEL, Member::Run(Box::new(run)), count);
        lanes.update(lane.index());
    }

    /// Claims messages of a run, if one is next. `limits` gets their lane, the first message and the
    /// mark, and says how many to take at most, and which ones, or that all may go: then no message
    /// is looked at, unless one was taken out. `None` if there are no two of a run to take. With
    /// `together`, the lane goes on when its credit is used up.
    #[inline]
    pub fn claim_run<F: Fn(&T) -> bool>(
        &mut self,
        together: bool,
        limits: impl FnOnce(LaneKey, &T, bool) -> (usize, Option<F>),
    ) -> Option<Several<T>> {
        let lanes = &mut self.order.lanes;
        let (run, lane, overtaken) = lanes.begin_several(together, |member, lane, room| {
            let Member::Run(run) = member else {
                return None;
            };
            let (most, goes) = limits(lane, run.iter().next()?.1, run.mark());
            // A single message is cheaper by a claim of its own.
            let most = most.min(room).min(run.len());
            let taken = (most > 1).then(|| run.split(most, goes))?;
            let next = (run.len() > 0).then(|| run.first());
            Some((taken.len(), next, taken)).filter(|&(count, ..)| count > 0)
        })?;
        let holds = InFlight {
            lane: lanes.key(lane),
            group: None,
            tier: lanes.lane(lane).open_tier().unwrap_or(0),
        };
        Some(Several::new(Parts::Run(run), holds, Some(overtaken)))
    }
}
