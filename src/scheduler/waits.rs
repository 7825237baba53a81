//! The waits for a caller and for the whole scheduler.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll, Waker};

use crate::error::Stalled;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::{Op, Spare, Ticket, Waiters, sealed};

use super::caller::{Summary, Synced};
use super::core::How;
use super::current::{block, current, unblock};
use super::outcome::TaskId;
use super::prefetch::State;
use super::reject::SyncError;
use super::shared::{Shared, keep_waker};
use super::stall::Target;

/// The wait of [`Caller::synchronize`](super::Caller::synchronize).
#[derive(Debug)]
pub struct Synchronize<'a> {
    shared: &'a Arc<Shared>,
    caller: Key,
    /// Its epoch is closed.
    closed: bool,
    /// There may be nothing to wait for.
    or_nothing: bool,
}

impl<'a> Synchronize<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, caller: Key, or_nothing: bool) -> Self {
        let closed = false;
        Self {
            shared,
            caller,
            closed,
            or_nothing,
        }
    }
}

impl sealed::Sealed for Synchronize<'_> {}

impl Op for Synchronize<'_> {
    type Output = Result<Summary, SyncError>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let first = !self.closed;
        let looked = catch_unwind(AssertUnwindSafe(|| self.poll_once(cx)));
        looked.unwrap_or_else(|panic| {
            // A waker of the user's, when it was cloned. Nobody will cancel a
            // wait whose first poll panicked, and the next poll is the first.
            if first && std::mem::take(&mut self.closed) {
                self.cancel();
            }
            resume_unwind(panic)
        })
    }

    fn cancel(&mut self) {
        let Self { shared, caller, .. } = *self;
        let mut session = shared.state.lock();
        let gone = session.abandon_synchronize(caller);
        session.discard_waker(gone);
    }

    fn block(&mut self, waker: &Waker) {
        let target = Target::Synchronize(self.caller);
        block(self.shared, target, waker, || false);
    }

    fn unblock(&mut self) {
        unblock(self.shared);
    }
}

impl Synchronize<'_> {
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<<Self as Op>::Output> {
        let Self {
            shared,
            caller,
            or_nothing,
            ..
        } = *self;
        let worker = current(shared);
        let closed = &mut self.closed;
        shared.poll(cx, |state, wakes, spare| {
            if state.is_all_claimed(caller) {
                state.exact(wakes);
            }
            let synced = match *closed {
                true => state.synchronized(caller),
                false => state.synchronize(caller),
            };
            *closed = synced == Synced::NotYet;
            match synced {
                Synced::Done(summary) => return Some(Ok(summary)),
                Synced::Nothing if or_nothing => return Some(Ok(Summary::default())),
                Synced::Nothing => return Some(Err(SyncError::NothingOutstanding)),
                Synced::Busy => return Some(Err(SyncError::Busy)),
                Synced::NotYet => {}
            }
            if worker.is_some_and(|n| state.is_stalled(n)) {
                *closed = false;
                // Whose waker that is has been woken already.
                let own = state.abandon_synchronize(caller);
                wakes.extend(own);
                return Some(Err(SyncError::Stalled(Stalled)));
            }
            if let Some(slot) = state.sync_waker(caller) {
                keep_waker(slot, spare);
            }
            None
        })
    }
}

/// The wait of [`Caller::release`](super::Caller::release).
#[derive(Debug)]
pub struct Release<'a> {
    shared: &'a Arc<Shared>,
    caller: Key,
    how: How,
    begun: bool,
    ticket: Option<Ticket>,
}

impl<'a> Release<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, caller: Key, how: How) -> Self {
        Self {
            shared,
            caller,
            how,
            begun: false,
            ticket: None,
        }
    }
}

impl sealed::Sealed for Release<'_> {}

impl Op for Release<'_> {
    type Output = Result<Summary, Stalled>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, caller, .. } = *self;
        if !std::mem::replace(&mut self.begun, true) {
            let cancels = self.how == How::Cancel;
            let capacity = shared.with_state(|state, wakes, _| {
                state.release(caller);
                if cancels {
                    state.exact(wakes).cancel_caller(caller);
                }
                state.capacity(caller)
            });
            if let Some(capacity) = capacity {
                capacity.close();
            }
            if cancels {
                shared.cancel_waiting(TaskId::LAST, Some(caller));
            }
        }
        poll_line(
            shared,
            cx,
            &mut self.ticket,
            |state| state.release(caller),
            |state| state.release_waiters(caller),
        )
    }

    fn cancel(&mut self) {
        let Self { shared, caller, .. } = *self;
        let mut session = shared.state.lock();
        let gone = session.release_waiters(caller).withdraw(&mut self.ticket);
        session.discard_waker(gone);
    }

    fn block(&mut self, waker: &Waker) {
        block(self.shared, Target::Release(self.caller), waker, || false);
    }

    fn unblock(&mut self) {
        unblock(self.shared);
    }
}

/// The wait of [`Scheduler::shutdown`](super::Scheduler::shutdown).
#[derive(Debug)]
pub struct Shutdown<'a> {
    shared: &'a Arc<Shared>,
    how: How,
    begun: bool,
    ticket: Option<Ticket>,
}

impl<'a> Shutdown<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, how: How) -> Self {
        Self {
            shared,
            how,
            begun: false,
            ticket: None,
        }
    }
}

impl sealed::Sealed for Shutdown<'_> {}

impl Op for Shutdown<'_> {
    type Output = Result<(), Stalled>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared;
        if !std::mem::replace(&mut self.begun, true) {
            shared.close(self.how);
        }
        poll_line(
            shared,
            cx,
            &mut self.ticket,
            |state| state.close().then_some(()),
            |state| state.shutdown_waiters(),
        )
    }

    fn cancel(&mut self) {
        let mut session = self.shared.state.lock();
        let gone = session.shutdown_waiters().withdraw(&mut self.ticket);
        session.discard_waker(gone);
    }

    fn block(&mut self, waker: &Waker) {
        block(self.shared, Target::Shutdown, waker, || false);
    }

    fn unblock(&mut self) {
        unblock(self.shared);
    }
}

/// Waits in one of the lines of waiters until `done` says something, or the
/// task that the calling thread runs is stalled.
fn poll_line<R>(
    shared: &Arc<Shared>,
    cx: &mut Context<'_>,
    ticket: &mut Option<Ticket>,
    done: impl Fn(&mut State) -> Option<R>,
    line: impl Fn(&mut State) -> &mut Waiters<()>,
) -> Poll<Result<R, Stalled>> {
    let worker = current(shared);
    let looked = shared.poll(cx, |state, wakes, spare| {
        state.exact(wakes);
        let stalled = worker.is_some_and(|n| state.is_stalled(n));
        let result = match done(state) {
            Some(result) => Ok(result),
            None if stalled => Err(Stalled),
            None => {
                enqueue(line(state), ticket, spare);
                return None;
            }
        };
        Some((result, line(state).withdraw(ticket).map(Spare::from)))
    });
    looked.map(|(result, _unused_waker)| result)
}

/// Takes or keeps a place in line with the spare waker, if there is one.
fn enqueue(line: &mut Waiters<()>, ticket: &mut Option<Ticket>, spare: &mut Option<Waker>) {
    if let Some(waker) = spare.take() {
        match *ticket {
            Some(ticket) => *spare = line.rewait(ticket, waker),
            None => *ticket = Some(line.register((), waker)),
        }
    }
}
