//! A look at the message that waits first in a group.

use std::fmt;
use std::ops::Deref;

use crate::group::{PEEKED, Phase, Taken, ordinal};
use crate::sync::Arc;

use super::capacity::Holder;
use super::handles::GroupId;
use super::refuse::{NoTurn, TryReceiveFrom};
use super::shared::Shared;
use super::state::{Age, Was};
use super::{GroupRef, Queue};

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
    group: GroupRef<T>,
    /// `None` only while it is dropped.
    taken: Option<Taken<T>>,
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
        let shared = self.shared();
        let key = group.key_in(shared).ok_or(STALE)?;
        shared.with_state(|state| {
            let group = state.group(key).ok_or(STALE)?;
            let mut mailbox = shared.lock_group(state, &group);
            if mailbox.phase == Phase::Held || state.is_claimed(&mailbox) {
                return Err(TryReceiveFrom::Held);
            }
            if group.waiting() == 0 {
                return Err(TryReceiveFrom::Empty);
            }
            let was = state.unline(&mut mailbox);
            debug_assert_eq!(was, Was::Out);
            mailbox.phase = Phase::Held;
            mailbox.flags |= PEEKED;
            let taken = group.take(&mut mailbox);
            // It waits all the same.
            group.add_waiting(1);
            mailbox.rare().peeked = taken.as_ref().map(Taken::head);
            state.place(&shared.submissions, &group, &mut mailbox, (was, Age::Same));
            drop(mailbox);
            Ok(Peek {
                shared: Arc::clone(shared),
                group,
                taken,
                holder: shared.capacity.hold(),
            })
        })
    }
}

impl<T> Peek<T> {
    /// The group that it waits in.
    #[must_use]
    pub fn group(&self) -> GroupId {
        GroupId::new(&self.shared, self.group.key())
    }

    /// The how manieth it is of those sent into the group.
    #[must_use]
    pub fn number(&self) -> u64 {
        ordinal(self.taken().place())
    }

    /// How often it was delivered in vain.
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
        let Some(taken) = self.taken.take() else {
            return;
        };
        let shared = &self.shared;
        shared.capacity.let_go(self.holder);
        let unwanted = shared.with_state(|state| shared.end_look(state, &self.group, taken));
        drop(unwanted);
    }
}

/// Without the message, so that every look has it.
impl<T> fmt::Debug for Peek<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek")
            .field("group", &self.group())
            .field("number", &self.number())
            .field("attempts", &self.attempts())
            .finish_non_exhaustive()
    }
}
