//! Changes to a simulation while it runs.

use conversant::error::Stalled;
use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, OnFailure, Reason, Record, SyncError, Why};
use conversant::simulator::{Driver, Simulation, Work};

use super::sim::{by_id, one_caller, order_of_starts, secs, span};
use crate::threads::stage::draws;

#[test]
fn a_task_with_a_delay_arrives_when_it_is_over() {
    let (mut sim, caller) = one_caller(1);
    let later = sim
        .submit(caller, Work::takes(secs(1)).after(secs(5)))
        .unwrap();
    for _ in 0..2 {
        sim.submit(caller, Work::takes(secs(4))).unwrap();
    }
    assert_eq!(later.id().get(), 1);
    sim.advance_to(secs(1));
    assert_eq!(sim.status().waiting[0].why, Why::NotDue { due: secs(5) });
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.ok, sim.now()), (3, secs(9)));
    assert_eq!(order_of_starts(&sim), [2, 3, 1]);
    // No task runs when it is due.
    sim.submit(caller, Work::takes(secs(1)).after(secs(5)))
        .unwrap();
    sim.run();
    assert_eq!(span(&sim, 4), (secs(14), secs(15)));
}

/// Into the tier of its group's last task, if anything of the group is unfinished then.
#[test]
fn a_task_that_is_due_goes_into_no_lower_tier_of_its_group() {
    for (takes, tier) in [(1, 1), (9, 4)] {
        let (mut sim, caller) = one_caller(1);
        let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
        let later = Work::takes(secs(1)).after(secs(5)).tier(1);
        sim.submit(caller, later.group(group)).unwrap();
        sim.submit(caller, Work::takes(secs(takes)).tier(4).group(group))
            .unwrap();
        sim.run();
        assert_eq!(by_id(&sim)[0].task.tier, tier);
    }
}

/// So what the task lets start is submitted before a worker chooses.
#[test]
fn a_task_that_takes_no_time_ends_a_step() {
    let (mut sim, caller) = one_caller(1);
    for takes in [0, 5] {
        sim.submit(caller, Work::takes(secs(takes))).unwrap();
    }
    let seen = |sim: &Simulation| (sim.records().len(), sim.counts().running, sim.now());
    assert!(sim.step());
    assert_eq!(seen(&sim), (1, 0, secs(0)));
    sim.submit(caller, Work::takes(secs(0)).bump(1)).unwrap();
    assert!(sim.step_to(secs(9)));
    assert_eq!(seen(&sim), (2, 0, secs(0)));
    assert!(sim.step() && !sim.step());
    let ended = sim.records().iter().map(|row| row.task.id.get());
    assert!(ended.eq([1, 3, 2]));
}

#[test]
fn a_lower_tier_that_is_due_goes_first() {
    let (mut sim, caller) = one_caller(1);
    sim.submit(caller, Work::takes(secs(5)).tier(2)).unwrap();
    sim.advance_to(secs(1));
    sim.submit(caller, Work::takes(secs(1)).tier(2)).unwrap();
    sim.submit(caller, Work::takes(secs(1)).tier(1).after(secs(4)))
        .unwrap();
    sim.run();
    assert_eq!(order_of_starts(&sim), [1, 3, 2]);
}

#[test]
fn a_panic_is_a_failure() {
    let mut sim = Simulation::new(1).unwrap();
    let options = CallerOptions {
        on_failure: OnFailure::SkipHigherTiers,
        ..CallerOptions::default()
    };
    let caller = sim.caller("main", options).unwrap();
    sim.submit(caller, Work::takes(secs(1)).panicking())
        .unwrap();
    sim.submit(caller, Work::takes(secs(1)).tier(1)).unwrap();
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.panicked, summary.skipped), (1, 1));
    let endings: Vec<_> = by_id(&sim).iter().map(|row| row.ending).collect();
    assert_eq!(endings, [Ending::Panicked, Ending::Skipped]);
}

