//! Futures in virtual time: what they keep while they await, and what wakes them.

use std::time::Duration;

use conversant::error::Stalled;
use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, Reason, Record, SyncError, Why};
use conversant::simulator::{Driver, Work};

use super::sim::{one_caller, secs, span};

/// The futures are polled for a second at 0 and 1, then at 11 and 12; a task runs in between.
#[test]
fn one_that_awaits_keeps_no_worker() {
    let (mut sim, caller) = one_caller(1);
    for _ in 0..2 {
        let awaits = Work::takes(secs(1)).awaits(secs(10), 1);
        sim.submit(caller, awaits).unwrap();
    }
    sim.submit(caller, Work::takes(secs(3))).unwrap();
    sim.advance_to(secs(8));
    let why: Vec<_> = sim.status().waiting.iter().map(|task| task.why).collect();
    assert_eq!(why, [Why::Suspended; 2]);
    sim.run();
    let spans = [1, 2, 3].map(|id| span(&sim, id));
    let expected = [(0, 12), (1, 13), (2, 5)];
    assert_eq!(spans, expected.map(|(start, end)| (secs(start), secs(end))));
    assert_eq!(sim.records().len(), 3, "one row each");
}

#[test]
fn it_keeps_its_unit_of_its_group() {
    let (mut sim, caller) = one_caller(2);
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let awaits = Work::takes(secs(1)).awaits(secs(2), 2);
    sim.submit(caller, awaits.group(group)).unwrap();
    sim.submit(caller, Work::takes(secs(1)).group(group))
        .unwrap();
    assert_eq!(sim.synchronize(caller).unwrap().ok, 2);
    assert_eq!(span(&sim, 1), (secs(0), secs(7)));
    assert_eq!(span(&sim, 2), (secs(7), secs(8)));
}

#[test]
fn one_without_a_pause_takes_turns_with_those_that_wait() {
    let (mut sim, caller) = one_caller(1);
    for _ in 0..2 {
        let yields = Work::takes(secs(1)).awaits(Duration::ZERO, 1);
        sim.submit(caller, yields.failing()).unwrap();
    }
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.failed, sim.now()), (2, secs(5)));
    let spans = [1, 2, 3].map(|id| span(&sim, id));
    let expected = [(0, 3), (1, 5), (3, 4)];
    assert_eq!(spans, expected.map(|(start, end)| (secs(start), secs(end))));
}

#[test]
fn one_that_is_woken_by_its_owner_goes_on() {
    let (mut sim, caller) = one_caller(1);
    let awaits = Work::takes(secs(1)).awaits(Duration::MAX, 1);
    let task = sim.submit(caller, awaits).unwrap();
    assert!(!sim.wake(&task), "it has not begun");
    let stalled = Err(SyncError::Stalled(Stalled));
    assert_eq!(sim.synchronize(caller), stalled);
    assert_eq!(sim.now(), secs(1));
    assert!(sim.wake(&task) && !sim.wake(&task));
    assert_eq!(sim.synchronize(caller).unwrap().ok, 1);
    assert_eq!(
        (span(&sim, 1), sim.wake(&task)),
        ((secs(0), secs(2)), false)
    );
}

/// The rest of its pause is dropped.
#[test]
fn one_that_is_woken_early_goes_on_then() {
    let (mut sim, caller) = one_caller(1);
    let awaits = Work::takes(secs(1)).awaits(secs(100), 1);
    let task = sim.submit(caller, awaits).unwrap();
    sim.advance_to(secs(4));
    assert!(sim.wake(&task));
    sim.run();
    assert_eq!((span(&sim, 1), sim.now()), ((secs(0), secs(5)), secs(5)));
}

#[test]
fn one_that_is_woken_while_it_is_polled_does_not_await_next() {
    let (mut sim, caller) = one_caller(1);
    let awaits = Work::takes(secs(2)).awaits(secs(100), 1);
    let task = sim.submit(caller, awaits).unwrap();
    sim.advance_to(secs(1));
    assert!(!sim.wake(&task));
    sim.run();
    assert_eq!((span(&sim, 1), sim.now()), ((secs(0), secs(4)), secs(4)));
}

#[test]
fn one_that_is_cancelled_while_it_is_polled_ends_where_it_awaits() {
    let (mut sim, caller) = one_caller(1);
    let awaits = Work::takes(secs(2)).awaits(secs(100), 1);
    let task = sim.submit(caller, awaits).unwrap();
    sim.advance_to(secs(1));
    assert!(!sim.cancel(&task), "a worker has it");
    assert_eq!(sim.synchronize(caller).unwrap().cancelled, 1);
    assert_eq!(sim.now(), secs(2));
}

/// A caller that has futures is in the ring twice; `W` in docs/fairness.md counts it so.
#[test]
fn those_that_were_woken_take_turns_beside_the_tasks_of_their_caller() {
    let starts = |futures: u32| {
        let (mut sim, caller) = one_caller(1);
        let other = sim.caller("other", CallerOptions::default()).unwrap();
        for _ in 0..futures {
            let yields = Work::takes(secs(1)).awaits(Duration::ZERO, 50);
            sim.submit(caller, yields).unwrap();
        }
        for _ in 0..6 {
            sim.submit(caller, Work::takes(secs(1))).unwrap();
            sim.submit(other, Work::takes(secs(1))).unwrap();
        }
        sim.run();
        let of_other = |row: &&Record| &*row.task.caller == "other";
        let starts = sim.records().iter().filter(of_other);
        let starts = starts.map(|row| row.run.unwrap().start.as_secs());
        starts.collect::<Vec<_>>()
    };
    assert_eq!(starts(0), [1, 3, 5, 7, 9, 11]);
    assert_eq!(starts(1), [1, 4, 7, 10, 13, 16]);
}

