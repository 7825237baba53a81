//! What tasks borrow from a scope: who still may use it, and who waits until nobody may.

use std::task::{Context, Poll, Waker};

use crate::sync::Arc;
use crate::wait::{Guarded, look_twice};

/// What one scope lends.
pub(crate) struct Borrows(Guarded<State>);

#[derive(Debug, Default)]
struct State {
    tokens: usize,
    /// Of who waits until there is none.
    waker: Option<Waker>,
    panicked: bool,
}

/// While it is there, something lent may be used.
pub(super) struct Token {
    of: Arc<Borrows>,
    /// If it goes now its task has panicked, and nobody else will tell.
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

    /// Whether nobody has a token. Then nobody can make another, but who has the scope.
    pub(super) fn are_over(&self) -> bool {
        self.0.lock().tokens == 0
    }

    /// Whether a task has panicked, and nobody else tells.
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

    /// Nobody waits any more.
    pub(super) fn leave(&self) {
        let mut state = self.0.lock();
        let left = state.waker.take();
        state.discard_waker(left);
    }
}

impl Token {
    pub(super) fn is_of(&self, scope: &Borrows) -> bool {
        *self.of == *scope
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

/// The same scope.
impl PartialEq for Borrows {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
