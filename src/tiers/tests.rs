mod memory;

use super::Tiers;
use proptest::prelude::*;
use std::cmp::Ordering;

/// What an event has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Same,
    Opened(u32),
    /// The open tier starts nothing new from now on.
    Drains,
    /// The open tier may start tasks again.
    Resumed,
    Emptied,
}

fn told(tiers: &mut Tiers, event: impl FnOnce(&mut Tiers)) -> Change {
    let before = (tiers.open(), tiers.draining());
    event(tiers);
    expected(before, (tiers.open(), tiers.draining()))
}

/// Tiers in which these tasks wait.
fn waiting(tiers: &[u32]) -> Tiers {
    let mut all = Tiers::new();
    for &tier in tiers {
        all.arrive(tier);
    }
    all
}

/// The open tier, whether it drains, and how many of its tasks wait and run.
fn state(tiers: &Tiers) -> (Option<u32>, bool, u64, u64) {
    (
        tiers.open(),
        tiers.draining(),
        tiers.waiting(),
        tiers.running(),
    )
}

#[test]
fn small_enough_for_a_million_callers() {
    assert!(size_of::<Tiers>() <= 56, "{}", size_of::<Tiers>());
}

#[test]
fn the_first_arrival_opens_its_own_tier() {
    let mut tiers = Tiers::new();
    assert_eq!(state(&tiers), (None, false, 0, 0));
    assert!(tiers.is_empty() && !tiers.startable(0) && tiers.iter().next().is_none());
    assert_eq!(told(&mut tiers, |t| t.arrive(0)), Change::Opened(0));
    assert_eq!(state(&tiers), (Some(0), false, 1, 0));
    assert!(tiers.startable(0) && !tiers.startable(1));
}

#[test]
fn it_stays_open_while_one_of_its_tasks_runs() {
    let mut tiers = waiting(&[200, 200, 300]);
    tiers.start(200);
    tiers.start(200);
    assert_eq!(told(&mut tiers, |t| t.finish(200)), Change::Same);
    assert_eq!(state(&tiers), (Some(200), false, 0, 1));
    assert_eq!(told(&mut tiers, |t| t.arrive(100)), Change::Drains);
    assert_eq!(tiers.open(), Some(200));
    assert_eq!(told(&mut tiers, |t| t.finish(200)), Change::Opened(100));
}

#[test]
fn a_tier_stays_open_while_it_has_work_and_no_lower_one_has() {
    let mut tiers = waiting(&[200, 200, 300]);
    tiers.start(200);
    assert_eq!(told(&mut tiers, |t| t.finish(200)), Change::Same);
    assert_eq!(state(&tiers), (Some(200), false, 1, 0));
    assert_eq!(told(&mut tiers, |t| t.arrive(201)), Change::Same);
    assert!(tiers.startable(200));
}

#[test]
fn when_none_of_it_is_outstanding_the_lowest_opens() {
    let mut tiers = waiting(&[100, 500, 300, 400]);
    tiers.start(100);
    assert_eq!(told(&mut tiers, |t| t.finish(100)), Change::Opened(300));
    assert_eq!(state(&tiers), (Some(300), false, 1, 0));
}

#[test]
fn a_lower_tier_opens_at_once_if_nothing_of_the_open_one_runs() {
    let mut tiers = waiting(&[300, 300]);
    assert_eq!(told(&mut tiers, |t| t.arrive(100)), Change::Opened(100));
    assert_eq!(tiers.iter().collect::<Vec<_>>(), [(100, 1), (300, 2)]);
    tiers.start(100);
    assert_eq!(told(&mut tiers, |t| t.finish(100)), Change::Opened(300));
    assert_eq!(state(&tiers), (Some(300), false, 2, 0));
}

#[test]
fn the_open_tier_starts_nothing_new_while_a_lower_one_has_work() {
    let mut tiers = waiting(&[300, 300, 300]);
    tiers.start(300);
    tiers.start(300);
    assert_eq!(told(&mut tiers, |t| t.arrive(100)), Change::Drains);
    assert!(tiers.draining() && !tiers.startable(300) && !tiers.startable(100));
    assert_eq!(tiers.others().next(), Some((100, 1)));
    assert_eq!(told(&mut tiers, |t| t.finish(300)), Change::Same);
    assert_eq!(told(&mut tiers, |t| t.arrive(300)), Change::Same);
    assert!(!tiers.startable(300));
    // One drain and no more: the other waiting tasks of 300 do not hold back 100.
    assert_eq!(told(&mut tiers, |t| t.finish(300)), Change::Opened(100));
    assert_eq!(tiers.others().next(), Some((300, 2)));
}

#[test]
fn of_several_late_lower_arrivals_the_lowest_opens() {
    let mut tiers = waiting(&[300]);
    tiers.start(300);
    assert_eq!(told(&mut tiers, |t| t.arrive(200)), Change::Drains);
    assert_eq!(told(&mut tiers, |t| t.arrive(100)), Change::Same);
    assert_eq!(told(&mut tiers, |t| t.arrive(150)), Change::Same);
    assert_eq!(told(&mut tiers, |t| t.finish(300)), Change::Opened(100));
}

