//! A task that waits while the log is called, or a subscriber.

#[cfg(feature = "tracing")]
#[allow(dead_code, reason = "the tests of events use all of it")]
#[path = "../../../tests/trace/recorder.rs"]
mod recorder;

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::thread::yield_now;

use crate::scheduler::current::{block, unblock};
use crate::scheduler::outcome::TaskId;
use crate::scheduler::shared::Shared;
use crate::scheduler::stall::{Stalls, Target};
use crate::scheduler::{Event, How, Scheduler};

#[cfg(feature = "tracing")]
use recorder::Recorder;

/// The task waits for one that is counted, and is placed when the call of the log has returned.
#[test]
fn nobody_is_stalled_while_the_log_is_called() {
    let there: Arc<OnceLock<Weak<Shared>>> = Arc::default();
    let known = Arc::clone(&there);
    let (go, may_go) = channel();
    let log = move |event: Event| {
        if matches!(&event, Event::Queued(task) if &*task.caller == "late") {
            go.send(()).unwrap();
            let shared = known.get().unwrap().upgrade().unwrap();
            while shared.lock().core.stalls.blocked(|_| false) == 0 {
                yield_now();
            }
        }
    };
    let scheduler = Scheduler::builder().workers(2).log(log).build().unwrap();
    there.set(Arc::downgrade(&scheduler.shared)).unwrap();
    let [caller, late] = ["early", "late"].map(|name| {
        let caller = scheduler.caller(name, Default::default());
        caller.unwrap()
    });
    let other = late.clone();
    let waits = caller.exec(move || {
        may_go.recv().unwrap();
        other.synchronize().wait()
    });
    late.exec(|| Ok::<_, ()>(())).unwrap().detach();
    let summary = waits.unwrap().outcome().wait().unwrap().verdict;
    assert_eq!(summary.ok().map(|summary| summary.ok), Some(1));
    scheduler.shutdown(How::Drain).wait().unwrap();
}

/// As of a subscriber that is told of a wait, and waits: the task is blocked once.
#[test]
fn a_wait_inside_of_another_counts_as_one() {
    let mut stalls = Stalls::default();
    let [outside, inside] = [1, 2].map(TaskId);
    for task in [outside, inside] {
        stalls.block(1, vec![Target::Task(task)], Waker::noop(), false);
        assert_eq!((stalls.len(), stalls.blocked(|_| false)), (1, 1));
    }
    stalls.ended(Target::Task(inside));
    assert!(stalls.is_empty() && stalls.give_up().is_none());
    assert!(!stalls.unblock(1) && stalls.is_blocked(1));
    assert!(stalls.give_up().is_some() && stalls.gives_up(1));
    assert!(stalls.unblock(1) && stalls.is_empty());
}

/// What the task waits for comes after its last look, and before it is blocked.
#[cfg(feature = "tracing")]
#[test]
fn what_has_come_meanwhile_is_no_wait() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let [caller, idle] = ["busy", "idle"].map(|name| {
        let caller = scheduler.caller(name, Default::default());
        caller.unwrap()
    });
    let idle = idle.0.key;
    let told = |target: Target| {
        let (shared, told) = (Arc::clone(&scheduler.shared), Recorder::default());
        let recorder = told.clone();
        let waits = move || {
            let _listens = recorder.listen();
            block(&shared, vec![target], Waker::noop(), || false);
            unblock(&shared);
            Ok::<_, ()>(())
        };
        caller.exec(waits).unwrap().outcome().wait().unwrap();
        told.events().len()
    };
    assert_eq!(told(Target::Synchronize(idle)), 0);
    assert_eq!(told(Target::Release(idle)), 0);
    assert_eq!(told(Target::Task(TaskId(99))), 1, "one that has not come");
    scheduler.shutdown(How::Drain).wait().unwrap();
}
