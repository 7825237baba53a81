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
use super::outcome::{Ending, TaskId};
use super::task_state::{Body, Claimed, Running, Started, Tag, Waiting};

pub(super) type Work = Arc<dyn Job>;

/// A task that has run: the core does not know it yet.
pub(super) struct Ran {
    pub(super) tag: Tag,
    /// How many it stands for: those up to this one that [joined](LocalQueue::next_joined).
    pub(super) tasks: u32,
    /// Of how many groups the last was among those that joined.
    pub(super) groups: u32,
    /// The next task has taken over what it held.
    pub(super) handed_on: bool,
    pub(super) went: Went,
    pub(super) start: Duration,
    pub(super) end: Duration,
}

impl Ran {
    /// One task.
    #[inline]
    pub(super) fn one(tag: Tag, went: Went, start: Duration, end: Duration) -> Self {
        Self {
            tag,
            tasks: 1,
            groups: 0,
            handed_on: false,
            went,
            start,
            end,
        }
    }
}

/// How that went.
pub(super) enum Went {
    Ended(Ending),
    /// It is a future that is not ready, and may have woken itself.
    Suspended(Work, bool),
}

impl Went {
    /// Failures may skip tasks: they are told at once.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Self::Ended(ending) if ending.is_failure())
    }
}

#[derive(Default)]
pub(super) struct Local {
    /// What has run, but for those in whose place the one that runs is.
    pub(super) past: Vec<Ran>,
    /// The task that started last.
    pub(super) running: Option<Running>,
    /// Those that ended well in whose place that is.
    joined: Joined,
    /// The groups of which the last joined, in the order of `past`.
    pub(super) groups: Vec<GroupKey>,
    pub(super) waiting: VecDeque<Claimed<Work>>,
}

/// Tasks in whose place the one that runs is.
#[derive(Default)]
struct Joined {
    tasks: u32,
    /// Of how many groups the last is among them.
    groups: u32,
    last: TaskId,
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

    /// The worker's next task, if it has one; then the last one's ending stays here.
    pub(super) fn next(&self, ran: &mut Ran) -> Option<Started<Work>> {
        if ran.went.has_failed() {
            return None;
        }
        let local = &mut *self.0.lock();
        if local.waiting.is_empty() {
            return None;
        }
        local.note_joined();
        ran.handed_on = local.goes_on();
        let went = std::mem::replace(&mut ran.went, Went::Ended(Ending::Ok));
        local.past.push(Ran { went, ..*ran });
        // The moment between them is the worker's own.
        local.start_next(ran.end)
    }

    /// The next of the tasks that were claimed together, if the last one was another of them,
    /// and neither is a future: it takes the place of the last one, which ended well at `end`.
    /// Its number, its group, and itself.
    #[inline]
    pub(super) fn next_joined(&self, end: Duration) -> Option<(TaskId, Option<GroupKey>, Work)> {
        let local = &mut *self.0.lock();
        let claimed = local.waiting.front_mut()?;
        let (task, group) = claimed.pop_joined()?;
        if claimed.is_empty() {
            local.waiting.pop_front();
        }
        let (id, running) = (task.id(), local.running.as_mut()?);
        local.joined.tasks += 1;
        local.joined.last = std::mem::replace(&mut running.tag.id, id);
        if running.tag.holds.group != group {
            local.joined.groups += 1;
            local.groups.extend(running.tag.holds.group);
            running.tag.holds.group = group;
        }
        running.start = end;
        if task.has_label() || running.label.is_some() {
            running.label = task.job.label().cloned();
        }
        Some((id, group, task.job))
    }

    /// The next of a run, as [`next`](Self::next), if the last one, which did not fail, was
    /// another of it: but for its number and entry it has the tag of that.
    pub(super) fn next_of_run(&self, ran: &mut Ran) -> Option<Waiting<Work>> {
        let local = &mut *self.0.lock();
        let claimed = local.waiting.front_mut()?;
        let task = claimed.pop_of_run()?;
        if claimed.is_empty() {
            local.waiting.pop_front();
        }
        local.note_joined();
        let went = std::mem::replace(&mut ran.went, Went::Ended(Ending::Ok));
        local.past.push(Ran { went, ..*ran });
        let running = local.running.as_mut()?;
        (running.tag.id, running.tag.future) = (task.id(), task.future());
        running.start = ran.end;
        running.label = task.job.label().cloned();
        Some(task)
    }
}

impl Local {
    /// It is empty, and the worker runs this task.
    pub(super) fn begin(&mut self, first: &Started<Work>) {
        self.running = Some(Running::of(first));
    }

    /// The next task starts, if there is one.
    pub(super) fn start_next(&mut self, start: Duration) -> Option<Started<Work>> {
        let first = self.waiting.front_mut()?;
        let next = match first.next_of_several(start) {
            Some(next) => {
                if first.is_empty() {
                    self.waiting.pop_front();
                }
                next
            }
            None => self.waiting.pop_front()?.only(start)?,
        };
        self.running = Some(Running::of(&next));
        Some(next)
    }

    /// Whether the next task takes over what the one that runs holds.
    pub(super) fn goes_on(&self) -> bool {
        self.waiting.front().is_some_and(Claimed::goes_on)
    }

    /// Those in whose place the one that runs is have run.
    pub(super) fn note_joined(&mut self) {
        let Joined {
            tasks,
            groups,
            last,
        } = std::mem::take(&mut self.joined);
        let Some(Running { tag, start, .. }) = self.running.as_ref().filter(|_| tasks > 0) else {
            return;
        };
        self.past.push(Ran {
            tag: Tag { id: last, ..*tag },
            tasks,
            groups,
            handed_on: tag.holds.group.is_some(),
            went: Went::Ended(Ending::Ok),
            start: *start,
            end: *start,
        });
    }
}
