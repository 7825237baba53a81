//! A soak: eight threads do random operations on a queue, which is closed and opened again while
//! they run. Every message is accounted for, the order of each sender in each conversation is
//! checked, and after each round memory is where it was after the first.
//!
//! A round is a fixed number of operations. `CONVERSANT_SOAK` sets the number of rounds, in units
//! of about a second of an unoptimized build on two cores; the default is 8.

#[path = "../support/counting_heap/mod.rs"]
mod counting_heap;
mod epoch;
mod held;
mod ledger;
#[path = "../support/queue_support/mod.rs"]
mod queue_support;
mod worker;

use std::thread;

use counting_heap::live;
use worker::{Worker, World};

pub(crate) const THREADS: usize = 8;

/// Operations of each thread in a round.
const OPERATIONS: usize = 10_000;

/// Rounds in about a second.
const ROUNDS: usize = 1;

/// The allowed difference after a round: kept memory must not grow.
const SLACK: isize = 64 * 1024;

/// Runs a round; returns how many queues there were.
fn round(number: usize) -> usize {
    let world = World::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let seed = (number * THREADS + thread) as u64;
            let world = &world;
            scope.spawn(move || Worker::new(world, thread, seed).run(OPERATIONS));
        }
    });
    world.finish()
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn anything_at_random_loses_nothing_and_leaves_nothing() {
    let asked = std::env::var("CONVERSANT_SOAK").ok();
    let seconds: usize = asked.map_or(8, |asked| asked.parse().expect("a number"));
    let mut queues = round(0);
    let baseline = live();
    for number in 1..seconds * ROUNDS {
        queues += round(number);
        let grown = live() - baseline;
        assert!(grown <= SLACK, "{grown} bytes more after round {number}");
    }
    let operations = seconds * ROUNDS * THREADS * OPERATIONS;
    println!("{operations} operations, {queues} queues");
}
