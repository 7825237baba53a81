//! Random operations on the simulation, and what must hold at each instant:
//! workers, caps, tiers and group limits are within bounds, no worker is idle
//! while a task could start, and the sums agree.

use std::collections::HashMap;
use std::time::Duration;

use conversant::limit::{Bypass, Limit};
use conversant::scheduler::{
    CallerOptions, Ending, OnFailure, Reason, Record, Status, Summary, SyncError, Why,
};
use conversant::simulator::{CallerId, Driver, GroupId, SimTask, Simulation, Work};
use proptest::prelude::*;

const CALLERS: usize = 3;
const GROUPS: usize = 2;

#[derive(Clone, Debug)]
enum Op {
    Submit {
        caller: usize,
        tier: Option<u32>,
        group: Option<usize>,
        bump: Option<u8>,
        takes: u64,
        fails: bool,
    },
    Advance(u64),
    Cancel(usize),
    Bump(usize, u8),
    Readers(u32),
    Cap(usize, u32),
    Synchronize(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let submit = (
        0..CALLERS,
        proptest::option::of(0..4_u32),
        proptest::option::of(0..GROUPS),
        proptest::option::weighted(0.2, any::<u8>()),
        0..6_u64,
        proptest::bool::weighted(0.1),
    );
    let submit = submit.prop_map(|(caller, tier, group, bump, takes, fails)| Op::Submit {
        caller,
        tier,
        group,
        bump,
        takes,
        fails,
    });
    prop_oneof![
        8 => submit,
        4 => (1..5_u64).prop_map(Op::Advance),
        1 => any::<usize>().prop_map(Op::Cancel),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(task, level)| Op::Bump(task, level)),
        1 => (1..5_u32).prop_map(Op::Readers),
        1 => (0..CALLERS, 0..4_u32).prop_map(|(caller, cap)| Op::Cap(caller, cap)),
        1 => (0..CALLERS).prop_map(Op::Synchronize),
    ]
}

/// What the test knows of a task.
#[derive(Clone)]
struct Known {
    task: SimTask,
    caller: usize,
    group: Option<usize>,
    tier: u32,
}

struct World {
    sim: Simulation,
    callers: Vec<CallerId>,
    groups: Vec<[GroupId; GROUPS]>,
    /// The limit of each group, the same for each caller.
    limits: [u32; GROUPS],
    caps: [Option<u32>; CALLERS],
    max: u32,
    /// The largest maximum since the live workers were last within the maximum.
    ceiling: u32,
    known: Vec<Known>,
    /// The sum over each caller's synchronizes.
    summed: [Summary; CALLERS],
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn name(caller: usize) -> String {
    format!("caller {caller}")
}

impl World {
    fn new(readers: u32, skips: bool) -> Self {
        let bypass = Bypass::AtMost(2);
        let mut sim = Simulation::with_bypass(readers, bypass)
            .unwrap()
            .with_idle(secs(3));
        let limits = [1, 2];
        let mut callers = Vec::new();
        let mut groups = Vec::new();
        for n in 0..CALLERS {
            let options = CallerOptions {
                weight: n as u32 + 1,
                on_failure: match skips && n == 0 {
                    true => OnFailure::SkipHigherTiers,
                    false => OnFailure::Continue,
                },
                ..CallerOptions::default()
            };
            let caller = sim.caller(&name(n), options).unwrap();
            callers.push(caller);
            groups.push(limits.map(|n| sim.group(caller, Limit::AtMost(n), 100).unwrap()));
        }
        Self {
            sim,
            callers,
            groups,
            limits,
            caps: [None; CALLERS],
            max: readers,
            ceiling: readers,
            known: Vec::new(),
            summed: [Summary::default(); CALLERS],
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Submit { .. } => self.submit(op),
            Op::Advance(by) => self.advance(self.sim.now() + secs(by)),
            Op::Cancel(n) => {
                if let Some(known) = pick(&self.known, n) {
                    self.sim.cancel(&known.task);
                }
            }
            Op::Bump(n, level) => {
                if let Some(known) = pick(&self.known, n) {
                    _ = self.sim.bump(&known.task, level);
                }
            }
            Op::Readers(max) => {
                self.sim.set_workers(max).unwrap();
                self.max = max;
                self.ceiling = self.ceiling.max(max);
            }
            Op::Cap(caller, cap) => {
                self.caps[caller] = Some(cap);
                let cap = Limit::AtMost(cap);
                self.sim.set_cap(&self.callers[caller], cap).unwrap();
            }
            Op::Synchronize(caller) => self.synchronize(caller),
        }
    }

