//! Which tokens are known, and which are told.

use crate::scheduler::outcome::TaskId;
use crate::scheduler::tokens::Tokens;
use crate::slab::{Key, Slab};

fn callers() -> (Key, Key) {
    let mut slab = Slab::new();
    (slab.insert(()), slab.insert(()))
}

#[test]
fn of_each_worker_the_last_task_that_asked_is_known() {
    let (caller, _) = callers();
    let mut tokens = Tokens::default();
    let _future = tokens.add(TaskId(9), caller, None, false);
    for n in 1..=8 {
        let _token = tokens.add(TaskId(n), caller, Some(n as u32 % 2), false);
    }
    let known = (1..=9).filter(|&n| tokens.get(TaskId(n)).is_some());
    assert_eq!(known.collect::<Vec<_>>(), [7, 8, 9]);
    (7..=9).for_each(|n| tokens.end(TaskId(n)));
    assert!(tokens.is_empty());
}

#[test]
fn those_are_told_that_run_and_are_meant() {
    let (caller, other) = callers();
    let mut tokens = Tokens::default();
    let mut add = |n: u64, of, worker| tokens.add(TaskId(n), of, worker, false);
    let runs = add(1, caller, Some(1));
    let ran = add(2, caller, Some(2));
    let awaits = add(3, caller, None);
    let of_other = add(4, other, None);
    let later = add(5, caller, None);
    tokens.cancel_all(TaskId(4), Some(caller), |n, task| (n, task.0) == (1, 1));
    let told = [&runs, &ran, &awaits, &of_other, &later].map(|token| token.is_cancelled());
    assert_eq!(told, [true, false, true, false, false]);
    tokens.cancel_all(TaskId(5), None, |_, _| false);
    assert!(of_other.is_cancelled() && later.is_cancelled() && !ran.is_cancelled());
}
