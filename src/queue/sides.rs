//! What a conversation does for a dialog, of which it is one side.
//!
//! Protocol: a dialog decides under its own lock, and while it holds that,
//! takes the queue's to put an event in its place. Under the queue's lock it
//! lets its own go: so events have the order of the decisions, and no waker
//! runs under either.

use crate::dispatch::Aside;
use crate::error::Closed;
use crate::sync::WakeArc as Arc;

use super::handles::Conversation;
use super::homes::Forget;

impl<T> Conversation<T> {
    /// One more in the same group, also if this one has ended and something
    /// else keeps the group. `None` if it is gone.
    pub(crate) fn beside(&self) -> Result<Option<Self>, Closed> {
        let there = self.shared.event(|books| {
            books.open()?;
            let there = books.backlog.contains(self.key);
            if there {
                books.backlog.pin(self.key);
            }
            Ok(there)
        })?;
        Ok(there.then(|| Self::new(&self.shared, self.key)))
    }

    /// Tells `keeper` if the queue is dropped, by the number that this returns.
    /// From now on the queue drops what comes back and is not `wanted`, which
    /// must be the same for all sides in one queue. `None` if it is gone.
    pub(crate) fn join(&self, keeper: Arc<dyn Forget>, wanted: fn(&T) -> bool) -> Option<u64> {
        self.shared.event(|books| {
            if books.gone {
                books.discard(keeper);
                return None;
            }
            books.wanted = Some(wanted);
            Some(books.homes.add(keeper))
        })
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
        self.shared.event(|books| {
            let _held = held;
            let poisoned = books.backlog.aside(self.key) == Some(Aside::Poisoned);
            if books.gone || books.finished() && !poisoned {
                return Err(event);
            }
            if first {
                books.backlog.send_first(self.key, event);
            } else {
                let sent = books.backlog.send(self.key, None, None, event);
                debug_assert!(sent.is_ok(), "the last tier does not go down");
            }
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
        let taken = self.shared.event(|books| {
            mark();
            let keeper = number.and_then(|number| books.homes.remove(number));
            books.discard(keeper);
            books.retract(self.key, fits)
        });
        self.end();
        taken
    }
}
