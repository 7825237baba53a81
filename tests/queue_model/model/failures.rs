//! Groups that are poisoned, in back-off, drained or peeked at.

use std::time::Duration;

use conversant::queue::{NoMore, NoTurn};

use super::{Hold, Message, Model};

impl Model {
    pub fn poisoned(&self) -> Vec<usize> {
        let when = |&g: &usize| self.groups[g].poison.map(|(_, when)| when);
        let poisoned = (0..self.groups.len()).filter(|g| when(g).is_some());
        let mut poisoned: Vec<_> = poisoned.collect();
        poisoned.sort_by_key(when);
        poisoned
    }

    pub fn unreported(&self) -> Vec<usize> {
        self.poisoned()
            .into_iter()
            .filter(|&g| !self.groups[g].reported)
            .collect()
    }

    /// What a wait for a poisoned group gives.
    pub fn report(&mut self) -> Option<Result<usize, NoMore>> {
        match self.unreported().first() {
            Some(&group) => {
                self.groups[group].reported = true;
                Some(Ok(group))
            }
            None => self.no_more().map(Err),
        }
    }

    /// False if the group is not suspended.
    pub fn resume(&mut self, group: usize) -> bool {
        let age = self.tick();
        let g = &mut self.groups[group];
        let suspended = g.poison.is_some() || g.paused_until.is_some();
        if g.poison.is_some() {
            g.age = age;
            g.waiting
                .values_mut()
                .for_each(|message| message.failed = 0);
        }
        (g.poison, g.paused_until) = (None, None);
        self.settle();
        suspended
    }

    pub fn take_failed(&mut self, group: usize) -> Option<u32> {
        let g = &mut self.groups[group];
        let (number, _) = g.poison?;
        if g.hold == Some(Hold::Peek(number)) {
            return None;
        }
        let failed = g.waiting.remove(&number)?;
        self.resume(group);
        self.outstanding -= 1;
        Some(failed.id)
    }

    /// Leaves what is peeked at.
    pub fn drain(&mut self, group: usize) -> Vec<u32> {
        let g = &mut self.groups[group];
        let mut all = std::mem::take(&mut g.waiting);
        if let Some(Hold::Peek(number)) = g.hold {
            g.waiting.extend(all.remove_entry(&number));
        }
        self.outstanding -= all.len() as u64;
        self.resume(group);
        all.into_values().map(|message| message.id).collect()
    }

    pub fn shutdown(&mut self, order: &[usize]) -> Vec<u32> {
        self.closed = true;
        order.iter().flat_map(|&group| self.drain(group)).collect()
    }

    pub fn advance(&mut self, now: Duration) -> Option<Duration> {
        self.now = self.now.max(now);
        let date = |g: &usize| self.groups[*g].paused_until;
        let due =
            (0..self.groups.len()).filter(|g| date(g).is_some_and(|(date, _)| date <= self.now));
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(date);
        for group in due {
            self.resume(group);
        }
        self.groups
            .iter()
            .filter_map(|g| Some(g.paused_until?.0))
            .min()
    }

    pub fn peek(&mut self, group: usize) -> Result<Message, NoTurn> {
        if self.has_ended(group) {
            return Err(NoTurn::Stale);
        }
        let g = &mut self.groups[group];
        if g.hold.is_some() {
            return Err(NoTurn::Held);
        }
        let first = g.waiting.first_key_value().ok_or(NoTurn::Empty)?.1.clone();
        g.hold = Some(Hold::Peek(first.number));
        self.settle();
        Ok(first)
    }

    pub fn end_peek(&mut self, group: usize) {
        self.groups[group].hold = None;
        self.settle();
    }
}
