//! How a suspended group goes on: resumed, drained, or when its pause is over.

use std::time::Duration;

use crate::error::Stale;
use crate::group::{Mailbox, POISONED, SUSPENDED, ordinal};

use super::handles::GroupId;
use super::shared::Shared;
use super::state::{Age, State};
use super::suspended::Suspension;
use super::{GroupRef, Queue};

/// A group that waits to be resumed, since a message of it failed too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// Its name.
    pub group: GroupId,
    /// The [number](super::Peek::number) of that message.
    pub message: u64,
    /// How often it was delivered in vain.
    pub attempts: u32,
    /// How many messages wait in the group, that one counted.
    pub waiting: usize,
}

impl<T> Queue<T> {
    /// The groups a message of which was delivered in vain as often as the
    /// [`Builder`](super::Builder) allows. O(suspended groups).
    #[must_use]
    pub fn poisoned(&self) -> Vec<Poisoned> {
        let shared = self.shared();
        shared.with_state(|state| {
            let all = state.suspended.groups.iter();
            let poisoned = all.filter_map(|(&key, suspension)| match *suspension {
                Suspension::BackingOff(_) => None,
                Suspension::Poisoned(place, attempts) => Some(Poisoned {
                    group: GroupId::new(shared, key),
                    message: ordinal(place),
                    attempts,
                    waiting: state.group(key).map_or(0, |g| g.waiting() as usize),
                }),
            });
            poisoned.collect()
        })
    }

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
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        let shared = self.shared();
        shared.with_state(|state| {
            state.suspended.timers.advance(now);
            while let Some((_, key)) = state.suspended.timers.due() {
                if let Some(group) = state.group(key) {
                    shared.resume(state, &group);
                }
            }
            state.suspended.timers.next()
        })
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
    /// at. The group goes on with `resumes`, or if that poisoned it, or was all.
    pub(super) fn take_out(
        &self,
        state: &mut State<T>,
        group: &GroupRef<T>,
        mut resumes: bool,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Vec<T> {
        self.change_group(state, group, |state, mailbox| {
            let cause = state.suspended.cause(group.key());
            let mut all = mailbox.drain();
            let out = all.extract_if(.., |taken| fits(&taken.message));
            let out = out.map(|taken| {
                resumes |= cause == Some(taken.place());
                taken.message
            });
            let out: Vec<T> = out.collect();
            mailbox.restore(all);
            group.remove_waiting(out.len() as u32);
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
