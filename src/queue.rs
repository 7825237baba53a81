//! A queue of conversations: messages in order within each, readers that share
//! the work fairly between them.
//!
//! Senders hold a [`Conversation`]; readers [`receive`](Queue::receive) a
//! [`Turn`] of one group at a time, and complete each [`Delivery`] that it
//! gives them. There are no threads in here: readers may be threads, tasks, or
//! a simulator.
//!
//! ```
//! use conversant::limit::Limit;
//! use conversant::queue::Queue;
//!
//! let queue = Queue::new();
//! let lane = queue.lane(1, Limit::Unlimited)?;
//! let (anna, bert) = (lane.conversation()?, lane.conversation()?);
//! anna.send_all(["anna 1", "anna 2"])?;
//! bert.send("bert 1")?;
//! queue.bump(bert.group(), 255)?;
//! queue.close();
//!
//! let mut served = Vec::new();
//! while let Ok(mut turn) = queue.receive().wait() {
//!     while let Some(delivery) = turn.next() {
//!         served.push(delivery.complete());
//!     }
//! }
//! assert_eq!(served, ["bert 1", "anna 1", "anna 2"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Turns and deliveries
//!
//! A [`Turn`] is the exclusive right to receive from one group. It holds one
//! unit of the group's limit and of the lane's cap from its claim to its end.
//! A [`Delivery`] borrows its turn, so that there is one at a time: say
//! [`complete`](Delivery::complete) when its message is done, for one that is
//! dropped is delivered again. [`Turn::next_batch`] lends several at once.
//! [`Delivery::detach`] makes a [`Detached`] one, which outlives its turn and
//! keeps the turn's unit: drop the turn then, and the next message of the group
//! can be worked on beside it, as far as the group's limit allows.
//!
//! ```
//! use conversant::limit::Limit;
//! use conversant::queue::Queue;
//!
//! let queue = Queue::new();
//! let lane = queue.lane(1, Limit::Unlimited)?;
//! let pair = lane.group(Limit::AtMost(2), 100)?.conversation()?;
//! pair.send_all(["one", "two", "three"])?;
//! let mut at_work = Vec::new();
//! while let Ok(mut turn) = queue.try_receive() {
//!     at_work.extend(turn.next().map(|delivery| delivery.detach()));
//! }
//! assert_eq!(at_work.len(), 2);
//! assert_eq!(at_work.remove(0).complete(), "one");
//! assert_eq!(queue.try_receive()?.next().map(|delivery| delivery.complete()), Some("three"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What stands in line
//!
//! A group stands in line if and only if it has work and every limit above it
//! has room: it has no live turn, a unit of its own limit is free, its lane's
//! cap has room, and its tier is the one that is open in the lane. What is
//! blocked stands nowhere, costs nothing, and wakes nobody; [`Queue::snapshot`]
//! says why.
//!
//! # Guarantees
//!
//! - Messages of one conversation are delivered in the order in which they were
//!   sent, and completed exactly once, however many readers there are.
//! - A delivery that is not completed, because it is dropped or its handler
//!   panics, is delivered again, from its old place; after the last attempt
//!   only its group is poisoned, and everything else goes on.
//! - Turns and detached deliveries of a group are no more than its limit says,
//!   nor those of a lane than its cap says; a group has at most one turn at a
//!   time. A limit of 0 is a pause.
//! - Between lanes: weighted round robin over turns. Within a lane: bumped
//!   groups first, then by standing level, then by age; the oldest eligible
//!   group is overtaken at most [`Bypass`](crate::limit::Bypass) times in a row. Let W be the
//!   largest sum of the weights of the lanes with eligible work meanwhile, w
//!   the lane's own and K the bypass: a group that is i-th by age among the
//!   groups of its lane with work and no live turn starts its next turn within
//!   `(ceil((i * (K + 1) + R * K) / w) + L) * W` turns, counted while it is
//!   eligible; L is how often meanwhile it stopped being eligible, and R in how
//!   many of these interruptions another group reset the lane's count.
//! - Without preemption no queue that never idles bounds waiting in *time*,
//!   unless the caps of the others leave a reader free.
//! - Waiting receives are woken one for each turn that could begin. One that
//!   was woken and is never polled keeps at most one turn from the others.
//!
//! # Memory ordering
//!
//! What was done before a send is seen by whoever receives the message. What
//! was done before a delivery is completed or given back, or a turn dropped, is
//! seen by whoever has the group's next turn, and by a later delivery that
//! needed the unit or the cap's room.
//!
//! # Panics and re-entry
//!
//! No code of the user's runs under the queue's locks: wakers, the drops of
//! messages, and the iterator of [`Conversation::send_all`] run without them,
//! and may call the queue. A waker that panics stops nobody: its panic ends
//! where it was woken. Messages that go together, as when the queue is dropped,
//! are dropped as a `Vec` of them is: two whose drops panic abort the process.
//!
//! A send panics if 2^32 messages would wait in one group, and one message is
//! not sent then; of several, those before it have been.
//!
//! # Cost
//!
//! A group keeps its own messages, under a lock of its own. A send, a message
//! within a turn and the end of a turn take that lock alone; whoever makes a
//! group ready appends a token to one list, under a lock held for the append.
//! Claiming takes the policy lock, once for up to 32 turns, and takes the list
//! in: O(1) a group, O(log n) for groups that are bumped or come back with an
//! old age. What waits in a group does not matter to its turn. A sender that
//! finds the list long takes it in itself.
//!
//! These steps take the policy lock each time: all of a lane in which tiers are
//! in use, and of a closed queue; a group's that is bumped, poisoned, in back-off,
//! waited for by name or looked at; what makes, changes or ends a lane, a group or
//! a conversation; a send while a receive sleeps. [`Queue::close`],
//! [`Queue::snapshot`], [`Queue::shutdown`], the first cap of a lane and its first
//! tier cost O(groups). A capacity costs one exchange of a word for a send and for
//! a message that is done, and a short lock for the beginning and end of a turn.

