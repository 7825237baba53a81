//! What becomes of a group whose message fails: back-off, poison, and the way
//! back.

use std::time::Duration;

use crate::group::{Mailbox, PEEKED, POISONED, Phase, SUSPENDED, Taken, ordinal};

use super::GroupRef;
use super::handles::GroupId;
use super::shared::Shared;
use super::state::{Age, State};

/// A group that was set aside because a message of it failed too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// Its name.
    pub group: GroupId,
    /// Which message it was: the n-th that was sent into the group; an error of
    /// a dialog: the n-th error.
    pub message: u64,
    /// How often it was delivered in vain.
    pub attempts: u32,
    /// How many messages wait in the group, that one counted.
    pub waiting: usize,
}

impl<T> State<T> {
    /// Lets a locked group go on that is set aside; false if it is not. From
    /// poison it comes back as the youngest, its attempts begun anew.
    fn go_on(&mut self, group: &GroupRef<T>, mailbox: &mut Mailbox<T>) -> (bool, Age) {
        let was = self.suspended.forget(group.key());
        let poisoned = mailbox.flags & POISONED != 0;
        mailbox.flags &= !SUSPENDED;
        if poisoned {
            mailbox.start_anew();
        }
        (was, if poisoned { Age::New } else { Age::Same })
    }
}

impl<T> Shared<T> {
    /// Lets a group go on that is set aside; false if it is not.
    pub(super) fn resume(&self, state: &mut State<T>, group: &GroupRef<T>) -> bool {
        self.change_group(state, group, |state, mailbox| state.go_on(group, mailbox))
    }

    /// Takes out all that waits in a group but what somebody looks at; it is set
    /// aside no more.
    pub(super) fn drain(&self, state: &mut State<T>, group: &GroupRef<T>) -> Vec<T> {
        self.change_group(state, group, |state, mailbox| {
            let taken = mailbox.drain();
            group.remove_waiting(taken.len() as u32);
            self.free(state, taken.len());
            let (_, age) = state.go_on(group, mailbox);
            let messages = taken.into_iter().map(|taken| taken.message);
            (messages.collect(), age)
        })
    }

    /// Takes out what waits in a group and `fits`. The group goes on if that
    /// was what it was set aside for, or all that it had.
    pub(super) fn retract(
        &self,
        state: &mut State<T>,
        group: &GroupRef<T>,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Vec<T> {
        self.change_group(state, group, |state, mailbox| {
            let cause = state.suspended.poisoned.get(&group.key()).copied();
            let all = mailbox.drain().into_iter();
            let (out, stay): (Vec<_>, Vec<_>) = all.partition(|taken| fits(&taken.message));
            group.remove_waiting(out.len() as u32);
            self.free(state, out.len());
            mailbox.restore(stay);
            let cured = cause.is_some_and(|(place, _)| out.iter().any(|t| t.place() == place));
            let mut age = Age::Same;
            if cured || group.waiting() == 0 {
                age = state.go_on(group, mailbox).1;
            }
            let messages = out.into_iter().map(|taken| taken.message);
            (messages.collect(), age)
        })
    }

    /// Ends a look at a message, which goes to its place; itself if nobody will
    /// ever receive it. The group goes on if that was all that it had.
    pub(super) fn end_look(
        &self,
        state: &mut State<T>,
        group: &GroupRef<T>,
        mut taken: Taken<T>,
    ) -> Option<T> {
        self.change_group(state, group, |state, mailbox| {
            mailbox.phase = Phase::Idle;
            mailbox.flags &= !PEEKED;
            if let Some(head) = mailbox.rare().peeked.take() {
                // They may have been started anew.
                taken.attempts = head.attempts;
            }
            group.remove_waiting(1);
            if self.wants(&taken.message) {
                group.put_back(mailbox, taken);
                return (None, Age::Same);
            }
            self.free(state, 1);
            let age = match group.waiting() {
                0 => state.go_on(group, mailbox).1,
                _ => Age::Same,
            };
            (Some(taken.message), age)
        })
    }

    /// Tells the time; when to tell it next.
    pub(super) fn advance(&self, now: Duration) -> Option<Duration> {
        self.with_state(|state| {
            state.suspended.timers.advance(now);
            while let Some((_, key)) = state.suspended.timers.due() {
                if let Some(group) = state.group(key) {
                    self.resume(state, &group);
                }
            }
            state.suspended.timers.next()
        })
    }

    /// The poisoned groups, by name.
    pub(super) fn poisoned(&self) -> Vec<Poisoned> {
        self.with_state(|state| {
            let poisoned = state.suspended.poisoned.iter();
            let listed = poisoned.filter_map(|(&key, &(place, attempts))| {
                let group = state.group(key)?;
                Some(Poisoned {
                    group: GroupId::new(self, key),
                    message: ordinal(place),
                    attempts,
                    waiting: group.waiting() as usize,
                })
            });
            listed.collect()
        })
    }
}
