//! The one lock of a scheduler, and what is done after each event.

use std::fmt;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::slab::Key;
use crate::sync::{Arc, Tally};
use crate::wait::{Guarded, Session, WakeBatch, drop_quietly, look_twice};

use super::cell::Job;
use super::core::How;
use super::outcome::Record;
use super::pool::Host;
use super::prefetch::State;
use super::task_state::Ended;

pub(super) struct Shared {
    pub(super) state: Guarded<State>,
    pub(super) host: Host,
    /// Starts a worker, whatever that is.
    pub(super) start: fn(&Arc<Shared>, u32),
    /// How long a worker of our own rests before it leaves.
    pub(super) idle: Duration,
    pub(super) log: Option<Sender<Record>>,
    pub(super) lost: Tally,
    pub(super) origin: Instant,
}

impl Shared {
    /// One event: `f` under the lock, then what follows from it. Then, without
    /// the lock, it wakes, starts workers and drops the tasks that it ended
    /// unrun. None of those can make it unwind.
    pub(super) fn with_state<R>(
        self: &Arc<Self>,
        f: impl FnOnce(&mut State, &mut WakeBatch, Duration) -> R,
    ) -> R {
        self.with_locked(self.state.lock(), f)
    }

    /// The same, with the lock held: the state is as the last event left it, and
    /// what is due since then has not arrived.
    pub(super) fn with_locked<R>(
        self: &Arc<Self>,
        session: Session<'_, State>,
        f: impl FnOnce(&mut State, &mut WakeBatch, Duration) -> R,
    ) -> R {
        // Declared first, so that it is dropped last, also on unwinding.
        let mut aftermath = Aftermath::of(self);
        let mut session = session;
        let now = self.origin.elapsed();
        let (state, wakes) = session.parts();
        state.advance(now, wakes);
        let result = f(state, wakes, now);
        session.settle(|state, wakes| {
            let settled = state.settle(wakes);
            if !state.to_start.is_empty() || !state.ended.is_empty() {
                aftermath.take_from(state);
            }
            settled
        });
        result
    }

    /// Reads the state as if workers took one task at a time: no event, unless
    /// a local queue must be cleared.
    pub(super) fn read_exact<R>(self: &Arc<Self>, read: impl FnOnce(&mut State) -> R) -> R {
        let mut session = self.state.lock();
        if session.is_exact() {
            return read(&mut session);
        }
        self.with_locked(session, |state, wakes, _| {
            state.exact(wakes);
            read(state)
        })
    }

    /// Worker `n` could not be started. No event: it is not requested again
    /// before the next. May be called while unwinding.
    pub(super) fn start_failed(&self, n: u32) {
        let mut session = self.state.lock();
        let (state, wakes) = session.parts();
        state.start_failed(n);
        state.settle_waits(wakes);
    }

    /// An event that polls for something and, if there is nothing, keeps a
    /// waker; `f` is called as by [`look_twice`].
    pub(super) fn poll<R>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        mut f: impl FnMut(&mut State, &mut WakeBatch, &mut Option<Waker>) -> Option<R>,
    ) -> Poll<R> {
        look_twice(cx, |_, spare| {
            self.with_state(|state, wakes, _| f(state, wakes, spare))
                .map(Poll::Ready)
        })
    }

    /// Cancels all that waits in a caller that is released and paused, a batch
    /// at a time.
    pub(super) fn cancel_waiting(self: &Arc<Self>, caller: Key) {
        while !self.with_state(|state, wakes, now| state.cancel_some(caller, now, wakes)) {}
    }

    /// Nothing more is taken; what waits is done, or cancelled.
    pub(super) fn close(self: &Arc<Self>, how: How) {
        self.with_state(|state, wakes, _| {
            if how == How::Cancel {
                state.exact(wakes).cancel_all();
            }
            state.close();
        });
        if how == How::Cancel {
            // No task is added any more: who has none waiting now will not.
            let callers = self.state.lock().waiting_callers();
            for caller in callers {
                self.cancel_waiting(caller);
            }
        }
    }

    pub(super) fn log(&self, record: Record) {
        if let Some(log) = &self.log
            && log.try_send(record).is_err()
        {
            self.lost.count();
        }
    }
}

/// Leaves a spare waker, if there is one, in `slot`.
pub(super) fn keep_waker(slot: &mut Option<Waker>, spare: &mut Option<Waker>) {
    if spare.is_some() {
        std::mem::swap(slot, spare);
    }
}

/// What is left to do when the lock has been released.
struct Aftermath<'a> {
    shared: &'a Arc<Shared>,
    to_start: Vec<u32>,
    unrun: Vec<Arc<dyn Job>>,
}

impl<'a> Aftermath<'a> {
    #[inline]
    fn of(shared: &'a Arc<Shared>) -> Self {
        Self {
            shared,
            to_start: Vec::new(),
            unrun: Vec::new(),
        }
    }

    /// Under the lock. The rows are sent here, and the endings told, before the first
    /// waker is woken.
    fn take_from(&mut self, state: &mut State) {
        self.to_start.append(&mut state.to_start);
        // Taken whole: many may be skipped at once, and the room they took is
        // given back.
        for Ended {
            job,
            ending,
            record,
        } in std::mem::take(&mut state.ended)
        {
            if let Some(record) = record {
                self.shared.log(*record);
            }
            job.end_unrun(ending);
            self.unrun.push(job);
        }
    }
}

impl Drop for Aftermath<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.to_start.is_empty() || !self.unrun.is_empty() {
            self.follow();
        }
    }
}

impl Aftermath<'_> {
    #[cold]
    fn follow(&mut self) {
        for n in self.to_start.drain(..) {
            (self.shared.start)(self.shared, n);
        }
        for job in self.unrun.drain(..) {
            job.discard();
            drop_quietly(job);
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
