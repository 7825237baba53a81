//! A queue of conversations: messages in order within each, readers that share
//! the work fairly between them.
//!
//! Senders hold a [`Conversation`]; readers, be they threads or tasks,
//! [`receive`](Queue::receive) a [`Turn`] of one group at a time, and complete
//! each [`Delivery`] that it gives them.
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
//! A [`Turn`] holds one unit of its group's limit and of its lane's cap, and each
//! [`Delivery`] borrows it. [`Turn::next_batch`] lends several at once, and
//! [`Delivery::detach`] makes one that outlives its turn and keeps the unit, so
//! that other messages of the group can be worked on beside it:
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
//! In a task, of any runtime, what waits is awaited:
//!
//! ```
//! # use conversant::limit::Limit;
//! # use conversant::queue::Queue;
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let queue = Queue::<&str>::builder().capacity(1).build()?;
//! let orders = queue.lane(1, Limit::Unlimited)?.conversation()?;
//! let received = queue.clone();
//! let reader = tokio::spawn(async move {
//!     while let Ok(mut turn) = received.receive().await {
//!         while let Some(order) = turn.next() {
//!             println!("{}", order.complete());
//!         }
//!     }
//! });
//! for order in ["first", "second", "third"] {
//!     orders.send_wait(order).await?;
//! }
//! queue.close();
//! reader.await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - A group stands in line if and only if it has work, no live turn, a free
//!   unit of its limit and of its lane's cap, and its tier is open. What is
//!   blocked costs nothing and wakes nobody; [`Queue::snapshot`] says why.
//! - Messages of one conversation are delivered in the order in which they were
//!   sent, and completed exactly once. A group has at most one turn at a time;
//!   its turns and detached deliveries never exceed its limit, nor those of a
//!   lane its cap. A limit or cap of 0 is a pause.
//! - A message that is not completed, be it by a panic, is delivered again from
//!   its old place; after its last attempt its group is poisoned, and no other.
//! - Between lanes: weighted round robin over turns. Within a lane: bumped
//!   groups first, then by standing level, then by age; the oldest eligible
//!   group is overtaken at most [`Bypass`](crate::limit::Bypass) times in a row.
//!   Let W be the largest sum of the weights of the lanes with eligible work
//!   meanwhile, w the lane's own and K the bypass: a group that is i-th by age
//!   among the groups of its lane with work and no live turn starts its next
//!   turn within `(ceil((i * (K + 1) + R * K) / w) + L) * W` turns, counted
//!   while it is eligible; L is how often meanwhile it stopped being eligible,
//!   and R in how many of these interruptions another group reset the lane's
//!   count. The proof is in `docs/fairness.md`. Waiting in *time* is bounded only
//!   where caps leave a reader free.
//! - A queue holds no more messages than its [capacity](Builder::capacity), and in a group or
//!   lane with [one](Conversation::set_capacity) no more wait than that says. Sends that
//!   wait have room in the order in which they began to.
//! - One waiting receive is woken for each turn that could begin. One that is
//!   woken and never polled keeps at most one turn from the others.
//!
//! # Memory ordering
//!
//! What was done before a send is seen by whoever receives the message. What was
//! done before a delivery is completed or given back, or a turn dropped, is seen
//! by the group's next turn, and by whoever needed the unit that came free.
//!
//! # Memory
//!
//! A group takes some 70 bytes, a handle of it 8. A first message of at most 16 bytes
//! stands in the group, all others in blocks: the first of 32 bytes, then of 64, of
//! 208 for some more or where many come at once, larger ones where hundreds wait.
//! An idle group keeps one block of up to 64 bytes. All queues of a process share
//! free blocks: what a burst took is given back but for 135 KB, and 34 KB in each
//! thread that sends or receives, until it ends.
//!
//! # Panics and re-entry
//!
//! No code of the user's runs under the queue's locks: wakers, drops of messages
//! and the iterator of [`Conversation::send_all`] may call the queue. A waker that
//! panics stops nobody. Messages that go together, as when the queue is dropped,
//! are dropped as a `Vec` is: two whose drops panic abort the process. A send
//! panics where 2^32 messages would wait in one group; that message is not sent.
//!
//! # Cost
//!
//! A send, a message within a turn and the end of a turn take their group's own
//! lock; whoever makes a group ready also appends a token to one list, which it
//! takes in if it is long. A bump takes its group's lock, and the list if the
//! group is ready. Claiming takes the policy lock once for up to 32
//! turns: O(1) a group, whatever waits in it; O(levels) when the oldest of a lane
//! with several levels goes; O(log n) for one that is bumped where it stands, or
//! comes back with an old age.
//!
//! The policy lock is also taken by all steps of a lane in which tiers are in
//! use, and of a closed queue; by those of a group that is poisoned, in back-off,
//! waited for by name or looked at; by what makes, changes or ends a lane, a
//! group or a conversation; by a send while a receive sleeps.
//! [`Queue::close`], [`Queue::snapshot`], [`Queue::shutdown`], the first cap of a
//! lane and its first tier cost O(groups). A capacity costs an exchange of a word
//! for each send and each message done, and a count at the beginning and the end
//! of a turn. That word is one for all while the capacity is below 2,048 or less
//! than half of it is free; else threads cache permits, in eight words of
//! up to 63, and no send is refused while one of these has permits enough, but for those
//! that another send is moving just then. A capacity of a group or a lane costs its groups
//! two locks and some words more for each message.

