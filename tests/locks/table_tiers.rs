//! The tier protocol on the lock table, exactly, and the same on the gate, in virtual time: S on
//! the tier while the task is received in order, then the receive is released, then IX on the tier
//! before it; then the task runs and releases both.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use conversant::lock_table::{LockError, LockTable};
use conversant::modes::Mode::{Ix, S};

#[allow(dead_code, reason = "what it prints with")]
#[path = "../../examples/tier_locks.rs"]
mod example;
mod world;

use world::{Clock, Protocol, Tier, World};

fn w10() -> Vec<(u32, u64)> {
    let tiers = [
        (100, 4, 10_100),
        (200, 2, 9_200),
        (300, 1, 8_300),
        (400, 2, 7_400),
        (500, 1, 6_500),
    ];
    let tasks = tiers
        .into_iter()
        .flat_map(|(tier, n, ms)| (0..n).map(move |_| (tier, ms)));
    tasks.collect()
}

#[test]
fn the_five_snapshots() {
    let world = World::new(&w10());
    let expected = [
        (
            5_000,
            "[1, 2, 3, 4] | IX0x4 S100x4 S200x1 | IX100x1 | [6, 7, 8, 9, 10] | 5",
        ),
        (
            15_000,
            "[5, 6] | IX100x2 S200x2 S300x1 S400x2 | IX200x1 IX300x2 | [10] | 5",
        ),
        (
            22_000,
            "[7] | IX200x1 S300x1 S400x2 S500x1 | IX300x2 IX400x1 | [] | 4",
        ),
        (30_000, "[8, 9] | IX300x2 S400x2 S500x1 | IX400x1 | [] | 3"),
        (38_000, "[10] | IX400x1 S500x1 |  | [] | 1"),
    ];
    let mut expected_left = expected.iter();
    let looks = expected.map(|(at, _)| at);
    let ended = world.run(Protocol::Locks, &[0; 5], &looks, |at| {
        let &(expected_at, snapshot) = expected_left.next().unwrap();
        assert_eq!((at, world.snapshot().as_str()), (expected_at, snapshot));
    });
    assert!(ended && expected_left.next().is_none());
    assert_eq!(world.makespan(), 41_500);
    assert!(world.in_order() && world.locks.is_empty());
}

#[test]
fn makespans_and_waves() {
    for protocol in [Protocol::Locks, Protocol::Gate] {
        for (readers, makespan) in [(5, 41_500), (4, 41_500), (3, 51_600), (1, 88_400)] {
            let world = World::new(&w10());
            assert!(world.run(protocol, &vec![0; readers], &[], |_| ()));
            assert_eq!(world.makespan(), makespan, "{readers} readers");
            assert!(world.in_order());
            let mut rows = world.rows.borrow().clone();
            rows.sort_unstable();
            if readers >= 4 {
                let waves = [0, 10_100, 19_300, 27_600, 35_000];
                let starts = rows.iter().map(|row| row.2);
                let tiers = rows.iter().map(|row| waves[row.1 as usize / 100 - 1]);
                assert!(starts.eq(tiers));
            }
            if readers == 3 {
                assert_eq!(rows[3], (4, 100, 10_100, 20_200));
                assert!(
                    rows[4..6]
                        .iter()
                        .all(|row| (row.2, row.3) == (20_200, 29_400))
                );
            }
        }
    }
}

/// S is taken in receive order whatever the readers' delays; released before S, order is by luck.
#[test]
fn the_receive_let_go_before_s_breaks_the_order() {
    let tasks = [(100, 50), (200, 50), (100, 50), (200, 50), (300, 50)];
    let mut broken = 0;
    for delays in (0..27u64).map(|n| [n % 3, n / 3 % 3, n / 9].map(|d| d * 7)) {
        let sorted = [tasks[0], tasks[2], tasks[1], tasks[3], tasks[4]];
        for protocol in [Protocol::Locks, Protocol::Gate] {
            let world = World::new(&sorted);
            assert!(world.run(protocol, &delays, &[], |_| ()));
            assert!(world.in_order(), "{delays:?}");
        }
        let world = World::new(&sorted);
        assert!(world.run(Protocol::ReleaseTooEarly, &delays, &[], |_| ()));
        broken += usize::from(!world.in_order());
    }
    assert!(broken > 0);
}

