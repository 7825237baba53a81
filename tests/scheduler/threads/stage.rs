//! Tasks that say that they have begun, and wait until the test lets them go on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, Place, Scheduler, Task};

pub(crate) use crate::finishes::finishes;

/// The result and the error of most tasks here.
pub(crate) type Job = Task<u64, String>;

pub(crate) fn scheduler(workers: u32) -> Scheduler {
    Scheduler::builder().workers(workers).build().unwrap()
}

/// A scheduler with one caller that has the default options.
pub(crate) fn one_caller(workers: u32) -> (Scheduler, Caller) {
    let scheduler = scheduler(workers);
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    (scheduler, caller)
}

pub(crate) fn capped(cap: u32) -> CallerOptions {
    CallerOptions {
        cap: Limit::AtMost(cap),
        ..CallerOptions::default()
    }
}

/// Submits a task that gives `n`.
pub(crate) fn gives(caller: &Caller, n: u64) -> Job {
    caller.exec(move || Ok::<_, String>(n)).unwrap()
}

/// A task that has begun, or will, and goes on when told.
pub(crate) struct Held {
    pub(crate) task: Job,
    began: Receiver<()>,
    pub(crate) go: Sender<()>,
}

impl Held {
    /// Submits it; it gives 0.
    pub(crate) fn submit(caller: &Caller, place: Place<'_>) -> Self {
        let (begins, began) = channel();
        let (go, may_go) = channel::<()>();
        let body = move || {
            begins.send(()).ok();
            // The test lets the task go on, or is over.
            may_go.recv().ok();
            Ok(0)
        };
        let task = caller.exec_with(place, body).unwrap();
        Self { task, began, go }
    }

    /// Submits it and waits until it runs.
    pub(crate) fn start(caller: &Caller) -> Self {
        let held = Self::submit(caller, Place::new());
        held.wait_began();
        held
    }

    pub(crate) fn wait_began(&self) {
        self.began.recv().expect("it begins");
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.began.try_recv().is_ok()
    }

    pub(crate) fn go(&self) {
        self.go.send(()).ok();
    }

    /// Lets it go and waits for its outcome.
    pub(crate) fn finish(mut self) {
        self.go();
        let outcome = self.task.outcome().wait().unwrap();
        assert!(matches!(
            outcome.verdict,
            conversant::scheduler::Verdict::Ok(0)
        ));
    }
}

/// Yields until `so` is true: other threads bring that about, and they need
/// no help.
pub(crate) fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        thread::yield_now();
    }
}

/// Waits until all workers rest, with nothing left to run.
pub(crate) fn until_idle(scheduler: &Scheduler) {
    until(|| {
        let workers = scheduler.workers();
        workers.idle == workers.live
    });
}

/// Shuts down and waits.
pub(crate) fn end(scheduler: &Scheduler) {
    let how = conversant::scheduler::How::Drain;
    scheduler.shutdown(how).wait().unwrap();
    let workers = scheduler.workers();
    assert_eq!((workers.live, workers.busy, workers.idle), (0, 0, 0));
}

pub(crate) fn shared<T>(value: T) -> (Arc<T>, Arc<T>) {
    let one = Arc::new(value);
    (Arc::clone(&one), one)
}

/// Random numbers below the given one; a seed gives the same numbers in every run.
pub(crate) fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut drawn = seed;
    move |below| {
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (drawn >> 33) % below
    }
}
