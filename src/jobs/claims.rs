//! Claims: how a job is taken, and how it comes back or ends.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::slab::Key;
use crate::timers::Timer;

use super::home::Home;
use super::records::{State, compare};
use super::{Jobs, Name, PINNED, Pinned, Taken};

/// The claim is over: its lease ran out, and the job has gone back. Nothing has
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired;

impl fmt::Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the claim's lease has run out")
    }
}

impl Error for Expired {}

/// A claim as the policy knows it. Claims are numbered, so that one that is
/// over never ends a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The job.
    pub id: Key,
    /// How many attempts were counted before.
    pub attempts: u32,
    number: u64,
}

/// What becomes of a job that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclaim {
    /// It waits again.
    Ready,
    /// It waits again, and is due at this time.
    At(Duration),
    /// As `At`, and the attempt does not count.
    Snoozed(Duration),
    /// It waits again after the pause of its attempt, or is dead if that happened
    /// too often.
    Failed,
    /// As `Failed`, and due at this time instead.
    FailedUntil(Duration),
    /// It is dead.
    FailedForGood,
}

impl<K: Ord, J> Jobs<K, J> {
    /// Claims up to `n` jobs, of one tenant or group if it is said, in order, each counted
    /// as a dispatch. With a lease they come back at that time. For a part no tenant's turn
    /// moves on.
    ///
    /// Runs the user's `Ord`. If that panics, nothing is claimed; only the turns
    /// of tenants may have moved on.
    pub fn claim(&mut self, of: Option<Pinned>, n: usize, lease: Option<Duration>) -> Vec<Pick> {
        let n = n.min(usize::try_from(self.eligible_of(of)).unwrap_or(n));
        let mut picks = std::mem::take(&mut self.picks);
        picks.reserve(n);
        let mut claiming = Claiming { jobs: self, picks };
        for _ in 0..n {
            let pick = claiming.jobs.claim_one(of, lease);
            claiming.picks.extend(pick);
        }
        std::mem::take(&mut claiming.picks)
    }

    /// The list of a claim is used for the next one, unless it has grown large.
    #[inline]
    pub fn reuse(&mut self, mut picks: Vec<Pick>) {
        picks.clear();
        if picks.capacity() <= PICKS_KEPT {
            self.picks = picks;
        }
    }

    #[inline]
    fn claim_one(&mut self, of: Option<Pinned>, lease: Option<Duration>) -> Option<Pick> {
        self.update_lines();
        let part = of.map(Pinned::home);
        let (current, of_group) = part.or_else(|| Some((self.ring.current()?, None)))?;
        let tenant = self.tenants.by_index_mut(current).expect(PINNED);
        let at = if let Some(group) = of_group {
            self.groups.by_index(group).expect(PINNED).front?
        } else {
            let first = |one, other| compare(&self.jobs, one, other);
            tenant.line.head(first)?
        };
        if of.is_none() {
            self.ring.served(&mut tenant.link);
        }
        self.last += 1;
        let number = self.last;
        let (id, job) = self.jobs.entry_at(at).expect(PINNED);
        let attempts = job.attempts;
        let lease = lease.map(|until| self.timers.set(until, id));
        let state = State::Claimed {
            claim: number,
            lease,
        };
        job.state = state;
        let group = (job.group).map(|group| self.groups.entry_at(group).expect(PINNED));
        let mut home = Home { tenant, group };
        home.remove(&mut self.jobs, at);
        let states = (State::Ready, state);
        let balance = home.count(&mut self.jobs, &mut self.dirty, states);
        self.count(current, balance, states);
        Some(Pick {
            id,
            attempts,
            number,
        })
    }
}

/// A list of so many picks is kept for the next claim.
const PICKS_KEPT: usize = 64;

/// What has been claimed so far; unclaimed if a comparison panics.
struct Claiming<'a, K, J> {
    jobs: &'a mut Jobs<K, J>,
    picks: Vec<Pick>,
}

impl<K, J> Drop for Claiming<'_, K, J> {
    fn drop(&mut self) {
        for pick in self.picks.drain(..) {
            self.jobs.set_state(pick.id.index(), State::Ready);
        }
    }
}

