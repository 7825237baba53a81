//! A turnstile for the tests and models of waiting, and a worked example of an operation. It lets
//! as many waiters through as it was opened for, first come first served.

use std::task::{Context, Poll};

use super::{Guarded, Op, Ticket, Wait, Waiters, sealed};
use crate::sync::Arc;

pub(super) struct Gate {
    state: Guarded<State>,
}

struct State {
    permits: usize,
    waiters: Waiters<()>,
}

/// Waits for one permit and uses it up.
pub(super) struct Pass {
    gate: Arc<Gate>,
    ticket: Option<Ticket>,
}

impl Gate {
    pub(super) fn new() -> Arc<Self> {
        let state = State {
            permits: 0,
            waiters: Waiters::new(),
        };
        Arc::new(Self {
            state: Guarded::new(state),
        })
    }

    /// An associated function: loom's `Arc` cannot be a receiver.
    pub(super) fn pass(gate: &Arc<Self>) -> Wait<Pass> {
        Wait::new(Pass {
            gate: gate.clone(),
            ticket: None,
        })
    }

    /// Lets `n` more through, and notifies as many waiters.
    pub(super) fn open(&self, n: usize) {
        let mut session = self.state.lock();
        session.permits += n;
        let mut left = n;
        session.repeat(|state, wakes| {
            while left > 0 && !wakes.is_full() {
                left -= 1;
                if state.waiters.notify_next(wakes).is_none() {
                    return true;
                }
            }
            left == 0
        });
    }

    pub(super) fn permits(&self) -> usize {
        self.state.lock().permits
    }

    pub(super) fn waiters(&self) -> usize {
        self.state.lock().waiters.len()
    }

    /// Notifies all waiters, though there is nothing for them.
    #[cfg(not(loom))]
    pub(super) fn disturb(&self) {
        let mut session = self.state.lock();
        let (state, wakes) = session.parts();
        while state.waiters.notify_next(wakes).is_some() {}
    }
}

impl sealed::Sealed for Pass {}

impl Op for Pass {
    type Output = ();

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Cloned before the lock; dropped after it if it is not needed.
        let waker = cx.waker().clone();
        let mut session = self.gate.state.lock();
        // The notified mark is cleared before the permits are looked at.
        let ticket = match self.ticket {
            Some(ticket) => {
                let old = session.waiters.rewait(ticket, waker);
                session.discard_waker(old);
                ticket
            }
            None => session.waiters.register((), waker),
        };
        if session.permits == 0 {
            self.ticket = Some(ticket);
            return Poll::Pending;
        }
        session.permits -= 1;
        self.ticket = None;
        let removed = session.waiters.remove(ticket);
        session.discard_waker(removed.and_then(|removed| removed.waker));
        Poll::Ready(())
    }

    fn cancel(&mut self) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        let mut session = self.gate.state.lock();
        let (state, wakes) = session.parts();
        let removed = state.waiters.remove(ticket);
        if removed.as_ref().is_some_and(|removed| removed.was_notified) {
            // The waiter has not used its notification.
            state.waiters.notify_next(wakes);
        }
        session.discard_waker(removed.and_then(|removed| removed.waker));
    }
}
