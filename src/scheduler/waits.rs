//! The waits for a caller and for the whole scheduler.

use std::task::{Context, Poll, Waker};

use crate::error::Stalled;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::{ClonedWaker, Op, Ticket, sealed};

use super::core::How;
use super::current::{block, gives_up, unblock};
use super::reject::SyncError;
use super::shared::Shared;
use super::stall::Target;
use super::summary::Summary;

/// The wait of [`Caller::synchronize`](super::Caller::synchronize).
pub struct Synchronize<'a> {
    shared: &'a Arc<Shared>,
    caller: Key,
    /// It has closed its epoch.
    closed: bool,
    /// With nothing outstanding it gives an empty summary.
    or_nothing: bool,
}

impl<'a> Synchronize<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, caller: Key, or_nothing: bool) -> Self {
        Self {
            shared,
            caller,
            closed: false,
            or_nothing,
        }
    }
}

impl sealed::Sealed for Synchronize<'_> {}

impl Op for Synchronize<'_> {
    type Output = Result<Summary, SyncError>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            shared,
            caller,
            or_nothing,
            ..
        } = *self;
        let closed = &mut self.closed;
        shared.poll(cx, |state, wakes, cloned| {
            if state.core.caller(caller).is_claimed() {
                state.exact(wakes);
            }
            // First a clone of the waker: if cloning panics, nothing was closed.
            if !*closed && cloned.is_none() && state.core.caller(caller).has_to_wait() {
                return None;
            }
            let synced = match *closed {
                true => state.core.caller_mut(caller).synced(),
                false => state.core.synchronize(caller),
            };
            *closed = synced.is_pending();
            match synced {
                Poll::Ready(Err(SyncError::NothingOutstanding)) if or_nothing => {
                    return Some(Ok(Summary::default()));
                }
                Poll::Ready(gives) => return Some(gives),
                Poll::Pending => {}
            }
            let slot = state.core.caller_mut(caller).sync_waker();
            if let Some(slot) = slot.filter(|_| cloned.is_some()) {
                std::mem::swap(slot, cloned);
            }
            None
        })
    }

    fn cancel(&mut self) {
        let Self { shared, caller, .. } = *self;
        let mut session = shared.lock();
        let gone = session.core.caller_mut(caller).reopen_epoch();
        session.discard_waker(gone);
    }

    fn block(&mut self, waker: &Waker) {
        let target = Target::Synchronize(self.caller);
        block(self.shared, vec![target], waker, || false);
    }

    fn give_up(&mut self) -> Option<Self::Output> {
        gives_up(self.shared).then_some(Err(SyncError::Stalled(Stalled)))
    }

    fn unblock(&mut self) {
        unblock(self.shared);
    }
}

/// The wait of [`Caller::release`](super::Caller::release) and of
/// [`Scheduler::shutdown`](super::Scheduler::shutdown), until all has ended.
pub struct Drained<'a, R> {
    shared: &'a Arc<Shared>,
    /// The caller; `None` for all callers and the workers.
    of: Option<Key>,
    how: How,
    /// Its place in line: it has begun.
    ticket: Option<Ticket>,
    gives: fn(Summary) -> R,
}

impl<'a, R> Drained<'a, R> {
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        of: Option<Key>,
        how: How,
        gives: fn(Summary) -> R,
    ) -> Self {
        Self {
            shared,
            of,
            how,
            ticket: None,
            gives,
        }
    }
}

impl<R> sealed::Sealed for Drained<'_, R> {}

impl<R> Op for Drained<'_, R> {
    type Output = Result<R, Stalled>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, of, .. } = *self;
        if self.ticket.is_none() {
            shared.close(of, self.how);
        }
        let own = cx.waker();
        let looked = shared.poll(cx, |state, wakes, cloned| {
            state.exact(wakes);
            let ended = state.core.close(of);
            let waiters = state.core.end_waiters(of);
            let Some(summary) = ended else {
                waiters.enqueue((), &mut self.ticket, own, cloned);
                return None;
            };
            let unused = waiters.withdraw(&mut self.ticket);
            Some((summary, unused.map(ClonedWaker::from)))
        });
        looked.map(|(summary, _unused_waker)| Ok((self.gives)(summary)))
    }

    fn cancel(&mut self) {
        let mut session = self.shared.lock();
        let gone = session.core.end_waiters(self.of).withdraw(&mut self.ticket);
        session.discard_waker(gone);
    }

    fn block(&mut self, waker: &Waker) {
        let target = self.of.map_or(Target::Shutdown, Target::Release);
        block(self.shared, vec![target], waker, || false);
    }

    fn give_up(&mut self) -> Option<Self::Output> {
        gives_up(self.shared).then_some(Err(Stalled))
    }

    fn unblock(&mut self) {
        unblock(self.shared);
    }
}