#[test]
fn a_given_back_task_waits_again_in_its_tier() {
    let mut tiers = waiting(&[100, 200]);
    tiers.start(100);
    assert_eq!(told(&mut tiers, |t| t.give_back(100)), Change::Same);
    assert_eq!(state(&tiers), (Some(100), false, 1, 0));
    tiers.start(100);
    assert_eq!(told(&mut tiers, |t| t.arrive(50)), Change::Drains);
    assert_eq!(told(&mut tiers, |t| t.give_back(100)), Change::Opened(50));
    assert_eq!(
        tiers.iter().collect::<Vec<_>>(),
        [(50, 1), (100, 1), (200, 1)]
    );
}

#[test]
fn a_cancelled_task_never_stalls() {
    // The last task of the open tier.
    let mut tiers = waiting(&[100, 200]);
    assert_eq!(told(&mut tiers, |t| t.leave(100)), Change::Opened(200));
    // The task for which the open tier drains.
    tiers.start(200);
    tiers.arrive(200);
    assert_eq!(told(&mut tiers, |t| t.arrive(100)), Change::Drains);
    assert_eq!(told(&mut tiers, |t| t.leave(100)), Change::Resumed);
    assert!(tiers.startable(200));
    // One of two tasks, and one of two tiers, for which the open tier drains.
    [100, 100, 50]
        .into_iter()
        .for_each(|tier| tiers.arrive(tier));
    assert_eq!(told(&mut tiers, |t| t.leave(100)), Change::Same);
    assert_eq!(told(&mut tiers, |t| t.leave(50)), Change::Same);
    assert!(tiers.draining());
    assert_eq!(told(&mut tiers, |t| t.leave(100)), Change::Resumed);
    // The last task of all.
    assert_eq!(told(&mut tiers, |t| t.leave(200)), Change::Same);
    assert_eq!(told(&mut tiers, |t| t.finish(200)), Change::Emptied);
    tiers.arrive(7);
    assert_eq!(told(&mut tiers, |t| t.leave(7)), Change::Emptied);
}

#[test]
fn an_empty_tier_is_passed_over() {
    let mut tiers = waiting(&[100, 200, 300]);
    assert_eq!(told(&mut tiers, |t| t.leave(200)), Change::Same);
    tiers.start(100);
    assert_eq!(told(&mut tiers, |t| t.finish(100)), Change::Opened(300));
}

#[test]
fn equal_tiers_overlap() {
    let mut tiers = waiting(&[5; 100]);
    (0..100).for_each(|_| tiers.start(5));
    assert_eq!(tiers.running(), 100);
    (0..99).for_each(|_| assert_eq!(told(&mut tiers, |t| t.finish(5)), Change::Same));
    assert_eq!(told(&mut tiers, |t| t.finish(5)), Change::Emptied);
}

#[test]
fn a_later_batch_may_use_the_numbers_again() {
    let mut tiers = Tiers::new();
    for _ in 0..3 {
        for tier in [300, 100, 200, 100] {
            tiers.arrive(tier);
        }
        for (tier, change) in [
            (100, Change::Same),
            (100, Change::Opened(200)),
            (200, Change::Opened(300)),
            (300, Change::Emptied),
        ] {
            assert!(tiers.startable(tier));
            tiers.start(tier);
            assert_eq!(told(&mut tiers, |t| t.finish(tier)), change);
        }
    }
}

#[test]
fn the_whole_range_of_tiers_can_be_used() {
    let mut tiers = waiting(&[u32::MAX]);
    tiers.start(u32::MAX);
    assert_eq!(told(&mut tiers, |t| t.arrive(0)), Change::Drains);
    assert_eq!(told(&mut tiers, |t| t.finish(u32::MAX)), Change::Opened(0));
    assert_eq!(told(&mut tiers, |t| t.leave(0)), Change::Emptied);
    assert_eq!(
        told(&mut tiers, |t| t.arrive(u32::MAX)),
        Change::Opened(u32::MAX)
    );
}

#[test]
fn nothing_is_kept_of_a_tier_that_is_gone() {
    let mut tiers = waiting(&[1, 2]);
    assert_eq!(told(&mut tiers, |t| t.leave(2)), Change::Same);
    assert!(tiers.others.is_empty());
    tiers.arrive(2);
    assert_eq!(told(&mut tiers, |t| t.leave(1)), Change::Opened(2));
    assert!(tiers.others.is_empty());
    assert_eq!(tiers.iter().collect::<Vec<_>>(), [(2, 1)]);
}

