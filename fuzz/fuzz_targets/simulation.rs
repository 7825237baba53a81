//! Any sequence of operations on a simulation: no panic, no worker idle while
//! work could start, and an end to everything that nothing blocks.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use conversant::limit::{Bypass, Limit};
use conversant::scheduler::{CallerOptions, OnFailure, Why};
use conversant::simulator::{CallerId, Driver, GroupId, SimTask, Simulation, Work};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Script {
    workers: u8,
    bypass: Option<u8>,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Caller {
        weight: u8,
        cap: u8,
        skip: bool,
    },
    Group {
        caller: u8,
        limit: u8,
        level: u8,
    },
    Submit {
        caller: u8,
        group: Option<u8>,
        tier: u8,
        bump: Option<u8>,
        takes: u8,
        fails: bool,
    },
    Bump {
        task: u8,
        level: u8,
    },
    Cancel {
        task: u8,
    },
    SetCap {
        caller: u8,
        cap: u8,
    },
    SetWorkers {
        workers: u8,
    },
    Advance {
        by: u8,
    },
    Synchronize {
        caller: u8,
    },
}

struct World {
    sim: Simulation,
    callers: Vec<CallerId>,
    groups: Vec<GroupId>,
    tasks: Vec<SimTask>,
}

fuzz_target!(|script: Script| {
    let bypass = script
        .bypass
        .map_or(Bypass::Unbounded, |k| Bypass::AtMost(k.into()));
    let workers = u32::from(script.workers % 8) + 1;
    let Ok(sim) = Simulation::with_bypass(workers, bypass) else {
        return;
    };
    let mut world = World {
        sim,
        callers: Vec::new(),
        groups: Vec::new(),
        tasks: Vec::new(),
    };
    for op in script.ops {
        world.apply(op);
    }
    for &caller in &world.callers {
        world
            .sim
            .set_cap(&caller, Limit::Unlimited)
            .expect("in range");
    }
    world.sim.run();
    world.no_worker_idles();
});

impl World {
    fn apply(&mut self, op: Op) {
        match op {
            Op::Caller { weight, cap, skip } => {
                let on_failure = match skip {
                    true => OnFailure::SkipHigherTiers,
                    false => OnFailure::Continue,
                };
                let cap = Limit::AtMost(cap.into());
                let options = CallerOptions {
                    weight: weight.into(),
                    cap,
                    on_failure,
                    ..CallerOptions::default()
                };
                self.callers.extend(self.sim.caller("fuzz", options));
            }
            Op::Group {
                caller,
                limit,
                level,
            } => {
                if let Some(&caller) = pick(&self.callers, caller) {
                    let group = self.sim.group(caller, Limit::AtMost(limit.into()), level);
                    self.groups.extend(group);
                }
            }
            Op::Submit {
                caller,
                group,
                tier,
                bump,
                takes,
                fails,
            } => {
                let Some(&caller) = pick(&self.callers, caller) else {
                    return;
                };
                let mut work = Work::takes(Duration::from_millis(takes.into())).tier(tier.into());
                if let Some(&group) = group.and_then(|group| pick(&self.groups, group)) {
                    work = work.group(group);
                }
                work = bump.into_iter().fold(work, Work::bump);
                let work = if fails { work.failing() } else { work };
                self.tasks.extend(self.sim.submit(caller, work));
            }
            Op::Bump { task, level } => {
                if let Some(task) = pick(&self.tasks, task) {
                    let _ = self.sim.bump(task, level);
                }
            }
            Op::Cancel { task } => {
                if let Some(task) = pick(&self.tasks, task) {
                    self.sim.cancel(task);
                }
            }
            Op::SetCap { caller, cap } => {
                if let Some(&caller) = pick(&self.callers, caller) {
                    self.sim
                        .set_cap(&caller, Limit::AtMost(cap.into()))
                        .expect("in range");
                }
            }
            Op::SetWorkers { workers } => {
                self.sim
                    .set_workers(u32::from(workers % 8) + 1)
                    .expect("in range");
            }
            Op::Advance { by } => {
                self.sim
                    .advance_to(self.sim.now() + Duration::from_millis(by.into()));
            }
            Op::Synchronize { caller } => {
                if let Some(&caller) = pick(&self.callers, caller) {
                    let _ = self.sim.synchronize(caller);
                }
            }
        }
    }

    /// When time stands still, waiting work is blocked by more than the lack of a worker.
    fn no_worker_idles(&self) {
        let status = self.sim.status();
        assert!(status.running.is_empty());
        assert!(status.waiting.iter().all(|task| task.why != Why::Worker));
    }
}

fn pick<T>(all: &[T], which: u8) -> Option<&T> {
    all.get(usize::from(which) % all.len().max(1))
}
