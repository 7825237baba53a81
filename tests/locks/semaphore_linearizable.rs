//! Histories of a semaphore under real threads, compared with a count.

use crate::histories;

use std::sync::Arc;

use conversant::limit::Bypass;
use conversant::semaphore::{AcquireError, Semaphore};
use histories::{Log, in_turn, is_linearizable, run};
use todc_utils::specifications::Specification;

const LIMIT: u32 = 2;

#[derive(Clone, Debug)]
enum Operation {
    /// This many permits were granted.
    Acquire(u32),
    /// Asked for this many; whether they were granted.
    Try(u32, bool),
    Release(u32),
    SetLimit(u32),
    /// Read this number of available permits.
    Available(i64),
}

/// The limit, and the available permits: negative in debt. Overtaking is unbounded, so a try fails
/// only for lack of permits.
struct Count;

impl Specification for Count {
    type State = (u32, i64);
    type Operation = Operation;

    fn init() -> (u32, i64) {
        (LIMIT, LIMIT.into())
    }

    fn apply(operation: &Operation, &(limit, free): &(u32, i64)) -> (bool, (u32, i64)) {
        match *operation {
            Operation::Acquire(n) | Operation::Try(n, true) => {
                let left = free - i64::from(n);
                (left >= 0 && n <= limit, (limit, left))
            }
            Operation::Try(n, false) => (free < n.into(), (limit, free)),
            Operation::Release(n) => (true, (limit, free + i64::from(n))),
            Operation::SetLimit(new) => {
                let change = i64::from(new) - i64::from(limit);
                (true, (new, free + change))
            }
            Operation::Available(seen) => (seen == free, (limit, free)),
        }
    }
}

fn one_by_one(semaphore: &Semaphore, log: &mut Log<Operation>) {
    for round in 0..10 {
        let permit = log.record(|| semaphore.acquire(1).wait(), |_| Operation::Acquire(1));
        if round % 3 == 0 {
            log.record(|| semaphore.available(), |&seen| Operation::Available(seen));
        }
        let permit = permit.expect("1 is never above the limit");
        log.record(|| drop(permit), |()| Operation::Release(1));
    }
}

fn trying(semaphore: &Semaphore, log: &mut Log<Operation>) {
    for _ in 0..10 {
        let tried = log.record(
            || semaphore.try_acquire(2),
            |tried| Operation::Try(2, tried.is_ok()),
        );
        match tried {
            Ok(permit) => log.record(|| drop(permit), |()| Operation::Release(2)),
            Err(AcquireError::NoPermits | AcquireError::AboveLimit) => {}
            Err(AcquireError::Closed) => panic!("nobody closes it"),
        }
    }
}

fn lowering(semaphore: &Semaphore, log: &mut Log<Operation>) {
    for limit in [1, 3, 2, 1, 2] {
        let set = || semaphore.set_limit(limit).expect("in range");
        log.record(set, |()| Operation::SetLimit(limit));
    }
}

type Script = Box<dyn FnOnce(&mut Log<Operation>) + Send>;

#[test]
fn histories_of_three_threads() {
    for _ in 0..1_000 {
        let semaphore = Semaphore::new(LIMIT).expect("in range");
        let semaphore = Arc::new(semaphore.with_bypass(Bypass::Unbounded));
        let script = |does: fn(&Semaphore, &mut Log<Operation>)| -> Script {
            let semaphore = semaphore.clone();
            Box::new(move |log| does(&semaphore, log))
        };
        let history = run(vec![script(one_by_one), script(trying), script(lowering)]);
        assert!(is_linearizable::<Count>(history.clone()), "{history:?}");
    }
}

/// The check rejects wrong histories.
#[test]
fn wrong_histories_are_rejected() {
    use Operation::{Acquire, Available, Release, SetLimit, Try};
    let wrong: [&[(usize, Operation)]; 5] = [
        // More than there are.
        &[(0, Acquire(2)), (1, Acquire(1))],
        // Not everything came back.
        &[(0, Try(2, true)), (0, Release(1)), (1, Try(2, true))],
        // A try fails while permits are free.
        &[(0, Acquire(1)), (1, Try(1, false))],
        // A debt is not paid first.
        &[
            (0, Acquire(2)),
            (1, SetLimit(1)),
            (0, Release(1)),
            (1, Acquire(1)),
        ],
        &[(0, SetLimit(3)), (1, Available(2))],
    ];
    for operations in wrong {
        assert!(
            !is_linearizable::<Count>(in_turn(operations)),
            "{operations:?}"
        );
    }
}
