//! A semaphore that is a list and a few loops, as SEMANTICS specifies it.

use conversant::limit::Bypass;
use conversant::semaphore::AcquireError;
use conversant::wait::WaiterState;

/// A waiter of the naive semaphore.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiter {
    pub(crate) id: usize,
    pub(crate) count: u32,
    pub(crate) state: State,
    /// How often it has been overtaken, and how many grants there were ahead of it: for the bound.
    pub(crate) overtaken: u64,
    pub(crate) grants: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    In(WaiterState),
    Refused(AcquireError),
}

pub(crate) struct Naive {
    pub(crate) limit: i64,
    pub(crate) out: i64,
    pub(crate) closed: bool,
    pub(crate) overtakings: u32,
    pub(crate) bypass: Bypass,
    /// In order of arrival; refused and granted waiters stay until they look.
    pub(crate) all: Vec<Waiter>,
    pub(crate) wakes: Vec<usize>,
}

impl Naive {
    pub(crate) fn available(&self) -> i64 {
        let granted = |w: &&Waiter| w.state == State::In(WaiterState::Granted);
        let granted: i64 = self
            .all
            .iter()
            .filter(granted)
            .map(|w| i64::from(w.count))
            .sum();
        self.limit - self.out - granted
    }

    pub(crate) fn is_queued(w: &Waiter) -> bool {
        matches!(
            w.state,
            State::In(WaiterState::Waiting | WaiterState::Notified)
        )
    }

    pub(crate) fn queued(&self) -> impl Iterator<Item = &Waiter> {
        self.all.iter().filter(|w| Self::is_queued(w))
    }

    pub(crate) fn bypass_is_used_up(&self) -> bool {
        match self.bypass {
            Bypass::AtMost(most) => self.overtakings >= most,
            Bypass::Unbounded => false,
        }
    }

    /// The sum of the requests up to and including this one.
    pub(crate) fn requested_up_to(&self, id: usize) -> i64 {
        let ahead = self.queued().take_while(|w| w.id <= id);
        ahead.map(|w| i64::from(w.count)).sum()
    }

    pub(crate) fn try_acquire(&mut self, count: u32) -> Result<(), AcquireError> {
        let n = i64::from(count);
        if self.closed {
            return Err(AcquireError::Closed);
        }
        if count == 0 {
            return Ok(());
        }
        if n > self.limit && self.limit > 0 {
            return Err(AcquireError::AboveLimit);
        }
        if self.available() < n {
            return Err(AcquireError::NoPermits);
        }
        if self.queued().next().is_some() {
            if self.bypass_is_used_up() {
                if self.available() < self.requested_up_to(usize::MAX) + n {
                    return Err(AcquireError::NoPermits);
                }
            } else {
                if self.bypass != Bypass::Unbounded {
                    self.overtakings += 1;
                }
                for w in self.all.iter_mut().filter(|w| Self::is_queued(w)) {
                    w.overtaken += 1;
                }
            }
        }
        self.out += n;
        Ok(())
    }

    /// A queued waiter has been granted its permits.
    pub(crate) fn granted(&mut self, id: usize) {
        if self.queued().next().map(|w| w.id) == Some(id) {
            self.overtakings = 0;
        }
        for w in self
            .all
            .iter_mut()
            .filter(|w| w.id > id && Self::is_queued(w))
        {
            w.grants += 1;
        }
        if self.queued().all(|w| w.id == id) {
            self.overtakings = 0;
        }
        let w = self.all.iter().find(|w| w.id == id).unwrap();
        if let Bypass::AtMost(most) = self.bypass {
            let bound = u64::from(most) * (w.grants + 1);
            assert!(w.overtaken <= bound, "{w:?} was overtaken beyond {bound}");
        }
    }

    /// `None` if it must wait on.
    pub(crate) fn look(&mut self, id: usize) -> Option<Result<(), AcquireError>> {
        let at = self.all.iter().position(|w| w.id == id).unwrap();
        let n = i64::from(self.all[at].count);
        match self.all[at].state {
            State::Refused(error) => {
                self.all.remove(at);
                // A refused waiter that is polled after the close gets `Closed`.
                return Some(Err(if self.closed {
                    AcquireError::Closed
                } else {
                    error
                }));
            }
            State::In(WaiterState::Granted) => {}
            State::In(_) if self.requested_up_to(id) <= self.available() => self.granted(id),
            State::In(_) => {
                self.all[at].state = State::In(WaiterState::Waiting);
                return None;
            }
        }
        self.all.remove(at);
        self.out += n;
        Some(Ok(()))
    }

    pub(crate) fn wake(&mut self, id: usize, state: State) {
        let w = self.all.iter_mut().find(|w| w.id == id).unwrap();
        if w.state == State::In(WaiterState::Waiting) {
            self.wakes[id] += 1;
        }
        w.state = state;
    }

    pub(crate) fn serve(&mut self) {
        loop {
            let Some(front) = self.queued().next().cloned() else {
                self.overtakings = 0;
                return;
            };
            if self.bypass_is_used_up() {
                if i64::from(front.count) > self.available() {
                    return;
                }
                self.granted(front.id);
                self.wake(front.id, State::In(WaiterState::Granted));
                continue;
            }
            let unnotified = self
                .queued()
                .find(|w| w.state == State::In(WaiterState::Waiting));
            let Some(id) = unnotified.map(|w| w.id) else {
                return;
            };
            if self.requested_up_to(id) > self.available() {
                return;
            }
            self.wake(id, State::In(WaiterState::Notified));
        }
    }

    pub(crate) fn refuse_waiters(&mut self, error: AcquireError, whom: impl Fn(&Waiter) -> bool) {
        let ids: Vec<_> = self.queued().filter(|w| whom(w)).map(|w| w.id).collect();
        for id in ids {
            self.wake(id, State::Refused(error));
        }
    }

    pub(crate) fn set_limit(&mut self, limit: i64) {
        self.limit = limit;
        let above = |w: &Waiter| limit > 0 && i64::from(w.count) > limit;
        self.refuse_waiters(AcquireError::AboveLimit, above);
        self.serve();
    }
}
