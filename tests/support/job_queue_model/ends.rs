//! How claims end.

use conversant::job_queue::{Claim, Expired};

use super::driver::{Driver, Taken, secs};
use super::naive::{How, State};

impl Driver {
    /// Ends a claim in one of all ways.
    pub(crate) fn end_one(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.random.below(self.held.len());
        let (mut claim, id, number, value, attempt) = self.held.swap_remove(at);
        let job = self.naive.find(id).filter(|&at| {
            matches!(self.naive.jobs[at].state, State::Claimed { claim, .. } if claim == number)
        });
        let shown = (*claim, claim.attempt(), claim.holds());
        assert_eq!(shown, (value, attempt, job.is_some()));
        self.check_names(&claim, job);
        let due = self.naive.now + secs(self.random.below(6)) - secs(2).min(self.naive.now);
        let way = self.random.below(11);
        let (how, result) = match way {
            0..3 => {
                let done = claim.complete();
                assert_eq!(done.is_ok(), job.is_some());
                if let (Ok(done), Some(at)) = (done, job) {
                    self.naive.totals.completed += 1;
                    assert_eq!((done.key, done.job, done.attempts), self.take_out(at));
                }
                return;
            }
            3 => {
                let extended = claim.extend(due);
                assert_eq!(extended.is_ok(), job.is_some());
                if let Some(at) = job {
                    self.naive.jobs[at].state = State::Claimed {
                        claim: number,
                        until: Some(due),
                    };
                }
                self.held.push((claim, id, number, value, attempt));
                return;
            }
            4 => (How::Back(None), claim.give_back().map(|()| false)),
            5 => (
                How::Back(Some(due)),
                claim.give_back_at(due).map(|()| false),
            ),
            6 => (How::Snooze(due), claim.snooze(due).map(|()| false)),
            7 => (How::Fail(None), claim.fail()),
            8 => (How::Fail(Some(due)), claim.fail_at(due)),
            9 => (How::ForGood, claim.fail_for_good().map(|()| true)),
            _ => {
                drop(claim);
                let Some(at) = job else { return };
                self.naive.totals.dropped += 1;
                let order = self.naive.next_number();
                let dead = self
                    .naive
                    .unclaim(at, How::Fail(None), self.naive.now, order);
                (How::Fail(None), Ok(dead))
            }
        };
        let expected = match job {
            None => Err(Expired),
            Some(_) if way == 10 => return,
            Some(at) => {
                let order = self.naive.next_number();
                Ok(self.naive.unclaim(at, how, self.naive.now, order))
            }
        };
        assert_eq!(result, expected, "{how:?}");
    }

    fn check_names(&self, claim: &Taken, job: Option<usize>) {
        let known = job.map(|at| self.naive.jobs[at].clone());
        assert_eq!(claim.key().ok(), known.as_ref().map(|job| job.key));
        let group = known.as_ref().map(|job| job.group.clone());
        assert_eq!(claim.group().ok(), group);
        assert_eq!(claim.tenant().ok(), known.map(|job| job.tenant));
    }

    pub(crate) fn complete_several(&mut self) {
        let n = self.random.below(4).min(self.held.len());
        let several: Vec<_> = self.held.drain(..n).collect();
        let (claims, known): (Vec<_>, Vec<_>) =
            several.into_iter().map(|it| (it.0, (it.1, it.2))).unzip();
        for (done, (id, number)) in Claim::complete_all(claims).into_iter().zip(known) {
            let job = self.naive.find(id).filter(|&at| {
                matches!(self.naive.jobs[at].state, State::Claimed { claim, .. } if claim == number)
            });
            assert_eq!(done.is_ok(), job.is_some());
            if let (Ok(done), Some(at)) = (done, job) {
                self.naive.totals.completed += 1;
                assert_eq!((done.key, done.job, done.attempts), self.take_out(at));
                self.naive.settle();
            }
        }
    }
}
