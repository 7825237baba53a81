//! The parts of a scheduler, tested without threads but in `first` and `scope`. In this file:
//! what shows only where a worker cannot be started beside one that rests.

mod after;
mod bodies;
mod endings;
mod first;
mod late;
mod later;
mod lent;
mod log;
mod pace;
mod prefetch;
mod random;
mod random_steps;
mod runs;
mod scope;
mod suspended;
mod tokens;
mod woken;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::time::Duration;

use crate::limit::Bypass;
use crate::slab::Key;
use crate::wait::WakeBatch;

use super::caller::CallerOptions;
use super::cell::Job;
use super::core::Core;
use super::local_queue::Work;
use super::outcome::{Ending, TaskId};
use super::posting::Posted;
use super::task_state::{Body, Kind, Placing, Waiting};

impl Body for () {}
impl Body for u32 {}
impl Body for &str {}

/// A task that was submitted at the beginning.
fn waiting(id: u64, named: bool, job: Arc<dyn Job>) -> Waiting<Arc<dyn Job>> {
    let kind = Kind::new(named, job.is_future(), job.label().is_some());
    Waiting::new(TaskId(id), kind, 0, job)
}

/// Several posted tasks.
fn posted(caller: Key, placing: Placing, run: Vec<Option<Waiting<Work>>>) -> Posted {
    Posted {
        caller,
        placing,
        one: None,
        kinds: run.iter().flatten().fold(Kind::default(), Kind::or),
        run,
    }
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn if_a_worker_cannot_be_started_one_that_rests_takes_its_work() {
    let now = Duration::ZERO;
    let mut core: Core<()> = Core::new(2, Bypass::default()).unwrap();
    let name = Arc::from("main");
    let caller = core.add_caller(name, &CallerOptions::default());
    let caller = caller.unwrap();
    let mut wakes = WakeBatch::new();
    let submit = |core: &mut Core<()>, wakes: &mut WakeBatch| {
        core.submit(caller, Placing::default(), (), now);
        assert!(core.decide(wakes));
    };
    submit(&mut core, &mut wakes);
    assert_eq!(core.todo.to_start, [1]);
    let first = core.claim(1, now).unwrap();
    submit(&mut core, &mut wakes);
    assert_eq!(core.todo.to_start, [1, 2], "the second is on its way");
    core.finish(1, first.tag, Ending::Ok, now, &mut wakes);
    let second = core.claim(1, now).unwrap();
    core.finish(1, second.tag, Ending::Ok, now, &mut wakes);
    assert!(core.claim(1, now).is_none());
    let woken = Arc::new(Woken::default());
    core.rest(1, Some(Waker::from(Arc::clone(&woken))));
    submit(&mut core, &mut wakes);
    wakes.fire();
    assert_eq!(woken.0.load(SeqCst), 0, "one is coming");
    core.start_failed(2, now);
    assert!(core.decide(&mut wakes));
    assert_eq!(core.todo.to_start, [1, 2], "it is not requested again");
    wakes.fire();
    assert_eq!(woken.0.load(SeqCst), 1);
    assert!(core.claim(1, now).is_some());
}

#[test]
fn a_start_that_fails_above_the_maximum_hinders_no_other() {
    let now = Duration::ZERO;
    let mut core: Core<()> = Core::new(2, Bypass::default()).unwrap();
    let caller = core.add_caller(Arc::from("main"), &CallerOptions::default());
    let caller = caller.unwrap();
    let mut wakes = WakeBatch::new();
    for _ in 0..2 {
        core.submit(caller, Placing::default(), (), now);
        assert!(core.decide(&mut wakes));
    }
    let first = core.claim(1, now).unwrap();
    core.workers.set_max(1).unwrap();
    core.start_failed(2, now);
    assert!(core.decide(&mut wakes));
    // The worker leaves beside work, as if it had panicked.
    core.finish(1, first.tag, Ending::Ok, now, &mut wakes);
    core.retire(1);
    assert!(core.decide(&mut wakes));
    assert_eq!(core.todo.to_start, [1, 2, 1]);
}

/// Their slots are used again, and out of order.
#[test]
fn waiting_tasks_are_found_by_number_oldest_first() {
    let now = Duration::ZERO;
    let mut core: Core<u32> = Core::new(1, Bypass::default()).unwrap();
    let add = |core: &mut Core<u32>| {
        core.add_caller(Arc::from("one"), &CallerOptions::default())
            .unwrap()
    };
    let (caller, other) = (add(&mut core), add(&mut core));
    let submit = |core: &mut Core<u32>, caller| core.submit(caller, Placing::default(), 0, now);
    let old: Vec<_> = (0..6).map(|_| submit(&mut core, caller)).collect();
    for &task in &old[1..4] {
        assert!(core.cancel(task, now));
    }
    submit(&mut core, other);
    let new = submit(&mut core, caller);
    let last = core.last;
    submit(&mut core, caller);
    let waiting = core.find_waiting(Some(caller), |task, _| task.id() <= last);
    assert_eq!(waiting, [old[0], old[4], old[5], new]);
}