#[test]
fn the_workload_of_the_five_systems() {
    let mut tiers = waiting(&[100, 100, 100, 100, 200, 200, 300, 400, 400, 500]);
    let mut waves = Vec::new();
    while let Some(tier) = tiers.open() {
        let wave = tiers.waiting();
        (0..wave).for_each(|_| tiers.start(tier));
        (1..wave).for_each(|_| assert_eq!(told(&mut tiers, |t| t.finish(tier)), Change::Same));
        assert_ne!(told(&mut tiers, |t| t.finish(tier)), Change::Same);
        waves.push((tier, wave));
    }
    assert_eq!(waves, [(100, 4), (200, 2), (300, 1), (400, 2), (500, 1)]);
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "starts nothing now")]
fn a_start_that_may_not_be_is_caught() {
    waiting(&[1, 2]).start(2);
}

/// The rule, word for word, over a list of tasks that is searched each time.
#[derive(Default)]
struct Model {
    tasks: Vec<(u32, bool)>,
    open: Option<u32>,
}

impl Model {
    fn runs(&self, tier: u32) -> bool {
        self.tasks.contains(&(tier, true))
    }

    fn lowest(&self) -> Option<u32> {
        self.tasks.iter().map(|task| task.0).min()
    }

    fn draining(&self) -> bool {
        self.open > self.lowest()
    }

    fn update(&mut self) {
        let Some(lowest) = self.lowest() else {
            self.open = None;
            return;
        };
        let stays = self.open.is_some_and(|open| {
            let outstanding = self.tasks.iter().any(|task| task.0 == open);
            self.runs(open) || (outstanding && lowest >= open)
        });
        if !stays {
            self.open = Some(lowest);
        }
    }

    /// The index of a task in this state, chosen by a number.
    fn pick(&self, running: bool, choice: usize) -> Option<usize> {
        let places: Vec<usize> = (0..self.tasks.len())
            .filter(|&at| self.tasks[at].1 == running)
            .collect();
        (!places.is_empty()).then(|| places[choice % places.len()])
    }
}

fn expected(before: (Option<u32>, bool), after: (Option<u32>, bool)) -> Change {
    match (before.0 == after.0, after.0) {
        (false, Some(tier)) => Change::Opened(tier),
        (false, None) => Change::Emptied,
        (true, _) => match before.1.cmp(&after.1) {
            Ordering::Less => Change::Drains,
            Ordering::Equal => Change::Same,
            Ordering::Greater => Change::Resumed,
        },
    }
}

fn compare(tiers: &Tiers, model: &Model) {
    assert_eq!(
        (tiers.open(), tiers.draining()),
        (model.open, model.draining())
    );
    assert_eq!(tiers.iter().map(|all| all.0).min(), model.lowest());
    assert_eq!(tiers.is_empty(), model.tasks.is_empty());
    let count = |tier| model.tasks.iter().filter(|task| task.0 == tier).count() as u64;
    for tier in 0..8 {
        let all = tiers.iter().find(|all| all.0 == tier);
        assert_eq!(all.map_or(0, |all| all.1), count(tier));
        assert_eq!(
            tiers.startable(tier),
            model.open == Some(tier) && !model.draining()
        );
    }
    assert!(
        tiers
            .iter()
            .all(|(tier, tasks)| tasks > 0 && tasks == count(tier))
    );
    assert_eq!(
        tiers.iter().map(|(_, tasks)| tasks).sum::<u64>(),
        model.tasks.len() as u64
    );
    assert_eq!(
        tiers.running(),
        model.tasks.iter().filter(|task| task.1).count() as u64
    );
}

/// Applies one operation to both, if that is possible.
fn step(tiers: &mut Tiers, model: &mut Model, op: u8, tier: u32, choice: usize) {
    match op {
        0..3 => {
            model.tasks.push((tier, false));
            tiers.arrive(tier);
        }
        3..6 => {
            let open = model.open.filter(|_| !model.draining());
            let Some(at) = model
                .tasks
                .iter()
                .position(|&task| open == Some(task.0) && !task.1)
            else {
                return;
            };
            model.tasks[at].1 = true;
            tiers.start(model.tasks[at].0);
        }
        6..8 => {
            let Some(at) = model.pick(true, choice) else {
                return;
            };
            tiers.finish(model.tasks.swap_remove(at).0);
        }
        8 => {
            let Some(at) = model.pick(true, choice) else {
                return;
            };
            model.tasks[at].1 = false;
            tiers.give_back(model.tasks[at].0);
        }
        _ => {
            let Some(at) = model.pick(false, choice) else {
                return;
            };
            tiers.leave(model.tasks.swap_remove(at).0);
        }
    }
    model.update();
    compare(tiers, model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn follows_the_rule(ops in prop::collection::vec((0u8..10, 0u32..8, any::<usize>()), 1..2000)) {
        let (mut tiers, mut model) = (Tiers::new(), Model::default());
        for (op, tier, choice) in ops {
            step(&mut tiers, &mut model, op, tier, choice);
        }
        // After any history all tasks run, if they start and finish in the order of the rule.
        while let Some(tier) = tiers.open() {
            if tiers.running() == 0 {
                prop_assert!(tiers.startable(tier));
                tiers.start(tier);
            }
            tiers.finish(tier);
        }
        prop_assert_eq!(format!("{tiers:?}"), format!("{:?}", Tiers { tier: tiers.tier, ..Tiers::new() }));
    }
}
