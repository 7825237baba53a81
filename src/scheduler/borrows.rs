//! The tokens of a scope: how many tasks may still use borrowed values, and who waits for them.

use std::task::{Context, Poll, Waker};

use crate::sync::Arc;
use crate::wait::{Guarded, look_twice};

/// The tokens of one scope.
pub(crate) struct Borrows(Guarded<State>);

#[derive(Debug, Default)]
struct State {
    tokens: usize,
    /// Of the thread that waits until there is no token.
    waker: Option<Waker>,
    panicked: bool,
}

/// While it exists, borrowed values may be used.
pub(super) struct Token {
    pub(super) of: Arc<Borrows>,
    /// If it is dropped now, its task has panicked, and nothing else reports that.
    pub(super) panics: bool,
}

impl Borrows {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Guarded::new(State::default())))
    }

    pub(super) fn token(self: &Arc<Self>) -> Token {
        self.0.lock().tokens += 1;
        let of = Arc::clone(self);
        Token { of, panics: false }
    }

    /// Whether there is no token. Then only the owner of the scope can make another.
    pub(super) fn are_over(&self) -> bool {
        self.0.lock().tokens == 0
    }

    /// Whether a task has panicked that nothing else reports.
    pub(super) fn panicked(&self) -> bool {
        self.0.lock().panicked
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        look_twice(cx, |current, cloned| {
            let mut state = self.0.lock();
            if state.tokens == 0 {
                return Some(Poll::Ready(()));
            }
            let waits = |left: &Waker| left.will_wake(current);
            if !state.waker.as_ref().is_some_and(waits) {
                *cloned = state.waker.replace(cloned.take()?);
            }
            Some(Poll::Pending)
        })
    }

    /// The thread stops waiting.
    pub(super) fn leave(&self) {
        let mut state = self.0.lock();
        let left = state.waker.take();
        state.discard_waker(left);
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let mut session = self.of.0.lock();
        let (state, wakes) = session.parts();
        state.tokens -= 1;
        state.panicked |= self.panics;
        if state.tokens == 0 {
            wakes.extend(state.waker.take());
        }
    }
}

/// By identity.
impl PartialEq for Borrows {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
