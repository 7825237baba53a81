//! The semaphore compared with a naive one that is a list and a few loops, over random programs:
//! results, state, queue, marks and wake-ups agree after every step.

use crate::semaphore;

use std::task::Poll;

use conversant::limit::Bypass;
use conversant::semaphore::AcquireError;
use conversant::wait::WaiterState;
use proptest::prelude::*;

mod naive;

use naive::{Naive, State, Waiter};
use semaphore::{Borrowed, PolledWait, semaphore};

#[derive(Clone, Debug)]
enum Step {
    Try(u32),
    Acquire(u32),
    Poll(usize),
    Cancel(usize),
    Release(usize),
    Split(usize, u32),
    Merge(usize, usize),
    Forget(usize),
    SetLimit(u32),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..5u32).prop_map(Step::Try),
        8 => (0..6u32).prop_map(Step::Acquire),
        8 => (0..6usize).prop_map(Step::Poll),
        4 => (0..6usize).prop_map(Step::Cancel),
        9 => (0..6usize).prop_map(Step::Release),
        2 => (0..6usize, 0..4u32).prop_map(|(i, n)| Step::Split(i, n)),
        2 => (0..6usize, 0..6usize).prop_map(|(i, j)| Step::Merge(i, j)),
        1 => (0..6usize).prop_map(Step::Forget),
        3 => (0..7u32).prop_map(Step::SetLimit),
    ]
}

fn program() -> impl Strategy<Value = Vec<Step>> {
    let steps = prop::collection::vec(step(), 0..60);
    (steps, prop::option::weighted(0.3, 0..60usize)).prop_map(|(mut steps, close)| {
        if let Some(at) = close {
            steps.insert(at.min(steps.len()), Step::Close);
        }
        steps
    })
}

fn bypass() -> impl Strategy<Value = Bypass> {
    prop_oneof![
        3 => (0..4u32).prop_map(Bypass::AtMost),
        1 => Just(Bypass::Unbounded),
    ]
}

fn run(limit: u32, bypass: Bypass, program: Vec<Step>) {
    let real = semaphore(limit, bypass);
    let mut naive = Naive {
        limit: i64::from(limit),
        out: 0,
        closed: false,
        overtakings: 0,
        bypass,
        all: Vec::new(),
        wakes: Vec::new(),
    };
    let mut waits: Vec<(usize, PolledWait<'_>)> = Vec::new();
    let mut permits: Vec<Borrowed<'_>> = Vec::new();
    let mut counters = Vec::new();
    for step in program {
        match step {
            Step::Try(n) => {
                let expected = naive.try_acquire(n);
                let permit = real.try_acquire(n);
                assert_eq!(permit.as_ref().err(), expected.as_ref().err());
                permits.extend(permit);
            }
            Step::Acquire(n) => {
                let mut polled = PolledWait::new(&real, n);
                let id = naive.wakes.len();
                naive.wakes.push(0);
                counters.push(polled.wakes.clone());
                match (naive.try_acquire(n), polled.poll()) {
                    (Ok(()), Poll::Ready(Ok(permit))) => permits.push(permit),
                    (Err(expected), Poll::Ready(Err(error))) => {
                        assert_eq!(error, expected);
                    }
                    (Err(AcquireError::NoPermits), Poll::Pending) => {
                        naive.all.push(Waiter {
                            id,
                            count: n,
                            state: State::In(WaiterState::Waiting),
                            overtaken: 0,
                            grants: 0,
                        });
                        waits.push((id, polled));
                    }
                    (expected, _) => panic!("expected {expected:?}"),
                }
            }
            Step::Poll(i) if i < waits.len() => {
                let (id, polled) = &mut waits[i];
                match (naive.look(*id), polled.poll()) {
                    (None, Poll::Pending) => {}
                    (Some(expected), Poll::Ready(outcome)) => {
                        assert_eq!(outcome.as_ref().map(|_| ()).map_err(|e| *e), expected);
                        permits.extend(outcome);
                        waits.remove(i);
                    }
                    (expected, _) => panic!("expected {expected:?}"),
                }
            }
            Step::Cancel(i) if i < waits.len() => {
                let (id, polled) = waits.remove(i);
                drop(polled);
                let gone = naive.all.iter().position(|w| w.id == id);
                let gone = naive.all.remove(gone.expect("it has not looked"));
                // A refused wait leaves nothing to others.
                if matches!(gone.state, State::In(_)) {
                    naive.serve();
                }
            }
            Step::Release(i) if i < permits.len() => {
                naive.out -= i64::from(permits[i].count());
                let empty = permits[i].count() == 0;
                drop(permits.remove(i));
                if !empty {
                    naive.serve();
                }
            }
            Step::Split(i, n) if i < permits.len() => {
                let enough = permits[i].count() >= n;
                let part = permits[i].split(n);
                assert_eq!(part.is_some(), enough);
                permits.extend(part);
            }
            Step::Merge(i, j) if i < permits.len() && j < permits.len() && i != j => {
                let other = permits.remove(j);
                let i = if j < i { i - 1 } else { i };
                permits[i].merge(other).unwrap();
            }
            Step::Forget(i) if i < permits.len() => {
                let permit = permits.remove(i);
                let n = i64::from(permit.count());
                permit.forget();
                naive.out -= n;
                naive.set_limit((naive.limit - n).max(0));
            }
            Step::SetLimit(n) => {
                real.set_limit(n).unwrap();
                naive.set_limit(i64::from(n));
            }
            Step::Close => {
                real.close();
                naive.closed = true;
                naive.refuse_waiters(AcquireError::Closed, |_| true);
                naive.serve();
            }
            _ => continue,
        }
        compare(&real, &naive, &counters);
        let held: i64 = permits.iter().map(|p| i64::from(p.count())).sum();
        assert_eq!(held, naive.out);
    }
    drop(waits);
    drop(permits);
    semaphore::assert_idle(&real, real.snapshot().limit);
}

fn compare(
    real: &conversant::semaphore::Semaphore,
    naive: &Naive,
    counters: &[std::sync::Arc<semaphore::WakeCounter>],
) {
    let snapshot = real.snapshot();
    assert_eq!(i64::from(snapshot.limit), naive.limit);
    assert_eq!(snapshot.available, naive.available());
    assert_eq!(snapshot.closed, naive.closed);
    assert_eq!(snapshot.overtakings, naive.overtakings);
    let found: Vec<_> = snapshot
        .waiters
        .iter()
        .map(|w| (w.count, State::In(w.state)))
        .collect();
    let refused = |w: &&Waiter| !matches!(w.state, State::Refused(_));
    let expected: Vec<_> = naive
        .all
        .iter()
        .filter(refused)
        .map(|w| (w.count, w.state))
        .collect();
    assert_eq!(found, expected);
    let wakes: Vec<_> = counters.iter().map(|wakes| wakes.count()).collect();
    assert_eq!(wakes, naive.wakes);
    // Every waiter that can go on has been notified.
    let mut asked = 0;
    for w in naive.queued() {
        asked += i64::from(w.count);
        if asked <= snapshot.available {
            assert_eq!(w.state, State::In(WaiterState::Notified), "{snapshot:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn agrees_with_a_list(limit in 0..6u32, bypass in bypass(), program in program()) {
        run(limit, bypass, program);
    }
}