/// Fault: gating only on the immediate predecessor. The protocol has it, the gate does not.
#[test]
fn an_empty_tier_between() {
    for (protocol, in_order) in [(Protocol::Locks, false), (Protocol::Gate, true)] {
        let world = World::new(&[(100, 50), (300, 50)]);
        assert!(world.run(protocol, &[0; 2], &[], |_| ()));
        assert_eq!(world.in_order(), in_order);
    }
}

/// Fault: tier numbers used again in a second batch stalled all receives. The protocol has it: S on
/// 100 waits for the IX of the tier above while it holds the receive. Joining the gate never waits.
#[test]
fn tier_numbers_used_again() {
    let tasks = [(200, 50), (100, 10), (100, 10), (200, 10)];
    for (protocol, queued) in [(Protocol::Locks, 2), (Protocol::Gate, 0)] {
        let world = World::new(&tasks);
        let ended = world.run(protocol, &[0; 5], &[20], |_| {
            assert_eq!(world.queue.borrow().len(), queued);
        });
        assert!(ended);
        assert_eq!(world.rows.borrow().len(), 4);
    }
    // One drain, then the lower tier of the second batch, then its upper one.
    let world = World::new(&tasks);
    world.run(Protocol::Gate, &[0; 5], &[], |_| ());
    let starts: Vec<_> = world
        .rows
        .borrow()
        .iter()
        .map(|row| (row.0, row.2))
        .collect();
    assert_eq!(starts, [(1, 0), (2, 50), (3, 50), (4, 60)]);
}

/// Fault: return codes were ignored, so a deadlock victim ran ungated; and a tier that is its own
/// predecessor hung. Here one of two gets an error, and does not run.
#[test]
fn a_deadlock_victim_does_not_run() {
    let locks = LockTable::new();
    let ran = RefCell::new(Vec::new());
    let failed = RefCell::new(Vec::new());
    let clock = Clock::default();
    let both = Rc::new(Cell::new(0));
    let task = |n: u32| {
        let (locks, ran, failed, clock, both) = (&locks, &ran, &failed, &clock, both.clone());
        Box::pin(async move {
            let mut owner = locks.owner(0);
            let gated: Result<(), LockError<Tier>> = async {
                owner.lock(&Tier(7), S).await?;
                both.set(both.get() + 1);
                clock.sleep(1).await;
                owner.lock(&Tier(7), Ix).await
            }
            .await;
            match gated {
                Ok(()) => ran.borrow_mut().push(n),
                Err(error) => failed.borrow_mut().push((n, error)),
            }
        }) as Pin<Box<dyn Future<Output = ()>>>
    };
    // Alone, a tier that is its own predecessor is no deadlock: an owner is compatible with itself.
    assert!(clock.run(vec![task(0)], &[], |_| ()));
    assert_eq!(*ran.borrow(), [0]);
    assert!(clock.run(vec![task(1), task(2)], &[], |_| ()));
    let failed = failed.borrow();
    let [(2, LockError::Deadlock(deadlock))] = &failed[..] else {
        panic!("{failed:?}");
    };
    assert_eq!(deadlock.cycle.len(), 2);
    assert_eq!(*ran.borrow(), [0, 1]);
    assert!(locks.is_empty());
}

/// Fault: a crash freed the gate. The locks of a task belong to its owner, which the task's
/// supervisor keeps.
#[test]
fn a_crash_frees_nothing_while_its_owner_lives() {
    let locks = LockTable::new();
    let (mut first, mut second) = (locks.owner(0), locks.owner(0));
    first.lock(&Tier(100), S).wait().unwrap();
    let crash = std::panic::catch_unwind(|| panic!("a task"));
    assert!(crash.is_err());
    assert!(second.try_lock(&Tier(100), Ix).is_err());
    drop(first);
    assert!(second.try_lock(&Tier(100), Ix).is_ok());
}

/// The example, with tasks of no length: it checks itself that no task of a tier begins before the
/// last task of the tier before it has ended.
#[test]
fn the_example_with_real_threads() {
    for _ in 0..50 {
        assert_eq!(example::run(Duration::ZERO).len(), 10);
    }
}
