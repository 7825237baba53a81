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
//! A [`Turn`] is the exclusive right to receive from one group. From its claim
//! to its end it holds one unit of the group's limit and of the lane's cap. A
//! [`Delivery`] borrows it, so that there is one at a time; one that is dropped
//! without [`complete`](Delivery::complete) is delivered again.
//! [`Turn::next_batch`] lends several. [`Delivery::detach`] makes a [`Detached`]
//! one, which outlives its turn and keeps its unit, so that other messages of
//! the group can be worked on beside it:
//!
//! ```
//! # use conversant::limit::Limit;
//! # use conversant::queue::Queue;
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
//! # Guarantees
//!
//! - A group stands in line if and only if it has work, no live turn, a free
//!   unit of its limit and of its lane's cap, and its tier is open. What is
//!   blocked costs nothing and wakes nobody; [`Queue::snapshot`] says why.
//! - Messages of one conversation are delivered in the order in which they were
//!   sent, and completed exactly once, however many readers there are. A group
//!   has at most one turn at a time.
//! - A message that is given back, also by a panic, is delivered again from its
//!   old place; after its last attempt its group is poisoned, and no other.
//! - Turns and detached deliveries of a group never exceed its limit, nor those
//!   of a lane its cap. A limit of 0 is a pause.
//! - Between lanes: weighted round robin over turns. Within a lane: bumped
//!   groups first, then by standing level, then by age; the oldest eligible
//!   group is overtaken at most [`Bypass`](crate::limit::Bypass) times in a row.
//!   Let W be the largest sum of the weights of the lanes with eligible work
//!   meanwhile, w the lane's own and K the bypass: a group that is i-th by age
//!   among the groups of its lane with work and no live turn starts its next
//!   turn within `(ceil((i * (K + 1) + R * K) / w) + L) * W` turns, counted
//!   while it is eligible; L is how often meanwhile it stopped being eligible,
//!   and R in how many of these interruptions another group reset the lane's
//!   count. Waiting in *time* is bounded only where caps leave a reader free.
//! - One waiting receive is woken for each turn that could begin. One that is
//!   woken and never polled keeps at most one turn from the others.
//!
//! # Memory ordering
//!
//! Whoever receives a message sees what was done before its send. Whoever has a
//! group's next turn, or a later delivery that needed the unit or the room of
//! the cap, sees what was done before a delivery was completed or given back, or
//! a turn dropped.
//!
//! # Panics and re-entry
//!
//! No code of the user's runs under the queue's locks: wakers, the drops of
//! messages, and the iterator of [`Conversation::send_all`] may call the queue.
//! A waker that panics stops nobody. Messages that go together, as when the
//! queue is dropped, are dropped as a `Vec` of them is: two whose drops panic
//! abort the process.
//!
//! A send panics where 2^32 messages would wait in one group; that message is
//! not sent, those before it are.
//!
//! # Cost
//!
//! A send, a message within a turn and the end of a turn take their group's own
//! lock; whoever makes a group ready also appends a token to one list, and takes
//! the list in if it is long. Claiming takes the policy lock once for up to 32
//! turns: O(1) a group, O(log n) for one that was bumped or comes back with an
//! old age. What waits in a group does not matter to its turn.
//!
//! These take the policy lock each time: all steps of a lane in which tiers are
//! in use, and of a closed queue; of a group that is bumped, poisoned, in
//! back-off, waited for by name or looked at; what makes, changes or ends a
//! lane, a group or a conversation; a send while a receive sleeps.
//! [`Queue::close`], [`Queue::snapshot`], [`Queue::shutdown`], the first cap of a
//! lane and its first tier cost O(groups). A capacity costs one exchange of a
//! word for a send and for a message that is done, and a short lock at the
//! beginning and the end of a turn.

mod builder;
mod capacity;
mod claim;
mod close;
mod delivery;
mod handles;
mod kept;
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
/// A handle: clones are the same queue. When the last is dropped, what waits is
/// dropped. Lanes, groups and conversations stay valid: sends are refused, what
/// is in flight can be completed, and what is given back then is dropped.
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

    /// Refuses new messages, lanes, groups and conversations from now on. What
    /// waits, and what is in flight and comes back, is still delivered, and so
    /// are ends and errors of [dialogs](crate::dialog) until nothing is left:
    /// then receives give [`Closed`](crate::error::Closed).
    pub fn close(&self) {
        self.shared().close();
    }

    /// Closes the queue and takes out all that waits: group by group in
    /// ascending order of their [`GroupId`]s, within a group in its order. What
    /// is in flight and given back later waits again.
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
    /// Cost: O(lanes and groups) under the queue's lock.
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
        let mut out = f.debug_struct("Queue");
        self.shared().try_read(|state| {
            let (mut waiting, mut in_flight) = (0, 0);
            for group in state.groups.all() {
                let mailbox = group.lock();
                waiting += u64::from(group.waiting());
                in_flight += u64::from(mailbox.units(false));
            }
            out.field("closed", &state.closed)
                .field("waiting", &waiting)
                .field("in_flight", &in_flight);
        });
        out.finish_non_exhaustive()
    }
}
