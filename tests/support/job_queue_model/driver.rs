//! Random operations on the real queue and on the naive one, compared step by step.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use conversant::job_queue::{
    Claim, JobId, JobQueue, JobState, Name, Part, Place, PushError, PushReason, Refused,
};
use conversant::limit::Limit;

use super::naive::{Job, Naive, PartName, State, in_part};
use crate::count::Count;
use crate::random::Random;

pub(crate) type Taken = Claim<'static, u8, u32>;

pub(crate) enum Out {
    Claims(Result<Vec<Taken>, ()>),
    Pushed(Result<JobId, PushError<(u8, u32)>>),
    Dead(Result<JobId, ()>),
}

#[derive(Clone, Debug)]
pub(crate) struct Pushed {
    pub(crate) key: u8,
    pub(crate) value: u32,
    pub(crate) part: PartName,
    /// The number that the name had when its place was taken from a handle.
    pub(crate) number: Option<u64>,
    pub(crate) due: Duration,
    pub(crate) most: Option<Limit>,
    pub(crate) tried: u32,
    pub(crate) unique: Option<Name>,
}

pub(crate) enum Kind {
    Claim(Option<PartName>, usize),
    Push(Pushed),
    Dead,
}

pub(crate) struct Sleeper {
    pub(crate) wait: Pin<Box<dyn Future<Output = Out>>>,
    pub(crate) count: Arc<Count>,
    pub(crate) waker: Waker,
    pub(crate) seen: u32,
    pub(crate) kind: Kind,
    pub(crate) notified: bool,
    /// Room for a push that waits.
    pub(crate) granted: bool,
    pub(crate) fresh: bool,
}

pub(crate) struct Driver {
    pub(crate) real: JobQueue<u8, u32>,
    pub(crate) naive: Naive,
    pub(crate) random: Random,
    pub(crate) capacity: Limit,
    pub(crate) held: Vec<(Taken, JobId, u64, u32, u32)>,
    pub(crate) ids: Vec<JobId>,
    pub(crate) parts: Vec<(Part<u8, u32>, PartName)>,
    pub(crate) places: Vec<(Place, PartName, u64)>,
    pub(crate) sleepers: Vec<Sleeper>,
    pub(crate) value: u32,
    pub(crate) shape: super::steps::Shape,
}

pub(crate) fn secs(n: usize) -> Duration {
    Duration::from_secs(n as u64)
}

impl Driver {
    pub(crate) fn reserved(&self) -> usize {
        self.sleepers.iter().filter(|it| it.granted).count()
    }

    pub(crate) fn free(&self) -> usize {
        match self.capacity {
            Limit::AtMost(n) => n as usize - self.naive.jobs.len() - self.reserved(),
            Limit::Unlimited => usize::MAX,
        }
    }

    pub(crate) fn wants_room(&self) -> bool {
        self.sleepers
            .iter()
            .any(|it| matches!(it.kind, Kind::Push(_)) && !it.notified)
    }

    /// Everything that may be said against a push of these.
    pub(crate) fn reasons(&self, all: &[Pushed], room: usize) -> Vec<PushReason> {
        let mut reasons = Vec::new();
        if self.naive.closed {
            reasons.push(PushReason::Closed);
        }
        if all.len() > room || (self.wants_room() && room != usize::MAX && !all.is_empty()) {
            let above = matches!(self.capacity, Limit::AtMost(n @ 1..) if all.len() > n as usize);
            reasons.push(if above {
                PushReason::AboveCapacity
            } else {
                PushReason::Full
            });
        }
        for (at, one) in all.iter().enumerate() {
            let before = reasons.len();
            if let Some(id) = self.naive.named(&one.part.0, one.unique.as_ref()) {
                reasons.push(PushReason::Duplicate(self.naive.jobs[id].id));
            }
            let same = |it: &Pushed| it.part.0 == one.part.0 && it.unique == one.unique;
            if one.unique.is_some() && all[..at].iter().any(same) {
                reasons.push(PushReason::DuplicateInBatch);
            }
            let number = self.naive.names.get(&one.part).copied();
            if one
                .number
                .is_some_and(|known| known > 0 && Some(known) != number)
            {
                reasons.push(PushReason::Stale);
            }
            if one.most == Some(Limit::AtMost(0)) {
                // The number in it is not compared.
                reasons.push(PushReason::TimedOut);
            }
            if reasons.len() > before {
                break;
            }
        }
        reasons
    }

    pub(crate) fn refused(&self, reason: &PushReason, reasons: &[PushReason]) {
        let range = matches!(reason, PushReason::OutOfRange(_));
        let known = if range { &PushReason::TimedOut } else { reason };
        assert!(reasons.contains(known), "{reason:?} is none of {reasons:?}");
    }

    pub(crate) fn put_in(&mut self, id: JobId, one: Pushed) {
        let pushed = self.naive.next_number();
        self.naive.totals.pushed += 1;
        self.ids.push(id);
        self.naive.jobs.push(Job {
            id,
            key: one.key,
            value: one.value,
            pushed,
            tenant: one.part.0,
            group: one.part.1,
            unique: one.unique,
            most: one.most,
            attempts: one.tried,
            state: State::Waits(one.due),
        });
        self.naive.settle();
    }

    /// A job that somebody took out.
    pub(crate) fn take_out(&mut self, at: usize) -> (u8, u32, u32) {
        let job = self.naive.jobs.remove(at);
        (job.key, job.value, job.attempts)
    }

    pub(crate) fn claimed(&mut self, claims: Vec<Taken>, part: Option<&PartName>, n: usize) {
        let expected = self.naive.claimable(part).min(n);
        assert_eq!(claims.len(), expected, "{part:?}, {n} of {:#?}", self.naive);
        for claim in claims {
            let (at, number) = self.naive.claim(claim.id(), part);
            let job = &self.naive.jobs[at];
            assert_eq!((*claim, claim.attempt()), (job.value, job.attempts + 1));
            let (id, value, attempt) = (claim.id(), job.value, job.attempts + 1);
            self.held.push((claim, id, number, value, attempt));
        }
    }

    /// Refusals of what is done to a job that must wait.
    pub(crate) fn must_wait(&self, id: JobId) -> Result<usize, Refused> {
        match self.naive.status(id).map(|it| it.3) {
            None => Err(Refused::Stale),
            Some(JobState::Claimed(_)) => Err(Refused::Claimed),
            Some(JobState::Dead) => Err(Refused::Dead),
            Some(_) => Ok(self.naive.find(id).unwrap()),
        }
    }

    pub(crate) fn drained(&mut self, part: Option<&PartName>) -> Vec<(u8, u32, u32)> {
        let mut those = Vec::new();
        for id in self.naive.listed(part) {
            if let Ok(at) = self.must_wait(id) {
                assert!(part.is_none_or(|part| in_part(&self.naive.jobs[at], part)));
                self.naive.totals.removed += 1;
                those.push(self.take_out(at));
            }
        }
        those
    }
}
