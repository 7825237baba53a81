//! A look at the message that waits first in a group.

use std::fmt;
use std::ops::Deref;

use crate::dispatch::{Blocked, GroupKey};
use crate::sync::Arc;

use super::Queue;
use super::handles::GroupId;
use super::refuse::{NoTurn, TryReceiveFrom};
use super::room::Holder;
use super::shared::Shared;

/// The message that waits first in a group, to look at.
///
/// As no code of the user's runs under the queue's lock, a look has the message
/// to itself: while it lives nobody receives from the group, as during a turn.
/// The message waits all the same: it keeps its place, its tier and its room, it
/// is in flight for no limit, and no attempt is counted. Dropped, the message is
/// where it was, and the group stands in line where it stood, with its bump; but
/// if a delivery of it ended meanwhile, as the youngest, as after a turn.
///
/// What takes out all that waits, [`drain`](Queue::drain) and
/// [`shutdown`](Queue::shutdown), leaves the message that is being looked at: it
/// waits again when the look is over. If the queue is dropped meanwhile it is
/// dropped with the look, which may outlive the queue; so is what waits for a
/// side of a [dialog](crate::dialog) that ends meanwhile.
#[must_use = "dropping it ends the look"]
pub struct Peek<T> {
    shared: Arc<Shared<T>>,
    group: GroupKey,
    /// `None` only while it is dropped.
    message: Option<T>,
    number: u64,
    attempts: u32,
    holder: Holder,
}

impl<T> Queue<T> {
    /// Looks at the message that waits first in a group, whatever keeps the
    /// group from being received: also if it is paused, set aside or capped.
    /// [`peek`](Self::peek) needs nobody's leave, and shows no content.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::{Queue, TryReceive, TryReceiveFrom};
    ///
    /// let queue = Queue::new();
    /// let conversation = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// conversation.send_all(["first", "second"])?;
    /// let first = queue.try_peek(conversation.group())?;
    /// assert_eq!(*first, "first");
    /// assert_eq!(queue.try_receive().err(), Some(TryReceive::Empty));
    /// drop(first);
    /// let mut turn = queue.try_receive()?;
    /// assert_eq!(queue.try_peek(conversation.group()).err(), Some(TryReceiveFrom::Held));
    /// assert_eq!(turn.next().map(|delivery| delivery.attempt()), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TryReceiveFrom::Held`] during a turn or another look of the group,
    /// `Empty` if nothing waits in it, `Never` if there is no such group.
    pub fn try_peek(&self, group: GroupId) -> Result<Peek<T>, TryReceiveFrom> {
        const STALE: TryReceiveFrom = TryReceiveFrom::Never(NoTurn::Stale);
        let shared = &self.shared;
        let group = group.key_in(shared).ok_or(STALE)?;
        shared.event(|books| {
            if !books.backlog.contains(group) {
                return Err(STALE);
            }
            let message = books.backlog.take_out(group);
            let message = message.map_err(|blocked| match blocked {
                Blocked::Held => TryReceiveFrom::Held,
                _ => TryReceiveFrom::Empty,
            })?;
            let head = books.backlog.head_of(group);
            let (number, attempts) = head.expect("it waits all the same");
            Ok(Peek {
                shared: shared.clone(),
                group,
                message: Some(message),
                number,
                attempts,
                holder: books.room.hold(1),
            })
        })
    }
}

impl<T> Peek<T> {
    /// The group that it waits in.
    #[must_use]
    pub fn group(&self) -> GroupId {
        GroupId::new(&self.shared, self.group)
    }

    /// The how manieth it is of those sent into the group.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How often it was delivered in vain.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }
}

impl<T> Deref for Peek<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.message.as_ref().expect("there until it is dropped")
    }
}

impl<T> Drop for Peek<T> {
    fn drop(&mut self) {
        let message = self.message.take();
        let unwanted = self.shared.event(|books| {
            books.room.let_go(self.holder, 1);
            message.and_then(|message| books.end_look(self.group, message))
        });
        drop(unwanted);
    }
}

/// Without the message, so that every look has it.
impl<T> fmt::Debug for Peek<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek")
            .field("group", &self.group())
            .field("number", &self.number)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
