//! What one worker has claimed: tasks that have run, the one that runs, and those that wait
//! to.
//!
//! State: two rows and the one between them, in the order in which they run. The worker
//! alone starts them; whoever holds the lock of the state may take them all away. The worker
//! finds out when it asks for the next.

use std::collections::VecDeque;
use std::time::Duration;

use crate::sync::{Arc, Mutex, MutexGuard};

use super::cell::Job;
use super::outcome::Ending;
use super::task_state::{Claimed, Running, Started, Tag};

pub(super) type Work = Arc<dyn Job>;

/// A task that has run: the core does not know it yet.
pub(super) struct Ran {
    pub(super) tag: Tag,
    /// How many it stands for: those of a run up to this one, which ended well.
    pub(super) tasks: u32,
    /// The next task has taken over what it held.
    pub(super) handed_on: bool,
    pub(super) went: Went,
    pub(super) start: Duration,
    pub(super) end: Duration,
}

/// How that went.
pub(super) enum Went {
    Ended(Ending),
    /// It is a future that is not ready, and may have woken itself.
    Suspended(Work, bool),
}

#[derive(Default)]
pub(super) struct Local {
    /// What has run, but for those that joined what is there.
    pub(super) past: Vec<Ran>,
    /// The task that started last.
    pub(super) running: Option<Running>,
    /// It was claimed together with the one before it.
    joins: bool,
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

    /// The worker's next task, if it has one; then the last one's ending stays here.
    #[inline]
    pub(super) fn next(&self, ran: &mut Ran) -> Option<Started<Work>> {
        // Failures may skip tasks: at once.
        if matches!(ran.went, Went::Ended(ending) if ending.is_failure()) {
            return None;
        }
        let local = &mut *self.0.lock();
        let joins = local.joins;
        // The moment between them is the worker's own.
        let next = local.start_next(ran.end)?;
        local.note(ran, joins, next.takes_over());
        Some(next)
    }
}

impl Local {
    /// It is empty, and the worker runs this task.
    pub(super) fn begin(&mut self, first: &Started<Work>) {
        self.running = Some(Running::of(first));
        self.joins = false;
    }

    /// The next task starts, if there is one.
    #[inline]
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
        self.joins = next.joins;
        Some(next)
    }

    /// Whether the next task takes over what the one that runs holds.
    pub(super) fn goes_on(&self) -> bool {
        self.waiting.front().is_some_and(Claimed::goes_on)
    }

    /// A task has run, and did not fail; the next has taken over what it held, if it did.
    #[inline]
    fn note(&mut self, ran: &mut Ran, joins: bool, handed_on: bool) {
        let went = std::mem::replace(&mut ran.went, Went::Ended(Ending::Ok));
        let noted = Ran {
            went,
            handed_on,
            ..*ran
        };
        match self.past.last_mut() {
            // The ending of a future is its own.
            Some(last) if joins && last.tag.future.is_none() => {
                let tasks = last.tasks + 1;
                *last = Ran { tasks, ..noted };
            }
            _ => self.past.push(noted),
        }
    }
}
