//! The guards of a lock.

use std::ops::Deref;
use std::task::{Context, Poll};

use super::claim::{Claim, Own};
use super::error::{Deadlock, NotWeaker, WouldBlock};
use super::{IntentLock, Place};
use crate::modes::Mode;
use crate::shown::shows;
use crate::turnstile::{Admission, AdmissionOf, Released, Turnstile};
use crate::wait::{ClonedWaker, Op, Ticket, Wait, sealed};

/// One mode of an [`IntentLock`], released on drop.
///
/// What was done before the release is visible to every later holder of a mode that conflicts with
/// this one. After [`std::mem::forget`] the mode is held for ever.
///
/// # Cost
///
/// Dropping is one read-modify-write. If somebody waits for this mode, it also takes a short lock,
/// and wakes each waiter that can go on at most once.
///
/// # Panics
///
/// Dropping and downgrading never panic: a waker that they wake and that panics stops nobody.
#[must_use = "the mode is released when this is dropped"]
pub struct Guard<L: Deref<Target = IntentLock>> {
    lock: L,
    mode: Mode,
    pub(super) place: Place,
    /// The ticket of a conversion that waits.
    waiting: Option<Ticket>,
}

impl<L: Deref<Target = IntentLock>> Guard<L> {
    /// Makes a guard of a mode that has just been taken.
    #[inline]
    pub(super) fn of(lock: L, mode: Mode, place: Place) -> Self {
        Self {
            lock,
            mode,
            place,
            waiting: None,
        }
    }

    /// The mode that is held.
    #[inline]
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The lock of this guard.
    #[must_use]
    pub fn lock(&self) -> &IntentLock {
        &self.lock
    }

    /// Waits until this guard holds `mode` as well.
    /// It then holds the [join](Mode::join) of `mode` and what it held, which it keeps meanwhile.
    /// If it covers `mode` already, the wait ends at once.
    ///
    /// A conversion is queued ahead of the first waiter that what the guard holds keeps out, or at
    /// the end if there is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the wait leaves the queue; the guard holds what it held.
    ///
    /// # Errors
    ///
    /// [`Deadlock`] at once if the conversion of another guard waits until this guard is gone, and
    /// this conversion would wait until the other guard is gone. The guard holds what it held;
    /// dropping it lets the other go on.
    ///
    /// A guard that waits for another guard of the same thread is not detected: the lock does not
    /// know who owns its guards.
    ///
    /// ```
    /// use conversant::intent::IntentLock;
    /// use conversant::modes::Mode;
    ///
    /// let lock = IntentLock::new();
    /// let mut guard = lock.lock(Mode::S).wait();
    /// guard.convert(Mode::Ix).wait()?;
    /// assert_eq!(guard.mode(), Mode::Six);
    /// # Ok::<(), conversant::intent::Deadlock>(())
    /// ```
    pub fn convert(&mut self, mode: Mode) -> Wait<impl Op<Output = Result<(), Deadlock>>>
    where
        L: Unpin,
    {
        self.cancel_conversion();
        let asked = self.mode.join(mode);
        Wait::new(Convert { guard: self, asked })
    }

    /// [`convert`](Self::convert), if that is possible now. It goes ahead of the same waiters, also
    /// at the bound on overtaking; others it overtakes by the same rule as every caller.
    ///
    /// # Errors
    ///
    /// If that is not possible now; the guard holds what it held.
    pub fn try_convert(&mut self, mode: Mode) -> Result<(), WouldBlock> {
        self.cancel_conversion();
        let asked = self.mode.join(mode);
        if self.convert_now(asked) {
            return Ok(());
        }
        match self.convert_exactly(asked, None) {
            Admission::Granted(_) => Ok(()),
            _ => Err(WouldBlock),
        }
    }

    /// Keeps only the weaker `mode`. Every waiter that can go on beside it does.
    ///
    /// # Errors
    ///
    /// If what is held does not [cover](Mode::covers) it; nothing has changed.
    ///
    /// ```
    /// use conversant::intent::IntentLock;
    /// use conversant::modes::Mode;
    ///
    /// let lock = IntentLock::new();
    /// let mut guard = lock.lock(Mode::X).wait();
    /// guard.downgrade(Mode::S)?;
    /// assert!(lock.try_lock(Mode::S).is_ok());
    /// assert!(guard.downgrade(Mode::Ix).is_err());
    /// # Ok::<(), conversant::intent::NotWeaker>(())
    /// ```
    pub fn downgrade(&mut self, mode: Mode) -> Result<(), NotWeaker> {
        self.cancel_conversion();
        let held = self.mode;
        if !held.covers(mode) {
            return Err(NotWeaker { held, asked: mode });
        }
        if held != mode {
            // In this order, because a dereference in it may be the user's code.
            self.weaken(held, mode);
            self.mode = mode;
        }
        Ok(())
    }

