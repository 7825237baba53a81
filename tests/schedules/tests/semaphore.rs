//! A semaphore under random schedules: requests of one and of several, a limit that falls and
//! rises, and a close.

use std::sync::Arc;

use conversant_schedules::limit::Bypass;
use conversant_schedules::semaphore::{AcquireError, Semaphore};
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;

use crate::schedules;

/// Acquires `count` permits, twice; never more are in use than the highest limit.
fn take(semaphore: &Semaphore, used: &AtomicU32, count: u32) {
    for _ in 0..2 {
        match semaphore.acquire(count).wait() {
            Ok(permit) => {
                let before = used.fetch_add(count, Ordering::SeqCst);
                assert!(before + count <= 3, "{before} and {count}");
                thread::yield_now();
                used.fetch_sub(count, Ordering::SeqCst);
                drop(permit);
            }
            Err(AcquireError::AboveLimit) => assert!(count > 1),
            Err(closed) => panic!("{closed}"),
        }
    }
}

#[test]
fn takers_against_a_changing_limit() {
    schedules::explore(|| {
        let semaphore = Semaphore::new(3).unwrap();
        let semaphore = Arc::new(semaphore.with_bypass(Bypass::AtMost(1)));
        let used = Arc::new(AtomicU32::new(0));
        let taking = [1, 2, 3].map(|count| {
            let (semaphore, used) = (semaphore.clone(), used.clone());
            thread::spawn(move || take(&semaphore, &used, count))
        });
        for limit in [1, 2, 3] {
            semaphore.set_limit(limit).unwrap();
        }
        schedules::join(taking);
        assert_eq!(semaphore.available(), 3);
        assert_eq!(semaphore.snapshot().waiters.len(), 0);
    });
}

#[test]
fn close_against_waiters() {
    schedules::explore(|| {
        let semaphore = Arc::new(Semaphore::new(1).unwrap());
        let taking = [(), (), ()].map(|()| {
            let semaphore = semaphore.clone();
            thread::spawn(move || drop(semaphore.acquire(1).wait()))
        });
        semaphore.close();
        schedules::join(taking);
        assert_eq!(semaphore.available(), 1);
    });
}
