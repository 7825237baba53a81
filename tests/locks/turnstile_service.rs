//! One release serves every waiter that it lets go on, also more than are woken at a time: no
//! waiter depends on an earlier one to look or to release.

use crate::semaphore;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use conversant::intent::IntentLock;
use conversant::limit::Bypass;
use conversant::modes::Mode;

use semaphore::{PolledWait, WakeCounter, assert_idle, semaphore, take};

/// Several batches of wakers, and a part of one.
const MANY: u32 = 200;

/// Notified below the bound, handed over at it.
const ALL: [Bypass; 3] = [Bypass::AtMost(0), Bypass::AtMost(2), Bypass::Unbounded];

#[test]
fn a_release_of_permits_wakes_all_that_can_go_on() {
    for bypass in ALL {
        let semaphore = semaphore(MANY, bypass);
        let held = take(&semaphore, MANY);
        let waiters: Vec<_> = (0..=MANY)
            .map(|_| PolledWait::waiting(&semaphore, 1))
            .collect();
        drop(held);
        let woken = waiters.iter().filter(|one| one.wakes.count() == 1);
        assert_eq!(woken.count(), MANY as usize, "{bypass:?}");
        // A waiter that leaves lets the last one go on.
        let mut waiters = waiters;
        drop(waiters.remove(0));
        let permits = waiters.iter_mut().map(|one| one.woken().unwrap());
        assert_eq!(permits.collect::<Vec<_>>().len(), MANY as usize);
        drop(waiters);
        assert_idle(&semaphore, MANY);
    }
}

#[test]
fn a_limit_that_rises_and_one_that_leaves_wake_all() {
    for bypass in ALL {
        let semaphore = semaphore(MANY, bypass);
        let held = take(&semaphore, MANY);
        let waiters: Vec<_> = (0..MANY)
            .map(|_| PolledWait::waiting(&semaphore, 1))
            .collect();
        semaphore.set_limit(2 * MANY).unwrap();
        assert!(waiters.iter().all(|one| one.wakes.count() == 1));
        drop((waiters, held));
        assert_idle(&semaphore, 2 * MANY);
    }
    // Behind a large request that blocks all of them.
    let semaphore = semaphore(MANY, Bypass::AtMost(0));
    let held = take(&semaphore, 1);
    let large = PolledWait::waiting(&semaphore, MANY);
    let small: Vec<_> = (1..MANY)
        .map(|_| PolledWait::waiting(&semaphore, 1))
        .collect();
    drop(large);
    assert!(small.iter().all(|one| one.wakes.count() == 1));
    drop((small, held));
    assert_idle(&semaphore, MANY);
}

#[test]
fn the_end_of_an_exclusive_lock_wakes_all_that_share() {
    for bypass in ALL {
        let lock = IntentLock::new().with_bypass(bypass);
        let held = lock.lock(Mode::X).wait();
        let mut waiters = Vec::new();
        for _ in 0..MANY {
            let wakes = Arc::new(WakeCounter::default());
            let waker = Waker::from(wakes.clone());
            let mut wait = lock.lock(Mode::S);
            let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            waiters.push((wakes, wait));
        }
        drop(held);
        assert!(waiters.iter().all(|(wakes, _)| wakes.count() == 1));
    }
}