impl<K, J> Jobs<K, J> {
    /// Whether this claim still holds.
    pub fn holds(&self, pick: Pick) -> bool {
        self.held(pick).is_ok()
    }

    /// The key of a claimed job, its tenant, and its group.
    pub fn claimed(&self, pick: Pick) -> Result<(&K, &Name, Option<&Name>), Expired> {
        self.held(pick)?;
        let job = self.job(pick.id.index());
        let group = job.group.map(|group| &self.group(group).name);
        Ok((&job.key, &self.tenant(job.tenant).name, group))
    }

    /// A claimed job's data, to change it.
    #[inline]
    pub fn claimed_data(&mut self, id: Key) -> &mut J {
        &mut self.job_mut(id.index()).data
    }

    /// The lease of a claim that still holds.
    #[inline]
    fn held(&self, pick: Pick) -> Result<Option<Timer>, Expired> {
        match self.jobs.get(pick.id).map(|job| &job.state) {
            Some(&State::Claimed { claim, lease }) if claim == pick.number => Ok(lease),
            _ => Err(Expired),
        }
    }

    /// The job is done.
    #[inline]
    pub fn complete(&mut self, pick: Pick) -> Result<Taken<K, J>, Expired> {
        let lease = self.held(pick)?;
        let claim = pick.number;
        Ok(self.end(pick.id, State::Claimed { claim, lease }))
    }

    /// The job is not done; whether it is dead now. One attempt is counted.
    pub fn give_back(&mut self, pick: Pick, how: Unclaim) -> Result<bool, Expired> {
        self.held(pick)?;
        Ok(self.unclaim(pick.id, how, self.timers.now()))
    }

    /// As [`give_back`](Self::give_back), for a job that failed at this time if it did.
    fn unclaim(&mut self, id: Key, how: Unclaim, at: Duration) -> bool {
        let mut retry = self.retry;
        let job = self.job_mut(id.index());
        if !matches!(how, Unclaim::Snoozed(_)) {
            job.attempts = job.attempts.saturating_add(1);
        }
        let attempts = job.attempts;
        retry.attempts = job.most_attempts.unwrap_or(retry.attempts);
        let dead = match how {
            Unclaim::Failed | Unclaim::FailedUntil(_) => retry.is_last(attempts),
            Unclaim::FailedForGood => true,
            Unclaim::Ready | Unclaim::At(_) | Unclaim::Snoozed(_) => false,
        };
        let due = match how {
            Unclaim::At(due) | Unclaim::Snoozed(due) | Unclaim::FailedUntil(due) => due,
            Unclaim::Failed => at.saturating_add(retry.pause(attempts)),
            Unclaim::Ready | Unclaim::FailedForGood => Duration::ZERO,
        };
        let state = if dead {
            State::Dead(self.number())
        } else {
            self.wait_until(id, due)
        };
        self.set_state(id.index(), state);
        dead
    }

    /// The claim's lease ends at this time instead.
    pub fn extend(&mut self, pick: Pick, until: Duration) -> Result<(), Expired> {
        self.held(pick)?;
        let timer = self.timers.set(until, pick.id);
        let job = self.jobs.get_mut(pick.id).expect(PINNED);
        if let State::Claimed { lease, .. } = &mut job.state
            && let Some(old) = lease.replace(timer)
        {
            self.timers.cancel(old);
        }
        Ok(())
    }

    /// Tells the time: what is due is due, and what was leased until now comes
    /// back, as after a failure. The next time at which there is something to
    /// do.
    pub fn advance(&mut self, now: Duration) -> Option<Duration> {
        self.timers.advance(now);
        while let Some((timer, id)) = self.timers.due() {
            match self.job(id.index()).state {
                State::Later(_) => self.set_state(id.index(), State::Ready),
                State::Claimed { .. } => _ = self.unclaim(id, Unclaim::Failed, timer.at()),
                State::Ready | State::Dead(_) | State::Uncounted => {}
            }
        }
        self.next_due()
    }

    /// It is `now`; what is due waits for [`advance`](Self::advance).
    pub fn tell(&mut self, now: Duration) {
        self.timers.advance(now);
    }

    /// When there will be something to do.
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// The latest time told.
    pub fn now(&self) -> Duration {
        self.timers.now()
    }
}
