//! Names of another simulation, and workers that rest.

use std::time::Duration;

use super::{Driver, Simulation, Work};
use crate::error::Stale;
use crate::limit::Limit;
use crate::scheduler::{CallerOptions, Ending, OnFailure, Reason};

const SECOND: Duration = Duration::from_secs(1);

fn two() -> (Simulation, Simulation) {
    let sim = || Simulation::new(2).expect("two workers are allowed");
    (sim(), sim())
}

#[test]
fn names_of_another_simulation_name_nothing_here() {
    let (mut here, mut there) = two();
    let ours = here.caller("ours", CallerOptions::default()).unwrap();
    let theirs = there.caller("theirs", CallerOptions::default()).unwrap();
    let work = Work::takes(SECOND);
    let (task, foreign) = (here.submit(ours, work), there.submit(theirs, work).unwrap());
    let group = there.group(theirs, Limit::SERIAL, 100).unwrap();
    assert_eq!(
        here.submit(ours, work.group(group)),
        Err(Reason::ForeignGroup)
    );
    assert_eq!(here.bump(&foreign, 1), Err(Stale));
    assert!(!here.cancel(&foreign));
    assert_eq!(here.bump(&task.unwrap(), 1), Ok(()));
}

#[test]
#[should_panic(expected = "a caller of another simulation")]
fn a_caller_of_another_simulation_is_a_mistake() {
    let (mut here, mut there) = two();
    let theirs = there.caller("theirs", CallerOptions::default()).unwrap();
    let _never = here.submit(theirs, Work::takes(SECOND));
}

/// A task that is skipped on arrival ends before those that end at the same instant.
#[test]
fn tasks_arrive_before_others_end() {
    let mut sim = Simulation::new(1).unwrap();
    let options = CallerOptions {
        on_failure: OnFailure::SkipHigherTiers,
        ..CallerOptions::default()
    };
    let caller = sim.caller("", options).unwrap();
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let works = [
        Work::takes(SECOND).failing(),
        Work::takes(SECOND),
        // It comes into the tier of the next one, which is skipped when the first one fails.
        Work::takes(SECOND).group(group).after(2 * SECOND),
        Work::takes(SECOND).group(group).tier(1),
    ];
    let tasks = works.map(|work| sim.submit(caller, work).unwrap().id());
    sim.run();
    let rows = sim.records().iter();
    let ends: Vec<_> = rows
        .map(|row| (row.task.id, row.ending, row.ended))
        .collect();
    let expected = [
        (tasks[0], Ending::Failed, SECOND),
        (tasks[3], Ending::Skipped, SECOND),
        (tasks[2], Ending::Skipped, 2 * SECOND),
        (tasks[1], Ending::Ok, 2 * SECOND),
    ];
    assert_eq!(ends, expected);
}

#[test]
fn a_worker_rests_once_however_often_it_worked() {
    let mut sim = Simulation::new(2).unwrap().with_idle(30 * SECOND);
    let caller = sim.caller("", CallerOptions::default()).unwrap();
    for _ in 0..100 {
        sim.submit(caller, Work::takes(SECOND)).unwrap();
    }
    sim.run();
    assert_eq!(sim.rests.len(), 2);
    sim.advance_to(sim.now() + 30 * SECOND);
    assert_eq!(sim.rests.len(), 0);
    assert_eq!(sim.status().workers.live, 0);
}
