//! The end of a queue: closing it, and taking out what waits.

use crate::group::CLOSED;
use crate::sync::Ordering;

use super::shared::Shared;
use super::state::State;

impl<T> Shared<T> {
    /// Refuses all that is sent from now on. O(groups).
    pub(super) fn close(&self) {
        self.with_state(|state| self.close_under(state));
        self.capacity.close();
    }

    fn close_under(&self, state: &mut State<T>) {
        if std::mem::replace(&mut state.closed, true) {
            return;
        }
        for group in state.groups.all() {
            let mut mailbox = self.lock_group(state, &group);
            mailbox.flags |= CLOSED;
            let claimed = state.is_claimed(&mailbox);
            state.count_closed(&group, &mut mailbox, claimed);
        }
    }

    /// Closes, and takes out what waits: group by group, in ascending order of
    /// their ids. With `gone` nobody receives any more.
    pub(super) fn shut(&self, gone: bool) -> Vec<T> {
        let mut observers = Vec::new();
        let messages = self.with_state(|state| {
            self.close_under(state);
            // Relaxed: decided under the policy lock.
            if gone && !self.gone.swap(true, Ordering::Relaxed) {
                observers.extend(std::mem::take(&mut state.observers).into_values());
            }
            let mut messages = Vec::new();
            for group in state.groups.all() {
                messages.append(&mut self.drain(state, &group));
            }
            messages
        });
        self.capacity.close();
        for observer in &observers {
            observer.gone();
        }
        messages
    }
}