/// Three are woken at one instant: one was bumped while it awaited, one while it was polled.
#[test]
fn a_bump_of_one_that_has_begun_counts_at_its_next_poll() {
    let (mut sim, caller) = one_caller(1);
    let tasks = [1, 2, 3].map(|n| {
        let pause = secs(11 - n);
        sim.submit(caller, Work::takes(secs(1)).awaits(pause, 1))
            .unwrap()
    });
    sim.advance_to(Duration::from_millis(2500));
    sim.bump(&tasks[1], 5).unwrap();
    sim.bump(&tasks[2], 6).unwrap();
    sim.run();
    let ends: Vec<_> = sim.records().iter().map(|r| (r.task.id, r.ended)).collect();
    let expected = [(2, 12), (1, 13), (0, 14)];
    assert_eq!(
        ends,
        expected.map(|(n, end): (usize, _)| (tasks[n].id(), secs(end)))
    );
}

/// All wake themselves. The last is bumped during its first poll, and has the next turn among
/// those that were woken.
#[test]
fn one_that_is_bumped_while_it_is_polled_goes_ahead_of_those_that_woke_before() {
    let waits = |bumps: bool| {
        let (mut sim, caller) = one_caller(1);
        let yields = Work::takes(secs(1)).awaits(Duration::ZERO, 3);
        let tasks = [(); 6].map(|()| sim.submit(caller, yields).unwrap());
        let last = tasks[5].id();
        while sim.status().running.iter().all(|task| task.id != last) {
            sim.advance_to(sim.now() + Duration::from_millis(500));
        }
        if bumps {
            sim.bump(&tasks[5], 5).unwrap();
        }
        let polled = sim.now();
        while sim.status().waiting.iter().any(|task| task.id == last) || sim.now() == polled {
            sim.advance_to(sim.now() + Duration::from_millis(500));
        }
        sim.now() - polled
    };
    assert_eq!((waits(false), waits(true)), (secs(6), secs(1)));
}

/// As on a scheduler; a task that is submitted later runs.
#[test]
fn one_that_is_polled_while_all_are_cancelled_ends_where_it_awaits() {
    let (mut sim, caller) = one_caller(1);
    let awaits = Work::takes(secs(2)).awaits(secs(100), 1);
    sim.submit(caller, awaits).unwrap();
    sim.advance_to(secs(1));
    sim.cancel_all(&caller);
    sim.submit(caller, awaits).unwrap();
    sim.run();
    let ends: Vec<_> = sim.records().iter().map(|r| (r.ending, r.ended)).collect();
    let expected = [(Ending::Cancelled, secs(2)), (Ending::Ok, secs(106))];
    assert_eq!(ends, expected);
}

#[test]
fn a_driver_takes_no_work_that_names_a_group_itself() {
    let (mut sim, caller) = one_caller(1);
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let work = Work::takes(secs(1)).group(group);
    let refused = Driver::submit(&mut sim, &caller, None, work, || Ok(()));
    assert_eq!(refused.map(drop), Err(Reason::ForeignGroup));
}

#[test]
fn one_that_is_cancelled_where_it_awaits_leaves_nothing() {
    let (mut sim, caller) = one_caller(1);
    let awaits = Work::takes(secs(1)).awaits(secs(100), 1);
    let tasks = [awaits; 2].map(|work| sim.submit(caller, work).unwrap());
    sim.advance_to(secs(3));
    assert!(sim.cancel(&tasks[0]) && !sim.cancel(&tasks[0]));
    sim.cancel_all(&caller);
    assert_eq!(sim.synchronize(caller).unwrap().cancelled, 2);
    sim.run();
    assert_eq!(sim.now(), secs(3));
    let rows = sim.records().iter();
    let rows: Vec<_> = rows
        .map(|row| (row.run.unwrap().start, row.ended, row.ending))
        .collect();
    let expected = |start| (secs(start), secs(3), Ending::Cancelled);
    assert_eq!(rows, [expected(0), expected(1)]);
}

/// The first future is bumped in its first poll. Its group has another task, which is not bumped:
/// an older task of another group goes before it.
#[test]
fn a_bump_in_the_first_poll_is_for_the_next_one_and_not_for_the_group() {
    let (mut sim, caller) = one_caller(1);
    let group = sim.group(caller, Limit::Unlimited, 100).unwrap();
    let awaits = Work::takes(secs(2)).awaits(secs(100), 1);
    let first = sim.submit(caller, awaits.group(group)).unwrap();
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    sim.submit(caller, Work::takes(secs(1)).group(group))
        .unwrap();
    sim.advance_to(secs(1));
    sim.bump(&first, 200).unwrap();
    sim.run();
    let begins = [1, 2, 3].map(|id| span(&sim, id).0);
    assert_eq!(begins, [0, 2, 3].map(secs));
}
