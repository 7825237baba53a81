//! The gate's rule (SEMANTICS C), sentence by sentence, on a caller's tiers.

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Reason, Why};
use conversant::simulator::{CallerId, Driver, SimTask, Simulation, Work};

use crate::figures::sim::{W10, one_caller, secs, span, submit_tier, tenths};

fn submit(sim: &mut Simulation, caller: CallerId, tier: u32, takes: u64) -> SimTask {
    let work = Work::takes(secs(takes)).tier(tier);
    sim.submit(caller, work).unwrap()
}

/// "One tier is open. It stays open until none of its tasks runs and none of
/// it is outstanding; then the lowest outstanding tier opens."
#[test]
fn no_task_starts_before_every_lower_tier_has_finished() {
    let (mut sim, caller) = one_caller(5);
    for (tier, takes) in [(200, 2), (100, 3), (300, 1), (100, 5), (200, 4)] {
        submit(&mut sim, caller, tier, takes);
    }
    sim.run();
    assert_eq!(span(&sim, 2), (secs(0), secs(3)));
    assert_eq!(span(&sim, 4), (secs(0), secs(5)));
    assert_eq!(span(&sim, 1).0, secs(5));
    assert_eq!(span(&sim, 5), (secs(5), secs(9)));
    assert_eq!(span(&sim, 3), (secs(9), secs(10)));
}

/// The snapshots of C1, except what a caller does not show.
#[test]
fn who_runs_at_each_moment_of_w10() {
    let (mut sim, caller) = one_caller(5);
    W10.into_iter()
        .for_each(|row| submit_tier(&mut sim, caller, row));
    let moments: [(u64, &[u64]); 5] = [
        (50, &[1, 2, 3, 4]),
        (150, &[5, 6]),
        (220, &[7]),
        (300, &[8, 9]),
        (380, &[10]),
    ];
    for (at, expected) in moments {
        sim.advance_to(tenths(at));
        let status = sim.status();
        let running: Vec<u64> = status.running.iter().map(|t| t.id.get()).collect();
        assert_eq!(running, expected, "at {at} tenths");
        assert_eq!(status.workers.busy as usize, running.len());
        let open = status.callers[0].open_tier;
        assert_eq!(open, Some(status.running[0].tier));
        let gated = |t: &conversant::scheduler::WaitingTask| t.why == Why::Tier { open };
        assert!(status.waiting.iter().all(gated), "held back by the gate");
    }
}

/// "While a lower tier is outstanding, the open tier starts nothing new. So a
/// late ticket for a lower tier waits for one drain at most."
#[test]
fn a_late_lower_tier_waits_for_one_drain() {
    let (mut sim, caller) = one_caller(2);
    for takes in [4, 6, 5, 5] {
        submit(&mut sim, caller, 200, takes);
    }
    sim.advance_to(secs(1));
    submit(&mut sim, caller, 100, 3);
    sim.advance_to(secs(5));
    assert_eq!(sim.status().running.len(), 1, "200 starts nothing new");
    assert_eq!(
        sim.status().waiting[0].why,
        Why::Tier { open: Some(200) },
        "not even its own"
    );
    sim.run();
    assert_eq!(span(&sim, 5), (secs(6), secs(9)), "one drain");
    assert_eq!(span(&sim, 3), (secs(9), secs(14)));
    assert_eq!(span(&sim, 4), (secs(9), secs(14)));
}

/// A lower tier that comes when nothing of the open one runs opens at once.
#[test]
fn a_lower_tier_opens_at_once_when_nothing_runs() {
    let (mut sim, caller) = one_caller(2);
    let paused = sim.group(caller, Limit::AtMost(0), 100).unwrap();
    let held_back = Work::takes(secs(1)).tier(200).group(paused);
    let waiting = sim.submit(caller, held_back).unwrap();
    sim.advance_to(secs(1));
    submit(&mut sim, caller, 100, 2);
    sim.run();
    assert_eq!(span(&sim, 2), (secs(1), secs(3)));
    assert!(sim.cancel(&waiting));
}

