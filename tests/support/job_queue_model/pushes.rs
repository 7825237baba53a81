//! Pushes, one by one and many at once.

use std::time::Duration;

use conversant::job_queue::{Place, PushReason};
use conversant::limit::Limit;

use super::driver::{Driver, Pushed, secs};
use super::naive::State;

impl Driver {
    pub(crate) fn some_date(&mut self) -> Duration {
        if self.random.below(2) == 0 {
            return Duration::ZERO;
        }
        (self.naive.now + secs(self.random.below(8))).saturating_sub(secs(2))
    }

    pub(crate) fn new_job(&mut self) -> (Pushed, Place) {
        self.value += 1;
        let part = self.some_part(false).unwrap();
        let mut place = Place::new().tenant(part.0.clone());
        if let Some(group) = &part.1 {
            place = place.group(group.clone());
        }
        let (key, value) = (self.random.below(self.shape.keys) as u8, self.value);
        let mut job = Pushed {
            key,
            value,
            part,
            number: None,
            due: Duration::ZERO,
            most: None,
            tried: 0,
            unique: None,
        };
        if self.random.below(2) == 0 && !self.places.is_empty() {
            let at = self.random.below(self.places.len());
            let (by_handle, part, number) = self.places[at].clone();
            (place, job.part, job.number) = (by_handle, part, Some(number));
        }
        if self.random.below(3) == 0 {
            job.due = self.some_date();
            place = place.due(job.due);
        }
        if self.random.below(4) == 0 {
            let most = self.random.below(8);
            job.most = Some(if most == 7 {
                Limit::Unlimited
            } else {
                Limit::AtMost(most as u32)
            });
            place = place.attempts(job.most.unwrap());
        }
        if self.random.below(5) == 0 {
            job.tried = self.random.below(7) as u32;
            place = place.tried(job.tried);
        }
        if self.random.below(3) == 0 {
            job.unique = Some(self.name());
            place = place.unique(job.unique.clone().unwrap());
        }
        (job, place)
    }

    pub(crate) fn push(&mut self) {
        let (job, place) = self.new_job();
        let reasons = self.reasons(std::slice::from_ref(&job), self.free());
        match self.real.push(job.key, job.value, place) {
            Ok(id) => {
                assert_eq!(reasons, [], "pushed");
                self.put_in(id, job);
            }
            Err(error) => {
                assert_eq!(error.content, (job.key, job.value));
                self.refused(&error.reason, &reasons);
            }
        }
    }

    pub(crate) fn push_all(&mut self) {
        let n = self.random.below(5);
        let (jobs, places): (Vec<_>, Vec<_>) = (0..n).map(|_| self.new_job()).unzip();
        let reasons = self.reasons(&jobs, self.free());
        let all: Vec<_> = jobs.iter().map(|job| (job.key, job.value)).collect();
        let real = all
            .iter()
            .zip(places)
            .map(|(it, place)| (it.0, it.1, place));
        match self.real.push_all(real) {
            Ok(ids) => {
                assert!(reasons.is_empty() || n == 0, "pushed {reasons:?}");
                for (id, job) in ids.into_iter().zip(jobs) {
                    self.put_in(id, job);
                }
            }
            Err(error) => {
                assert_eq!(error.content, all);
                self.refused(&error.reason, &reasons);
            }
        }
    }

    pub(crate) fn push_replacing(&mut self) {
        let (job, place) = self.new_job();
        let old = self.naive.named(&job.part.0, job.unique.as_ref());
        let waits = old.filter(|&at| matches!(self.naive.jobs[at].state, State::Waits(_)));
        let mut reasons = self.reasons(std::slice::from_ref(&job), self.free());
        if waits.is_some() {
            let own = |it: &PushReason| !matches!(it, PushReason::Duplicate(_) | PushReason::Full);
            reasons.retain(own);
        }
        match self.real.push_replacing(job.key, job.value, place) {
            Ok((id, taken)) => {
                assert_eq!(reasons, [], "pushed");
                let taken = taken.map(|it| (it.key, it.job, it.attempts));
                let old = waits.map(|at| self.take_out(at));
                self.naive.totals.removed += u64::from(old.is_some());
                assert_eq!(taken, old);
                self.put_in(id, job);
            }
            Err(error) => {
                assert_eq!(error.content, (job.key, job.value));
                self.refused(&error.reason, &reasons);
            }
        }
    }
}
