//! What becomes of a group whose message fails: back-off, poison, and the way
//! back.
//!
//! Invariants, under the queue's lock:
//! 1. A group is in `resting` exactly if it is set aside for back-off, and in
//!    `poisoned` exactly if it is set aside as poisoned; never in both.
//! 2. A group in either has a waiting message, and so exists: whatever takes
//!    the last one out ([`Books::drain`]) takes the group out of both.
//! 3. An emptied map gives its last block back.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backlog::{Claim, ordinal};
use crate::dispatch::{Aside, GroupKey};
use crate::limit::Limit;
use crate::timers::{Timer, Timers};

use super::handles::GroupId;
use super::shared::{Books, Shared};

/// A group that was set aside because a message of it failed too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// Its name.
    pub group: GroupId,
    /// Which message it was: the n-th that was sent into the group; an error of
    /// a dialog: the n-th error.
    pub message: u64,
    /// How often it was delivered in vain.
    pub attempts: u32,
    /// How many messages wait in the group, that one counted.
    pub waiting: usize,
}

/// What a queue does about failures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) attempts: Limit,
    /// The pause after the first failure; zero for none.
    pub(super) first: Duration,
    /// No pause is longer.
    pub(super) most: Duration,
}

impl Policy {
    fn is_last(self, attempt: u32) -> bool {
        matches!(self.attempts, Limit::AtMost(most) if attempt >= most)
    }

    /// The pause after this attempt: doubled after each but the first.
    fn pause(self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

/// Who is set aside.
#[derive(Debug)]
pub(super) struct Asides {
    policy: Policy,
    timers: Timers<GroupKey>,
    resting: BTreeMap<GroupKey, Timer>,
    /// The number and the attempts of the message that did it.
    poisoned: BTreeMap<GroupKey, (u64, u32)>,
}

impl Asides {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            timers: Timers::new(),
            resting: BTreeMap::new(),
            poisoned: BTreeMap::new(),
        }
    }

    /// Takes a group out of both maps; false if it was in neither.
    fn forget(&mut self, group: GroupKey) -> bool {
        let timer = self.resting.remove(&group);
        if let Some(timer) = timer {
            self.timers.cancel(timer);
        }
        let poison = self.poisoned.remove(&group);
        if self.resting.is_empty() {
            self.resting = BTreeMap::new();
        }
        if self.poisoned.is_empty() {
            self.poisoned = BTreeMap::new();
        }
        timer.is_some() || poison.is_some()
    }

    /// A group rests for so long, or for as long as it rests already: then, and
    /// if there is no pause, false.
    fn rest(&mut self, group: GroupKey, pause: Duration) -> bool {
        let until = self.timers.now().saturating_add(pause);
        let earlier = self.resting.get(&group).copied();
        if pause.is_zero() || earlier.is_some_and(|timer| timer.at() >= until) {
            return false;
        }
        if let Some(timer) = earlier {
            self.timers.cancel(timer);
        }
        let timer = self.timers.set(until, group);
        self.resting.insert(group, timer);
        true
    }
}

impl<T> Books<T> {
    /// A delivery was not completed: its message goes back, and its group is
    /// set aside if that was the last attempt, or if there is a back-off. The
    /// message itself if nobody will ever receive it.
    pub(super) fn fail(&mut self, mut claim: Claim<T>) -> Option<T> {
        claim.attempt = claim.attempt.saturating_add(1);
        let (group, attempt) = (claim.group, claim.attempt);
        let wanted = self.wants(&claim.item);
        if !wanted || self.asides.poisoned.contains_key(&group) {
            return self.give_back(claim);
        }
        let aside = if self.asides.policy.is_last(attempt) {
            self.asides.forget(group);
            self.asides.poisoned.insert(group, (claim.seq, attempt));
            Some(Aside::Poisoned)
        } else {
            let pause = self.asides.policy.pause(attempt);
            self.asides.rest(group, pause).then_some(Aside::BackingOff)
        };
        match aside {
            Some(aside) => self.backlog.give_back_aside(claim, aside),
            None => self.backlog.give_back(claim),
        }
        None
    }

    /// Lets a group go on that is set aside; false if it is not.
    pub(super) fn resume(&mut self, group: GroupKey) -> bool {
        let was = self.asides.forget(group);
        if was {
            self.backlog.set_aside(group, None);
        }
        was
    }

    /// Takes out all that waits in a group that exists; it is set aside no more.
    pub(super) fn drain(&mut self, group: GroupKey) -> Vec<T> {
        // Pinned, so that it is there to be let go on.
        self.backlog.pin(group);
        let items = self.backlog.drain(group);
        self.resume(group);
        self.backlog.unpin(group);
        items
    }

    /// Takes out what waits in a pinned group and `fits`. The group goes on if
    /// that was what it was set aside for, or all that it had.
    pub(super) fn retract(&mut self, group: GroupKey, fits: impl FnMut(&T) -> bool) -> Vec<T> {
        let taken = self.backlog.retract(group, fits);
        let cause = self
            .asides
            .poisoned
            .get(&group)
            .map(|&(message, _)| message);
        let cured = taken.iter().any(|&(seq, _)| Some(seq) == cause);
        if cured || self.backlog.waiting_in(group) == 0 {
            self.resume(group);
        }
        taken.into_iter().map(|(_, message)| message).collect()
    }

    /// Ends a look at a message, which goes to its place; itself if nobody will
    /// ever receive it. The group goes on if that was all that it had.
    pub(super) fn end_look(&mut self, group: GroupKey, message: T) -> Option<T> {
        if self.wants(&message) {
            self.backlog.put_back(group, Some(message));
            return None;
        }
        self.backlog.pin(group);
        self.backlog.put_back(group, None);
        if self.backlog.waiting_in(group) == 0 {
            self.resume(group);
        }
        self.backlog.unpin(group);
        Some(message)
    }

    /// Tells the time; when to tell it next.
    pub(super) fn advance(&mut self, now: Duration) -> Option<Duration> {
        self.asides.timers.advance(now);
        while let Some((_, group)) = self.asides.timers.due() {
            self.resume(group);
        }
        self.asides.timers.next()
    }
}

impl<T> Shared<T> {
    /// The poisoned groups, by name.
    pub(super) fn poisoned(&self) -> Vec<Poisoned> {
        self.look(|books| {
            let poisoned = books.asides.poisoned.iter();
            let listed = poisoned.map(|(&key, &(message, attempts))| Poisoned {
                group: GroupId::new(self, key),
                message: ordinal(message),
                attempts,
                waiting: books.backlog.waiting_in(key),
            });
            listed.collect()
        })
    }
}
