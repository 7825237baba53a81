//! A simulation, and what its script knows of it.

use std::time::Duration;

use conversant::limit::{Bypass, Limit};
use conversant::scheduler::{CallerOptions, Ending, OnFailure, Reason, Summary};
use conversant::simulator::{CallerId, Driver, GroupId, SimTask, Simulation, Work};

use crate::{Op, Script, Task};

const MOST: u32 = 8;

const UNLIMITED: u32 = u32::MAX;

pub(crate) struct Caller {
    id: CallerId,
    pub(crate) name: String,
    pub(crate) cap: u32,
    /// What may be in use: more than the cap for a while after the cap was lowered.
    pub(crate) ceiling: u32,
    capacity: Option<u64>,
    /// The sum over its synchronizes.
    pub(crate) summed: Summary,
}

pub(crate) struct Group {
    id: GroupId,
    caller: usize,
    pub(crate) limit: u32,
    pub(crate) ceiling: u32,
}

pub(crate) struct Known {
    task: SimTask,
    pub(crate) caller: usize,
    pub(crate) group: Option<usize>,
    pub(crate) due: Duration,
    pub(crate) delayed: bool,
    pub(crate) is_future: bool,
}

pub(crate) struct World {
    pub(crate) sim: Simulation,
    pub(crate) callers: Vec<Caller>,
    pub(crate) groups: Vec<Group>,
    pub(crate) known: Vec<Known>,
    pub(crate) max: u32,
    pub(crate) holds: u32,
}

fn millis(n: u8) -> Duration {
    Duration::from_millis(n.into())
}

/// The longest lasts until the future is woken.
fn pause(n: u8) -> Duration {
    match n {
        255 => Duration::MAX,
        n => millis(n),
    }
}

/// 0, a pause, is not frequent.
fn number(n: u8) -> u32 {
    match n % 16 {
        0 => 0,
        n @ 1..12 => u32::from(n) % 4 + 1,
        _ => UNLIMITED,
    }
}

fn limit(n: u32) -> Limit {
    match n {
        UNLIMITED => Limit::Unlimited,
        n => Limit::AtMost(n),
    }
}

fn pick<T>(all: &[T], which: u8) -> Option<usize> {
    usize::from(which).checked_rem(all.len())
}

impl World {
    pub(crate) fn new(script: &Script) -> Self {
        let bypass = script.bypass.map(|k| Bypass::AtMost(k.into()));
        let max = u32::from(script.workers) % MOST + 1;
        let sim = Simulation::with_bypass(max, bypass.unwrap_or(Bypass::Unbounded));
        let sim = sim.expect("in range");
        Self {
            sim: match script.idle {
                Some(idle) => sim.with_idle(millis(idle)),
                None => sim,
            },
            callers: Vec::new(),
            groups: Vec::new(),
            known: Vec::new(),
            max,
            holds: 0,
        }
    }

    pub(crate) fn apply(&mut self, op: Op) {
        match op {
            Op::Caller { .. } => self.caller(&op),
            Op::Submit(task) => self.submit(&task),
            Op::Advance { by } => {
                let then = self.sim.now() + millis(by);
                self.sim.advance_to(then);
            }
            Op::Look => self.settle(),
            Op::Hold => {
                self.sim.hold();
                self.holds += 1;
            }
            Op::Unhold => {
                self.sim.unhold();
                self.holds = self.holds.saturating_sub(1);
            }
            Op::SetWorkers { workers } => {
                self.max = u32::from(workers) % MOST + 1;
                self.sim.set_workers(self.max).expect("in range");
            }
            Op::Bump { .. } | Op::Wake { .. } | Op::Cancel { .. } => self.one_task(&op),
            Op::CancelAll { caller } | Op::SetCap { caller, .. } | Op::Synchronize { caller } => {
                if let Some(caller) = pick(&self.callers, caller) {
                    self.one_caller(&op, caller);
                }
            }
            Op::Group { .. } | Op::SetLimit { .. } | Op::SetLevel { .. } => self.group(&op),
        }
    }

    fn caller(&mut self, op: &Op) {
        let &Op::Caller {
            weight,
            cap,
            skip,
            capacity,
        } = op
        else {
            return;
        };
        let (cap, capacity) = (number(cap), capacity.map(|most| u64::from(most % 32)));
        let options = CallerOptions {
            weight: weight.into(),
            cap: limit(cap),
            on_failure: match skip {
                true => OnFailure::SkipHigherTiers,
                false => OnFailure::Continue,
            },
            capacity: capacity.map_or(Limit::Unlimited, |most| Limit::AtMost(most as u32)),
        };
        let name = self.callers.len().to_string();
        let made = self.sim.caller(&name, options);
        assert_eq!(made.is_ok(), weight > 0);
        self.callers.extend(made.map(|id| Caller {
            id,
            name,
            cap,
            ceiling: cap,
            capacity,
            summed: Summary::default(),
        }));
    }

