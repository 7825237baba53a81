//! A task while a worker runs it, and what wakes it if that is a future.

use std::task::{Wake, Waker};
use std::time::Duration;

use crate::slab::Key;
use crate::sync::{Arc, WakeArc};
use crate::wait::{WakeBatch, drop_quietly};

use super::bodies::Bodies;
use super::cell::{Progress, Runner};
use super::current::{as_task, wake_current};
use super::local_queue::{Report, RunResult, Work};
use super::log::{Event, Record};
use super::outcome::{Ending, Run};
use super::shared::Shared;
use super::state::Taken;

/// What a worker keeps from one task to the next.
#[derive(Default)]
pub(super) struct RunnerState {
    /// Whoever is to be woken for its last task, once that is noted.
    pub(super) to_wake: Option<Waker>,
    /// The last waker that it made.
    last_waker: Option<WakeArc<TaskWaker>>,
    /// Nobody looked at the clock when its last task ended.
    pub(super) late: bool,
    /// How many tasks it has run since it claimed last.
    pub(super) ran: u32,
    /// Bodies that may be used again.
    pub(super) bodies: Bodies,
}

impl RunnerState {
    /// The end of the last task is noted.
    #[inline]
    pub(super) fn tell(&mut self) {
        if let Some(waker) = self.to_wake.take() {
            drop(WakeBatch::from(Some(waker)));
        }
    }
}

/// Runs a task, and those that wait in the worker's queue, and logs them. Who is told
/// of the end of one, once it is in the core, finds its row. What the last of them came to:
/// one that failed, for failures may skip those that wait; or there is none behind it.
///
/// If nobody has a task's handle and nobody keeps a log, nobody wants to know when
/// it ran: then no clock is read, and it ends when it started.
#[inline]
pub(super) fn perform(
    shared: &Arc<Shared>,
    n: u32,
    taken: Taken,
    kept: &mut RunnerState,
) -> Report {
    let Taken { first, queue } = taken;
    let mut job = first.job;
    let mut performance = Performance {
        shared,
        n,
        record: first.record,
        timed: false,
        ran: Report::new(first.tag, first.start),
        kept,
    };
    loop {
        performance.perform(job);
        let next = queue
            .as_ref()
            .and_then(|queue| queue.next(&mut performance.ran));
        let Some((next, record)) = next else {
            return performance.ran;
        };
        performance.kept.tell();
        (job, performance.record) = (next, record);
    }
}

struct Performance<'a> {
    shared: &'a Arc<Shared>,
    n: u32,
    record: Option<Box<Record>>,
    timed: bool,
    /// What comes of it.
    ran: Report,
    kept: &'a mut RunnerState,
}

impl Performance<'_> {
    /// Runs one: what came of it is in `ran`, where nothing has come of any yet.
    #[inline]
    fn perform(&mut self, mut job: Work) {
        let tag = self.ran.tag;
        let (progress, woken) = match Arc::get_mut(&mut job) {
            Some(body) => {
                self.begin(self.record.is_some());
                as_task(tag, || body.run_alone(self))
            }
            None => {
                self.begin(true);
                as_task(tag, || job.run(self))
            }
        };
        match progress {
            Progress::Suspended => {
                self.ran.end = self.shared.origin.elapsed();
                self.ran.result = RunResult::Suspended(job, woken);
            }
            Progress::Spent(of) => {
                self.ended(Ending::Ok);
                self.kept.bodies.put(of, job);
            }
            Progress::Ended(ending) => {
                // What nobody asks for goes here, while the task is not reported: where
                // that waits for its scheduler, this task waits.
                as_task(tag, || drop_quietly(job));
                self.ran.result = RunResult::Ended(ending);
            }
        }
    }

    #[inline]
    fn begin(&mut self, timed: bool) {
        self.timed = timed;
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
            self.shared.tell(Event::Started { task, worker, at });
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
        // A failure may skip others, which end now.
        if self.timed || ending.is_failure() {
            self.ran.end = self.shared.origin.elapsed();
        }
        let run = self.run();
        if self.timed
            && let Some(mut record) = self.record.take()
        {
            record.run = Some(run);
            record.ended = run.end;
            record.ending = ending;
            self.shared.tell(Event::Ended(*record));
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
        // The last one, if nobody has kept it.
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

/// What a future's waker is made of.
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
            let state = shared.state.lock();
            shared.with_locked(state, true, |state, _, _| _ = state.core.wake_task(*future));
        }
    }
}
