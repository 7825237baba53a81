//! Any sequence of operations on a job queue, through its public interface, against a plain model
//! that follows the docs: the same jobs in the same states after each operation, the same
//! refusals, each claim in the right order and never short, and nothing left at the end.
#![no_main]

#[path = "job_queue/checks.rs"]
mod checks;
#[path = "job_queue/claims.rs"]
mod claims;
#[path = "job_queue/model.rs"]
mod model;
#[path = "job_queue/ops.rs"]
mod ops;
#[path = "job_queue/run.rs"]
mod run;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

use run::Run;

#[derive(Arbitrary, Debug)]
struct Script {
    group_limit: u8,
    attempts: u8,
    lease: Option<u8>,
    back_off: (u8, u8),
    capacity: Option<u8>,
    weights: [u8; 3],
    ops: Vec<Op>,
}

/// Where a job is pushed.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Spot {
    tenant: u8,
    group: Option<u8>,
    due: Option<u8>,
    unique: Option<u8>,
    attempts: Option<u8>,
    tried: Option<u8>,
    by_handle: bool,
}

/// The queue, a tenant or a group.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Which {
    kind: u8,
    tenant: u8,
    group: u8,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Push { key: u8, spot: Spot },
    PushReplacing { key: u8, spot: Spot },
    PushAll { jobs: [(u8, Spot); 3], n: u8 },
    Claim { of: Which, n: u8, how: How },
    End { claim: u8, end: End },
    Extend { claim: u8, by: u8 },
    CompleteAll { n: u8 },
    Limit { of: Which, limit: Option<u8> },
    Weight { tenant: u8, weight: u8 },
    Rekey { job: u8, key: u8 },
    SetDue { job: u8, due: u8 },
    Replace { job: u8 },
    Remove { job: u8 },
    RemoveAll { jobs: [u8; 4] },
    RemoveOfState { of: Which, state: u8 },
    Drain { of: Which },
    List { of: Which },
    Requeue { job: u8 },
    NextDead,
    Advance { by: u8, back: bool },
    Close { how: u8 },
    Keep { of: Which },
    Forget,
}

/// How a claim asks.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum How {
    Try,
    TryOne,
    /// A wait that is polled once.
    Wait,
    WaitOne,
}

/// How a claim ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum End {
    Complete,
    GiveBack,
    GiveBackAt(u8),
    Fail,
    FailAt(u8),
    FailForGood,
    Snooze(u8),
    Drop,
}

fuzz_target!(|script: Script| {
    let mut run = Run::new(&script);
    for op in script.ops.into_iter().take(300) {
        run.apply(op);
        run.check();
    }
    run.finish();
});