    fn group(&mut self, op: &Op) {
        match *op {
            Op::Group {
                caller,
                limit: most,
                level,
            } => {
                let Some(caller) = pick(&self.callers, caller) else {
                    return;
                };
                let most = number(most);
                let made = self.sim.group(self.callers[caller].id, limit(most), level);
                self.groups.push(Group {
                    id: made.expect("in range"),
                    caller,
                    limit: most,
                    ceiling: most,
                });
            }
            Op::SetLimit { group, limit: most } => {
                if let Some(group) = pick(&self.groups, group) {
                    let group = &mut self.groups[group];
                    group.limit = number(most);
                    group.ceiling = group.ceiling.max(group.limit);
                    let set = self.sim.set_limit(&group.id, limit(group.limit));
                    set.expect("in range");
                }
            }
            Op::SetLevel { group, level } => {
                if let Some(group) = pick(&self.groups, group) {
                    self.sim.set_level(&self.groups[group].id, level);
                }
            }
            _ => {}
        }
    }

    fn submit(&mut self, task: &Task) {
        let mut work = Work::takes(millis(task.takes));
        let group = task.group.and_then(|group| pick(&self.groups, group));
        let caller = match group {
            Some(group) => Some(self.groups[group].caller),
            None => pick(&self.callers, task.caller),
        };
        let Some(caller) = caller else { return };
        if let Some(group) = group {
            work = work.group(self.groups[group].id);
        }
        if let Some(tier) = task.tier {
            work = work.tier(u32::from(tier % 8));
        }
        work = task.bump.into_iter().fold(work, Work::bump);
        let after = task.after.map_or(Duration::ZERO, millis);
        if let Some((most, times)) = task.awaits {
            work = work.awaits(pause(most), u32::from(times % 4));
        }
        work = match task.ends % 8 {
            0 => work.failing().after(after),
            1 => work.panicking().after(after),
            _ => work.after(after),
        };
        let unfinished = self.unfinished(caller);
        let of = &self.callers[caller];
        let full = of.capacity.is_some_and(|most| unfinished >= most);
        match self.sim.submit(of.id, work) {
            Ok(task_of) => {
                assert!(!full);
                self.known.push(Known {
                    task: task_of,
                    caller,
                    group,
                    due: self.sim.now() + after,
                    delayed: !after.is_zero(),
                    is_future: task.awaits.is_some(),
                });
            }
            Err(Reason::Full) => assert!(full),
            Err(Reason::TierGoesDown(down)) => assert!(group.is_some() && down.asked < down.last),
            Err(other) => panic!("{other}"),
        }
    }

    fn unfinished(&self, caller: usize) -> u64 {
        self.sim.status().callers[caller].unfinished
    }

    fn one_task(&mut self, op: &Op) {
        let (Op::Bump { task, .. } | Op::Wake { task } | Op::Cancel { task }) = op else {
            return;
        };
        let Some(known) = pick(&self.known, *task).map(|task| &self.known[task]) else {
            return;
        };
        let mut records = self.sim.records().iter();
        let ended = records.any(|row| row.task.id == known.task.id());
        match op {
            Op::Bump { level, .. } => {
                let bumped = self.sim.bump(&known.task, *level);
                assert!(!ended || bumped.is_err());
            }
            Op::Wake { .. } => assert!(!self.sim.wake(&known.task) || known.is_future && !ended),
            _ => {
                let cancelled = self.sim.cancel(&known.task);
                assert!(!cancelled || !ended);
                let last = self.sim.records().last().filter(|_| cancelled);
                assert!(last.is_none_or(|row| row.ending == Ending::Cancelled));
            }
        }
    }

    fn one_caller(&mut self, op: &Op, caller: usize) {
        let id = self.callers[caller].id;
        match op {
            Op::CancelAll { .. } => self.sim.cancel_all(&id),
            Op::SetCap { cap, .. } => {
                let of = &mut self.callers[caller];
                of.cap = number(*cap);
                of.ceiling = of.ceiling.max(of.cap);
                self.sim.set_cap(&id, limit(of.cap)).expect("in range");
            }
            _ => {
                let synced = self.sim.synchronize(id);
                self.callers[caller].summed += synced.unwrap_or_default();
            }
        }
    }

    /// Lifts everything that blocks a task, and lets all end.
    pub(crate) fn finish(mut self) {
        while self.holds > 0 {
            self.apply(Op::Unhold);
        }
        self.settle();
        for group in &self.groups {
            let set = self.sim.set_limit(&group.id, Limit::Unlimited);
            set.expect("in range");
        }
        for caller in &self.callers {
            let set = self.sim.set_cap(&caller.id, Limit::Unlimited);
            set.expect("in range");
        }
        self.sim.run();
        // A future awaits up to three times, and may wait for one in a lower tier.
        while self.known.iter().any(|known| self.sim.wake(&known.task)) {
            self.sim.run();
        }
        for caller in &mut self.callers {
            let synced = self.sim.synchronize(caller.id);
            caller.summed += synced.unwrap_or_default();
        }
        self.all_has_ended();
    }
}
