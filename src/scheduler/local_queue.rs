//! The local queue of a worker: the tasks of its claim that have run, the one that runs, and those
//! that wait.
//!
//! Only the worker starts tasks of it. A thread that holds the state's lock may take all of them
//! away; the worker finds out when it asks for the next.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::sync::{Arc, Mutex};

use super::cell::Job;
use super::log::Record;
use super::outcome::Ending;
use super::task_state::{Body, Claimed, Running, Started, Tag};

pub(super) type Work = Arc<dyn Job>;

/// What the core does not know yet: a task that has run, or several of one claim that ended as `Ok`
/// one after the other.
pub(super) struct Report {
    /// Of the first task.
    pub(super) tag: Tag,
    pub(super) tasks: u32,
    /// How many groups became [free](Local::groups).
    pub(super) groups: u32,
    pub(super) result: RunResult,
    pub(super) start: Duration,
    pub(super) end: Duration,
}

impl Report {
    /// Of one task, which is about to begin.
    #[inline]
    pub(super) fn new(tag: Tag, start: Duration) -> Self {
        Self {
            tag,
            tasks: 1,
            groups: 0,
            result: RunResult::Ended(Ending::Ok),
            start,
            end: start,
        }
    }

    /// Whether other tasks may be counted with it.
    #[inline]
    fn is_plain(&self) -> bool {
        self.tag.future.is_none() && matches!(self.result, RunResult::Ended(Ending::Ok))
    }
}

/// The result of a run.
pub(super) enum RunResult {
    Ended(Ending),
    /// The future is pending; true if it woke itself.
    Suspended(Work, bool),
}

impl RunResult {
    /// Whether the task failed: that is reported at once, since it may skip other tasks.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Self::Ended(ending) if ending.is_failure())
    }
}

#[derive(Default)]
pub(super) struct Local {
    /// The tasks that have run.
    pub(super) past: Vec<Report>,
    /// The running task is of the same claim as the last of `past`, which is plain.
    joins: bool,
    /// The groups that became free, in the order of `past`.
    pub(super) groups: Vec<GroupKey>,
    /// The task that started last.
    pub(super) running: Option<Running>,
    pub(super) waiting: VecDeque<Claimed<Work>>,
}

/// A local queue behind its lock.
pub(super) type LocalQueue = Mutex<Local>;

/// A task to run, with its record if there is a log.
type ToRun = (Work, Option<Box<Record>>);

/// The worker's next task, if there is one: see [`Local::go_on`]. It starts when the last one
/// ended.
#[inline]
pub(super) fn next(queue: &LocalQueue, ran: &mut Report) -> Option<ToRun> {
    if ran.result.has_failed() {
        return None;
    }
    let local = &mut *queue.lock();
    if local.waiting.is_empty() {
        return None;
    }
    let now = ran.end;
    local.go_on(ran, now)
}

impl Local {
    /// Takes the next waiting task: see [`Claimed::pop`].
    #[inline(always)]
    fn pop(&mut self, now: Duration) -> Option<(Started<Work>, bool, bool)> {
        let first = self.waiting.front_mut()?;
        let next = first.pop(now);
        if first.len() == 0 {
            self.waiting.pop_front();
        }
        next
    }

    /// Nothing has run yet: the first waiting task starts `now`.
    pub(super) fn begin(&mut self, now: Duration) -> Option<Started<Work>> {
        let (started, ..) = self.pop(now)?;
        self.running = Some(started.running());
        Some(started)
    }

    /// Notes what has run, and takes the worker's next task, if there is one. `ran` is then the
    /// report of that task, which starts `now`.
    #[inline]
    pub(super) fn go_on(&mut self, ran: &mut Report, now: Duration) -> Option<ToRun> {
        if let Some(job) = self.go_on_plainly(ran, now) {
            return Some((job, None));
        }
        let next = self.pop(now);
        let of_next = next.as_ref();
        let (joins, takes_over) = of_next.map_or((false, false), |&(_, j, t)| (j, t));
        self.note(ran, joins, takes_over);
        let (next, ..) = next?;
        (ran.tag, ran.start) = (next.tag, now);
        let running = self.running.as_mut()?;
        (running.tag, running.start) = (next.tag, now);
        running.label = next.job.label().cloned();
        Some((next.job, next.record))
    }

    /// The same, if the next task differs from the last one only by its number or its group.
    #[inline(always)]
    fn go_on_plainly(&mut self, ran: &mut Report, now: Duration) -> Option<Work> {
        let running = self.running.as_mut()?;
        let Some(Claimed::Several(first)) = self.waiting.front_mut() else {
            return None;
        };
        let joins = self.joins && first.has_begun();
        if !(joins && ran.is_plain() && running.label.is_none()) {
            return None;
        }
        let before = self.past.last_mut()?;
        let ((id, job), free) =
            first.pop_if(|task| !task.has_label(), |task| (task.id(), task.job))?;
        before.tasks += 1;
        if let Some(free) = free {
            before.groups += 1;
            self.groups.push(free);
            let group = first.holds().group;
            (ran.tag.holds.group, running.tag.holds.group) = (group, group);
        }
        (ran.tag.id, ran.start) = (id, now);
        (running.tag.id, running.start) = (id, now);
        if first.is_empty() {
            self.waiting.pop_front();
        }
        Some(job)
    }

    /// Notes what has run. The next task may join its report, or even take over its units.
    #[inline(always)]
    fn note(&mut self, ran: &mut Report, joins: bool, takes_over: bool) {
        let is_plain = ran.is_plain();
        let free = ran.tag.frees().filter(|_| !takes_over);
        let groups = u32::from(free.is_some());
        match self.past.last_mut().filter(|_| self.joins && is_plain) {
            Some(before) => {
                before.tasks += 1;
                before.groups += groups;
            }
            None => {
                let result = std::mem::replace(&mut ran.result, RunResult::Ended(Ending::Ok));
                self.past.push(Report {
                    groups,
                    result,
                    ..*ran
                });
            }
        }
        if let Some(free) = free {
            self.groups.push(free);
        }
        self.joins = joins && is_plain;
    }
}
