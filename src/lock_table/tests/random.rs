//! Random schedules of four owners over four resources against the naive manager.

use proptest::prelude::*;

use super::Mode;
use super::steps::Step;
use super::world::{OWNERS, World, resources};

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..OWNERS;
    let what = || 0..resources().len();
    let mode = || prop::sample::select(Mode::ALL.to_vec());
    prop_oneof![
        10 => (who(), what(), mode()).prop_map(|(w, r, m)| Step::Lock(w, vec![(r, m)])),
        2 => (who(), prop::collection::vec((what(), mode()), 0..4))
            .prop_map(|(w, all)| Step::Lock(w, all)),
        2 => who().prop_map(Step::Cancel),
        8 => who().prop_map(Step::Run),
        5 => (who(), what()).prop_map(|(w, r)| Step::Release(w, r)),
        2 => (who(), what(), mode()).prop_map(|(w, r, m)| Step::Downgrade(w, r, m)),
        1 => who().prop_map(Step::Savepoint),
        1 => (who(), 0..4usize).prop_map(|(w, n)| Step::ReleaseTo(w, n)),
        1 => who().prop_map(Step::ReleaseAll),
        3 => (who(), prop::collection::vec(what(), 0..4), mode(), any::<bool>())
            .prop_map(|(w, all, m, waits)| Step::FirstFree(w, all, m, waits)),
        1 => who().prop_map(Step::Retry),
        1 => who().prop_map(Step::Renew),
        1 => (who(), 0..3).prop_map(|(w, priority)| Step::SetPriority(w, priority)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 100 } else { 20_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_schedules_are_the_oracles(
        priorities in prop::array::uniform4(0..2),
        bypass in 0..4_u32,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(priorities, bypass);
        for step in &steps {
            world.step(step);
        }
        world.wind_up();
    }
}

/// The schedules do reach deadlocks; otherwise the test above would show little.
#[test]
fn random_schedules_meet_deadlocks() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut deadlocks = 0;
    for _ in 0..50 {
        let steps = prop::collection::vec(step(), 120)
            .new_tree(&mut runner)
            .unwrap();
        let mut world = World::new([0; OWNERS], 0);
        steps.current().iter().for_each(|step| world.step(step));
        world.wind_up();
        deadlocks += world.deadlocks;
    }
    assert!(deadlocks > 20, "{deadlocks}");
}