mod batch;
mod bounds;
mod builder;
mod capacity;
mod delivery;
mod handles;
mod holders;
mod id;
#[cfg(all(test, loom))]
mod model;
mod named;
mod observers;
mod peek;
mod permit_cache;
mod poison;
mod receive;
mod refuse;
mod reserve;
mod send;
mod send_many;
mod send_wait;
mod sending;
mod set_capacity;
mod shared;
mod snapshot;
mod special;
mod state;
#[cfg(feature = "futures")]
mod stream;
mod submissions;
mod suspended;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod turn;
mod units;

use std::fmt;

use crate::error::OutOfRange;
pub(crate) use crate::group::GroupKey;
use crate::group::{CLOSED, GROUP};
use crate::limit::Limit;
use crate::sync::{Arc, Ordering};

pub use batch::{Batch, Completed};
pub(crate) use bounds::{bound_of, checked};
pub use builder::Builder;
pub(crate) use capacity::{Capacity, Permits};
pub use delivery::{Delivery, Detached};
pub(crate) use handles::Change;
pub use handles::{Conversation, Group, Lane};
pub use id::GroupId;
pub(crate) use observers::{Observer, Side, if_idle, own_capacity, waiting_in};
pub use peek::Peek;
pub use poison::Poisoned;
pub use receive::{Receive, ReceiveMany, Receiving, Turns};
pub use refuse::{LaneError, NoMore, NoTurn, SendError, SendReason, TryReceive, Why};
pub use reserve::{Reserve, Reserved};
pub use send_many::Addressed;
pub use send_wait::{SendAllWait, SendWait};
pub use sending::Sending;
pub(crate) use sending::{Pause, Steps};
pub(crate) use shared::{KEPT_IDLE, Shared};
pub use snapshot::{Counts, GroupStatus, LaneStatus, Snapshot};
use state::State;
#[cfg(feature = "futures")]
pub use stream::{SendSink, TurnStream};
pub use turn::Turn;

pub(crate) type GroupRef<T> = crate::group::GroupRef<T, Shared<T>>;
pub(crate) type Pinned<T> = crate::group::Pinned<T, Shared<T>>;

/// A queue of conversations. See the [module](self).
///
/// A handle: clones are the same queue. When the last is dropped, what waits is
/// dropped. Lanes, groups and conversations stay valid: sends are refused, what
/// is in flight can be completed, and what is given back then is dropped.
pub struct Queue<T> {
    owner: Arc<Owner<T>>,
}

