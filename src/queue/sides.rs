//! What a conversation does for a dialog, of which it is one side.
//!
//! Protocol: a dialog decides under its own lock, and while it holds that,
//! takes the queue's to put an event in its place. Under the queue's lock it
//! lets its own go: so events have the order of the decisions, and no waker
//! runs under either.

use crate::error::Closed;
use crate::group::{POISONED, Phase, UNPINNED};
use crate::sync::{Ordering, WakeArc};

use super::Observer;
use super::handles::Conversation;
use super::state::Age;

impl<T> Conversation<T> {
    /// One more in the same group, also if this one has ended and something
    /// else keeps the group. `None` if it is gone.
    pub(crate) fn beside(&self) -> Result<Option<Self>, Closed> {
        let there = self.shared.with_state(|state| {
            state.open()?;
            let mut mailbox = self.group.lock();
            let there = mailbox.phase != Phase::Ended;
            if there {
                mailbox.add_pin();
                mailbox.flags &= !UNPINNED;
            }
            Ok(there)
        })?;
        Ok(there.then(|| Self::new(&self.shared, self.group.clone())))
    }

    /// Tells `keeper` if the queue is dropped, by the number that this returns.
    /// From now on the queue drops what comes back and is not `wanted`, which
    /// must be the same for all sides in one queue. `None` if it is gone.
    pub(crate) fn join(
        &self,
        keeper: WakeArc<dyn Observer>,
        wanted: fn(&T) -> bool,
    ) -> Option<u64> {
        _ = self.shared.wanted.set(wanted);
        self.shared.register(keeper).ok()
    }

    /// Puts an event last, or with `first` before all that waits in the group,
    /// whatever the capacity, and drops `held` when it has its place.
    ///
    /// A closed queue takes it too, while somebody will still be told of it.
    ///
    /// # Errors
    ///
    /// The event, if nobody will.
    pub(crate) fn put<H>(&self, event: T, first: bool, held: H) -> Result<(), T> {
        let (shared, group) = (&self.shared, &self.group);
        shared.with_state(|state| {
            let _held = held;
            let poisoned = group.lock().flags & POISONED != 0;
            let gone = shared.gone.load(Ordering::Relaxed);
            if gone || state.finished() && !poisoned {
                return Err(event);
            }
            shared.capacity.take_past(1);
            if !first {
                let sent = shared.put(state, group, None, [event]);
                debug_assert!(sent.is_ok(), "the last tier does not go down");
                return Ok(());
            }
            shared.change_group(state, group, |_, mailbox| {
                let rises = mailbox.phase == Phase::Idle;
                group.add_waiting(1);
                mailbox.put_first(event);
                ((), if rises { Age::New } else { Age::Same })
            });
            Ok(())
        })
    }

    /// Nothing that `fits` is received from now on: `mark` makes that known to
    /// `wanted`, and what waits is returned, to be dropped under no lock. Tells
    /// its keeper nothing any more, and ends the conversation.
    pub(crate) fn leave(
        &self,
        number: Option<u64>,
        mark: impl FnOnce(),
        fits: impl FnMut(&T) -> bool,
    ) -> Vec<T> {
        let (shared, group) = (&self.shared, &self.group);
        let (taken, _keeper) = shared.with_state(|state| {
            // Under the group's lock as well: what comes back asks there.
            let mailbox = group.lock();
            mark();
            drop(mailbox);
            // Dropped after the lock, as the rest.
            let keeper = number.and_then(|number| state.observers.remove(&number));
            (shared.retract(state, group, fits), keeper)
        });
        self.end();
        taken
    }
}
