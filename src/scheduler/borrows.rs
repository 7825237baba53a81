//! The tokens of a scope: how many tasks may still use borrowed values, and who waits for them.

use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, AtomicBool, Ordering::Relaxed};
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
    /// If it is dropped now, its task has panicked.
    pub(super) panics: bool,
    /// Shared with the handle of its task, if that has one.
    fate: Option<Arc<Fate>>,
}

/// What a task of a scope and its handle know of each other: whether the task has panicked, or the
/// handle was dropped without the outcome. The second of the two tells the scope.
pub(super) struct Fate {
    of: Arc<Borrows>,
    /// One of them has happened.
    one: AtomicBool,
}

impl Fate {
    pub(super) fn new(of: &Arc<Borrows>) -> Arc<Self> {
        let (of, one) = (Arc::clone(of), AtomicBool::new(false));
        Arc::new(Self { of, one })
    }

    /// The handle is dropped, and nobody has taken the outcome.
    pub(super) fn abandon(&self) {
        if self.happens() {
            self.of.0.lock().panicked = true;
        }
    }

    /// One happens. Returns whether the other has happened before.
    fn happens(&self) -> bool {
        self.one.swap(true, Relaxed)
    }
}

impl Borrows {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Guarded::new(State::default())))
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

impl Token {
    pub(super) fn new(of: &Arc<Borrows>, fate: Option<Arc<Fate>>) -> Self {
        of.0.lock().tokens += 1;
        let (of, panics) = (Arc::clone(of), false);
        Self { of, panics, fate }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let fate = self.fate.as_ref();
        let untold = self.panics && fate.is_none_or(|fate| fate.happens());
        let mut session = self.of.0.lock();
        let (state, wakes) = session.parts();
        state.tokens -= 1;
        state.panicked |= untold;
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
