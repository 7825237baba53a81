//! Any sequence of operations on dialogs, compared after each step with plain lists that follow the
//! docs: what each side receives and in what order, what is refused and why, what waits and is in
//! flight, which groups are poisoned or gone, what is left. The random tests and the fuzzer share
//! it.

mod compare;
mod groups;
mod model;
mod readers;
mod world;

use arbitrary::{Arbitrary, Unstructured};

use world::World;

#[derive(Arbitrary, Debug)]
struct Settings {
    attempts: u8,
    quantum: u8,
    /// Of the queues.
    capacities: [Option<u8>; 2],
    /// Of a group in each queue that sides may share.
    limits: [Option<u8>; 2],
}

/// The numbers select among what exists; if nothing does, the operation does nothing. A number
/// called `rare` must be 0.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Begin { sides: [Spot; 2], owned: bool },
    Send { side: u8 },
    End { side: u8 },
    EndWith { side: u8, code: u8 },
    Drop { side: u8, panics: bool },
    Detach { side: u8 },
    SetTimer { side: u8, after: u8 },
    ClearTimer { side: u8 },
    Advance { by: i8 },
    Receive { queue: bool, asks: bool },
    ReceiveFrom { side: u8, asks: bool },
    Next { turn: u8, then: Then },
    EndTurn { turn: u8 },
    Finish { detached: u8, then: Then },
    LetGo { event: u8 },
    Group { side: u8, set: Set },
    Look { side: u8 },
    EndLook,
    Resume { side: u8 },
    TakeFailed { side: u8 },
    Drain { side: u8 },
    Close { queue: bool, rare: u8 },
    DropQueue { queue: bool, rare: u8 },
    Shutdown { queue: bool, rare: u8 },
    DropDialogs { rare: u8 },
    DropShared { queue: bool, rare: u8 },
}

/// Where a side is.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Spot {
    Own { queue: bool },
    Shared { queue: bool },
    With { side: u8 },
}

/// What a reader does with what it received.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Then {
    Complete,
    /// And the event is dropped later.
    Keep,
    GiveBack,
    Drop,
    FailForGood,
    Detach,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Set {
    Bump(u8),
    Level(u8),
    Limit(Option<u8>),
    Capacity(Option<u8>),
}

/// Any bytes are a script.
pub(crate) fn compare(script: &[u8]) -> arbitrary::Result<()> {
    let script = &mut Unstructured::new(script);
    let mut world = World::new(&Settings::arbitrary(script)?);
    while !script.is_empty() {
        world.run(Op::arbitrary(script)?);
        world.compare();
    }
    world.finish();
    Ok(())
}
