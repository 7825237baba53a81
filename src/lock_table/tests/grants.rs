//! The grants of one hold against a list from which only a savepoint takes entries out.

use proptest::prelude::*;

use super::super::grants::Grants;
use super::Mode;

#[derive(Clone, Debug)]
enum Step {
    Savepoint,
    Push(Mode, u64),
    Pop,
    Cap(Mode),
    /// Goes back by so many epochs.
    Cut(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let mode = || prop::sample::select(Mode::ALL.to_vec());
    prop_oneof![
        4 => Just(Step::Savepoint),
        6 => (mode(), 1..3u64).prop_map(|(mode, count)| Step::Push(mode, count)),
        6 => Just(Step::Pop),
        1 => mode().prop_map(Step::Cap),
        1 => (0..6u64).prop_map(Step::Cut),
    ]
}

/// For each: the epoch, the number of grants, and the mode after them.
type Entries = Vec<(u64, u64, Mode)>;

fn sum(all: &Entries) -> u64 {
    all.iter().map(|(_, count, _)| count).sum()
}

fn apply(all: &mut Entries, epoch: u64, step: &Step) {
    let held = all.last().map(|(.., mode)| *mode);
    match *step {
        Step::Savepoint => {}
        Step::Push(mode, count) => {
            all.push((epoch, count, held.map_or(mode, |held| held.join(mode))));
        }
        Step::Pop => {
            if let Some(entry) = all.iter_mut().rfind(|entry| entry.1 > 0) {
                entry.1 -= 1;
            }
        }
        Step::Cap(mode) => all.iter_mut().for_each(|e| e.2 = e.2.meet(mode)),
        Step::Cut(back) => all.retain(|entry| entry.0 + back < epoch),
    }
    if sum(all) == 0 {
        all.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 300 } else { 20_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn grants_are_what_the_whole_list_says(steps in prop::collection::vec(step(), 1..60)) {
        let (mut grants, mut all, mut epoch) = (Grants::default(), Entries::new(), 1);
        for step in &steps {
            match *step {
                Step::Savepoint => epoch += 1,
                Step::Push(mode, count) => {
                    let first = grants.push(epoch, mode, count);
                    prop_assert!(grants.has(epoch));
                    prop_assert!(first || all.iter().any(|entry| entry.0 == epoch));
                }
                Step::Pop => grants.pop(),
                Step::Cap(mode) => grants.cap(mode),
                Step::Cut(back) => grants.cut(epoch.saturating_sub(back)),
            }
            apply(&mut all, epoch, step);
            prop_assert_eq!(grants.count(), sum(&all));
            prop_assert_eq!(grants.mode(), all.last().map(|(.., mode)| *mode));
            let mut granted: Vec<u64> = all.iter().filter(|e| e.1 > 0).map(|e| e.0).collect();
            granted.dedup();
            prop_assert!(granted.iter().all(|&epoch| grants.has(epoch)));
            prop_assert!(grants.earlier() < granted.len() + Mode::ALL.len());
        }
    }
}
