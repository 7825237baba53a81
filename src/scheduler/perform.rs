//! Running a task, and the waker of a future.

use std::task::{Wake, Waker};
use std::time::Duration;

use crate::slab::Key;
use crate::sync::{Arc, WakeArc};
use crate::wait::{WakeBatch, drop_quietly};

use super::bodies::Bodies;
use super::cell::{Progress, Runner};
use super::current::{as_task, wake_current, woke_itself};
use super::local_queue::{LocalQueue, Report, RunResult, Work, next};
use super::log::{Event, Record};
use super::outcome::{Ending, Run};
use super::shared::Shared;
use super::task_state::Started;

/// What a worker keeps from one task to the next.
#[derive(Default)]
pub(super) struct RunnerState {
    /// The waiter of its last task, to be woken once the end is noted.
    pub(super) to_wake: Option<Waker>,
    /// The last waker that it made, to be reused.
    last_waker: Option<WakeArc<TaskWaker>>,
    /// No clock is read for the task that it runs, or ran last.
    pub(super) late: bool,
    /// How many tasks it has run since its last claim.
    pub(super) ran: u32,
    /// Bodies to be reused.
    pub(super) bodies: Bodies,
}

/// Runs a task, and then those in the worker's local queue, and logs them. The log has a task's
/// record before the core knows its end. Returns the report of the last task: the one that failed,
/// since a failure may skip waiting tasks; or the one with none behind it.
///
/// For a task without a handle and without a log no clock is read: its end is its start.
#[inline]
pub(super) fn perform(
    shared: &Arc<Shared>,
    n: u32,
    first: Started<Work>,
    queue: &LocalQueue,
    kept: &mut RunnerState,
) -> Report {
    let mut job = first.job;
    let mut performance = Performance {
        shared,
        n,
        record: first.record,
        ran: Report::new(first.tag, first.start),
        kept,
    };
    loop {
        performance.perform(job);
        let Some((next, record)) = next(queue, &mut performance.ran) else {
            return performance.ran;
        };
        if let Some(waker) = performance.kept.to_wake.take() {
            drop(WakeBatch::from(Some(waker)));
        }
        (job, performance.record) = (next, record);
    }
}

struct Performance<'a> {
    shared: &'a Arc<Shared>,
    n: u32,
    record: Option<Box<Record>>,
    /// The report so far.
    ran: Report,
    kept: &'a mut RunnerState,
}

impl Performance<'_> {
    /// Runs one task, and writes its result to `ran`.
    #[inline]
    fn perform(&mut self, mut job: Work) {
        let key = self.ran.tag.key();
        let progress = match Arc::get_mut(&mut job) {
            Some(body) => {
                self.begin(self.record.is_some());
                as_task(key, || body.run_alone(self))
            }
            None => {
                self.begin(true);
                as_task(key, || job.run(self))
            }
        };
        match progress {
            Progress::Suspended => {
                self.ran.end = self.shared.origin.elapsed();
                self.ran.result = RunResult::Suspended(job, woke_itself());
            }
            Progress::Spent(of) => {
                self.ended(Ending::Ok);
                self.kept.bodies.put(of, job);
            }
            Progress::Ended(ending) => {
                // A result without a handle is dropped here, before the task is reported: if the
                // drop waits for the scheduler, this task waits.
                as_task(key, || drop_quietly(job));
                self.ran.result = RunResult::Ended(ending);
            }
        }
    }

    #[inline]
    fn begin(&mut self, timed: bool) {
        self.kept.ran += 1;
        let late = std::mem::replace(&mut self.kept.late, !timed);
        if !timed {
            return;
        }
        if late {
            self.ran.start = self.shared.origin.elapsed();
            self.ran.end = self.ran.start;
        }
        let (run, worker) = (self.run(), self.n);
        if let Some(record) = self.record.as_mut().filter(|record| record.run.is_none()) {
            record.run = Some(run);
            let (task, at) = (record.task.clone(), run.start);
            self.shared.log_event(Event::Started { task, worker, at });
        }
    }

    #[inline]
    fn run(&self) -> Run {
        let Report { start, end, .. } = self.ran;
        let worker = self.n;
        Run { worker, start, end }
    }
}

impl Runner for Performance<'_> {
    #[inline]
    fn ended(&mut self, ending: Ending) -> Run {
        // A failure may skip other tasks, which end at the same time.
        if !self.kept.late || ending.is_failure() {
            self.ran.end = self.shared.origin.elapsed();
        }
        let run = self.run();
        if !self.kept.late
            && let Some(mut record) = self.record.take()
        {
            record.run = Some(run);
            record.ended = run.end;
            record.ending = ending;
            self.shared.log_event(Event::Ended(*record));
        }
        run
    }

    fn to_wake(&mut self, waker: Option<Waker>) {
        self.kept.to_wake = waker;
    }

    fn start(&mut self) -> &mut Duration {
        &mut self.ran.start
    }

    fn waker(&mut self) -> Waker {
        let future = self.ran.tag.future.expect("only futures are woken");
        // Reuses the last waker if nobody keeps it.
        let mut waker = self.kept.last_waker.take();
        match waker.as_mut().and_then(WakeArc::get_mut) {
            Some(last) => last.future = future,
            None => {
                let shared = Arc::clone(self.shared);
                waker = Some(WakeArc::new(TaskWaker { shared, future }));
            }
        }
        let waker = self.kept.last_waker.insert(waker.expect("as above"));
        Waker::from(WakeArc::clone(waker))
    }
}

/// Wakes a future.
pub(super) struct TaskWaker {
    shared: Arc<Shared>,
    future: Key,
}

impl Wake for TaskWaker {
    fn wake(self: WakeArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &WakeArc<Self>) {
        let Self { shared, future } = &**self;
        if !wake_current(shared, *future) {
            let state = shared.lock();
            shared.with_locked(state, true, |state, _, _| _ = state.core.wake_task(*future));
        }
    }
}
