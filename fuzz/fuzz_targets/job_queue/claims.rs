//! Claims, and how they end.

use std::time::Duration;

use conversant::error::Closed;
use conversant::job_queue::{Claim, Expired, JobState};

use crate::model::{Back, Part};
use crate::run::{Held, Run, polled};
use crate::{End, How};

type Claims<'a> = Vec<Claim<'a, u8, u32>>;

fn one(claim: Option<Claim<'_, u8, u32>>) -> Option<Result<Claims<'_>, Closed>> {
    Some(Ok(claim.into_iter().collect()))
}

fn listed(claim: Result<Claim<'_, u8, u32>, Closed>) -> Result<Claims<'_>, Closed> {
    claim.map(|claim| vec![claim])
}

impl Run {
    pub(crate) fn claim(&mut self, part: Part, n: usize, how: How) {
        let n = match how {
            How::TryOne | How::WaitOne => 1,
            How::Try | How::Wait => n,
        };
        let finished = self.model.finished();
        match self.ask(part, n, how) {
            Some(Ok(claims)) => self.claimed(part, n, claims),
            Some(Err(Closed)) => assert!(finished),
            None => {
                assert!(n > 0 && !finished);
                self.claimed(part, n, Vec::new());
            }
        }
    }

    /// Claims; `None` if it would wait.
    fn ask(&self, part: Part, n: usize, how: How) -> Option<Result<Claims<'static>, Closed>> {
        let (queue, handle) = (&self.queue, self.handle(part));
        let claimed = match (&handle, how) {
            (None, How::Try) => Some(Ok(queue.try_claim(n))),
            (None, How::TryOne) => one(queue.try_claim_one()),
            (None, How::Wait) => polled(queue.claim(n)),
            (None, How::WaitOne) => polled(queue.claim_one()).map(listed),
            (Some(handle), How::Try) => Some(Ok(handle.try_claim(n))),
            (Some(handle), How::TryOne) => one(handle.try_claim_one()),
            (Some(handle), How::Wait) => polled(handle.claim(n)),
            (Some(handle), How::WaitOne) => polled(handle.claim_one()).map(listed),
        };
        let owned = |claims: Claims<'_>| claims.into_iter().map(Claim::into_owned).collect();
        claimed.map(|claimed| claimed.map(owned))
    }

    /// These claims are right, and are held from now on.
    pub(crate) fn claimed(&mut self, part: Part, n: usize, claims: Claims<'static>) {
        let number = |claim: &Claim<'_, u8, u32>| {
            let at = self.ids.iter().position(|&id| id == claim.id());
            at.expect("it was pushed")
        };
        let numbers: Vec<usize> = claims.iter().map(number).collect();
        match part {
            Part::Queue => self.check_turns(n, &numbers),
            _ => {
                let mut expected = self.model.line(part);
                expected.truncate(n.min(self.model.room(Part::Queue)));
                assert_eq!(numbers, expected);
            }
        }
        let until = self
            .model
            .lease
            .map(|lease| self.model.now.saturating_add(lease));
        for (number, claim) in numbers.into_iter().zip(claims) {
            self.model.claims += 1;
            let job = self.model.jobs.get_mut(&number).expect("it waits");
            job.state = JobState::Claimed(until);
            job.claim = self.model.claims;
            self.held.push(Held {
                claim,
                job: number,
                number: self.model.claims,
                content: job.content,
                attempt: job.attempts + 1,
            });
        }
    }

    /// A claim from all tenants is as long as it can be, in order within each tenant, and tenants
    /// take turns.
    fn check_turns(&self, n: usize, numbers: &[usize]) {
        assert_eq!(numbers.len(), n.min(self.model.eligible()));
        let tenants: Vec<u64> = numbers
            .iter()
            .map(|job| self.model.jobs[job].tenant)
            .collect();
        let lines = [0, 1, 2].map(|tenant| self.model.line(Part::Tenant(tenant)));
        // Up to here each tenant still has jobs to run.
        let mut all_have = numbers.len();
        for (tenant, line) in (0_u64..).zip(&lines) {
            let of = (0..numbers.len()).filter(|&at| tenants[at] == tenant);
            let own: Vec<usize> = of.clone().map(|at| numbers[at]).collect();
            assert!(line.starts_with(&own), "{own:?} of {line:?}");
            if !line.is_empty() && own.len() == line.len() {
                let last = of.max().expect("it has one");
                all_have = all_have.min(last + 1);
            }
        }
        if self.model.reweighted {
            return;
        }
        let weights = lines.iter().zip(self.model.weights);
        let weights = weights.map(|(line, weight)| if line.is_empty() { 0 } else { weight });
        let weights: Vec<usize> = weights.map(|weight| weight as usize).collect();
        let round = weights.iter().sum::<usize>().max(1);
        for window in tenants[..all_have].windows(round) {
            for (tenant, &weight) in (0_u64..).zip(&weights) {
                let of = window.iter().filter(|&&of| of == tenant).count();
                assert_eq!(of, weight, "{tenants:?}");
            }
        }
    }

    /// Whether the claim still has its job.
    pub(crate) fn holds(&self, held: &Held) -> bool {
        let job = self.model.jobs.get(&held.job);
        job.is_some_and(|job| job.is_claimed() && job.claim == held.number)
    }

    fn take(&mut self, which: u8) -> Option<Held> {
        let at = usize::from(which).checked_rem(self.held.len())?;
        Some(self.held.swap_remove(at))
    }

    /// A claimed job was completed.
    fn completed(&mut self, number: usize, holds: bool, done: Result<(u8, u32, u32), Expired>) {
        let done = done.ok();
        assert_eq!(done.is_some(), holds);
        if let Some(done) = done {
            let job = self.model.jobs.remove(&number).expect("it was claimed");
            assert_eq!(done, (job.key, job.content, job.attempts));
            self.model.totals.completed += 1;
        }
    }

    pub(crate) fn complete_all(&mut self, n: usize) {
        let n = n.min(self.held.len());
        let held: Vec<Held> = self.held.drain(..n).collect();
        let of: Vec<_> = held
            .iter()
            .map(|held| (held.job, self.holds(held)))
            .collect();
        let done = Claim::complete_all(held.into_iter().map(|held| held.claim));
        assert_eq!(done.len(), n);
        for ((job, holds), done) in of.into_iter().zip(done) {
            let done = done.map(|done| (done.key, done.job, done.attempts));
            self.completed(job, holds, done);
        }
    }

    pub(crate) fn end(&mut self, which: u8, end: End) {
        let Some(held) = self.take(which) else { return };
        let (holds, job) = (self.holds(&held), held.job);
        let claim = held.claim;
        let no = |ended: Result<(), Expired>| ended.map(|()| None);
        let (ended, how) = match end {
            End::Complete => {
                let done = claim.complete();
                let done = done.map(|done| (done.key, done.job, done.attempts));
                return self.completed(job, holds, done);
            }
            End::GiveBack => (no(claim.give_back()), Back::At(Duration::ZERO)),
            End::GiveBackAt(by) => {
                let at = self.after(by);
                (no(claim.give_back_at(at)), Back::At(at))
            }
            End::Snooze(by) => {
                let at = self.after(by);
                (no(claim.snooze(at)), Back::Snoozed(at))
            }
            End::Fail => (claim.fail().map(Some), Back::Failed),
            End::FailAt(by) => {
                let at = self.after(by);
                (claim.fail_at(at).map(Some), Back::FailedAt(at))
            }
            End::FailForGood => (no(claim.fail_for_good()), Back::FailedForGood),
            End::Drop => {
                drop(claim);
                self.model.totals.dropped += u64::from(holds);
                let ended = if holds { Ok(None) } else { Err(Expired) };
                (ended, Back::Failed)
            }
        };
        assert_eq!(ended.is_ok(), holds);
        if let Ok(said) = ended {
            let dead = self.model.give_back(job, how);
            assert!(said.is_none_or(|said| said == dead));
        }
    }

    pub(crate) fn extend(&mut self, which: u8, until: Duration) {
        let Some(mut held) = self.take(which) else {
            return;
        };
        let holds = self.holds(&held);
        assert_eq!(held.claim.extend(until).is_ok(), holds);
        if holds {
            let job = self.model.jobs.get_mut(&held.job).expect("it is claimed");
            job.state = JobState::Claimed(Some(until));
        }
        self.held.push(held);
    }
}
