//! Messages that are dealt to a live turn, to be taken without asking here.

use std::collections::VecDeque;

use crate::dispatch::GroupKey;

use super::messages::Entry;
use super::{Backlog, Claim};

/// What a turn may take: the first messages of its group, all of tier 0, and
/// how many of them may be in flight now.
#[derive(Debug)]
pub struct Dealt<T> {
    entries: VecDeque<Entry<T>>,
    /// Units of the group's limit that are free.
    pub room: u32,
    /// Nothing waits in the group behind them.
    pub all: bool,
}

/// What a turn did with what it was dealt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Messages that it took.
    pub taken: u32,
    /// Deliveries that are done, also of what was taken before.
    pub done: u32,
}

impl<T> Dealt<T> {
    /// Nothing to take.
    pub fn nothing() -> Self {
        Self {
            entries: VecDeque::new(),
            room: 0,
            all: false,
        }
    }

    /// Whether everything of the group was taken.
    pub fn is_all_taken(&self) -> bool {
        self.all && self.entries.is_empty()
    }

    /// The next one, if there is one and room for it.
    pub fn take(&mut self, group: GroupKey) -> Option<Claim<T>> {
        let room = self.room.checked_sub(1)?;
        let entry = self.entries.pop_front()?;
        self.room = room;
        entry.claim(group, 0)
    }
}

impl<T> Backlog<T> {
    /// Deals the live turn of `group` up to so many messages. Until they are
    /// [settled up](Self::settle_up) they count as waiting, and nothing may be
    /// asked of this group but [`send`](Self::send). `None` if another limit
    /// than the group's could keep the turn from taking it, or if more are in
    /// flight than that.
    pub fn deal(&mut self, group: GroupKey, most: u32) -> Option<Dealt<T>> {
        if self.tiered {
            return None;
        }
        let room = self.core.free_units(group)?;
        let messages = self.messages(group);
        let entries = messages.deal(most);
        let all = entries.len() == messages.len();
        Some(Dealt { entries, room, all })
    }

    /// Takes back what is left of what was dealt, and the account of the rest.
    pub fn settle_up(&mut self, group: GroupKey, left: Dealt<T>, account: Account) {
        let Account { taken, done } = account;
        self.waiting -= u64::from(taken);
        self.in_flight = self.in_flight + u64::from(taken) - u64::from(done);
        let messages = self.messages(group);
        messages.deal_back(left.entries, taken);
        let head = messages.head_tier();
        let lane = self.core.settle_up(group, taken, done, head);
        self.core.settle(lane);
    }
}
