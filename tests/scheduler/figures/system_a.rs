//! SEMANTICS A: one handle, its waves, its overlap, its cap, its neighbours.

use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, SyncError};
use conversant::simulator::{CallerId, Driver, Simulation, Work};

use crate::figures::sim::{W10, by_id, one_caller, secs, span, submit_tier, tenths};

fn w10(workers: u32) -> (Simulation, CallerId) {
    let (mut sim, caller) = one_caller(workers);
    W10.into_iter()
        .for_each(|row| submit_tier(&mut sim, caller, row));
    (sim, caller)
}

fn with_cap(cap: u32) -> CallerOptions {
    CallerOptions {
        cap: Limit::AtMost(cap),
        ..CallerOptions::default()
    }
}

#[test]
fn a1_ten_rows_with_ids_queue_times_starts_workers_and_ends() {
    let (mut sim, caller) = one_caller(5);
    sim.advance_to(tenths(5));
    W10.into_iter()
        .for_each(|row| submit_tier(&mut sim, caller, row));
    sim.run();
    let rows = by_id(&sim);
    let ids: Vec<u64> = rows.iter().map(|row| row.task.id.get()).collect();
    assert_eq!(ids, (1..=10).collect::<Vec<_>>());
    for row in &rows {
        assert_eq!(row.task.queued, tenths(5), "queue time is the submission's");
        assert_eq!(row.ending, Ending::Ok);
        assert_eq!(&*row.task.caller, "main");
    }
    let ran: Vec<(u32, Duration, Duration)> = rows
        .iter()
        .map(|row| row.run.map(|run| (run.worker, run.start, run.end)).unwrap())
        .collect();
    let at = |worker, start, end| (worker, tenths(start), tenths(end));
    let first_wave = (1..=4).map(|worker| at(worker, 5, 106));
    assert_eq!(ran[..4], first_wave.collect::<Vec<_>>());
    assert_eq!(ran[4..6], [at(1, 106, 198), at(2, 106, 198)]);
    assert_eq!(ran[6], at(1, 198, 281));
    assert_eq!(ran[7..9], [at(1, 281, 355), at(2, 281, 355)]);
    assert_eq!(ran[9], at(1, 355, 420));
}

#[test]
fn a2_synchronizing_after_each_tier_makes_five_waves() {
    for workers in 4..=6 {
        let (mut sim, caller) = one_caller(workers);
        let (mut waves, mut id) = (Vec::new(), 1);
        for row in W10 {
            submit_tier(&mut sim, caller, row);
            let summary = sim.synchronize(caller).unwrap();
            assert_eq!((summary.tasks, summary.ok), (row.1, row.1));
            let wave = span(&sim, id);
            assert!((id..id + row.1).all(|id| span(&sim, id) == wave));
            assert_eq!(sim.now(), wave.1);
            waves.push(wave);
            id += row.1;
        }
        let expected = [(0, 101), (101, 193), (193, 276), (276, 350), (350, 415)];
        assert_eq!(waves, expected.map(|(s, e)| (tenths(s), tenths(e))));
    }
}

#[test]
fn a2_makespans_by_tiers_and_by_synchronizing() {
    let expected = [884, 516, 516, 415, 415, 415].map(tenths);
    for (workers, expected) in (1..).zip(expected) {
        let (mut sim, _) = w10(workers);
        sim.run();
        assert_eq!(sim.now(), expected, "tiers, {workers} workers");
        let (mut sim, caller) = one_caller(workers);
        for row in W10 {
            submit_tier(&mut sim, caller, (0, row.1, row.2));
            sim.synchronize(caller).unwrap();
        }
        assert_eq!(sim.now(), expected, "synchronizing, {workers} workers");
    }
}

