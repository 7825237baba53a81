//! The one lock of a scheduler, and what is done after each event.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::slab::Key;
use crate::sync::{Arc, Tally};
use crate::wait::{Guarded, Session, WakeBatch, drop_quietly, look_twice};

use super::borrows::Borrows;
use super::core::{How, Todo};
use super::inside::Inside;
use super::local_queue::Work;
use super::log::{Event, Log};
use super::outcome::Ending;
use super::pool::Host;
use super::state::State;
use super::submissions::Submissions;
use super::task_state::{Ended, Waiting};

pub(super) struct Shared {
    pub(super) state: Guarded<State>,
    pub(super) submissions: Submissions,
    pub(super) host: Host,
    /// Starts a worker, on a thread or on the pool.
    pub(super) start: fn(&Arc<Shared>, u32),
    /// How long a worker thread rests before it leaves.
    pub(super) idle: Duration,
    /// How long the tasks of one claim may take together.
    pub(super) claim_time: Duration,
    pub(super) log: Option<Box<dyn Log>>,
    pub(super) lost: Tally,
    pub(super) origin: Instant,
}

impl Shared {
    /// Locks the state. Workers do much under this lock, so who finds it held spins for a while.
    #[inline]
    pub(super) fn lock(&self) -> Session<'_, State> {
        Session::over(self.state.lock_patiently())
    }

    /// Locks the state unless a thread holds it.
    pub(super) fn try_lock(&self) -> Option<Session<'_, State>> {
        self.state.try_lock()
    }

    /// One event: runs `f` under the lock, and then does what follows from it. After the lock it
    /// wakes, starts workers, and drops the tasks that ended unrun; none of that makes it unwind.
    /// No task is posted meanwhile.
    pub(super) fn with_state<R>(
        self: &Arc<Self>,
        f: impl FnOnce(&mut State, &mut WakeBatch, Duration) -> R,
    ) -> R {
        self.with_locked(self.lock(), false, f)
    }

    /// The same, with the lock held: the state is as the last event left it, and tasks that were
    /// posted or became due since then have not arrived. With `posting`, tasks may be posted
    /// meanwhile: see [`Submissions`].
    #[inline]
    pub(super) fn with_locked<R>(
        self: &Arc<Self>,
        session: Session<'_, State>,
        posting: bool,
        f: impl FnOnce(&mut State, &mut WakeBatch, Duration) -> R,
    ) -> R {
        // Declared first, so that it is dropped last, also while unwinding.
        let mut aftermath = Aftermath {
            shared: self,
            todo: None,
        };
        let mut session = session;
        let (state, wakes) = session.parts();
        let clock = || self.origin.elapsed();
        let now = self.submissions.take_in(state, posting, clock);
        state.advance(now, wakes);
        let result = f(state, wakes, now);
        session.repeat(|state, wakes| {
            let decided = state.decide(wakes);
            aftermath.take_from(state);
            decided && self.submissions.update(state, now)
        });
        result
    }

    /// Reads the state as if workers claimed one task at a time. An event only if a local queue
    /// must be cleared.
    pub(super) fn read_exact<R>(self: &Arc<Self>, read: impl FnOnce(&mut State) -> R) -> R {
        let mut session = self.lock();
        if session.is_exact() {
            return read(&mut session);
        }
        self.with_locked(session, false, |state, wakes, _| {
            state.exact(wakes);
            read(state)
        })
    }

    /// An event that polls for something, and leaves a waker if there is nothing. Calls `f` as
    /// [`look_twice`] does.
    pub(super) fn poll<R>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        mut f: impl FnMut(&mut State, &mut WakeBatch, &mut Option<Waker>) -> Option<R>,
    ) -> Poll<R> {
        look_twice(cx, |_, cloned| {
            self.with_state(|state, wakes, _| f(state, wakes, cloned))
                .map(Poll::Ready)
        })
    }

    /// Cancels the caller's tasks that have not begun and borrow from this scope. Returns whether
    /// there were any.
    pub(super) fn cancel_scope(self: &Arc<Self>, of: Key, scope: &Borrows) -> bool {
        self.with_state(|state, wakes, now| {
            let is_meant = |_: &_, task: &Waiting<Work>| task.job.is_of_scope(scope);
            state.exact(wakes).cancel_those(Some(of), now, is_meant)
        })
    }

    /// This caller, or all, takes no more tasks; those that wait are done, or cancelled.
    pub(super) fn close(self: &Arc<Self>, of: Option<Key>, how: How) {
        let capacities = self.with_state(|state, _, _| {
            let again = of.is_none() && state.core.closed;
            state.core.close(of);
            // A closed scheduler gets no caller, and the first close ends the waits for room.
            if again {
                Vec::new()
            } else {
                state.core.capacities(of)
            }
        });
        for capacity in capacities {
            capacity.close();
        }
        self.with_state(|state, wakes, now| {
            if how == How::Cancel {
                state.exact(wakes).cancel_all(of, now);
            }
            state.core.cancel_abandoned(now);
        });
    }

    /// Calls the log, if there is one.
    pub(super) fn log_event(&self, event: Event) {
        let Some(log) = &self.log else {
            return;
        };
        let _inside = Inside::begin(self);
        match catch_unwind(AssertUnwindSafe(|| log.log(event))) {
            Ok(true) => {}
            lost => {
                drop_quietly(lost);
                self.lost.count();
            }
        }
    }
}

