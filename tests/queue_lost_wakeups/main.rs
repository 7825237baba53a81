//! The hunt for a lost wake-up: readers are queued and sleep, then one event lets one turn begin,
//! which must be served. The event is a message, a bump, a cap or a limit that rises, a completion,
//! the end of a tier, of a back-off, of poison, of a peek, of a wait by name, or a notified receive
//! that gives up; sometimes the queue is closed. Only counts show the success: while a turn is
//! awaited the test does not take the queue's lock, because that would wake a forgotten receive.
//!
//! `CONVERSANT_WAKEUPS=1000000` runs until this many sleeps of threads have ended in all, and as
//! many rounds with polled waits. It is a binary of its own, because the count of wake-ups belongs
//! to the process.

#[path = "../support/queue_support/mod.rs"]
mod queue_support;
mod receives;
mod rounds;

use std::time::Instant;

use conversant::wait::wakeups;

use queue_support::Random;
use rounds::Life;

/// How many receives are queued.
const RECEIVERS: [usize; 3] = [1, 2, 8];

/// Rounds in the life of one queue.
const LIFE: usize = 400;

/// One test, because the count of wake-ups belongs to the process.
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

/// Runs until `sleeps` sleeps have ended.
fn threads(readers: usize, sleeps: u64) -> (usize, u64) {
    let before = wakeups();
    let mut random = Random(readers as u64);
    let mut rounds = 0;
    while wakeups() - before < sleeps {
        // In every third queue the next event comes as soon as the last turn is served, while the
        // readers are on their way back into the queue.
        let all_queued = random.below(3) > 0;
        let before_life = wakeups();
        let mut life = Life::new(readers, all_queued, random.below(usize::MAX) as u64);
        for _ in 0..LIFE {
            life.round();
        }
        rounds += LIFE;
        let most = life.end();
        // One wake-up for each turn, and one for each reader that the close wakes.
        let woken = wakeups() - before_life;
        assert!(
            !all_queued || woken <= most,
            "{woken} woken, {most} had reason"
        );
    }
    (rounds, wakeups() - before)
}

/// On one thread, which polls every receive.
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
