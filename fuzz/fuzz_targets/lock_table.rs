//! Any list of operations of four owners on a lock table, compared with a naive sequential lock
//! manager. After each operation both hold and queue the same, each wait is woken when it must be
//! and not otherwise, every reported deadlock is one, and none is missed. At the end nothing
//! is left.
#![no_main]

use arbitrary::Arbitrary;
use conversant::limit::Bypass;
use conversant::lock_table::{
    Deadlock, LockError, LockTable, Owner, OwnerId, Priority, ReleaseError, Resource, Savepoint,
};
use conversant::modes::Mode;
use conversant::wait::{Op, Wait};
use libfuzzer_sys::fuzz_target;

// The names of the crate's own random schedules.
#[path = "../../src/lock_table/tests/names.rs"]
mod names;
#[path = "../../src/lock_table/tests/oracle.rs"]
mod oracle;
#[path = "../../src/lock_table/tests/person.rs"]
mod person;
#[path = "../../src/lock_table/tests/steps.rs"]
mod steps;
#[path = "../../src/lock_table/tests/world.rs"]
mod world;

use names::{Count, Path, path};
use steps::Step;
use world::{OWNERS, World, resources};

#[derive(Arbitrary, Debug)]
struct Script {
    priorities: [bool; OWNERS],
    bypass: u8,
    ops: Vec<(u8, Act)>,
}

#[derive(Arbitrary, Debug)]
enum Act {
    Lock(u8, u8),
    LockMany(Vec<(u8, u8)>),
    Cancel,
    Run,
    Release(u8),
    Downgrade(u8, u8),
    Savepoint,
    ReleaseTo(u8),
    ReleaseAll,
    FirstFree(Vec<u8>, u8, bool),
    Retry,
    Renew,
    SetPriority(u8),
}

fn pick(of: usize, byte: u8) -> usize {
    usize::from(byte) % of
}

fn step((who, op): (u8, Act)) -> Step {
    let who = pick(OWNERS, who);
    let what = |byte| pick(resources().len(), byte);
    let mode = |byte| Mode::ALL[pick(Mode::ALL.len(), byte)];
    match op {
        Act::Lock(r, m) => Step::Lock(who, vec![(what(r), mode(m))]),
        Act::LockMany(all) => {
            let few = all.into_iter().take(4);
            Step::Lock(who, few.map(|(r, m)| (what(r), mode(m))).collect())
        }
        Act::Cancel => Step::Cancel(who),
        Act::Run => Step::Run(who),
        Act::Release(r) => Step::Release(who, what(r)),
        Act::Downgrade(r, m) => Step::Downgrade(who, what(r), mode(m)),
        Act::Savepoint => Step::Savepoint(who),
        Act::ReleaseTo(n) => Step::ReleaseTo(who, usize::from(n)),
        Act::ReleaseAll => Step::ReleaseAll(who),
        Act::FirstFree(all, m, waits) => {
            let few = all.into_iter().take(4).map(what).collect();
            Step::FirstFree(who, few, mode(m), waits)
        }
        Act::Retry => Step::Retry(who),
        Act::Renew => Step::Renew(who),
        Act::SetPriority(priority) => Step::SetPriority(who, i32::from(priority % 3)),
    }
}

fuzz_target!(|script: Script| {
    let mut world = World::new(
        script.priorities.map(i32::from),
        u32::from(script.bypass % 4),
    );
    for op in script.ops.into_iter().take(200) {
        world.step(&step(op));
    }
    world.wind_up();
});
