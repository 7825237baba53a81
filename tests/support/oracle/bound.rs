//! INVARIANT CHECKER for an event trace: SEMANTICS 3 on every dispatch.
//!
//! It replays the events with its own idea of ready, eligible and "in the ring". It derives each of
//! these only from what has arrived, started and finished, and checks that
//!
//! - each dispatched task was eligible;
//! - no caller's oldest eligible group is overtaken more than K times in a row;
//! - a group that is i-th by age among its caller's ready groups starts its next turn within
//!   `(ceil(i*(K+1)/w) + L)*W` dispatches, counted while it is eligible. The wait is measured from
//!   its becoming ready, and again from after every dispatch.

use super::{Bypass, Event, Happening, Options, Task, callers_of, groups_of};

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) broken: Vec<String>,
    /// Waits that the bound was checked on.
    pub(crate) waits: usize,
    /// Waits that took exactly as long as the bound allows.
    pub(crate) tight: usize,
    /// Waits that a bound without L would have forbidden.
    pub(crate) need_l: usize,
}

/// A group waits for its next turn.
struct Wait {
    group: usize,
    /// Its place by age among its caller's ready groups when the wait began, from 1.
    i: u64,
    /// Dispatches so far while it was eligible.
    dispatches: u64,
    /// L: how often it stopped being eligible.
    lost: u64,
    /// W: the largest sum of weights in the ring so far.
    ring_weight: u64,
    /// Whether it was eligible after the last event.
    eligible: bool,
}

struct Replay<'a> {
    tasks: &'a [Task],
    options: &'a Options,
    group_of: Vec<usize>,
    caller_of: Vec<usize>,
    /// Unfinished tasks in order of arrival; true = running.
    outstanding: Vec<(usize, bool)>,
    /// By group: the number of the event that made it ready.
    ready_since: Vec<Option<usize>>,
    /// By caller.
    overtaken: Vec<u32>,
    waits: Vec<Wait>,
    verdict: Verdict,
}

/// Checks a whole trace.
pub(crate) fn verdict(tasks: &[Task], options: &Options, events: &[Event]) -> Verdict {
    let mut replay = Replay {
        tasks,
        options,
        group_of: groups_of(tasks),
        caller_of: callers_of(tasks),
        outstanding: Vec::new(),
        ready_since: vec![None; tasks.len()],
        overtaken: vec![0; tasks.len()],
        waits: Vec::new(),
        verdict: Verdict::default(),
    };
    for (number, event) in events.iter().enumerate() {
        if let Happening::Dispatch(_) = event.what {
            replay.judge(number, event.task);
        }
        replay.apply(event);
        replay.note(number, event);
    }
    replay.verdict
}