#[test]
fn while_it_is_held_nothing_starts() {
    let (mut sim, caller) = one_caller(2);
    sim.submit(caller, Work::takes(secs(3))).unwrap();
    sim.advance_to(secs(1));
    sim.hold();
    sim.hold();
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    assert_eq!(sim.status().waiting[0].why, Why::Hold);
    assert_eq!(sim.synchronize(caller), Err(SyncError::Stalled(Stalled)));
    sim.unhold();
    sim.run();
    assert_eq!((sim.records().len(), sim.now()), (1, secs(3)));
    sim.unhold();
    sim.unhold();
    sim.run();
    assert_eq!(span(&sim, 2), (secs(3), secs(4)));
}

#[test]
fn limits_and_levels_of_groups_change() {
    let (mut sim, caller) = one_caller(2);
    let serial = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let other = sim.group(caller, Limit::SERIAL, 100).unwrap();
    for group in [serial, serial, serial, other] {
        sim.submit(caller, Work::takes(secs(2)).group(group))
            .unwrap();
    }
    sim.set_level(&other, 101);
    sim.advance_to(secs(1));
    let running = |sim: &Simulation| {
        let status = sim.status();
        status
            .running
            .iter()
            .map(|task| task.id.get())
            .collect::<Vec<_>>()
    };
    assert_eq!(running(&sim), [4, 1]);
    sim.set_limit(&serial, Limit::AtMost(2)).unwrap();
    sim.advance_to(secs(3));
    assert_eq!(running(&sim), [2, 3]);
    assert!(sim.set_limit(&serial, Limit::AtMost(u32::MAX)).is_err());
    sim.set_limit(&serial, Limit::AtMost(0)).unwrap();
    sim.submit(caller, Work::takes(secs(1)).group(serial))
        .unwrap();
    sim.run();
    assert_eq!(
        (sim.now(), sim.status().waiting[0].why),
        (secs(4), Why::Paused)
    );
}

#[test]
#[should_panic(expected = "a group of another simulation")]
fn a_group_of_another_simulation_is_a_mistake() {
    let ((mut sim, _), (mut other, caller)) = (one_caller(1), one_caller(1));
    let group = other.group(caller, 1, 100).unwrap();
    sim.set_level(&group, 1);
}

#[test]
fn a_caller_cancels_all_that_has_not_started() {
    let (mut sim, caller) = one_caller(1);
    let other = sim.caller("other", CallerOptions::default()).unwrap();
    for after in [0, 0, 7] {
        sim.submit(caller, Work::takes(secs(2)).after(secs(after)))
            .unwrap();
    }
    sim.submit(other, Work::takes(secs(2))).unwrap();
    sim.advance_to(secs(1));
    sim.cancel_all(&caller);
    sim.run();
    let endings: Vec<_> = by_id(&sim).iter().map(|row| row.ending).collect();
    let (ok, cancelled) = (Ending::Ok, Ending::Cancelled);
    assert_eq!(endings, [ok, cancelled, cancelled, ok]);
    assert_eq!(sim.now(), secs(4));
}

#[test]
fn a_group_cancels_all_of_it_that_has_not_started() {
    let (mut sim, caller) = one_caller(1);
    let [group, other] = [1, 1].map(|limit| sim.group(caller, limit, 100).unwrap());
    for group in [group, group, other] {
        sim.submit(caller, Work::takes(secs(2)).group(group))
            .unwrap();
    }
    sim.submit(caller, Work::takes(secs(2)).group(group).after(secs(7)))
        .unwrap();
    sim.advance_to(secs(1));
    sim.cancel_group(&group);
    assert_eq!(sim.records().len(), 2, "they have ended");
    sim.run();
    let endings: Vec<_> = by_id(&sim).iter().map(|row| row.ending).collect();
    let (ok, cancelled) = (Ending::Ok, Ending::Cancelled);
    assert_eq!(endings, [ok, cancelled, ok, cancelled]);
    assert_eq!(sim.now(), secs(4));
}