/// What all handles of a queue share: when it is dropped, nobody receives.
struct Owner<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Builder<T> {
    /// The queue.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if the quantum, the number of attempts or the capacity is 0,
    /// or the capacity above [`Limit::MAX`].
    pub fn build(self) -> Result<Queue<T>, OutOfRange> {
        let shared = Arc::new(Shared::new(self)?);
        let owner = Arc::new(Owner { shared });
        Ok(Queue { owner })
    }
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

    /// A queue with other settings than the defaults.
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
    pub fn lane(&self, weight: u32, cap: impl Into<Limit>) -> Result<Lane<T>, LaneError> {
        let (shared, cap) = (self.shared().clone(), cap.into());
        let key = shared.with_state(|state| {
            state.open()?;
            let key = state.lanes.add_lane(weight, cap)?;
            if state.lanes.len() > 1 {
                shared.submissions.mix();
            }
            state.capped |= cap != Limit::Unlimited;
            Ok::<_, LaneError>(key)
        })?;
        Ok(Lane { shared, key })
    }

    /// Refuses new messages, lanes, groups and conversations from now on. What
    /// waits, and what is in flight and comes back, is still delivered, and so
    /// are ends and errors of [dialogs](crate::dialog) until nothing is left:
    /// then receives give [`NoMore`].
    pub fn close(&self) {
        self.shared().close(|_| ());
    }

    /// Closes the queue and takes out all that waits: group by group in
    /// ascending order of their [`GroupId`]s, within a group in its order. What
    /// is in flight and given back later waits again.
    ///
    /// Cost: O(groups and messages) under the queue's lock.
    pub fn shutdown(&self) -> Vec<T> {
        let shared = self.shared();
        shared.close(|state| shared.drain_all(state))
    }

    /// How many messages it holds at most. See [`Builder::capacity`].
    #[must_use]
    pub fn capacity(&self) -> Limit {
        self.shared().capacity.limit()
    }

    /// How many more messages it has room for now, if it has a capacity; room
    /// that waiting sends were granted counts as taken. Less than 0 while dialogs
    /// have put more into it than that. Out of date when it is returned.
    #[must_use]
    pub fn available_permits(&self) -> Option<i64> {
        self.shared().capacity.available()
    }

    /// Whether nothing more can be sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared().with_state(|state| state.closed)
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
        let shared = &self.shared;
        let (observers, messages) = shared.close(|state| {
            // Relaxed: decided under the policy lock.
            shared.gone.store(true, Ordering::Relaxed);
            let messages = shared.drain_all(state);
            (std::mem::take(&mut state.observers), messages)
        });
        for observer in observers.values() {
            observer.gone();
        }
        drop(messages);
    }
}

impl<T> Shared<T> {
    /// Refuses all that is sent from now on, and does `then` in the same event.
    fn close<R>(&self, then: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut bounds = Vec::new();
        let result = self.with_state(|state| {
            if !std::mem::replace(&mut state.closed, true) {
                bounds.extend(state.lane_bounds.values().cloned());
                for group in state.groups.all() {
                    let mut mailbox = self.lock_group(state, &group);
                    bounds.extend(mailbox.bound(GROUP));
                    mailbox.flags |= CLOSED;
                    state.count_closed(&group, &mut mailbox);
                }
            }
            then(state)
        });
        bounds.iter().for_each(|bound| bound.close());
        self.capacity.close();
        result
    }

    fn drain_all(&self, state: &mut State<T>) -> Vec<T> {
        let groups = state.groups.all().into_iter();
        groups.flat_map(|group| self.drain(state, &group)).collect()
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written out under no lock: the writer is the user's.
        let shared = self.shared();
        let read = shared.try_read(|state| (state.closed, snapshot::counts(shared, state)));
        let mut out = f.debug_struct("Queue");
        match read {
            Some((closed, counts)) => _ = out.field("closed", &closed).field("counts", &counts),
            None => _ = out.field("locked", &true),
        }
        out.finish_non_exhaustive()
    }
}
