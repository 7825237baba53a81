//! Refusals and their reasons.

use std::error::Error;
use std::fmt;

use crate::error::{Closed, OutOfRange, Stale, TierGoesDown};
use crate::semaphore::AcquireError;
use crate::shown::{error_says, pad, says, shows};

/// Why a lane, a group or a caller of a scheduler could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneError {
    /// The queue is closed, or the scheduler.
    Closed,
    /// A weight, a cap, a capacity or a limit is out of range.
    OutOfRange(OutOfRange),
}

/// A message that was refused, and why.
///
/// If the message is not `Sync`, or borrows, an error type that you pass on may not take it. Pass
/// on the reason alone: `.map_err(|refused| refused.reason)?`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T, R = SendReason> {
    /// The message.
    pub message: T,
    /// The reason.
    pub reason: R,
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendReason {
    /// The queue is closed, or gone.
    Closed,
    /// The queue is at its capacity, or the rest of the room is granted to waiting sends.
    Full,
    /// The group is at its [capacity](super::Conversation::set_capacity), or the rest of the room
    /// is granted to waiting sends. A send that the full queue refuses takes this room for a
    /// moment: others may then be refused, too.
    GroupFull,
    /// The lane is at its [capacity](super::Lane::set_capacity), or its room is granted or taken as
    /// with `GroupFull`. If the group is full too, this or `GroupFull` is returned.
    LaneFull,
    /// This many messages at once exceed the capacity of the queue, the lane or the group.
    AboveCapacity,
    /// There is no room, and the thread that would wait holds a turn, a look or a delivery of this
    /// queue: the room might never come.
    OwnQueue,
    /// No room came free in time.
    TimedOut,
    /// The group's last message was sent in a higher tier, and anything of the group is
    /// outstanding, even in a lower one, or a turn of it lives.
    TierGoesDown(TierGoesDown),
}

/// Why there is no turn: of any group, or of a group asked for by name. A wait for a turn returns
/// only `Closed` or `Stale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoTurn {
    /// Nothing waits; or, if any group was asked for, all that waits is blocked.
    Empty,
    /// A turn of the group is live, or its first message is being peeked at.
    Held,
    /// A message waits in the group, and this blocks it.
    Blocked(Why),
    /// The queue is closed, and nothing more comes from it, or from the group, for this reason.
    Closed(NoMore),
    /// The group is gone.
    Stale,
}

/// Why nothing more comes from a closed queue, or from one of its groups: nothing is in flight, and
/// nothing waits that could be received. Messages in a paused group, in back-off or in a closed
/// tier could still be received: a receive waits for them.
///
/// ```
/// use conversant::limit::Limit;
/// use conversant::queue::{NoMore, Queue};
///
/// let queue = Queue::builder().attempts(1).build()?;
/// let bad = queue.lane(1, Limit::Unlimited)?.conversation()?;
/// bad.send_all(["fails", "behind it"])?;
/// queue.receive().wait()?.next().expect("the first").give_back();
/// queue.close();
/// assert_eq!(queue.receive().wait().err(), Some(NoMore::OnlyPoisoned));
/// assert_eq!(queue.drain(bad.group_id())?, ["fails", "behind it"]);
/// assert_eq!(queue.receive().wait().err(), Some(NoMore::Drained));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Readers that stop at `OnlyPoisoned` leave the good messages behind a failed one undone. So
/// handle the failed messages there and go on, even if another thread waits for [poisoned
/// groups](super::Queue::next_poisoned): that thread may be later. Or take out all that is left by
/// [`shutdown`](super::Queue::shutdown).
///
/// ```
/// use conversant::limit::Limit;
/// use conversant::queue::{NoMore, Queue};
///
/// let queue = Queue::builder().attempts(1).build()?;
/// queue.lane(1, Limit::Unlimited)?.conversation()?.send_all(["bad", "good"])?;
/// queue.close();
/// let (mut done, mut failed) = (Vec::new(), Vec::new());
/// loop {
///     match queue.receive().wait() {
///         Ok(mut turn) => {
///             while let Some(message) = turn.next() {
///                 match *message {
///                     "bad" => message.give_back(),
///                     _ => done.push(message.complete()),
///                 }
///             }
///         }
///         Err(NoMore::OnlyPoisoned) => {
///             for poisoned in queue.poisoned() {
///                 // An error if somebody else was quicker.
///                 failed.extend(queue.take_failed(poisoned.group).ok().flatten());
///             }
///         }
///         Err(NoMore::Drained) => break,
///     }
/// }
/// assert_eq!((done, failed), (vec!["good"], vec!["bad"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoMore {
    /// Nothing is left, and nothing will ever come: this answer is final.
    Drained,
    /// Only messages in poisoned groups are left, and none comes by itself. After a
    /// [`resume`](super::Queue::resume) of such a group all its messages come; after its failed
    /// message was taken out, the others come. Then the queue can be received from again. When
    /// the last message is taken out, the queue is drained.
    OnlyPoisoned,
}

