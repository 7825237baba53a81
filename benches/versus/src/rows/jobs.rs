//! J1: agents claim jobs by key, several at a time, from a thousand groups of limit 1. The targets
//! are those of two agents.
//!
//! An operation is a job: claimed, finished, and another of its group pushed behind all others,
//! so that the number that waits stays the same. All jobs of a claim are pushed under one lock, and
//! finished under one, by every contender. Every job is checked as it is finished: no other agent
//! has a job of its group, and its key is above that of the group's last.

mod peers;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, ensure};
use conversant::job_queue::{Claim, JobQueue, Part};

use self::peers::{ByKey, Fifo};
use crate::contender::{Cell, Contender, Entry, Role, Sample};
use crate::race::race;

const OURS: &str = "conversant JobQueue";
const FIFO: &str = "FIFO of group queues";
const BY_KEY: &str = "BTreeSet of the groups' first";

const GROUPS: u64 = 1_000;
/// Jobs of each group that wait at the beginning.
const DEPTH: u64 = 8;

pub fn cells() -> Vec<Cell> {
    let cell = |(agents, in_words): (usize, &str), n: usize| {
        let title = format!("claim {n}, finish and push, {in_words}, 1k groups");
        let cell = Cell::new("J1", title, move || contenders(n, agents)).unit("job");
        match agents {
            2 => cell.target(OURS, 1.1, FIFO).target(OURS, 0.4, BY_KEY),
            _ => cell,
        }
    };
    let agents = [(1, "one agent"), (2, "two agents"), (4, "four agents")];
    let cells = agents.map(|agents| [1, 8, 64].map(|n| cell(agents, n)));
    cells.into_iter().flatten().collect()
}

fn contenders(n: usize, agents: usize) -> Vec<Entry> {
    vec![
        entry(OURS, Role::Ours, Ours::new(), (n, agents)),
        entry(FIFO, Role::Peer, Fifo::new(GROUPS), (n, agents)),
        entry(BY_KEY, Role::Peer, ByKey::new(GROUPS), (n, agents)),
    ]
}

fn entry(name: &str, role: Role, jobs: impl Jobs + 'static, each: (usize, usize)) -> Entry {
    Entry::new(name, role, Agents::new(jobs, each))
}

/// A queue of jobs, each a key and its group.
pub trait Jobs: Send + Sync {
    type Claim<'q>
    where
        Self: 'q;

    /// Keys with their groups.
    fn push(&self, jobs: impl Iterator<Item = (u64, u64)>);

    /// Up to `n` jobs of different groups, none of which has another claimed job.
    fn claim(&self, n: usize) -> Vec<Self::Claim<'_>>;

    /// Key and group.
    fn job(claim: &Self::Claim<'_>) -> (u64, u64);

    fn finish(&self, claims: Vec<Self::Claim<'_>>);
}

/// Names groups by handle; the peers name them by number.
struct Ours {
    queue: JobQueue<u64, u64>,
    groups: Vec<Part<u64, u64>>,
}

impl Ours {
    fn new() -> Self {
        let queue = JobQueue::new();
        let tenant = queue.tenant(0);
        let groups = (0..GROUPS).map(|group| tenant.group(group)).collect();
        Self { queue, groups }
    }
}

impl Jobs for Ours {
    /// The job is its key and group in one, since no peer gives the key back.
    type Claim<'q> = Claim<'q, u64, u64>;

    fn push(&self, jobs: impl Iterator<Item = (u64, u64)>) {
        let place = |group: u64| self.groups[group as usize].place();
        let job = |(key, group)| (key, key * GROUPS + group, place(group));
        let pushed = self.queue.push_all(jobs.map(job));
        pushed.expect("the queue is open");
    }

    fn claim(&self, n: usize) -> Vec<Self::Claim<'_>> {
        self.queue.try_claim(n)
    }

    fn job(claim: &Self::Claim<'_>) -> (u64, u64) {
        (**claim / GROUPS, **claim % GROUPS)
    }

    fn finish(&self, claims: Vec<Self::Claim<'_>>) {
        let done = Claim::complete_all(claims);
        assert!(done.iter().all(Result::is_ok), "they have no lease");
    }
}

/// What the checks know of a group.
#[derive(Default)]
struct GroupCheck {
    claimed: AtomicBool,
    last: AtomicU64,
}

struct Agents<J> {
    jobs: Arc<J>,
    /// How many jobs are claimed at a time.
    n: usize,
    agents: usize,
    next: Arc<AtomicU64>,
    checks: Arc<[GroupCheck]>,
}

impl<J: Jobs> Agents<J> {
    fn new(jobs: J, (n, agents): (usize, usize)) -> Self {
        jobs.push((1..=GROUPS * DEPTH).map(|key| (key, key % GROUPS)));
        Self {
            jobs: Arc::new(jobs),
            n,
            agents,
            next: Arc::new(AtomicU64::new(GROUPS * DEPTH)),
            checks: (0..GROUPS).map(|_| GroupCheck::default()).collect(),
        }
    }

    /// One round of an agent: returns how many jobs it did, and whether all checks passed.
    fn round(&self, n: usize) -> (u64, bool) {
        let claims = self.jobs.claim(n);
        let (count, mut correct) = (claims.len() as u64, true);
        for claim in &claims {
            let (key, group) = J::job(claim);
            let check = &self.checks[group as usize];
            // Only the agent that has the group's job is here.
            correct &= !check.claimed.swap(true, Ordering::AcqRel);
            correct &= check.last.swap(key, Ordering::Relaxed) < key;
        }
        let groups = || claims.iter().map(|claim| J::job(claim).1);
        // While no other agent has the group, so that keys go up in each group.
        let next = |group| (self.next.fetch_add(1, Ordering::Relaxed) + 1, group);
        self.jobs.push(groups().map(next));
        for group in groups() {
            let claimed = &self.checks[group as usize].claimed;
            claimed.store(false, Ordering::Release);
        }
        self.jobs.finish(claims);
        (count, correct)
    }
}

impl<J: Jobs> Contender for Agents<J> {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        let correct = AtomicBool::new(true);
        let sample = race(self.agents, ops, |_, each| {
            let (agents, correct) = (&*self, &correct);
            move || {
                let mut left = each;
                while left > 0 {
                    let (done, was_correct) = agents.round(agents.n.min(left as usize));
                    left -= done;
                    if !was_correct {
                        correct.store(false, Ordering::Relaxed);
                    }
                }
            }
        });
        ensure!(
            correct.into_inner(),
            "out of order, or two of a group at once"
        );
        Ok(sample)
    }

    /// As many jobs wait as at the beginning, and those of each group in order.
    fn check(&mut self) -> Result<()> {
        let mut count = 0;
        loop {
            let claims = self.jobs.claim(self.n);
            if claims.is_empty() {
                break;
            }
            for claim in &claims {
                let (key, group) = J::job(claim);
                let last = self.checks[group as usize]
                    .last
                    .swap(key, Ordering::Relaxed);
                ensure!(last < key, "job {key} of group {group} came after {last}");
                count += 1;
            }
            self.jobs.finish(claims);
        }
        ensure!(count == GROUPS * DEPTH, "{count} jobs are left");
        Ok(())
    }
}
