//! Job queues as a user would write them.

use std::collections::{BTreeSet, VecDeque};

use parking_lot::Mutex;

use super::Jobs;

/// The groups that have work and no claimed job, in the order in which they became so; not in the
/// order of keys.
pub struct Fifo(Mutex<FifoState>);

struct FifoState {
    ready: VecDeque<u64>,
    groups: Vec<Group>,
}

#[derive(Clone, Default)]
struct Group {
    waiting: VecDeque<u64>,
    claimed: bool,
}

impl Fifo {
    pub fn new(groups: u64) -> Self {
        Self(Mutex::new(FifoState {
            ready: VecDeque::new(),
            groups: vec![Group::default(); groups as usize],
        }))
    }
}

impl Jobs for Fifo {
    type Claim<'q> = (u64, u64);

    fn push(&self, jobs: impl Iterator<Item = (u64, u64)>) {
        let state = &mut *self.0.lock();
        for (key, group) in jobs {
            let entry = &mut state.groups[group as usize];
            if entry.waiting.is_empty() && !entry.claimed {
                state.ready.push_back(group);
            }
            entry.waiting.push_back(key);
        }
    }

    fn claim(&self, n: usize) -> Vec<Self::Claim<'_>> {
        let state = &mut *self.0.lock();
        let n = n.min(state.ready.len());
        let take = |group: u64| {
            let entry = &mut state.groups[group as usize];
            entry.claimed = true;
            (entry.waiting.pop_front().expect("it has work"), group)
        };
        state.ready.drain(..n).map(take).collect()
    }

    fn job(&claim: &Self::Claim<'_>) -> (u64, u64) {
        claim
    }

    fn finish(&self, claims: Vec<Self::Claim<'_>>) {
        let state = &mut *self.0.lock();
        for (_, group) in claims {
            let entry = &mut state.groups[group as usize];
            entry.claimed = false;
            if !entry.waiting.is_empty() {
                state.ready.push_back(group);
            }
        }
    }
}

/// The first job of each group that has no claimed job, in the order of keys.
pub struct ByKey(Mutex<ByKeyState>);

struct ByKeyState {
    first: BTreeSet<(u64, u64)>,
    groups: Vec<Group>,
}

impl ByKey {
    pub fn new(groups: u64) -> Self {
        Self(Mutex::new(ByKeyState {
            first: BTreeSet::new(),
            groups: vec![Group::default(); groups as usize],
        }))
    }
}

impl Jobs for ByKey {
    type Claim<'q> = (u64, u64);

    fn push(&self, jobs: impl Iterator<Item = (u64, u64)>) {
        let state = &mut *self.0.lock();
        for (key, group) in jobs {
            let entry = &mut state.groups[group as usize];
            if entry.waiting.is_empty() && !entry.claimed {
                state.first.insert((key, group));
            }
            entry.waiting.push_back(key);
        }
    }

    fn claim(&self, n: usize) -> Vec<Self::Claim<'_>> {
        let state = &mut *self.0.lock();
        let mut claims = Vec::with_capacity(n);
        while claims.len() < n
            && let Some((key, group)) = state.first.pop_first()
        {
            let entry = &mut state.groups[group as usize];
            entry.claimed = true;
            entry.waiting.pop_front();
            claims.push((key, group));
        }
        claims
    }

    fn job(&claim: &Self::Claim<'_>) -> (u64, u64) {
        claim
    }

    fn finish(&self, claims: Vec<Self::Claim<'_>>) {
        let state = &mut *self.0.lock();
        for (_, group) in claims {
            let entry = &mut state.groups[group as usize];
            entry.claimed = false;
            if let Some(&key) = entry.waiting.front() {
                state.first.insert((key, group));
            }
        }
    }
}
