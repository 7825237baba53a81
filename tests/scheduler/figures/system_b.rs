//! SEMANTICS B: workers process a task list.

use std::time::Duration;

use conversant::scheduler::Ending;
use conversant::simulator::Work;

use crate::figures::sim::{by_id, one_caller, secs, span, tenths};

#[test]
fn b1_each_task_is_claimed_once_and_a_worker_goes_on_at_once() {
    let (mut sim, caller) = one_caller(3);
    for takes in [4, 1, 7, 2, 2, 9, 3, 1, 5, 6] {
        sim.submit(caller, Work::takes(secs(takes))).unwrap();
    }
    sim.run();
    let mut rows = by_id(&sim);
    let ids: Vec<u64> = rows.iter().map(|row| row.task.id.get()).collect();
    assert_eq!(ids, (1..=10).collect::<Vec<_>>(), "each exactly once");
    for worker in 1..=3 {
        rows.sort_by_key(|row| row.run.unwrap().start);
        let runs = rows.iter().filter_map(|row| row.run);
        let mine: Vec<_> = runs.filter(|run| run.worker == worker).collect();
        assert_eq!(mine[0].start, Duration::ZERO);
        let gapless = mine.windows(2).all(|two| two[0].end == two[1].start);
        assert!(gapless, "worker {worker} waited beside work");
    }
    assert!(sim.status().waiting.is_empty() && sim.status().running.is_empty());
}

#[test]
fn b2_two_workers_ten_tasks() {
    let (mut sim, caller) = one_caller(2);
    for _ in 0..10 {
        sim.submit(caller, Work::takes(secs(10))).unwrap();
    }
    for at in [tenths(301), secs(35), tenths(399)] {
        sim.advance_to(at);
        let status = sim.status();
        let running: Vec<u64> = status.running.iter().map(|t| t.id.get()).collect();
        let pending: Vec<u64> = status.waiting.iter().map(|t| t.id.get()).collect();
        let finished: Vec<u64> = by_id(&sim).iter().map(|row| row.task.id.get()).collect();
        assert_eq!(finished, [1, 2, 3, 4, 5, 6]);
        assert_eq!((running, pending), (vec![7, 8], vec![9, 10]));
    }
    sim.run();
    let starts: Vec<Duration> = (1..=10).map(|id| span(&sim, id).0).collect();
    assert_eq!(starts, [0, 0, 10, 10, 20, 20, 30, 30, 40, 40].map(secs));
    assert_eq!(sim.now(), secs(50));
    let of = |worker| {
        let runs = sim.records().iter().filter_map(|row| row.run);
        runs.filter(|run| run.worker == worker).count()
    };
    assert_eq!((of(1), of(2)), (5, 5));
}

#[test]
fn b3_an_idle_worker_leaves_after_the_idle_time() {
    let (sim, caller) = one_caller(3);
    let mut sim = sim.with_idle(secs(30));
    for takes in [1, 5, 10] {
        sim.submit(caller, Work::takes(secs(takes))).unwrap();
    }
    let live_at = |sim: &mut conversant::simulator::Simulation, at| {
        sim.advance_to(at);
        sim.status().workers.live
    };
    assert_eq!(live_at(&mut sim, tenths(309)), 3);
    assert_eq!(live_at(&mut sim, secs(31)), 2, "the first rested from 1 on");
    assert_eq!(live_at(&mut sim, tenths(349)), 2);
    assert_eq!(live_at(&mut sim, secs(35)), 1);
    assert_eq!(live_at(&mut sim, tenths(399)), 1);
    assert_eq!(live_at(&mut sim, secs(40)), 0);
}

#[test]
fn b3_with_new_work_workers_come_back_at_once() {
    let (sim, caller) = one_caller(2);
    let mut sim = sim.with_idle(secs(30));
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    sim.advance_to(secs(100));
    assert_eq!(sim.status().workers.live, 0);
    sim.submit(caller, Work::takes(secs(10))).unwrap();
    sim.submit(caller, Work::takes(secs(10))).unwrap();
    sim.run();
    assert_eq!(span(&sim, 3), (secs(100), secs(110)));
    assert_eq!(span(&sim, 4), (secs(100), secs(110)));
}

#[test]
fn b3_work_within_the_idle_time_starts_the_rest_anew() {
    let (sim, caller) = one_caller(1);
    let mut sim = sim.with_idle(secs(30));
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    sim.advance_to(secs(20));
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    sim.advance_to(secs(50));
    assert_eq!(sim.status().workers.live, 1, "it rests from 21 on");
    sim.advance_to(secs(51));
    assert_eq!(sim.status().workers.live, 0);
}

#[test]
fn b_fault_order_by_luck() {
    let (mut sim, caller) = one_caller(2);
    for _ in 0..1000 {
        sim.submit(caller, Work::takes(secs(1))).unwrap();
    }
    sim.run();
    let order = crate::figures::sim::order_of_starts(&sim);
    assert_eq!(order, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn b_fault_a_failing_task_is_not_one_that_is_done() {
    let (mut sim, caller) = one_caller(1);
    sim.submit(caller, Work::takes(secs(1)).failing()).unwrap();
    sim.submit(caller, Work::takes(secs(1))).unwrap();
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.ok, summary.failed), (1, 1));
    assert!(!summary.all_ok());
    let endings: Vec<Ending> = by_id(&sim).iter().map(|row| row.ending).collect();
    assert_eq!(endings, [Ending::Failed, Ending::Ok], "the next still ran");
}