/// "A cancelled ticket never stalls the gate."
#[test]
fn a_cancelled_task_never_stalls_the_gate() {
    let (mut sim, caller) = one_caller(2);
    submit(&mut sim, caller, 200, 4);
    submit(&mut sim, caller, 200, 8);
    submit(&mut sim, caller, 200, 1);
    sim.advance_to(secs(1));
    let late = submit(&mut sim, caller, 100, 1);
    sim.advance_to(secs(5));
    assert!(sim.cancel(&late), "200 goes on where it was");
    sim.run();
    assert_eq!(span(&sim, 3), (secs(5), secs(6)));

    let (mut sim, caller) = one_caller(2);
    submit(&mut sim, caller, 100, 2);
    let middle = submit(&mut sim, caller, 200, 5);
    submit(&mut sim, caller, 300, 1);
    sim.advance_to(secs(1));
    assert!(sim.cancel(&middle));
    sim.run();
    assert_eq!(span(&sim, 3), (secs(2), secs(3)));
}

/// "An empty tier is passed over". In the original a tier-300 task ran together
/// with tier 100 when there was no tier-200 task.
#[test]
fn a_gap_in_the_tiers_does_not_let_a_later_one_run_beside() {
    let (mut sim, caller) = one_caller(5);
    submit(&mut sim, caller, 100, 4);
    submit(&mut sim, caller, 300, 1);
    sim.advance_to(secs(2));
    assert_eq!(sim.status().running.len(), 1);
    submit(&mut sim, caller, 500, 1);
    sim.run();
    assert_eq!(span(&sim, 2), (secs(4), secs(5)));
    assert_eq!(span(&sim, 3), (secs(5), secs(6)));
}

/// "Reusing tier numbers in a second batch stalled all receives."
#[test]
fn tier_numbers_can_be_used_again_in_a_second_batch() {
    let (mut sim, caller) = one_caller(4);
    for batch in 1..=3 {
        W10.into_iter()
            .for_each(|row| submit_tier(&mut sim, caller, row));
        assert_eq!(sim.synchronize(caller).unwrap().ok, 10);
        assert_eq!(sim.now(), tenths(415 * batch));
    }
    // The same rule applies to a second batch that arrives while the first drains.
    submit(&mut sim, caller, 100, 2);
    submit(&mut sim, caller, 200, 2);
    sim.advance_to(tenths(415 * 3) + secs(3));
    submit(&mut sim, caller, 100, 2);
    sim.run();
    let from = tenths(415 * 3);
    assert_eq!(span(&sim, 32), (from + secs(2), from + secs(4)));
    assert_eq!(span(&sim, 33).0, from + secs(4));
}

/// "Within a group, in order of arrival, tiers must not go down."
#[test]
fn a_group_that_goes_down_in_tier_is_refused_at_submission() {
    let (mut sim, caller) = one_caller(2);
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let work = |tier| Work::takes(secs(1)).tier(tier).group(group);
    sim.submit(caller, work(200)).unwrap();
    let refused = sim.submit(caller, work(100)).unwrap_err();
    let Reason::TierGoesDown(down) = refused else {
        panic!("{refused}");
    };
    assert_eq!((down.last, down.asked), (200, 100));
    sim.submit(caller, Work::takes(secs(1)).group(group))
        .unwrap();
    sim.run();
    assert_eq!(
        sim.records()[1].task.tier,
        200,
        "without a tier: the group's last"
    );
    sim.submit(caller, work(100)).expect("the group was idle");
    sim.run();
    assert_eq!(sim.records().len(), 3, "a refused task leaves no trace");
}

/// Each caller has a gate of its own.
#[test]
fn the_tiers_of_one_caller_hold_back_nobody_else() {
    let (mut sim, caller) = one_caller(2);
    let other = sim.caller("other", CallerOptions::default()).unwrap();
    submit(&mut sim, caller, 100, 5);
    submit(&mut sim, other, 900, 5);
    sim.run();
    assert_eq!(span(&sim, 2).0, secs(0));
}

/// "Waiting tasks hold worker threads": here the tasks of a closed tier hold none.
#[test]
fn a_closed_tier_holds_no_worker() {
    let (mut sim, caller) = one_caller(3);
    let other = sim.caller("other", CallerOptions::default()).unwrap();
    submit(&mut sim, caller, 100, 10);
    for _ in 0..50 {
        submit(&mut sim, caller, 200, 1);
    }
    for _ in 0..20 {
        submit(&mut sim, other, 0, 1);
    }
    sim.advance_to(secs(10));
    let others = sim.records().iter().filter(|r| &*r.task.caller == "other");
    assert_eq!(others.count(), 20, "two workers were free for the other");
}