mod builder;
mod capacity;
mod claim;
mod close;
mod delivery;
mod handles;
mod kept;
mod live;
mod manage;
#[cfg(all(test, loom))]
mod model;
mod named;
mod peek;
mod poison;
mod receive;
mod refuse;
mod send;
mod send_many;
mod send_wait;
mod shared;
mod sides;
mod snapshot;
mod special;
mod state;
mod submissions;
mod suspended;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod turn;

use std::fmt;

use crate::limit::Limit;
use crate::sync::Arc;
use crate::wait::Wait;

pub use builder::Builder;
pub(crate) use capacity::Permits;
pub use delivery::{Batch, Completed, Delivery, Detached};
pub use handles::{Conversation, Group, GroupId, Lane};
pub(crate) use kept::{is_idle, waiting_in};
pub use named::ReceiveFrom;
pub use peek::Peek;
pub use poison::Poisoned;
pub use receive::{Receive, ReceiveMany, Turns};
pub use refuse::{LaneError, NoTurn, SendError, SendReason, TryReceive, TryReceiveFrom, Why};
pub use send_many::Addressed;
pub use send_wait::{All, One, Pending, SendAllWait, SendWait, Sending};
pub(crate) use shared::{KEPT_IDLE, Shared};
pub use snapshot::{GroupStatus, LaneStatus, ReceivesStatus, SendsStatus, Snapshot};
pub use turn::Turn;

pub(crate) use crate::group::GroupRef;

/// Is told what happens to a queue.
pub(crate) trait Observer: Send + Sync {
    /// The queue was dropped. Called once, under no lock.
    fn gone(&self) {}

    /// What is idle may be forgotten. Called under no lock.
    fn trim(&self) {}
}

/// A queue of conversations. See the [module](self).
///
/// A handle: clones are the same queue. When the last is dropped, the queue is
/// shut down, and what waits is dropped. Lanes, groups and conversations stay
/// valid: sends are refused, what is in flight can be completed, and what is
/// given back then is dropped.
pub struct Queue<T> {
    owner: Arc<Owner<T>>,
}

/// What all handles of a queue share.
struct Owner<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        let owner = Arc::clone(&self.owner);
        Self { owner }
    }
}