#[test]
fn a3_tasks_of_one_handle_overlap_and_in_serial_mode_they_do_not() {
    let (mut sim, _) = w10(5);
    sim.run();
    assert_eq!(span(&sim, 1), span(&sim, 4));
    assert_eq!(sim.now(), tenths(415));

    let (mut sim, caller) = one_caller(5);
    let serial = sim.group(caller, Limit::SERIAL, 100).unwrap();
    for (tier, tasks, takes) in W10 {
        for _ in 0..tasks {
            let work = Work::takes(tenths(takes)).tier(tier).group(serial);
            sim.submit(caller, work).unwrap();
        }
    }
    sim.run();
    assert_eq!(sim.now(), tenths(884));
    let rows = by_id(&sim);
    let gapless = rows
        .windows(2)
        .all(|two| two[0].run.unwrap().end == two[1].run.unwrap().start);
    assert!(gapless);
}

#[test]
fn a4_a_synchronize_covers_what_was_submitted_since_the_last() {
    let (mut sim, caller) = one_caller(2);
    assert_eq!(sim.synchronize(caller), Err(SyncError::NothingOutstanding));
    sim.submit(caller, Work::takes(secs(3))).unwrap();
    sim.submit(caller, Work::takes(secs(5)).failing()).unwrap();
    sim.advance_to(secs(4));
    let first = sim.synchronize(caller).unwrap();
    assert_eq!((first.tasks, first.ok, first.failed), (2, 1, 1));
    assert_eq!(first.first_failure.map(|id| id.get()), Some(2));
    assert_eq!(sim.now(), secs(5));
    assert_eq!(sim.synchronize(caller), Err(SyncError::NothingOutstanding));
    sim.submit(caller, Work::takes(secs(2))).unwrap();
    sim.run();
    let finished = sim.synchronize(caller).unwrap();
    assert_eq!((finished.tasks, finished.ok), (1, 1), "finished counts too");
    assert_eq!(finished.first_failure, None);
}

#[test]
fn a4_a_synchronize_that_cannot_end_leaves_its_epoch_to_the_next() {
    let (mut sim, caller) = one_caller(2);
    let paused = sim.group(caller, Limit::AtMost(0), 100).unwrap();
    let stuck = sim
        .submit(caller, Work::takes(secs(1)).group(paused))
        .unwrap();
    sim.submit(caller, Work::takes(secs(7))).unwrap();
    assert!(matches!(
        sim.synchronize(caller),
        Err(SyncError::Stalled(_))
    ));
    assert_eq!(sim.now(), secs(7), "what could run ran");
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    assert!(sim.cancel(&stuck));
    let all = sim.synchronize(caller).unwrap();
    assert_eq!((all.tasks, all.ok, all.cancelled), (3, 2, 1));
}

/// Even if the last task takes no time: the policy submits what comes next before a worker chooses.
#[test]
fn a4_a_synchronize_is_over_before_more_is_dispatched() {
    for takes in [0, 1] {
        let (mut sim, caller) = one_caller(1);
        let other = sim.caller("other", CallerOptions::default()).unwrap();
        sim.submit(caller, Work::takes(secs(takes))).unwrap();
        sim.submit(other, Work::takes(secs(5))).unwrap();
        assert!(sim.synchronize(caller).unwrap().all_ok());
        let counts = sim.counts();
        assert_eq!((counts.waiting, counts.running), (1, 0));
    }
}

#[test]
fn a4_callers_synchronize_apart() {
    let (mut sim, mine) = one_caller(2);
    let other = sim.caller("other", CallerOptions::default()).unwrap();
    sim.submit(mine, Work::takes(secs(2))).unwrap();
    sim.submit(other, Work::takes(secs(9))).unwrap();
    assert_eq!(sim.synchronize(mine).unwrap().tasks, 1);
    assert_eq!(sim.now(), secs(2));
    assert_eq!(sim.synchronize(other).unwrap().tasks, 1);
    assert_eq!(sim.now(), secs(9));
}

