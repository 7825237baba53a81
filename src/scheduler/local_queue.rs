//! What one worker has claimed: tasks that have run, the one that runs, and those that wait
//! to.
//!
//! State: all of them in one row, in the order in which they run. The worker alone starts
//! them; whoever holds the lock of the state may take them all away. The worker finds out
//! when it asks for the next.

use std::time::Duration;

use crate::slab::Key;
use crate::sync::{Arc, Mutex, MutexGuard};

use super::cell::Job;
use super::outcome::Ending;
use super::task_state::{Claimed, Started};

pub(super) type Work = Arc<dyn Job>;

/// A task that has run: the core does not know it yet.
pub(super) struct Ran {
    pub(super) task: Key,
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

/// One of the row.
struct Slot {
    task: Key,
    /// Until it starts.
    claimed: Option<Claimed<Work>>,
    /// What came of it, if it has run and did not simply end well.
    ran: Option<Box<Ran>>,
}

#[derive(Default)]
pub(super) struct Local {
    row: Vec<Slot>,
    /// How many of them have started: the last of these runs, since then.
    started: usize,
    since: Duration,
}

/// The row, behind its lock.
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
        // The moment between them is the worker's own.
        let next = local.start_next(ran.end)?;
        if let Went::Suspended(..) = ran.went {
            let (task, end) = (ran.task, ran.end);
            let went = std::mem::replace(&mut ran.went, Went::Ended(Ending::Ok));
            let start = ran.start;
            local.row[local.started - 2].ran = Some(Box::new(Ran {
                task,
                went,
                start,
                end,
            }));
        }
        Some(next)
    }
}

impl Local {
    /// It is empty, and the worker runs this task.
    pub(super) fn begin(&mut self, first: Key, start: Duration) {
        self.row.push(Slot {
            task: first,
            claimed: None,
            ran: None,
        });
        (self.started, self.since) = (1, start);
    }

    #[inline(always)]
    pub(super) fn push(&mut self, claimed: Claimed<Work>) {
        self.row.push(Slot {
            task: claimed.task(),
            claimed: Some(claimed),
            ran: None,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.row.len()
    }

    /// The next task starts, if there is one.
    #[inline]
    pub(super) fn start_next(&mut self, start: Duration) -> Option<Started<Work>> {
        let slot = self.row.get_mut(self.started)?;
        let next = slot.claimed.take()?.starts(start);
        (self.started, self.since) = (self.started + 1, start);
        Some(next)
    }

    /// Takes out those before the one that started last, which have run.
    #[inline]
    pub(super) fn take_ran(&mut self) -> impl Iterator<Item = Ran> {
        let ran = self.started.saturating_sub(1);
        self.started -= ran;
        self.row
            .drain(..ran)
            .map(|Slot { task, ran, .. }| match ran {
                Some(ran) => *ran,
                None => Ran {
                    task,
                    went: Went::Ended(Ending::Ok),
                    start: Duration::ZERO,
                    end: Duration::ZERO,
                },
            })
    }

    /// Takes out the one that started last: which that is, and since when.
    pub(super) fn take_last(&mut self) -> Option<(Key, Duration)> {
        let last = self.row.drain(..self.started).next_back()?;
        self.started = 0;
        Some((last.task, self.since))
    }

    /// Takes out those that have not started, and gives the memory back.
    pub(super) fn take_rest(&mut self) -> impl DoubleEndedIterator<Item = Claimed<Work>> {
        let rest = std::mem::take(&mut self.row).into_iter();
        rest.filter_map(|slot| slot.claimed)
    }
}
