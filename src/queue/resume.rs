//! How a suspended group goes on: resumed, drained, or when its pause is over.

use std::time::Duration;

use crate::due::{Dates, Timed};
use crate::error::Stale;
use crate::group::{Mailbox, POISONED, SUSPENDED, Taken};
use crate::ready::Age;
use crate::wait::sealed;

use super::id::GroupId;
use super::shared::Shared;
use super::state::State;
use super::suspended::Suspended;
use super::{GroupRef, Queue};

impl<T> Queue<T> {
    /// Lets a group go on that is poisoned or in back-off; false if it is
    /// neither. From poison it comes back as the youngest, and the attempts of
    /// all that waits in it start anew: O(messages) under the queue's lock.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn resume(&self, group: GroupId) -> Result<bool, Stale> {
        let shared = self.shared();
        self.by_name(group, |state, group| shared.resume(state, group))
    }

    /// Takes out all that waits in a group, in order, and lets the group go on.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn drain(&self, group: GroupId) -> Result<Vec<T>, Stale> {
        let shared = self.shared();
        self.by_name(group, |state, group| shared.drain(state, group))
    }

    /// Tells the time, since an origin of the caller's choice, and ends every
    /// [back-off](super::Builder::back_off) that is over. Gives the time at which
    /// to call it again, if any. An earlier time than the last changes nothing.
    ///
    /// A [`Ticker`](crate::ticker::Ticker) does it by itself.
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        let shared = self.shared();
        shared.with_state(|state| {
            state.suspended.timers.advance(now);
            while let Some((_, key)) = state.suspended.timers.due() {
                if let Some(group) = state.groups.get(key) {
                    shared.resume(state, &group);
                }
            }
            state.suspended.timers.next()
        })
    }
}

impl<T> sealed::Sealed for Queue<T> {}

impl<T> Timed for Queue<T> {
    fn advance(&self, now: Duration) -> Option<Duration> {
        Self::advance(self, now)
    }

    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        self.shared().with_state(|state| {
            let Suspended { timers, dates, .. } = &mut state.suspended;
            f(timers.next(), dates);
        });
    }
}

impl<T> Shared<T> {
    fn resume(&self, state: &mut State<T>, group: &GroupRef<T>) -> bool {
        self.change_group(state, group, |state, mailbox| state.go_on(group, mailbox))
    }

    pub(super) fn drain(&self, state: &mut State<T>, group: &GroupRef<T>) -> Vec<T> {
        self.take_out(state, group, true, |_| true)
    }

    /// Takes out what waits in a group and `fits`, but for what somebody looks
    /// at. The group goes on if it `resumes`, if the message that poisoned it was
    /// taken out, or if nothing waits any more.
    pub(super) fn take_out(
        &self,
        state: &mut State<T>,
        group: &GroupRef<T>,
        mut resumes: bool,
        mut fits: impl FnMut(&Taken<T>) -> bool,
    ) -> Vec<T> {
        self.change_group(state, group, |state, mailbox| {
            let cause = state.suspended.poison(group.key());
            let cause = cause.map(|poison| poison.place);
            let mut all: Vec<_> = std::iter::from_fn(|| group.take(mailbox)).collect();
            let out = all.extract_if(.., |taken| fits(taken));
            let out = out.map(|taken| {
                resumes |= cause == Some(taken.place());
                taken.message
            });
            let out: Vec<T> = out.collect();
            let back = all.into_iter().rev();
            back.for_each(|taken| group.put_back(mailbox, taken));
            self.free(state, out.len());
            if resumes || group.waiting() == 0 {
                let (_, age) = state.go_on(group, mailbox);
                return (out, age);
            }
            (out, Age::Same)
        })
    }
}

impl<T> State<T> {
    /// Lets a locked group go on that is suspended; false if it is not. From
    /// poison it comes back as the youngest, its attempts begun anew.
    pub(super) fn go_on(&mut self, group: &GroupRef<T>, mailbox: &mut Mailbox<T>) -> (bool, Age) {
        let was = self.suspended.forget(group.key());
        let poisoned = mailbox.flags & POISONED != 0;
        mailbox.flags &= !SUSPENDED;
        if poisoned {
            mailbox.start_anew();
        }
        (was, if poisoned { Age::New } else { Age::Same })
    }
}
