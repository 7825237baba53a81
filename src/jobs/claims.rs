//! Claims: how a job is taken, and how it comes back or ends.

use std::time::Duration;

use crate::shown::error_says;
use crate::slab::Key;

use super::home::Home;
use super::records::{Job, Rare, State, compare};
use super::{Jobs, Name, Pinned, Taken};

/// The claim is over: its lease ran out, and the job has gone back. Nothing has
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expired;

error_says!(Expired { Self => "the claim's lease has run out" });

/// A claim as the policy knows it; a caller that ends it does not use it again. Claims are
/// numbered, so that a claim whose lease ran out never ends a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The job.
    pub id: Key,
    /// How many attempts were counted before.
    pub attempts: u32,
    number: u64,
}

impl Pick {
    /// Whether the job is claimed, and by this claim. Only a claim with a lease can be over without
    /// its knowledge, so the number is stored with the lease.
    #[inline(always)]
    fn is_of<K, J>(self, job: &Job<K, J>) -> bool {
        let number = job.rare.as_ref().map(|rare| rare.number);
        job.state == State::Claimed && number.is_none_or(|number| number == self.number)
    }
}

/// What becomes of a claimed job that is not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclaim {
    /// It waits again, and is due at this time.
    At(Duration),
    /// As `At`, and the attempt does not count.
    Snoozed(Duration),
    /// It failed: it waits again after the back-off, or is dead if this was its last attempt.
    Failed,
    /// As `Failed`, and due at this time instead.
    FailedUntil(Duration),
    /// It is dead.
    FailedForGood,
}

impl<K: Ord, J> Jobs<K, J> {
    /// Claims up to `n` jobs in order, each counted as a dispatch of its tenant. With `of`, claims
    /// jobs of that part, and no tenant's turn moves on. With a lease, the jobs come back at that
    /// time. `take` makes a claim of a job, and `put_back` [unpicks](Self::unpick) it if a
    /// comparison panics.
    ///
    /// Runs the user's `Ord`. If that panics, nothing is claimed; only the turns
    /// of tenants may have moved on.
    #[inline(always)]
    pub fn claim<C>(
        &mut self,
        (of, n, lease): (Option<Pinned>, usize, Option<Duration>),
        mut take: impl FnMut(Pick, &mut J) -> C,
        put_back: impl FnMut(&mut Self, C),
    ) -> Vec<C> {
        let n = n.min(usize::try_from(self.eligible_of(of)).unwrap_or(n));
        let mut claiming = Claiming {
            jobs: self,
            claims: Vec::with_capacity(n),
            put_back,
        };
        while claiming.claims.len() < n {
            let Claiming { jobs, claims, .. } = &mut claiming;
            let take = |pick, data: &mut _| {
                claims.push(take(pick, data));
                claims.len() < n
            };
            if jobs.claim_some((of, lease), take).is_none() {
                break;
            }
        }
        let claims = std::mem::take(&mut claiming.claims);
        std::mem::forget(claiming);
        claims
    }

    /// As [`claim`](Self::claim), for one job, without a list. If a comparison panics, nothing is
    /// claimed.
    #[inline(always)]
    pub fn claim_one<C>(
        &mut self,
        of: Option<Pinned>,
        lease: Option<Duration>,
        mut take: impl FnMut(Pick, &mut J) -> C,
    ) -> Option<C> {
        let mut claim = None;
        if self.eligible_of(of) > 0 {
            self.claim_some((of, lease), |pick, data| {
                claim = Some(take(pick, data));
                false
            });
        }
        claim
    }

    /// Claims jobs of one tenant, at least one if any may run, until `take` wants no more, another
    /// tenant's turn is next, or something is dirty. Of a part, it claims one job.
    #[inline(always)]
    fn claim_some(
        &mut self,
        (of, lease): (Option<Pinned>, Option<Duration>),
        mut take: impl FnMut(Pick, &mut J) -> bool,
    ) -> Option<()> {
        self.update_orders();
        let part = of.map(|of| &self.groups[of.at()]);
        let current = match part {
            None => self.ring.current()?,
            Some(part) => part.tenant,
        };
        let of_group = part.filter(|part| part.is_named).map(|part| part.front);
        let tenant = &mut self.tenants[current];
        loop {
            let first = of_group.or_else(|| tenant.claimable.head(&self.jobs, compare))?;
            if of.is_none() {
                self.ring.served(&mut tenant.link);
            }
            self.last += 1;
            let (id, job) = self.jobs.entry_at(first)?;
            job.state = State::Claimed;
            let (number, attempts) = (self.last, job.attempts);
            if let Some(rare) = &mut job.rare {
                rare.number = number;
            }
            if let Some(until) = lease {
                job.set_timer(id, until, &mut self.timers).number = number;
            }
            let pick = Pick {
                id,
                attempts,
                number,
            };
            let is_wanted = take(pick, &mut job.data);
            let at = job.group;
            let group = &mut self.groups[at];
            if !tenant.claimable.take_first(first, &job.links) {
                tenant.claimable.remove(&self.jobs, first);
            }
            let mut home = Home { at, group, tenant };
            home.count_claim(&mut self.dirty);
            (self.running, self.open) = (self.running + 1, self.open - 1);
            if tenant.counted == 0 {
                self.ring.leave(&mut self.tenants, current);
                return Some(());
            }
            let goes_on = is_wanted && of.is_none() && self.dirty.is_empty();
            if !goes_on || self.ring.current() != Some(current) {
                return Some(());
            }
        }
    }
}

