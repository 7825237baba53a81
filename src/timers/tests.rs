//! What is due, and in what order.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Timer, Timers};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn all_due<T>(timers: &mut Timers<T>) -> Vec<T> {
    std::iter::from_fn(|| timers.due()).map(|d| d.1).collect()
}

#[test]
fn by_time_and_then_in_the_order_they_were_set() {
    let mut timers = Timers::new();
    for (at, name) in [(5, "c"), (3, "a"), (5, "d"), (3, "b"), (7, "e")] {
        timers.set(s(at), name);
    }
    assert_eq!(timers.next(), Some(s(3)));
    timers.advance(s(5));
    assert_eq!(all_due(&mut timers), ["a", "b", "c", "d"]);
    assert_eq!((timers.next(), timers.len()), (Some(s(7)), 1));
}

#[test]
fn nothing_is_due_before_its_time() {
    let mut timers = Timers::new();
    timers.set(s(1), ());
    timers.advance(s(1) - Duration::from_nanos(1));
    assert_eq!(timers.due(), None);
    timers.advance(s(1));
    assert!(timers.due().is_some());
    assert!(timers.is_empty());
}

#[test]
fn the_clock_does_not_run_backwards() {
    let mut timers = Timers::new();
    timers.advance(s(9));
    timers.advance(s(2));
    assert_eq!(timers.now(), s(9));
    timers.set(s(4), "passed");
    assert_eq!(all_due(&mut timers), ["passed"]);
}

#[test]
fn what_a_handler_sets_for_now_is_due_now() {
    let mut timers = Timers::new();
    timers.set(s(1), 3);
    timers.advance(s(1));
    let mut seen = Vec::new();
    while let Some((_, left)) = timers.due() {
        seen.push(left);
        if left > 0 {
            timers.set_after(Duration::ZERO, left - 1);
        }
    }
    assert_eq!(seen, [3, 2, 1, 0]);
}

#[test]
fn a_time_beyond_all_is_never_due() {
    let mut timers = Timers::new();
    timers.advance(s(1));
    let timer = timers.set_after(Duration::MAX, ());
    assert_eq!(timer.at(), Duration::MAX);
    timers.advance(Duration::MAX - s(1));
    assert_eq!(timers.due(), None);
    assert_eq!(timers.cancel(timer), Some(()));
    assert_eq!(timers.cancel(timer), None);
}

/// One step: set a timer, cancel the n-th that was ever set, or advance the time.
#[derive(Clone, Debug)]
enum Step {
    Set(u64),
    Cancel(usize),
    Advance(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..20u64).prop_map(Step::Set),
        (0..20usize).prop_map(Step::Cancel),
        (0..20u64).prop_map(Step::Advance),
    ];
    vec(step, 0..60)
}

proptest! {
    #[test]
    fn agrees_with_a_list(steps in steps()) {
        let mut timers = Timers::new();
        let mut list: Vec<(u64, usize)> = Vec::new();
        let mut names: Vec<Timer> = Vec::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Set(at) => {
                    list.push((at, names.len()));
                    names.push(timers.set(s(at), names.len()));
                }
                Step::Cancel(n) => {
                    let Some(&name) = names.get(n) else { continue };
                    let listed = list.iter().position(|&(_, other)| other == n);
                    prop_assert_eq!(timers.cancel(name), listed.map(|at| list.remove(at).1));
                }
                Step::Advance(to) => {
                    now = now.max(to);
                    timers.advance(s(to));
                    let mut due: Vec<_> = list.extract_if(.., |&mut (at, _)| at <= now).collect();
                    due.sort_unstable();
                    let due: Vec<_> = due.into_iter().map(|(_, n)| n).collect();
                    prop_assert_eq!(all_due(&mut timers), due);
                }
            }
            prop_assert_eq!(timers.next(), list.iter().map(|&(at, _)| s(at)).min());
        }
    }
}
