//! Peeks: a look at the first waiting message of a group.

use std::ops::Deref;

use crate::error::Stale;
use crate::group::{PEEKED, Phase, Taken, ordinal};
use crate::ready::Age;
use crate::shown::shows;
use crate::sync::Arc;

use super::holders::Holder;
use super::id::GroupId;
use super::refuse::{NoTurn, Why};
use super::shared::Shared;
use super::{GroupRef, Queue, special};

/// A look at the first waiting message of a group.
///
/// While it lives, nobody receives from the group, as during a turn. The message still waits:
/// it does not count as in flight, and no attempt is counted. After the look the group returns
/// to its old place in line; if a delivery of the group ended meanwhile, it becomes the
/// youngest.
///
/// [`drain`](Queue::drain) and [`shutdown`](Queue::shutdown) leave the message here. It waits
/// again after the look, or is dropped if its queue or its side of a [dialog](crate::dialog) is
/// gone by then. If a `Peek` is forgotten (`mem::forget`), its group stays for ever.
#[must_use = "dropping it ends the look"]
pub struct Peek<T> {
    shared: Arc<Shared<T>>,
    group: GroupRef<T>,
    /// `None` only during its drop.
    taken: Option<Taken<T>>,
    holder: Holder,
}

impl<T> Queue<T> {
    /// The [number](Peek::number) of the first waiting message of a group, and how many
    /// deliveries of it failed. `None` if nothing waits.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn peek(&self, group: GroupId) -> Result<Option<(u64, u32)>, Stale> {
        let head = self.find(group)?.lock().head();
        Ok(head.map(|head| (ordinal(head.place()), head.attempts)))
    }

    /// Looks at the first waiting message of a group, even if the group is paused, poisoned or
    /// otherwise blocked.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::{Queue, NoTurn};
    ///
    /// let queue = Queue::new();
    /// let conversation = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// conversation.send_all(["first", "second"])?;
    /// let first = queue.try_peek(conversation.group_id())?;
    /// assert_eq!((*first, first.number()), ("first", 1));
    /// assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    /// drop(first);
    /// let mut turn = queue.try_receive()?;
    /// assert_eq!(queue.try_peek(conversation.group_id()).err(), Some(NoTurn::Held));
    /// assert_eq!(turn.next().map(|delivery| delivery.attempt()), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoTurn::Held`] during a turn or another look of the group, `Empty` if nothing
    /// waits, `Stale` if the group is gone.
    pub fn try_peek(&self, group: GroupId) -> Result<Peek<T>, NoTurn> {
        let shared = self.shared();
        self.by_name(group, |state, group| {
            let mut mailbox = shared.lock_group(state, group);
            match state.why(group, &mailbox) {
                Why::Held => return Err(NoTurn::Held),
                Why::Idle => return Err(NoTurn::Empty),
                _ => {}
            }
            state.dequeue(&mut mailbox);
            mailbox.phase = Phase::Held;
            mailbox.flags |= PEEKED;
            let taken = group.take(&mut mailbox);
            // It still waits.
            group.add_waiting(1);
            mailbox.rare().peeked = taken.as_ref().map(Taken::head);
            state.place(&shared.submissions, group, &mut mailbox, Age::Same);
            drop(mailbox);
            Ok(Peek {
                shared: Arc::clone(shared),
                group: group.clone(),
                taken,
                holder: shared.capacity.hold(),
            })
        })?
    }
}

impl<T> Peek<T> {
    /// The message's group.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        self.shared.id(self.group.key())
    }

    /// The message's number, from 1, in order among the messages sent into the group; for an error
    /// of a dialog, among the errors.
    #[must_use]
    pub fn number(&self) -> u64 {
        ordinal(self.taken().place())
    }

    /// How many deliveries of the message failed.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.taken().attempts
    }

    fn taken(&self) -> &Taken<T> {
        self.taken.as_ref().expect("there until it is dropped")
    }
}

impl<T> Deref for Peek<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.taken().message
    }
}

impl<T> Drop for Peek<T> {
    fn drop(&mut self) {
        let Some(mut taken) = self.taken.take() else {
            return;
        };
        let (shared, group) = (&self.shared, &self.group);
        shared.capacity.let_go(&mut self.holder);
        shared.with_group(group, |state, mailbox| {
            mailbox.phase = Phase::Idle;
            mailbox.flags &= !PEEKED;
            if let Some(head) = mailbox.rare().peeked.take() {
                // The attempts may have been reset.
                taken.attempts = head.attempts;
            }
            group.remove_waiting(1);
            let (place, wanted) = (taken.place(), shared.wants(&taken.message));
            special::give_back(shared, state, group, mailbox, (taken, false, None));
            let poison = state.suspended.poison(group.key());
            let is_poison = poison.is_some_and(|poison| poison.place() == place);
            match group.waiting() == 0 || is_poison && !wanted {
                true => ((), state.go_on(group, mailbox).1),
                false => ((), Age::Same),
            }
        });
    }
}

shows! {
    /// Without the message, so that it works for every type.
    [T] Peek<T>, |peek|
    group: peek.group_id(), number: peek.number(), attempts: peek.attempts()
}
