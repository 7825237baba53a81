//! Any list of operations of four owners on a lock table, beside a naive sequential lock manager:
//! after each the two hold and queue the same, nobody is told too much or too little, every deadlock
//! is one and none is missed; in the end nothing is left.
#![no_main]

use arbitrary::Arbitrary;
use conversant::lock_table::{
    Deadlock, LockError, LockTable, Owner, OwnerId, ReleaseError, Resource, Savepoint,
};
use conversant::modes::Mode;
use libfuzzer_sys::fuzz_target;

// What the crate's own random schedules run.
#[path = "../../src/lock_table/tests/names.rs"]
mod names;
#[path = "../../src/lock_table/tests/oracle.rs"]
mod oracle;
#[path = "../../src/lock_table/tests/world.rs"]
mod world;

use names::{Count, Path, path};
use world::{OWNERS, Step, World, resources};

#[derive(Arbitrary, Debug)]
struct Script {
    priorities: [bool; OWNERS],
    ops: Vec<(u8, Op)>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Lock(u8, u8),
    LockMany(Vec<(u8, u8)>),
    Cancel,
    Run,
    Release(u8),
    Downgrade(u8, u8),
    Savepoint,
    ReleaseTo(u8),
    ReleaseAll,
}

fn pick(of: usize, byte: u8) -> usize {
    usize::from(byte) % of
}

fn step((who, op): (u8, Op)) -> Step {
    let who = pick(OWNERS, who);
    let what = |byte| pick(resources().len(), byte);
    let mode = |byte| Mode::ALL[pick(Mode::ALL.len(), byte)];
    match op {
        Op::Lock(r, m) => Step::Lock(who, vec![(what(r), mode(m))]),
        Op::LockMany(all) => {
            let few = all.into_iter().take(4);
            Step::Lock(who, few.map(|(r, m)| (what(r), mode(m))).collect())
        }
        Op::Cancel => Step::Cancel(who),
        Op::Run => Step::Run(who),
        Op::Release(r) => Step::Release(who, what(r)),
        Op::Downgrade(r, m) => Step::Downgrade(who, what(r), mode(m)),
        Op::Savepoint => Step::Savepoint(who),
        Op::ReleaseTo(n) => Step::ReleaseTo(who, usize::from(n)),
        Op::ReleaseAll => Step::ReleaseAll(who),
    }
}

fuzz_target!(|script: Script| {
    let mut world = World::new(script.priorities.map(i32::from));
    for op in script.ops.into_iter().take(200) {
        world.step(&step(op));
    }
    world.wind_up();
});
