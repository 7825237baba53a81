//! The hunt for a lost wake-up: readers stand in line and sleep, then one thing
//! happens that lets one turn begin, and it must be served. What happens is a
//! message, a bump, a cap or a limit that rises, a completion, the end of a
//! tier, of a back-off, of poison, of a look, of a wait by name, or that one who
//! was notified gives up; now and then the queue is closed. Nothing but counts
//! says that it went well, and while a turn is awaited nobody takes the queue's
//! lock, which would wake whoever was forgotten.
//!
//! `CONVERSANT_WAKEUPS=1000000` has so many threads' sleeps ended in sum, and
//! as many rounds of waits that are polled. A binary of its own, since the count
//! is the process's.

mod line;
#[path = "../support/queue_support/mod.rs"]
mod queue_support;
mod rounds;

use std::time::Instant;

use conversant::wait::wakeups;

use queue_support::Random;
use rounds::Life;

/// How many receives stand in line.
const RECEIVERS: [usize; 3] = [1, 2, 8];

/// Rounds in the life of one queue.
const LIFE: usize = 400;

/// One test, since the count of wake-ups is the process's.
#[test]
fn no_wake_up_is_lost() {
    let in_sum = std::env::var("CONVERSANT_WAKEUPS");
    let in_sum = in_sum.map_or(20_000, |n| n.parse().expect("a number"));
    for readers in RECEIVERS {
        let begun = Instant::now();
        let (rounds, woken) = threads(readers, in_sum / 3 + 1);
        let time = begun.elapsed();
        println!(
            "{readers} threads: {woken} sleeps ended in {rounds} rounds, lost: none, {time:?}"
        );
    }
    for waits in RECEIVERS {
        let begun = Instant::now();
        let rounds = polled(waits, in_sum / 3 + 1);
        let time = begun.elapsed();
        println!("{waits} polled: {rounds} rounds, lost: none, {time:?}");
    }
}

/// Until so many have come out of their sleep.
fn threads(readers: usize, sleeps: u64) -> (usize, u64) {
    let before = wakeups();
    let mut random = Random(readers as u64);
    let mut rounds = 0;
    while wakeups() - before < sleeps {
        // Every third queue has its next event as soon as the last is served,
        // while its readers are on their way back into line.
        let in_line = random.below(3) > 0;
        let born = wakeups();
        let mut life = Life::new(readers, in_line, random.below(usize::MAX) as u64);
        for _ in 0..LIFE {
            life.round();
        }
        rounds += LIFE;
        let most = life.end();
        // One wake-up for each turn, and one for each that hears of the close.
        let woken = wakeups() - born;
        assert!(
            !in_line || woken <= most,
            "{woken} woken, {most} had reason"
        );
    }
    (rounds, wakeups() - before)
}

/// On one thread, every receive polled by hand.
fn polled(waits: usize, least: u64) -> usize {
    let mut random = Random(waits as u64);
    let mut rounds = 0;
    while rounds < least as usize {
        let mut life = Life::polled(waits, random.below(usize::MAX) as u64);
        for _ in 0..LIFE {
            life.round();
        }
        rounds += LIFE;
        life.end();
    }
    rounds
}