// Panics of pools, logs and tasks are caught where they are called, under no lock.
impl UnwindSafe for Shared {}
impl RefUnwindSafe for Shared {}

/// The rest of an event, to be done without the lock.
struct Aftermath<'a> {
    shared: &'a Arc<Shared>,
    todo: Option<Todo<Work>>,
}

impl Aftermath<'_> {
    /// Takes over what must be done; under the lock. The lists are taken with their memory, as one
    /// event may skip many tasks.
    #[inline]
    fn take_from(&mut self, state: &mut State) {
        let more = &mut state.core.todo;
        if !more.is_empty() {
            self.todo.get_or_insert_default().append(more);
        }
    }

    /// Room and workers first: a drop of a task may wait for what these bring.
    #[cold]
    fn follow(&self, todo: Todo<Work>) {
        let Todo {
            to_start,
            ended,
            freed,
        } = todo;
        // Who blocked meanwhile may have seen room that is now another's.
        if !freed.is_empty() {
            freed.iter().for_each(|capacity| capacity.serve());
            self.shared.with_state(|_, _, _| ());
        }
        for n in to_start {
            (self.shared.start)(self.shared, n);
        }
        if ended.is_empty() {
            return;
        }
        // The wakers and the drops must not wait for the shutdown.
        let _inside = Inside::begin(&**self.shared);
        for ended in ended {
            let Ended {
                tag, job, ending, ..
            } = ended;
            if let Some(record) = ended.record {
                self.shared.log_event(Event::Ended(*record));
            }
            let to_wake = job.end_unrun(ending, ended.run);
            drop_quietly(job);
            self.shared.with_state(|state, wakes, _| {
                wakes.extend(to_wake);
                state.core.dropped(tag, ending, wakes);
            });
        }
    }
}

impl Drop for Aftermath<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(todo) = self.todo.take() {
            self.follow(todo);
        }
    }
}

impl Drop for Shared {
    /// Tasks that were never run, or that nobody can wake, go with the last handle.
    fn drop(&mut self) {
        let mut jobs = Vec::new();
        let each = |task: &Waiting<Work>, _, _| jobs.push(Arc::clone(&task.job));
        self.lock().core.each_waiting(None, each);
        for job in jobs {
            drop_quietly(job.end_unrun(Ending::Cancelled, None));
        }
    }
}