#[test]
fn a_full_caller_refuses_until_one_has_ended() {
    let mut sim = Simulation::new(1).unwrap();
    let capacity = |capacity: u32| CallerOptions {
        capacity: capacity.into(),
        ..CallerOptions::default()
    };
    let none = sim.caller("none", capacity(0)).unwrap();
    assert_eq!(sim.submit(none, Work::takes(secs(1))), Err(Reason::Full));
    let caller = sim.caller("two", capacity(2)).unwrap();
    let work = Work::takes(secs(1)).label("counts");
    let foreign = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let other = sim.caller("other", capacity(1)).unwrap();
    let refused = sim.submit(other, work.group(foreign));
    assert_eq!(refused, Err(Reason::ForeignGroup));
    assert!(sim.submit(other, work).is_ok(), "it took no room");
    sim.submit(caller, work).unwrap();
    let waits = sim.submit(caller, work).unwrap();
    assert_eq!(sim.submit(caller, work), Err(Reason::Full));
    assert!(sim.cancel(&waits));
    sim.submit(caller, work.after(secs(9))).unwrap();
    assert_eq!(sim.submit(caller, work), Err(Reason::Full));
    sim.run();
    assert!(sim.submit(caller, work).is_ok());
    let named = |row: &Record| row.task.label.as_deref() == Some("counts");
    assert!(sim.records().iter().all(named));
    assert_eq!(sim.records().len(), 4);
}

/// The counts as they follow from the status and the rows.
fn counted(sim: &Simulation) -> [u64; 9] {
    let (status, rows) = (sim.status(), sim.records());
    let wait = |is: fn(&Why) -> bool| status.waiting.iter().filter(|t| is(&t.why)).count();
    let delayed = wait(|why| matches!(why, Why::NotDue { .. }));
    let suspended = wait(|why| *why == Why::Suspended);
    let waiting = status.waiting.len() - delayed - suspended;
    let ended = |ending| rows.iter().filter(|row| row.ending == ending).count();
    let (ok, failed) = (ended(Ending::Ok), ended(Ending::Failed));
    let (panicked, cancelled) = (ended(Ending::Panicked), ended(Ending::Cancelled));
    let (running, skipped) = (status.running.len(), ended(Ending::Skipped));
    [
        waiting, delayed, suspended, running, ok, failed, panicked, cancelled, skipped,
    ]
    .map(|n| n as u64)
}

/// Tasks and futures, delayed or not, of two tiers, that end in every way.
#[test]
fn the_counts_are_those_of_the_status_and_the_rows() {
    let mut seen = [0; 9];
    for seed in 0..50 {
        let mut draw = draws(seed);
        let mut sim = Simulation::new(2).unwrap();
        let options = CallerOptions {
            on_failure: OnFailure::SkipHigherTiers,
            ..CallerOptions::default()
        };
        let caller = sim.caller("main", options).unwrap();
        for _ in 0..40 {
            let mut work = Work::takes(secs(draw(4))).tier(draw(2) as u32);
            work = match draw(12) {
                0 => work.failing(),
                1 => work.panicking(),
                2..5 => work.awaits(secs(draw(5)), 1),
                5..8 => work.after(secs(draw(5))),
                _ => work,
            };
            let task = sim.submit(caller, work).unwrap();
            if draw(8) == 0 {
                sim.cancel(&task);
            }
            sim.advance_to(sim.now() + secs(draw(3)));
            let c = sim.counts();
            let found = [
                c.waiting,
                c.delayed,
                c.suspended,
                c.running,
                c.ended.ok,
                c.ended.failed,
                c.ended.panicked,
                c.ended.cancelled,
                c.ended.skipped,
            ];
            assert_eq!(found, counted(&sim), "{seed}");
            assert_eq!(c.ended.tasks, sim.records().len() as u64);
            assert_eq!((c.callers, c.blocked), (1, 0));
            seen.iter_mut().zip(found).for_each(|(sum, n)| *sum += n);
        }
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}
