//! A task while a worker runs it, and what wakes it if that is a future.

use std::task::{Wake, Waker};
use std::time::Duration;

use crate::slab::Key;
use crate::sync::{Arc, WakeArc};
use crate::wait::{WakeBatch, drop_quietly};

use super::bodies::Bodies;
use super::cell::{Course, Job, Runner};
use super::current::{as_task, wake_current};
use super::local_queue::{LocalQueue, Ran, Went};
use super::log::{Event, Record};
use super::outcome::{Ending, Run};
use super::shared::Shared;
use super::task_state::{Started, Tag};

/// What a worker keeps from one task to the next.
#[derive(Default)]
pub(super) struct Kept {
    /// Whoever is to be woken for its last task, once that is noted.
    pub(super) told: Option<Waker>,
    /// The last waker that it made.
    spare: Option<WakeArc<TaskWaker>>,
    /// Nobody looked at the clock when its last task ended.
    pub(super) late: bool,
    /// How many tasks it has run since it claimed last.
    pub(super) ran: u32,
    /// Bodies that may be used again.
    pub(super) bodies: Bodies,
}

impl Kept {
    /// The end of the last task is noted.
    #[inline]
    pub(super) fn tell(&mut self) {
        if let Some(waker) = self.told.take() {
            drop(WakeBatch::from(Some(waker)));
        }
    }
}

/// Runs a task, and those that [join](LocalQueue::next_joined) it, and logs them. Who is told
/// of the end of one, once it is in the core, finds its row. What the last of them came to.
///
/// If nobody has a task's handle and nobody keeps a log, nobody wants to know when
/// it ran: then no clock is read, and it ends when it started.
pub(super) fn perform(
    shared: &Arc<Shared>,
    n: u32,
    started: Started<Arc<dyn Job>>,
    queue: Option<&LocalQueue>,
    kept: &mut Kept,
) -> Ran {
    let Started {
        tag,
        mut job,
        record,
        start,
    } = started;
    let mut performance = Performance {
        shared,
        tag,
        record,
        timed: false,
        run: Run {
            worker: n,
            start,
            end: start,
        },
        kept,
    };
    loop {
        let (course, woken) = performance.perform(&mut job);
        let went = match course {
            Course::Suspended => {
                performance.run.end = shared.origin.elapsed();
                Went::Suspended(job, woken)
            }
            Course::Spent => {
                performance.ended(Ending::Ok);
                performance.kept.bodies.put(job);
                Went::Ended(Ending::Ok)
            }
            Course::Ended(ending) => {
                // What nobody asks for goes here, while the task is not reported: where
                // that waits for its scheduler, this task waits.
                as_task(performance.tag, || drop_quietly(job));
                Went::Ended(ending)
            }
        };
        let is_plain = performance.tag.future.is_none();
        let plain = queue.filter(|_| is_plain && matches!(went, Went::Ended(Ending::Ok)));
        let end = performance.run.end;
        if let Some((id, group, next)) = plain.and_then(|queue| queue.next_joined(end)) {
            performance.kept.tell();
            performance.run.start = end;
            let tag = &mut performance.tag;
            (tag.id, tag.holds.group, job) = (id, group, next);
            continue;
        }
        let queue = queue.filter(|_| !went.has_failed());
        let mut ran = Ran::one(performance.tag, went, performance.run.start, end);
        let Some(next) = queue.and_then(|queue| queue.next_of_run(&mut ran)) else {
            return ran;
        };
        performance.kept.tell();
        performance.run.start = end;
        let tag = &mut performance.tag;
        (tag.id, tag.future, job) = (next.id(), next.future(), next.job);
    }
}

struct Performance<'a> {
    shared: &'a Arc<Shared>,
    tag: Tag,
    record: Option<Box<Record>>,
    timed: bool,
    run: Run,
    kept: &'a mut Kept,
}

impl Performance<'_> {
    /// Runs one; and whether it was woken by itself meanwhile.
    #[inline]
    fn perform(&mut self, job: &mut Arc<dyn Job>) -> (Course, bool) {
        let tag = self.tag;
        match Arc::get_mut(job) {
            Some(body) => {
                self.begin(self.record.is_some());
                as_task(tag, || body.run_alone(self))
            }
            None => {
                self.begin(true);
                as_task(tag, || job.run(self))
            }
        }
    }

    #[inline]
    fn begin(&mut self, timed: bool) {
        self.timed = timed;
        self.kept.ran += 1;
        if std::mem::replace(&mut self.kept.late, !timed) && timed {
            self.run.start = self.shared.origin.elapsed();
            self.run.end = self.run.start;
        }
        if let Some(record) = self.record.as_mut().filter(|record| record.run.is_none()) {
            record.run = Some(self.run);
            let (task, at) = (record.task.clone(), self.run.start);
            let worker = self.run.worker;
            self.shared.tell(Event::Started { task, worker, at });
        }
    }
}

impl Runner for Performance<'_> {
    #[inline]
    fn ended(&mut self, ending: Ending) -> Run {
        // A failure may skip others, which end now.
        if self.timed || ending.is_failure() {
            self.run.end = self.shared.origin.elapsed();
        }
        if let Some(mut record) = self.record.take() {
            record.run = Some(self.run);
            record.ended = self.run.end;
            record.ending = ending;
            self.shared.tell(Event::Ended(*record));
        }
        self.run
    }

    fn told(&mut self, waker: Option<Waker>) {
        self.kept.told = waker;
    }

    fn start(&mut self) -> &mut Duration {
        &mut self.run.start
    }

    fn waker(&mut self) -> Waker {
        let future = self.tag.future.expect("only futures are woken");
        // The last one, if nobody has kept it.
        let mut waker = self.kept.spare.take();
        match waker.as_mut().and_then(WakeArc::get_mut) {
            Some(last) => last.future = future,
            None => {
                let shared = Arc::clone(self.shared);
                waker = Some(WakeArc::new(TaskWaker { shared, future }));
            }
        }
        let waker = self.kept.spare.insert(waker.expect("as above"));
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
