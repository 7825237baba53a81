//! Any sequence of operations on a simulation: no panic, limits and tiers kept, a true reason for
//! each wait, no worker idle while work could start, and one end of each task.
#![no_main]

#[path = "simulation/checks.rs"]
mod checks;
#[path = "simulation/world.rs"]
mod world;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

use world::World;

#[derive(Arbitrary, Debug)]
struct Script {
    workers: u8,
    bypass: Option<u8>,
    idle: Option<u8>,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Caller {
        weight: u8,
        cap: u8,
        skip: bool,
        capacity: Option<u8>,
    },
    Group {
        caller: u8,
        limit: u8,
        level: u8,
    },
    Submit(Task),
    Bump {
        task: u8,
        level: u8,
    },
    Wake {
        task: u8,
    },
    Cancel {
        task: u8,
    },
    CancelAll {
        caller: u8,
    },
    SetCap {
        caller: u8,
        cap: u8,
    },
    SetLimit {
        group: u8,
        limit: u8,
    },
    SetLevel {
        group: u8,
        level: u8,
    },
    SetWorkers {
        workers: u8,
    },
    Hold,
    Unhold,
    Advance {
        by: u8,
    },
    /// Lets all that can start do so.
    Look,
    Synchronize {
        caller: u8,
    },
}

#[derive(Arbitrary, Debug)]
struct Task {
    caller: u8,
    group: Option<u8>,
    tier: Option<u8>,
    bump: Option<u8>,
    takes: u8,
    after: Option<u8>,
    awaits: Option<(u8, u8)>,
    ends: u8,
}

fuzz_target!(|script: Script| {
    let mut world = World::new(&script);
    for op in script.ops.into_iter().take(400) {
        world.apply(op);
    }
    world.finish();
});
