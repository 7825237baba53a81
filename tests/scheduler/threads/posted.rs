//! Tasks that are submitted while no worker need be woken for them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use conversant::scheduler::{Caller, CallerOptions, How, Place, Reason, Scheduler};

use crate::threads::stage::{Held, end, finishes, one_caller};

/// Whoever closes gives up waiting, while the only worker is busy.
fn refused_after(close: impl FnOnce(&Scheduler, &Caller) -> bool + Send + 'static) {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        assert!(close(&scheduler, &caller));
        let refused = caller.exec(|| Ok::<_, ()>(())).unwrap_err();
        assert_eq!(refused.reason, Reason::Closed);
        held.finish();
        end(&scheduler);
    });
}

#[test]
fn a_caller_that_is_released_refuses_them() {
    refused_after(|_, caller| {
        let release = caller.release(How::Drain);
        release.wait_timeout(Duration::ZERO).is_err()
    });
}

#[test]
fn a_scheduler_that_shuts_down_refuses_them() {
    refused_after(|scheduler, _| {
        let shutdown = scheduler.shutdown(How::Drain);
        shutdown.wait_timeout(Duration::ZERO).is_err()
    });
}

/// More than are posted at once: one by one, and in batches.
#[test]
fn they_start_in_order_however_many_they_are() {
    finishes(|| {
        let builder = Scheduler::builder().workers(1).claims(1);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let held = Held::start(&caller);
        let order = Arc::new(Mutex::new(Vec::new()));
        let task = |n: u64| {
            let order = Arc::clone(&order);
            move || order.lock().map(|mut order| order.push(n)).map_err(drop)
        };
        let mut ids = Vec::new();
        for batch in 0..40 {
            let numbers = batch * 100..batch * 100 + 100;
            let (singles, many) = numbers.clone().partition::<Vec<_>, _>(|n| n % 100 < 50);
            ids.extend(
                singles
                    .into_iter()
                    .map(|n| caller.exec(task(n)).unwrap().id().get()),
            );
            let many = caller.exec_all(Place::new(), many.into_iter().map(task));
            ids.extend(many.unwrap().iter().map(|task| task.id().get()));
        }
        assert!(ids.iter().copied().eq(2..4_002), "in order of submission");
        held.finish();
        assert_eq!(caller.synchronize().wait().unwrap().ok, 4_001);
        assert!(order.lock().unwrap().iter().copied().eq(0..4_000));
        end(&scheduler);
    });
}
