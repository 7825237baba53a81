//! SEMANTICS E: who goes first within a caller.

use std::time::Duration;

use conversant::limit::{Bypass, Limit};
use conversant::scheduler::CallerOptions;
use conversant::simulator::{CallerId, Driver, SimTask, Simulation, Work};

use crate::figures::sim::{one_caller, order_of_starts, secs};

const STEP: Duration = Duration::from_millis(1);

/// Request `n` of the hundred: every tenth asks for a bump to its own number.
fn send(sim: &mut Simulation, caller: CallerId, n: u8) -> SimTask {
    let work = Work::takes(secs(2));
    let bumped = n > 0 && n.is_multiple_of(10);
    let work = if bumped { work.bump(n) } else { work };
    sim.submit(caller, work).unwrap()
}

/// The order of service by request number: ids count from 1.
fn served(sim: &Simulation) -> Vec<u64> {
    order_of_starts(sim).iter().map(|id| id - 1).collect()
}

fn then_the_rest(first: &[u64]) -> Vec<u64> {
    let rest = (0..100).filter(|n| !first.contains(n));
    first.iter().copied().chain(rest).collect()
}

fn e1(bypass: Bypass) -> Simulation {
    let mut sim = Simulation::with_bypass(2, bypass).unwrap();
    let caller = sim.caller("main", CallerOptions::default()).unwrap();
    send(&mut sim, caller, 0);
    sim.advance_to(STEP);
    (1..=80).for_each(|n| _ = send(&mut sim, caller, n));
    sim.advance_to(STEP * 2);
    (81..=99).for_each(|n| _ = send(&mut sim, caller, n));
    sim.run();
    sim
}

const E1: [u64; 10] = [0, 80, 90, 70, 60, 50, 40, 30, 20, 10];

#[test]
fn e1_order_of_service_and_who_serves() {
    let sim = e1(Bypass::default());
    assert_eq!(served(&sim), then_the_rest(&E1));
    let of = |worker| -> Vec<u64> {
        let rows = sim.records().iter();
        let mine = rows.filter(|row| row.run.is_some_and(|run| run.worker == worker));
        mine.map(|row| row.task.id.get() - 1).take(9).collect()
    };
    assert_eq!(of(1), [0, 90, 60, 40, 20, 1, 3, 5, 7]);
    assert_eq!(of(2), [80, 70, 50, 30, 10, 2, 4, 6, 8]);
}

#[test]
fn e1_needs_a_bypass_of_nine() {
    assert_eq!(served(&e1(Bypass::AtMost(9))), then_the_rest(&E1));
    assert_eq!(served(&e1(Bypass::Unbounded)), then_the_rest(&E1));
    let eight = served(&e1(Bypass::AtMost(8)));
    assert_eq!(eight[..11], [0, 80, 90, 70, 60, 50, 40, 30, 20, 1, 10]);
    let none: Vec<u64> = (0..100).collect();
    assert_eq!(served(&e1(Bypass::AtMost(0))), none);
}

#[test]
fn e2_all_bumps_before_the_second_dispatch() {
    let (mut sim, caller) = one_caller(2);
    send(&mut sim, caller, 0);
    sim.advance_to(STEP);
    (1..=99).for_each(|n| _ = send(&mut sim, caller, n));
    sim.run();
    let bumped = [0, 90, 80, 70, 60, 50, 40, 30, 20, 10];
    assert_eq!(served(&sim), then_the_rest(&bumped));
}

/// A bump that comes after its task, in a step of its own.
#[test]
fn bumps_in_two_steps() {
    let (mut sim, caller) = one_caller(1);
    let plain = |sim: &mut Simulation| sim.submit(caller, Work::takes(secs(2))).unwrap();
    let tasks: Vec<SimTask> = (0..6).map(|_| plain(&mut sim)).collect();
    sim.advance_to(secs(1));
    sim.bump(&tasks[4], 10).unwrap();
    sim.bump(&tasks[5], 20).unwrap();
    sim.advance_to(secs(3));
    // The task at 20 runs. A third gets 30, the task at 10 is raised to 30, the third again.
    sim.bump(&tasks[3], 30).unwrap();
    sim.bump(&tasks[4], 30).unwrap();
    sim.bump(&tasks[3], 30).unwrap();
    assert!(sim.bump(&tasks[0], 255).is_err(), "it has ended");
    assert!(sim.bump(&tasks[5], 255).is_ok(), "it runs");
    sim.run();
    assert_eq!(order_of_starts(&sim), [1, 6, 4, 5, 2, 3]);
}

/// "A bumped group, at whatever level, is served ahead of every group that was
/// not bumped"; and a bump that is lowered counts at its lower level.
#[test]
fn a_bump_lowered_is_still_a_bump() {
    let (mut sim, caller) = one_caller(1);
    let high = sim.group(caller, Limit::SERIAL, 255).unwrap();
    let on = |sim: &mut Simulation, work: Work| sim.submit(caller, work).unwrap();
    on(&mut sim, Work::takes(secs(1)));
    sim.advance_to(STEP);
    on(&mut sim, Work::takes(secs(1)).group(high));
    let a = on(&mut sim, Work::takes(secs(1)).bump(50));
    on(&mut sim, Work::takes(secs(1)).bump(40));
    sim.bump(&a, 0).unwrap();
    sim.run();
    assert_eq!(order_of_starts(&sim), [1, 4, 3, 2]);
}

#[test]
fn a_bump_is_used_up_by_one_task_of_its_group() {
    let (mut sim, caller) = one_caller(1);
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let work = || Work::takes(secs(1));
    sim.submit(caller, work()).unwrap();
    sim.advance_to(STEP);
    sim.submit(caller, work()).unwrap();
    sim.submit(caller, work().group(group)).unwrap();
    sim.submit(caller, work().group(group).bump(9)).unwrap();
    sim.run();
    assert_eq!(order_of_starts(&sim), [1, 3, 2, 4]);
}

#[test]
fn a_group_of_limit_two_overlaps_and_keeps_its_order() {
    let (mut sim, caller) = one_caller(4);
    let group = sim.group(caller, Limit::AtMost(2), 100).unwrap();
    for takes in [3, 1, 1, 1] {
        let work = Work::takes(secs(takes)).group(group);
        sim.submit(caller, work).unwrap();
    }
    sim.run();
    let starts: Vec<u64> = (1..=4)
        .map(|id| crate::figures::sim::span(&sim, id).0.as_secs())
        .collect();
    assert_eq!(starts, [0, 0, 1, 2]);
}