    fn submit(&mut self, op: &Op) {
        let &Op::Submit {
            caller,
            tier,
            group,
            bump,
            takes,
            fails,
        } = op
        else {
            return;
        };
        let mut work = Work::takes(secs(takes));
        if let Some(tier) = tier {
            work = work.tier(tier);
        }
        if let Some(group) = group {
            work = work.group(self.groups[caller][group]);
        }
        if let Some(level) = bump {
            work = work.bump(level);
        }
        if fails {
            work = work.failing();
        }
        match self.sim.submit(self.callers[caller], work) {
            Ok(task) => {
                let id = self.known.len() as u64 + 1;
                let tier = self.tier_of(id);
                self.known.push(Known {
                    task,
                    caller,
                    group,
                    tier,
                });
            }
            Err(Reason::TierGoesDown(down)) => {
                assert!(group.is_some() && Some(down.asked) == tier && down.asked < down.last);
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// The tier of the newest task, which waits or was skipped at once.
    fn tier_of(&self, id: u64) -> u32 {
        let status = self.sim.status();
        let mut waiting = status.waiting.iter().map(|t| (t.id, t.tier));
        let row = self
            .sim
            .records()
            .last()
            .map(|row| (row.task.id, row.task.tier));
        let (_, tier) = waiting
            .find(|(task, _)| task.get() == id)
            .or(row.filter(|(task, _)| task.get() == id))
            .expect("it waits, or was skipped");
        tier
    }

    /// Advances to `then`, and calls `look` a moment after each second, when every task
    /// that can start has started.
    fn advance(&mut self, then: Duration) {
        while self.sim.now() < then {
            let second = secs(self.sim.now().as_secs() + 1);
            let moment = (self.sim.now() + Duration::from_millis(1)).min(second);
            self.sim.advance_to(moment);
            if self.sim.now() < second {
                self.look();
            }
            self.sim.advance_to(second);
        }
    }

    fn synchronize(&mut self, caller: usize) {
        match self.sim.synchronize(self.callers[caller]) {
            Ok(summary) => self.summed[caller] += summary,
            Err(SyncError::NothingOutstanding | SyncError::Stalled(_)) => {}
            Err(SyncError::Busy) => panic!("nobody else synchronizes"),
        }
    }

    fn of(&self, id: u64) -> Known {
        self.known[id as usize - 1].clone()
    }

    /// Checks all invariants at a moment at which every task that can start has started.
    fn look(&mut self) {
        let status = self.sim.status();
        let readers = &status.workers;
        assert!(readers.live <= self.ceiling, "{readers:?}");
        if readers.live <= self.max {
            self.ceiling = self.max;
        }
        assert_eq!(readers.busy as usize, status.running.len());
        assert_eq!(readers.busy + readers.idle, readers.live);
        self.limits_hold(&status);
        self.nothing_startable_waits(&status);
        for (n, caller) in status.callers.iter().enumerate() {
            let mine = |name: &str| name == &*caller.name;
            let running = status.running.iter().filter(|t| mine(&t.caller)).count();
            let waiting = status.waiting.iter().filter(|t| mine(&t.caller)).count();
            assert_eq!(caller.running as usize, running, "{}", name(n));
            assert_eq!(caller.unfinished as usize, running + waiting);
        }
    }

    fn limits_hold(&self, status: &Status) {
        let mut per_group: HashMap<(usize, usize), u32> = HashMap::new();
        let mut tiers: HashMap<usize, u32> = HashMap::new();
        for task in &status.running {
            let known = self.of(task.id.get());
            assert_eq!(known.tier, task.tier);
            let tier = *tiers.entry(known.caller).or_insert(task.tier);
            assert_eq!(tier, task.tier, "two tiers of one caller at once");
            if let Some(group) = known.group {
                let running = per_group.entry((known.caller, group)).or_default();
                *running += 1;
                assert!(*running <= self.limits[group], "group limit");
            }
        }
    }

    /// Work conservation, checked by what the status says of each waiting task and,
    /// independently, by what this test knows.
    fn nothing_startable_waits(&self, status: &Status) {
        let full = status.workers.busy >= self.max;
        for task in &status.waiting {
            let known = self.of(task.id.get());
            let mine = |n: &&conversant::scheduler::RunningTask| {
                self.of(n.id.get()).caller == known.caller
            };
            let running = status.running.iter().filter(mine);
            let count = running.clone().count() as u32;
            let other_tier = running.clone().any(|t| t.tier != task.tier);
            let lower = status
                .waiting
                .iter()
                .any(|t| self.of(t.id.get()).caller == known.caller && t.tier < task.tier);
            let capped = self.caps[known.caller].is_some_and(|cap| count >= cap);
            let behind = known.group.is_some_and(|group| {
                let same = |id: u64| {
                    let other = self.of(id);
                    other.caller == known.caller && other.group == Some(group)
                };
                let in_flight = running.filter(|t| same(t.id.get())).count() as u32;
                let before = |t: &&conversant::scheduler::WaitingTask| t.id < task.id;
                in_flight >= self.limits[group]
                    || status
                        .waiting
                        .iter()
                        .filter(before)
                        .any(|t| same(t.id.get()))
            });
            assert!(
                full || other_tier || lower || capped || behind,
                "an idle reader beside {task:?}"
            );
            assert!(full || task.why != Why::Worker, "{task:?}");
        }
    }

    /// Lets every task run, and compares the sums.
    fn finish(mut self) {
        self.sim.set_workers(4).unwrap();
        for (n, &caller) in self.callers.iter().enumerate() {
            self.sim.set_cap(&caller, Limit::Unlimited).unwrap();
            self.caps[n] = None;
        }
        self.sim.run();
        let status = self.sim.status();
        assert!(status.running.is_empty() && status.waiting.is_empty());
        for n in 0..CALLERS {
            self.synchronize(n);
            let nothing = Err(SyncError::NothingOutstanding);
            assert_eq!(self.sim.synchronize(self.callers[n]), nothing);
            let rows = self.sim.records().iter();
            let mine: Vec<&Record> = rows.filter(|row| *row.task.caller == *name(n)).collect();
            assert!(agree(&self.summed[n], &mine), "{:?}", self.summed[n]);
        }
        assert_eq!(self.sim.records().len(), self.known.len(), "each once");
        self.in_order_within_groups();
    }

    fn in_order_within_groups(&self) {
        let mut last: HashMap<(usize, usize), (u64, Duration)> = HashMap::new();
        let mut ran: Vec<_> = self.sim.records().iter().collect();
        ran.sort_by_key(|row| row.task.id);
        for row in ran {
            let known = self.of(row.task.id.get());
            if let (Some(group), Some(run)) = (known.group, row.run) {
                let before = last.insert((known.caller, group), (row.task.id.get(), run.start));
                assert!(before.is_none_or(|(_, start)| start <= run.start));
            }
        }
    }
}

fn pick<T>(from: &[T], n: usize) -> Option<&T> {
    from.get(n.checked_rem(from.len())?)
}

fn agree(sum: &Summary, rows: &[&Record]) -> bool {
    let ended = |how| rows.iter().filter(|row| row.ending == how).count() as u64;
    sum.tasks == rows.len() as u64
        && sum.ok == ended(Ending::Ok)
        && sum.failed == ended(Ending::Failed)
        && sum.cancelled == ended(Ending::Cancelled)
        && sum.skipped == ended(Ending::Skipped)
}

proptest! {
    #![proptest_config(ProptestConfig {
        // No file of failing cases is written: a failing case becomes a test.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_the_order_of_events(
        readers in 1..5_u32,
        skips: bool,
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        let mut world = World::new(readers, skips);
        for op in &ops {
            world.apply(op);
        }
        world.finish();
    }
}