#[test]
fn a5_lowering_the_maximum_takes_effect_as_tasks_end() {
    let (mut sim, caller) = one_caller(4);
    for takes in [1, 2, 3, 4, 10, 10, 10, 10] {
        sim.submit(caller, Work::takes(secs(takes))).unwrap();
    }
    sim.advance_to(tenths(5));
    sim.set_workers(2).unwrap();
    assert_eq!(sim.status().running.len(), 4, "running tasks go on");
    sim.run();
    // When 1 and 2 end, the maximum is still reached or exceeded: 5 starts only after 3.
    assert_eq!(span(&sim, 5).0, secs(3));
    assert_eq!(span(&sim, 6).0, secs(4));
    assert_eq!(span(&sim, 7).0, secs(13));
    assert_eq!(span(&sim, 8).0, secs(14));
    let workers = sim.status().workers;
    assert_eq!((workers.live, workers.idle, workers.max), (2, 2, 2));
}

#[test]
fn a5_raising_the_maximum_starts_more_at_once() {
    let (mut sim, caller) = one_caller(1);
    for _ in 0..4 {
        sim.submit(caller, Work::takes(secs(10))).unwrap();
    }
    sim.advance_to(secs(3));
    sim.set_workers(3).unwrap();
    sim.run();
    let starts: Vec<Duration> = (1..=4).map(|id| span(&sim, id).0).collect();
    assert_eq!(starts, [0, 3, 3, 10].map(secs));
}

#[test]
fn a_fault_a_thousand_tasks_with_a_cap_of_three() {
    let mut sim = Simulation::new(8).unwrap();
    let caller = sim.caller("capped", with_cap(3)).unwrap();
    for _ in 0..1000 {
        sim.submit(caller, Work::takes(secs(1))).unwrap();
    }
    for second in 0..333 {
        sim.advance_to(secs(second) + tenths(5));
        assert_eq!(sim.status().running.len(), 3, "at second {second}");
    }
    sim.run();
    assert_eq!(sim.now(), secs(334));
    assert_eq!(sim.status().workers.live, 3, "no worker that has nothing");
}

#[test]
fn a_fault_a_cap_lowered_leaves_a_debt_and_zero_pauses() {
    let mut sim = Simulation::new(4).unwrap();
    let caller = sim.caller("capped", with_cap(4)).unwrap();
    for _ in 0..8 {
        sim.submit(caller, Work::takes(secs(2))).unwrap();
    }
    sim.advance_to(secs(1));
    sim.set_cap(&caller, Limit::AtMost(1)).unwrap();
    sim.advance_to(secs(3));
    assert_eq!(sim.status().running.len(), 1);
    sim.set_cap(&caller, Limit::AtMost(0)).unwrap();
    sim.run();
    assert_eq!((sim.now(), sim.records().len()), (secs(4), 5));
    sim.set_cap(&caller, Limit::Unlimited).unwrap();
    sim.run();
    assert_eq!((sim.now(), sim.records().len()), (secs(6), 8));
}

#[test]
fn a_fault_six_callers_of_a_hundred_are_all_served_at_once() {
    let mut sim = Simulation::new(5).unwrap();
    for name in ["a", "b", "c", "d", "e", "f"] {
        let caller = sim.caller(name, CallerOptions::default()).unwrap();
        for _ in 0..100 {
            sim.submit(caller, Work::takes(secs(1))).unwrap();
        }
    }
    sim.run();
    let first = |caller: u64| span(&sim, caller * 100 + 1).0;
    let firsts: Vec<Duration> = (0..6).map(first).collect();
    assert_eq!(firsts, [0, 0, 0, 0, 0, 1].map(secs));
    assert_eq!(sim.now(), secs(120));
}

#[test]
fn weights_share_the_workers() {
    let mut sim = Simulation::new(1).unwrap();
    let weighing = |weight| CallerOptions {
        weight,
        ..CallerOptions::default()
    };
    for (name, weight) in [("one", 1), ("three", 3)] {
        let caller = sim.caller(name, weighing(weight)).unwrap();
        for _ in 0..12 {
            sim.submit(caller, Work::takes(secs(1))).unwrap();
        }
    }
    sim.advance_to(secs(16) - tenths(1));
    let rows = sim.records().iter();
    let heavy = rows.filter(|row| &*row.task.caller == "three").count();
    // 15 ended: one, three three three, one, ...
    assert_eq!((sim.records().len(), heavy), (15, 11));
}