impl Replay<'_> {
    /// The dispatch that is about to happen.
    fn judge(&mut self, number: usize, task: usize) {
        let group = self.group_of[task];
        let caller = self.caller_of[task];
        if self.ready_since[group].is_none() || !self.is_eligible(group) {
            self.broken(number, task, "is dispatched, but not eligible");
        }
        self.judge_overtaking(number, task);
        let mut ended = Vec::new();
        for wait in &mut self.waits {
            wait.dispatches += u64::from(wait.eligible);
        }
        self.waits.retain_mut(|wait| {
            let over = wait.group == group;
            if over {
                ended.push((wait.i, wait.dispatches, wait.lost, wait.ring_weight));
            }
            !over
        });
        let Bypass::AtMost(most) = self.options.bypass else {
            return;
        };
        let weight = u64::from(self.options.weight_of(&self.tasks[caller].caller));
        for (i, dispatches, lost, ring_weight) in ended {
            let rounds = (i * (u64::from(most) + 1)).div_ceil(weight);
            let bound = (rounds + lost) * ring_weight;
            self.verdict.waits += 1;
            self.verdict.tight += usize::from(dispatches == bound);
            self.verdict.need_l += usize::from(dispatches > rounds * ring_weight);
            if dispatches > bound {
                let why = format!(
                    "waited for {dispatches} dispatches, the bound is {bound} (i {i}, w {weight}, L {lost}, W {ring_weight})"
                );
                self.broken(number, task, &why);
            }
        }
    }

    fn judge_overtaking(&mut self, number: usize, task: usize) {
        let caller = self.caller_of[task];
        let groups = (0..self.tasks.len()).filter(|&group| self.caller_of[group] == caller);
        let eligible = groups.filter(|&group| self.is_eligible(group));
        let oldest = eligible.min_by_key(|&group| self.ready_since[group]);
        if oldest == Some(self.group_of[task]) {
            self.overtaken[caller] = 0;
            return;
        }
        self.overtaken[caller] += 1;
        if let Bypass::AtMost(most) = self.options.bypass
            && self.overtaken[caller] > most
        {
            self.broken(number, task, "overtakes its caller's oldest once too often");
        }
    }

    fn apply(&mut self, event: &Event) {
        match event.what {
            Happening::Arrival => self.outstanding.push((event.task, false)),
            Happening::Dispatch(_) => {
                for (task, running) in &mut self.outstanding {
                    *running |= *task == event.task;
                }
            }
            Happening::Completion(_) => self.outstanding.retain(|&(task, _)| task != event.task),
        }
    }

    /// What the event changed: which groups are ready and eligible, which callers are in the ring.
    fn note(&mut self, number: usize, event: &Event) {
        let group = self.group_of[event.task];
        let became_ready = self.is_ready(group) && self.ready_since[group].is_none();
        if became_ready {
            self.ready_since[group] = Some(number);
        }
        if !self.is_ready(group) {
            self.ready_since[group] = None;
        }
        let eligible: Vec<bool> = (0..self.tasks.len())
            .map(|group| self.is_eligible(group))
            .collect();
        let ring_weight = self.ring_weight(&eligible);
        for wait in &mut self.waits {
            let now = eligible[wait.group];
            wait.lost += u64::from(wait.eligible && !now);
            wait.eligible = now;
            wait.ring_weight = wait.ring_weight.max(ring_weight);
        }
        let dispatched = matches!(event.what, Happening::Dispatch(_));
        for (group, &eligible) in eligible.iter().enumerate() {
            let Some(since) = self.ready_since[group] else {
                continue;
            };
            if dispatched || since == number {
                self.waits.push(Wait {
                    group,
                    i: self.place_by_age(group),
                    dispatches: 0,
                    lost: 0,
                    ring_weight,
                    eligible,
                });
            }
        }
    }

    /// From 1, among the ready groups of its caller, blocked ones included.
    fn place_by_age(&self, group: usize) -> u64 {
        let same_caller = |&other: &usize| self.caller_of[other] == self.caller_of[group];
        let others = (0..self.tasks.len()).filter(same_caller);
        let since = |group: usize| self.ready_since[group];
        let not_younger = |&other: &usize| since(other).is_some() && since(other) <= since(group);
        others.filter(not_younger).count() as u64
    }

    /// The sum of the weights of the callers that have an eligible group.
    fn ring_weight(&self, eligible: &[bool]) -> u64 {
        let callers = (0..self.tasks.len()).filter(|&caller| {
            (0..self.tasks.len()).any(|group| eligible[group] && self.caller_of[group] == caller)
        });
        callers
            .map(|caller| u64::from(self.options.weight_of(&self.tasks[caller].caller)))
            .sum()
    }

    fn members(&self, group: usize) -> impl Iterator<Item = (usize, bool)> + '_ {
        let all = self.outstanding.iter().copied();
        all.filter(move |&(task, _)| self.group_of[task] == group)
    }

    /// Has a waiting task and none in flight.
    fn is_ready(&self, group: usize) -> bool {
        self.members(group).next().is_some() && self.members(group).all(|(_, running)| !running)
    }

    fn is_eligible(&self, group: usize) -> bool {
        let Some((head, _)) = self.members(group).next() else {
            return false;
        };
        let tier = self.tasks[head].tier;
        let own = || {
            let all = self.outstanding.iter();
            all.filter(|&&(task, _)| self.caller_of[task] == self.caller_of[head])
        };
        let in_flight = own().filter(|&&(_, running)| running).count();
        let below_cap = self.options.cap.is_none_or(|cap| in_flight < cap);
        let tier_is_open = own().all(|&(task, running)| {
            let other = self.tasks[task].tier;
            other == tier || (other > tier && !running)
        });
        self.is_ready(group) && below_cap && tier_is_open
    }

    fn broken(&mut self, number: usize, task: usize, why: &str) {
        let line = format!("event {number}: row {} {why}", task + 1);
        self.verdict.broken.push(line);
    }
}