impl<T> Queue<T> {
    /// A queue with the defaults of its [`Builder`].
    #[must_use]
    pub fn new() -> Self {
        let built = Self::builder().build();
        built.expect("the defaults are in range")
    }

    /// A queue to order.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    /// A lane that takes up to `weight` turns in a row, with at most `cap`
    /// messages in flight.
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the queue is closed, the weight is not in
    /// 1..=1,000,000, or the cap is above [`Limit::MAX`].
    pub fn lane(&self, weight: u32, cap: Limit) -> Result<Lane<T>, LaneError> {
        let key = self.shared().with_state(|state| {
            state.open()?;
            Ok::<_, LaneError>(state.add_lane(weight, cap)?)
        })?;
        Ok(Lane::new(self.shared(), key))
    }

    /// Refuses all that is sent from now on, and new lanes, groups and
    /// conversations. What waits, and what is in flight and comes back, is
    /// still delivered; when nothing is left, receives give
    /// [`Closed`](crate::error::Closed). A second close does nothing. Ends and
    /// errors of [dialogs](crate::dialog) still come in until then.
    pub fn close(&self) {
        self.shared().close();
    }

    /// Closes the queue and takes out all that waits: group by group in
    /// ascending order of their [`GroupId`]s, within a group in its order.
    ///
    /// What is in flight stays so; what of it is given back later waits again,
    /// and can be received or taken out by another shutdown.
    ///
    /// Cost: O(groups and messages) under the queue's lock.
    pub fn shutdown(&self) -> Vec<T> {
        self.shared().shut(false)
    }

    /// Whether nothing more can be sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared().with_state(|state| state.closed)
    }

    /// What the queue holds, and why what waits waits.
    ///
    /// Cost: O(lanes and groups) under the queue's lock, and O(n log n) after.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        snapshot::take(self.shared())
    }

    fn over(shared: Shared<T>) -> Self {
        let shared = Arc::new(shared);
        let owner = Arc::new(Owner { shared });
        Self { owner }
    }

    #[inline]
    fn shared(&self) -> &Arc<Shared<T>> {
        &self.owner.shared
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        drop(self.shared.shut(true));
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.shared().try_read(|state| {
            let groups = state.groups.all().into_iter();
            let counts = groups.map(|group| {
                let mailbox = group.lock();
                (u64::from(group.waiting()), u64::from(mailbox.units(false)))
            });
            let sums = counts.fold((0, 0), |sums, c| (sums.0 + c.0, sums.1 + c.1));
            (state.closed, sums.0, sums.1)
        });
        let mut out = f.debug_struct("Queue");
        match counts {
            Some((closed, waiting, in_flight)) => {
                out.field("closed", &closed)
                    .field("waiting", &waiting)
                    .field("in_flight", &in_flight);
            }
            None => _ = out.field("locked", &true),
        }
        out.finish_non_exhaustive()
    }
}

/// What may cross threads, and why.
///
/// The handles reach messages only through the queue's mutex, from which they
/// come out by value: messages must be `Send`, and need not be `Sync`. A
/// delivery holds a message and lends it out by reference, so it is `Sync` only
/// if the message is; a turn may hold one too, and has the same bound.
const _: () = {
    const fn send_and_sync<H: Send + Sync>() {}
    const fn send<H: Send>() {}

    /// Stands for any message that is `Send` and no more.
    type OnlySend = std::cell::Cell<u8>;

    send_and_sync::<Queue<OnlySend>>();
    send_and_sync::<Lane<OnlySend>>();
    send_and_sync::<Group<OnlySend>>();
    send_and_sync::<Conversation<OnlySend>>();
    send_and_sync::<Wait<Receive<'_, OnlySend>>>();
    send_and_sync::<Wait<ReceiveFrom<'_, OnlySend>>>();
    send::<Turn<'_, OnlySend>>();
    send::<Turns<'_, OnlySend>>();
    send::<Delivery<'_, OnlySend>>();
    send::<Detached<OnlySend>>();
    send::<Peek<OnlySend>>();
    send_and_sync::<Turn<'_, u8>>();
    send_and_sync::<Delivery<'_, u8>>();
    send_and_sync::<Detached<u8>>();
    send_and_sync::<Peek<u8>>();
};
