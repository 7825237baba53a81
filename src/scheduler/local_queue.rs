//! What one worker has claimed: tasks that have run, the one that runs, and those that wait
//! to.
//!
//! State: two rows and the one between them, in the order in which they run. The worker
//! alone starts them; whoever holds the lock of the state may take them all away. The worker
//! finds out when it asks for the next.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::sync::{Arc, Mutex, MutexGuard};

use super::cell::Job;
use super::log::Record;
use super::outcome::Ending;
use super::task_state::{Body, Claimed, Next, Running, Started, Tag};

pub(super) type Work = Arc<dyn Job>;

/// A task that has run, or several of one claim that ended well one after the other: the core
/// does not know it yet.
pub(super) struct Report {
    /// That of the first.
    pub(super) tag: Tag,
    pub(super) tasks: u32,
    /// How many groups are [free](Local::groups) since.
    pub(super) groups: u32,
    pub(super) result: RunResult,
    pub(super) start: Duration,
    pub(super) end: Duration,
}

impl Report {
    /// One task, that is to begin.
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

    /// Whether others may be counted with it.
    #[inline]
    fn is_plain(&self) -> bool {
        self.tag.future.is_none() && matches!(self.result, RunResult::Ended(Ending::Ok))
    }
}

/// How that went.
pub(super) enum RunResult {
    Ended(Ending),
    /// It is a future that is not ready, and may have woken itself.
    Suspended(Work, bool),
}

impl RunResult {
    /// Failures may skip tasks: they are told at once.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Self::Ended(ending) if ending.is_failure())
    }
}

#[derive(Default)]
pub(super) struct Local {
    /// What has run.
    pub(super) past: Vec<Report>,
    /// The task that runs is of the same claim as the last of these, and that is plain.
    joins: bool,
    /// The groups that are free since, in the order of `past`.
    pub(super) groups: Vec<GroupKey>,
    /// The task that started last.
    pub(super) running: Option<Running>,
    pub(super) waiting: VecDeque<Claimed<Work>>,
}

/// The rows, behind their lock.
pub(super) struct LocalQueue(Mutex<Local>);

impl Default for LocalQueue {
    fn default() -> Self {
        Self(Mutex::new(Local::default()))
    }
}

impl LocalQueue {
    pub(super) fn lock(&self) -> MutexGuard<'_, Local> {
        self.0.lock()
    }

    /// The worker's next task, if it has one, as [there](Local::go_on). The moment between the
    /// two is the worker's own.
    #[inline]
    pub(super) fn next(&self, ran: &mut Report) -> Option<ToRun> {
        if ran.result.has_failed() {
            return None;
        }
        let local = &mut *self.0.lock();
        if local.waiting.is_empty() {
            return None;
        }
        let now = ran.end;
        local.go_on(ran, now)
    }
}

/// What is to be run, with its row if there is a log.
type ToRun = (Work, Option<Box<Record>>);

impl Local {
    /// The next of those that wait.
    #[inline(always)]
    fn pop(&mut self) -> Option<Next<Work>> {
        let first = self.waiting.front_mut()?;
        let next = first.pop();
        if first.len() == 0 {
            self.waiting.pop_front();
        }
        next
    }

    /// Nothing has run: the first of those that wait starts `now`.
    pub(super) fn begin(&mut self, now: Duration) -> Option<Started<Work>> {
        let started = Started::new(self.pop()?, now);
        self.running = Some(started.running());
        Some(started)
    }

    /// What has run stays here. The worker's next task, if it has one: `ran` is of that then,
    /// which starts `now`.
    #[inline]
    pub(super) fn go_on(&mut self, ran: &mut Report, now: Duration) -> Option<ToRun> {
        if let Some(job) = self.go_on_plainly(ran, now) {
            return Some((job, None));
        }
        let next = self.pop();
        let of_next = next.as_ref();
        let (joins, takes_over) = of_next.map_or((false, false), |n| (n.joins, n.takes_over));
        self.note(ran, joins, takes_over);
        let Next {
            task,
            holds,
            record,
            ..
        } = next?;
        let running = self.running.as_mut()?;
        let tag = Tag::of(&task, holds);
        (ran.tag, ran.start) = (tag, now);
        (running.tag, running.start) = (tag, now);
        if task.has_label() || running.label.is_some() {
            running.label = task.job.label().cloned();
        }
        Some((task.job, record))
    }

    /// The same where the next differs from what has run by its number only, or its group.
    #[inline(always)]
    fn go_on_plainly(&mut self, ran: &mut Report, now: Duration) -> Option<Work> {
        let running = self.running.as_mut()?;
        let Some(Claimed::Several(first)) = self.waiting.front_mut() else {
            return None;
        };
        if !(self.joins && ran.is_plain() && running.label.is_none()) {
            return None;
        }
        let before = self.past.last_mut()?;
        let (task, free) = first.pop_behind(|task| !task.has_label())?;
        before.tasks += 1;
        if let Some(free) = free {
            before.groups += 1;
            self.groups.push(free);
            let group = first.holds().group;
            (ran.tag.holds.group, running.tag.holds.group) = (group, group);
        }
        (ran.tag.id, ran.start) = (task.id(), now);
        (running.tag.id, running.start) = (task.id(), now);
        if first.is_empty() {
            self.waiting.pop_front();
        }
        Some(task.job)
    }

    /// What has run stays here; the next joins it, or even takes over what it held.
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