/// What blocks a group's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Why {
    /// Nothing waits.
    Idle,
    /// A turn of the group is live, or its first message is being peeked at.
    Held,
    /// A message of the group failed too often, or for good: the group waits to be resumed.
    Poisoned,
    /// A message of the group failed: the group waits for its next attempt.
    BackingOff,
    /// The group's limit is 0.
    Paused,
    /// As many as the group's limit allows are in flight.
    Limit,
    /// Another tier of the lane is open, or the group's tier drains for a lower one.
    Tier,
    /// As many as the lane's cap allows are in flight.
    Cap,
    /// Nothing: a next receive takes it, or the receive that waits for it by name.
    InLine,
}

says!(Why {
    Self::Idle => "nothing waits",
    Self::Held => "a turn is live",
    Self::Poisoned => "poisoned: a message failed too often",
    Self::BackingOff => "backing off after a failure",
    Self::Paused => "paused: the limit is 0",
    Self::Limit => "as many in flight as the limit allows",
    Self::Tier => "another tier is open",
    Self::Cap => "as many in flight as the lane's cap allows",
    Self::InLine => "in line",
});

impl From<Closed> for LaneError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<OutOfRange> for LaneError {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error)
    }
}

impl From<AcquireError> for SendReason {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::NoPermits => Self::Full,
            AcquireError::Closed => Self::Closed,
            AcquireError::AboveLimit => Self::AboveCapacity,
        }
    }
}

impl From<Stale> for NoTurn {
    fn from(_: Stale) -> Self {
        Self::Stale
    }
}

impl<T> SendError<[T; 1]> {
    pub(crate) fn single(self) -> SendError<T> {
        let ([message], reason) = (self.message, self.reason);
        SendError { message, reason }
    }
}

shows!(
    /// Without the message, so that `unwrap` works for every message type.
    [T, R: fmt::Debug] SendError<T, R>, |this| reason: this.reason
);

impl<T, R: fmt::Display> fmt::Display for SendError<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, format_args!("not sent: {}", self.reason))
    }
}

error_says!(LaneError {
    Self::Closed => "closed",
    Self::OutOfRange(error) => "{error}",
});

error_says!(SendReason {
    Self::Closed => "closed",
    Self::Full => "the queue is full",
    Self::GroupFull => "the group is full",
    Self::LaneFull => "the lane is full",
    Self::AboveCapacity => "more than there is ever room for",
    Self::OwnQueue => "the queue is full, and served by who would wait",
    Self::TimedOut => "timed out",
    Self::TierGoesDown(error) => "{error}",
});

error_says!(NoTurn {
    Self::Empty => "nothing is eligible",
    Self::Held => "a turn of the group is live",
    Self::Blocked(why) => "the group waits: {why}",
    Self::Closed(no_more) => "{no_more}",
    Self::Stale => "stale handle",
});

error_says!(NoMore {
    Self::Drained => "closed and drained",
    Self::OnlyPoisoned => "closed, and only poisoned groups have messages",
});

impl<T, R: fmt::Debug + fmt::Display> Error for SendError<T, R> {}