/// The claims so far; put back if a comparison panics.
struct Claiming<'a, K, J, C, P: FnMut(&mut Jobs<K, J>, C)> {
    jobs: &'a mut Jobs<K, J>,
    claims: Vec<C>,
    put_back: P,
}

impl<K, J, C, P: FnMut(&mut Jobs<K, J>, C)> Drop for Claiming<'_, K, J, C, P> {
    fn drop(&mut self) {
        for claim in self.claims.drain(..) {
            (self.put_back)(self.jobs, claim);
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
        let job = &self.jobs[pick.id.index()];
        let group = &self.groups[job.group];
        let name = group.is_named.then_some(&group.name);
        Ok((&job.key, &self.tenants[group.tenant].name, name))
    }

    /// A claimed job's data, to change it.
    #[inline]
    pub fn claimed_data(&mut self, id: Key) -> &mut J {
        &mut self.jobs[id.index()].data
    }

    fn held(&self, pick: Pick) -> Result<(), Expired> {
        let held = self.jobs.get(pick.id).filter(|job| pick.is_of(job));
        held.map(|_| ()).ok_or(Expired)
    }

    /// Completes a job.
    #[inline(always)]
    pub fn complete(&mut self, pick: Pick) -> Result<Taken<K, J>, Expired> {
        let Some(mut job) = self.jobs.remove_if(pick.id, |job| pick.is_of(job)) else {
            return Err(Expired);
        };
        self.totals.completed += 1;
        let mut home = Home::of(job.group, &mut self.groups, &mut self.tenants);
        let balance = home.count_gone(&mut self.dirty);
        let (tenant, is_last) = (home.group.tenant, home.group.members == 0);
        self.running -= 1;
        self.balanced((job.group, tenant), balance);
        if let Some(rare) = job.rare.take() {
            self.forget(tenant, &rare);
        }
        if is_last {
            self.reap(job.group);
        }
        Ok(job.into_taken())
    }

    /// Cancels the timer and frees the unique name of a job that was claimed and is gone.
    #[cold]
    fn forget(&mut self, tenant: u32, rare: &Rare) {
        if let Some(timer) = rare.timer {
            self.timers.cancel(timer);
        }
        if let Some(name) = &rare.unique {
            self.tenants[tenant].unique.remove(name);
        }
    }

    /// Undoes a claim; returns the job's data.
    pub fn unpick(&mut self, pick: Pick) -> &mut J {
        self.set_state(pick.id.index(), State::Ready);
        self.claimed_data(pick.id)
    }

    /// Ends the claim of a job that is not done; whether the job is dead now. Counts one attempt,
    /// unless the job is snoozed.
    pub fn give_back(&mut self, pick: Pick, how: Unclaim) -> Result<bool, Expired> {
        self.held(pick)?;
        Ok(self.unclaim(pick.id, how, self.timers.now()))
    }

    /// As [`give_back`](Self::give_back), of a claim that still holds. `at` is when the job failed,
    /// if it did.
    fn unclaim(&mut self, id: Key, how: Unclaim, at: Duration) -> bool {
        let mut retry = self.retry;
        self.totals.returned += 1;
        let job = &mut self.jobs[id.index()];
        if !matches!(how, Unclaim::Snoozed(_)) {
            job.attempts = job.attempts.saturating_add(1);
        }
        let attempts = job.attempts;
        let own = job.rare.as_ref().and_then(|rare| rare.attempts);
        retry.attempts = own.unwrap_or(retry.attempts);
        let dead = match how {
            Unclaim::Failed | Unclaim::FailedUntil(_) => retry.is_last(attempts),
            Unclaim::FailedForGood => true,
            Unclaim::At(_) | Unclaim::Snoozed(_) => false,
        };
        let due = match how {
            Unclaim::At(due) | Unclaim::Snoozed(due) | Unclaim::FailedUntil(due) => due,
            Unclaim::Failed => at.saturating_add(retry.pause(attempts)),
            Unclaim::FailedForGood => Duration::ZERO,
        };
        if dead {
            self.set_state(id.index(), State::Dead);
        } else {
            self.wait_until(id, due);
        }
        dead
    }

    /// Sets when the claim's lease ends.
    pub fn extend(&mut self, pick: Pick, until: Duration) -> Result<(), Expired> {
        self.held(pick)?;
        let job = &mut self.jobs[pick.id.index()];
        job.set_timer(pick.id, until, &mut self.timers).number = pick.number;
        Ok(())
    }

    /// Sets the time. Jobs that are due become ready, and jobs that were leased until now come back
    /// as after a failure. Returns the next time at which there is something to do.
    pub fn advance(&mut self, now: Duration) -> Option<Duration> {
        self.timers.advance(now);
        while let Some((timer, id)) = self.timers.due() {
            match self.jobs[id.index()].state {
                State::Later => self.set_state(id.index(), State::Ready),
                State::Claimed => _ = self.unclaim(id, Unclaim::Failed, timer.at()),
                State::Ready | State::Dead | State::Uncounted => {}
            }
        }
        self.next_due()
    }

    /// Sets the time to `now`; what is due waits for [`advance`](Self::advance).
    pub fn set_now(&mut self, now: Duration) {
        self.timers.advance(now);
    }

    /// When there will be something to do.
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// The latest time that was set.
    pub fn now(&self) -> Duration {
        self.timers.now()
    }
}
