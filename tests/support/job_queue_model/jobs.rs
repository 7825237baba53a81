//! What is done to jobs by their ids.

use std::time::Duration;

use conversant::job_queue::{JobId, Refused};

use super::driver::Driver;
use super::naive::State;
use super::views::scope;

impl Driver {
    pub(crate) fn one_job(&mut self) {
        let Some(&id) = self.some_ids(1).first() else {
            return;
        };
        let waits = self.must_wait(id);
        match self.random.below(6) {
            0 => {
                let due = self.some_date();
                assert_eq!(self.real.set_due(id, due), waits.map(drop));
                if let Ok(at) = waits {
                    self.naive.jobs[at].state = State::Waits(due);
                }
            }
            1 => {
                self.value += 1;
                let real = self.real.replace(id, self.value);
                match waits {
                    Ok(at) => {
                        let old = std::mem::replace(&mut self.naive.jobs[at].value, self.value);
                        assert_eq!(real, Ok(old));
                    }
                    Err(why) => {
                        let error = real.unwrap_err();
                        assert_eq!((error.content, error.reason), (self.value, why));
                    }
                }
            }
            2 => {
                let (key, at) = (
                    self.random.below(self.shape.keys) as u8,
                    self.naive.find(id),
                );
                let old = at.map(|at| std::mem::replace(&mut self.naive.jobs[at].key, key));
                assert_eq!(self.real.rekey(id, key), old.ok_or(Refused::Stale));
            }
            3 => self.requeue(id),
            _ => {
                let dead = waits == Err(Refused::Dead);
                let at = if dead {
                    Ok(self.naive.find(id).unwrap())
                } else {
                    waits
                };
                let real = self.real.remove(id).map(|it| (it.key, it.job, it.attempts));
                let naive = at.map(|at| self.take_out(at));
                assert_eq!(real, naive);
                self.naive.totals.removed += u64::from(naive.is_ok());
            }
        }
    }

    pub(crate) fn requeue(&mut self, id: JobId) {
        let mut against = Vec::new();
        match self.must_wait(id) {
            Err(Refused::Dead) => {}
            Err(Refused::Stale) => against.push(Refused::Stale),
            _ => against.push(Refused::Alive),
        }
        if let (true, Some(at)) = (against.is_empty(), self.naive.find(id)) {
            let job = &self.naive.jobs[at];
            let other = self.naive.named(&job.tenant, job.unique.as_ref());
            against.extend(other.map(|at| Refused::Duplicate(self.naive.jobs[at].id)));
        }
        against.extend(self.naive.closed.then_some(Refused::Closed));
        match self.real.requeue(id) {
            Ok(()) => {
                assert_eq!(against, []);
                let at = self.naive.find(id).unwrap();
                self.naive.jobs[at].attempts = 0;
                self.naive.jobs[at].state = State::Waits(Duration::ZERO);
            }
            Err(why) => assert!(against.contains(&why), "{why:?} {against:?}"),
        }
    }

    pub(crate) fn several_jobs(&mut self) {
        let part = self.some_part(true);
        let scope = scope(part.as_ref());
        if self.random.below(3) > 0 {
            let ids = self.some_ids(5);
            let real = self.real.remove_all(ids.clone());
            let real: Vec<_> = real
                .into_iter()
                .map(|it| (it.key, it.job, it.attempts))
                .collect();
            let mut naive = Vec::new();
            for id in ids {
                if !matches!(self.must_wait(id), Err(Refused::Stale | Refused::Claimed)) {
                    let at = self.naive.find(id).unwrap();
                    naive.push(self.take_out(at));
                    self.naive.totals.removed += 1;
                }
            }
            assert_eq!(real, naive);
        } else {
            let real = self.real.drain(&scope);
            let real: Vec<_> = real
                .into_iter()
                .map(|it| (it.key, it.job, it.attempts))
                .collect();
            assert_eq!(real, self.drained(part.as_ref()));
        }
    }
}
