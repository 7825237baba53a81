//! A lane in which tiers are in use.

use std::collections::BTreeMap;

use crate::ready::{ReadyItem, ReadyQueue};
use crate::tiers::Tiers;

use super::{Lane, Lanes};

/// The tiers of one lane.
#[derive(Debug)]
pub(super) struct Tiered<G> {
    pub(super) tiers: Tiers,
    /// The tier whose ready queue is the lane's `ready`.
    pub(super) front: u32,
    pub(super) parked: BTreeMap<u32, ReadyQueue<G>>,
}

impl<G: ReadyItem> Tiered<G> {
    /// Whether the lane's `ready` is the queue of the open tier, or no tier is open.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.tiers.open().is_none_or(|open| open == self.front)
    }

    /// Whether nothing may start: no tier is open, or the open one drains.
    #[inline]
    pub(super) fn is_shut(&self) -> bool {
        self.tiers.open().is_none() || self.tiers.draining()
    }

    /// Makes the ready queue of the open tier the lane's `ready`.
    pub(super) fn turn_to_open(&mut self, ready: &mut ReadyQueue<G>) {
        let Some(open) = self.tiers.open().filter(|&open| open != self.front) else {
            return;
        };
        let next = self.parked.remove(&open).unwrap_or_default();
        let last = std::mem::replace(ready, next);
        if !last.is_empty() {
            self.parked.insert(self.front, last);
        }
        self.front = open;
    }
}

impl<G: ReadyItem> Lane<G> {
    /// How many groups are in the ready queue of the open tier.
    pub fn ready_len(&self) -> u64 {
        self.ready.count(usize::MAX) as u64
    }

    /// All groups in its ready queues, each with the tier of its queue, in no order.
    pub fn members(&self) -> impl Iterator<Item = (u32, &G)> {
        let tiered = self.tiered.as_ref();
        let front = tiered.map_or(0, |tiered| tiered.front);
        let parked = tiered.into_iter().flat_map(|tiered| &tiered.parked);
        let parked = parked.flat_map(|(&tier, ready)| ready.iter().map(move |g| (tier, g)));
        self.ready.iter().map(move |g| (front, g)).chain(parked)
    }

    /// Whether tiers are in use.
    pub fn is_tiered(&self) -> bool {
        self.tiered.is_some()
    }

    /// The tier that is open, if tiers are in use.
    pub fn open_tier(&self) -> Option<u32> {
        self.tiered.as_ref()?.tiers.open()
    }

    /// Whether a message of this tier may start now.
    pub fn may_start(&self, tier: u32) -> bool {
        let tiered = self.tiered.as_ref();
        tiered.is_none_or(|tiered| tiered.tiers.startable(tier))
    }

    /// Whether the open tier starts nothing new, because a lower tier has work.
    pub fn drains(&self) -> bool {
        let tiered = self.tiered.as_ref();
        tiered.is_some_and(|tiered| tiered.tiers.draining())
    }
}

impl<G: ReadyItem> Lanes<G> {
    /// Uses tiers from now on; `false` if they were in use before.
    pub fn use_tiers(&mut self, lane: u32) -> bool {
        let lane = self.lane_mut(lane);
        let new = lane.tiered.is_none();
        if new {
            lane.tiered = Some(Box::new(Tiered {
                tiers: Tiers::new(),
                front: 0,
                parked: BTreeMap::new(),
            }));
        }
        new
    }

    /// The tiers of a lane. They count the first message of each group, and the messages that have
    /// started. The caller then updates the lane.
    ///
    /// # Panics
    ///
    /// If the lane does not use tiers.
    pub fn tiers(&mut self, lane: u32) -> &mut Tiers {
        let tiered = self.lane_mut(lane).tiered.as_mut();
        &mut tiered.expect("tiers are in use").tiers
    }

    /// The first message of a group is of tier `new` now, and was of tier `old`. This is counted if
    /// tiers are in use. The caller then updates the lane.
    #[inline]
    pub fn change_head(&mut self, lane: u32, old: Option<u32>, new: Option<u32>) {
        if let Some(tiered) = &mut self.lane_mut(lane).tiered
            && old != new
        {
            if let Some(tier) = new {
                tiered.tiers.arrive(tier);
            }
            if let Some(tier) = old {
                tiered.tiers.leave(tier);
            }
        }
    }

    /// Messages of this tier have ended. Counted only with tiers. The caller then updates the lane.
    #[inline]
    pub fn finish_all(&mut self, lane: u32, tier: u32, messages: u32) {
        if let Some(tiered) = &mut self.lane_mut(lane).tiered {
            tiered.tiers.finish_all(tier, messages);
        }
    }
}
