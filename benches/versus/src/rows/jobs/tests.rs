//! Every contender passes the checks, and the checks can fail.

use std::sync::Mutex;

use super::{Agents, Jobs, contenders};
use crate::contender::Contender;

#[test]
fn all_pass() {
    for (n, agents) in [(1, 1), (1, 2), (8, 2), (64, 2), (8, 4)] {
        for mut entry in contenders(n, agents) {
            entry.contender.run(5_000).expect(&entry.name);
            entry.contender.check().expect(&entry.name);
        }
    }
}

/// Keeps no order, ignores groups, or loses jobs that are pushed late.
struct Wrong {
    jobs: Mutex<Vec<(u64, u64)>>,
    loses: bool,
}

impl Jobs for Wrong {
    type Claim<'q> = (u64, u64);

    fn push(&self, jobs: impl Iterator<Item = (u64, u64)>) {
        let is_kept = |job: &(u64, u64)| !self.loses || job.0 <= super::GROUPS * super::DEPTH;
        self.jobs.lock().unwrap().extend(jobs.filter(is_kept));
    }

    fn claim(&self, n: usize) -> Vec<Self::Claim<'_>> {
        let mut jobs = self.jobs.lock().unwrap();
        let n = n.min(jobs.len());
        match self.loses {
            // At least in order.
            true => jobs.drain(..n).collect(),
            false => (0..n).filter_map(|_| jobs.pop()).collect(),
        }
    }

    fn job(&claim: &Self::Claim<'_>) -> (u64, u64) {
        claim
    }

    fn finish(&self, _: Vec<Self::Claim<'_>>) {}
}

fn wrong(loses: bool) -> Agents<Wrong> {
    let jobs = Mutex::default();
    Agents::new(Wrong { jobs, loses }, (1, 2))
}

#[test]
fn disorder_is_found() {
    let mut latest_first = wrong(false);
    assert!(latest_first.run(5_000).is_err() || latest_first.check().is_err());
}

#[test]
fn losses_are_found() {
    let mut losing = wrong(true);
    let _order = losing.run(100);
    assert!(losing.check().is_err());
}
