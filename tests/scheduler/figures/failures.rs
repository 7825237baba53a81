//! A caller chooses whether a failure lets higher tiers go on.

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, OnFailure, SyncError};
use conversant::simulator::{CallerId, Simulation, Work};

use crate::figures::sim::{by_id, secs, span};

fn caller_with(on_failure: OnFailure) -> (Simulation, CallerId) {
    let mut sim = Simulation::new(2).unwrap();
    let options = CallerOptions {
        on_failure,
        ..CallerOptions::default()
    };
    let caller = sim.caller("main", options).unwrap();
    (sim, caller)
}

/// Submits tasks of tiers 1 (this one fails), 1, 1, 2 and 3.
fn three_tiers(sim: &mut Simulation, caller: CallerId) {
    let work = |tier| Work::takes(secs(1)).tier(tier);
    sim.submit(caller, work(1).failing()).unwrap();
    for tier in [1, 1, 2, 3] {
        sim.submit(caller, work(tier)).unwrap();
    }
}

fn endings(sim: &Simulation) -> Vec<Ending> {
    by_id(sim).iter().map(|row| row.ending).collect()
}

#[test]
fn with_continue_higher_tiers_go_on() {
    let (mut sim, caller) = caller_with(OnFailure::Continue);
    three_tiers(&mut sim, caller);
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.tasks, summary.ok, summary.failed), (5, 4, 1));
    assert_eq!(summary.first_failure.map(|id| id.get()), Some(1));
    assert_eq!(endings(&sim)[3..], [Ending::Ok; 2]);
}

#[test]
fn with_skip_higher_tiers_never_start() {
    let (mut sim, caller) = caller_with(OnFailure::SkipHigherTiers);
    three_tiers(&mut sim, caller);
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!(summary.tasks, 5);
    assert_eq!((summary.ok, summary.failed, summary.skipped), (2, 1, 2));
    assert_eq!(endings(&sim)[1..3], [Ending::Ok; 2], "its own tier goes on");
    assert_eq!(endings(&sim)[3..], [Ending::Skipped; 2]);
    assert_eq!(sim.now(), secs(2));
    assert!(by_id(&sim)[3].run.is_none());
}

#[test]
fn what_comes_after_a_failure_is_skipped_until_the_next_synchronize() {
    let (mut sim, caller) = caller_with(OnFailure::SkipHigherTiers);
    let work = |tier| Work::takes(secs(1)).tier(tier);
    sim.submit(caller, work(5).failing()).unwrap();
    sim.advance_to(secs(2));
    assert_eq!(sim.status().callers[0].skips_above, Some(5));
    sim.submit(caller, work(6)).unwrap();
    sim.submit(caller, work(5)).unwrap();
    sim.submit(caller, work(4)).unwrap();
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.tasks, summary.ok, summary.skipped), (4, 2, 1));
    assert_eq!(endings(&sim)[1], Ending::Skipped);

    assert_eq!(sim.status().callers[0].skips_above, None);
    sim.submit(caller, work(6)).unwrap();
    assert_eq!(sim.synchronize(caller).unwrap().ok, 1);
    assert_eq!(sim.synchronize(caller), Err(SyncError::NothingOutstanding));
}

#[test]
fn a_failure_in_a_lower_tier_lowers_the_line() {
    let (mut sim, caller) = caller_with(OnFailure::SkipHigherTiers);
    let work = |tier| Work::takes(secs(2)).tier(tier);
    sim.submit(caller, work(5).failing()).unwrap();
    sim.advance_to(secs(1));
    sim.submit(caller, work(3).failing()).unwrap();
    sim.submit(caller, work(4)).unwrap();
    sim.submit(caller, work(5)).unwrap();
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.failed, summary.skipped), (2, 2));
    assert_eq!(summary.first_failure.map(|id| id.get()), Some(1));
}

/// A skipped task leaves its group as a cancelled one does.
#[test]
fn skipping_takes_the_middle_out_of_a_group() {
    let (mut sim, caller) = caller_with(OnFailure::SkipHigherTiers);
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let work = |tier: u32| Work::takes(secs(1)).tier(tier).group(group);
    sim.submit(caller, work(1).failing()).unwrap();
    for tier in [1, 2, 2, 3] {
        sim.submit(caller, work(tier)).unwrap();
    }
    let summary = sim.synchronize(caller).unwrap();
    assert_eq!((summary.ok, summary.failed, summary.skipped), (1, 1, 3));
    sim.submit(caller, work(1)).expect("the group is idle");
    sim.run();
    assert_eq!(span(&sim, 6).0, secs(2));
}

#[test]
fn a_failure_of_one_caller_skips_nothing_of_another() {
    let (mut sim, caller) = caller_with(OnFailure::SkipHigherTiers);
    let options = CallerOptions {
        on_failure: OnFailure::SkipHigherTiers,
        ..CallerOptions::default()
    };
    let other = sim.caller("other", options).unwrap();
    three_tiers(&mut sim, caller);
    sim.submit(other, Work::takes(secs(1)).tier(9)).unwrap();
    assert_eq!(sim.synchronize(other).unwrap().ok, 1);
}

/// A walk over all waiting tasks at every failure would be quadratic: this would not end.
#[test]
fn many_failures_walk_what_waits_once() {
    const MANY: u64 = 200_000;
    let (mut sim, caller) = caller_with(OnFailure::SkipHigherTiers);
    for _ in 0..MANY {
        sim.submit(caller, Work::takes(secs(0)).failing()).unwrap();
    }
    assert_eq!(sim.synchronize(caller).unwrap().failed, MANY);
}