    fn weaken(&mut self, from: Mode, to: Mode) {
        let lock = &*self.lock;
        let released = match (self.place, &lock.stripes.0) {
            (Place::Stripe(stripe), Some(stripes)) => Some(stripes.weaken(stripe)),
            (Place::Word, _) => lock.word.weaken(from, to),
            _ => None,
        };
        match released {
            Some(Released::Done) => {}
            Some(Released::Serve) => lock.serve(),
            None => self.weaken_under_the_lock(from, to),
        }
    }

    #[cold]
    fn weaken_under_the_lock(&mut self, from: Mode, to: Mode) {
        // First, because it may be the user's code.
        let lock = &*self.lock;
        let mut session = lock.queue.lock();
        let spill = &mut session.state;
        if self.place == Place::Spill {
            spill.0[from as usize] -= 1;
        }
        let in_word = (self.place == Place::Word).then_some(from);
        self.place = lock.word.count_in(to, in_word);
        spill.counted(to, self.place);
        lock.serve_queue(session);
    }

    /// Tries a conversion under the queue's lock; with a cloned waker it waits if that fails.
    /// The place where the guard's own mode is counted may change even then.
    #[cold]
    fn convert_exactly(
        &mut self,
        asked: Mode,
        cloned: Option<&mut ClonedWaker>,
    ) -> AdmissionOf<IntentLock> {
        let (mode, place) = (self.mode, self.place);
        let own = Some(Own { mode, place });
        let mut claim = Claim { ask: asked, own };
        let admission = match cloned {
            Some(cloned) => self.lock.poll_queue(&mut claim, &mut self.waiting, cloned),
            None => self.lock.try_exactly(&mut claim),
        };
        self.place = claim.own.expect("as above").place;
        if let Admission::Granted(place) = admission {
            (self.mode, self.place) = (asked, place);
        }
        admission
    }

    /// Returns true if it holds `asked` already, or could take it by one compare-and-swap.
    #[inline]
    fn convert_now(&mut self, asked: Mode) -> bool {
        if asked == self.mode {
            return true;
        }
        let lock = &*self.lock;
        let in_word = self.place == Place::Word;
        let taken = in_word && lock.word.take(lock.word.load(), asked, Some(self.mode));
        if taken {
            self.mode = asked;
        }
        taken
    }

    /// Cancels a conversion that waits.
    #[inline]
    pub(super) fn cancel_conversion(&mut self) {
        if let Some(ticket) = self.waiting.take() {
            self.give_up(ticket);
        }
    }

    #[cold]
    fn give_up(&mut self, ticket: Ticket) {
        let own = self.lock.cancel(ticket).and_then(|claim| claim.own);
        self.place = own.expect("a conversion has something of its own").place;
    }
}

impl<L: Deref<Target = IntentLock>> Drop for Guard<L> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cancel_conversion();
        self.lock.release(self.mode, self.place);
    }
}

shows!([L: Deref<Target = IntentLock>] Guard<L>, |this| mode: this.mode);

/// The operation that [`Guard::convert`] waits for: a stronger mode for a guard.
#[derive(Debug)]
pub struct Convert<'a, L: Deref<Target = IntentLock>> {
    pub(super) guard: &'a mut Guard<L>,
    pub(super) asked: Mode,
}

impl<L: Deref<Target = IntentLock>> sealed::Sealed for Convert<'_, L> {}

impl<L: Deref<Target = IntentLock> + Unpin> Op for Convert<'_, L> {
    type Output = Result<(), Deadlock>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Deadlock>> {
        let (guard, asked) = (&mut *self.guard, self.asked);
        let waited = guard.waiting.is_some();
        if !waited && guard.convert_now(asked) {
            return Poll::Ready(Ok(()));
        }
        let mut cloned = ClonedWaker::of(cx);
        match guard.convert_exactly(asked, Some(&mut cloned)) {
            Admission::Granted(_) => Poll::Ready(Ok(())),
            Admission::Refused(deadlock) => Poll::Ready(Err(deadlock)),
            Admission::NotNow => {
                if !waited {
                    // Conversions that moved ahead with this one may go on now.
                    guard.lock().serve();
                }
                Poll::Pending
            }
        }
    }

    fn cancel(&mut self) {
        self.guard.cancel_conversion();
    }
}
