//! A queue of conversations: messages in order within each conversation, the work shared fairly
//! between readers.
//!
//! Senders hold a [`Conversation`]. Readers, threads or tasks, [`receive`](Queue::receive) a
//! [`Turn`] of one group at a time and complete each [`Delivery`] of the turn.
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
//! queue.bump(bert.group_id(), 255)?;
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
//! A [`Turn`] holds one unit of its group's limit and of its lane's cap; each [`Delivery`]
//! borrows the turn. [`Turn::next_batch`] lends several messages at once. [`Delivery::detach`]
//! makes a delivery that outlives its turn and keeps the unit, so that other readers can work
//! on other messages of the group meanwhile:
//!
//! ```
//! # use conversant::limit::{DEFAULT_LEVEL, Limit};
//! # use conversant::queue::Queue;
//! let queue = Queue::new();
//! let lane = queue.lane(1, Limit::Unlimited)?;
//! let pair = lane.group(2, DEFAULT_LEVEL)?.conversation()?;
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
//! In a task, on any runtime, await what waits:
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
//! - A group is in line if and only if it has work, no live turn, a free unit of its limit and
//!   of its lane's cap, its tier is open, and nothing keeps it back: a failure, a
//!   [look](Peek), or a [receive by name](Queue::receive_from) that waits for it. A blocked group
//!   costs nothing and wakes nobody; [`Queue::snapshot`] says why it is blocked.
//! - Messages of one conversation are delivered in the order in which they were sent, and
//!   completed exactly once. A group has at most one turn at a time. Turns and detached
//!   deliveries never exceed the group's limit or the lane's cap. A limit or cap of 0 is a
//!   pause.
//! - A message that is not completed, also because of a panic, is delivered again from its old
//!   place. After its last attempt its group, and no other, is poisoned.
//! - Between lanes: weighted round robin over turns. Within a lane: bumped groups first, then
//!   by standing level, then by age; the oldest eligible group is overtaken at most
//!   [`Bypass`](crate::limit::Bypass) times in a row. A group that is i-th by age among the
//!   groups of its lane with work, no live turn and a free unit starts its next turn within
//!   `(ceil((i * (K + 1) + R * K) / w) + L) * W` turns, counted while it is eligible. W is the
//!   largest sum of the weights of the lanes with eligible work meanwhile, w the weight of its
//!   own lane, K the bypass. L is how often it stopped being eligible, and R in how many of
//!   these interruptions another group reset the lane's count. The proof is in
//!   `docs/fairness.md`. Waiting in *time* is bounded only where caps leave a reader free.
//! - A queue holds no more messages than its [capacity](Builder::capacity), except ends, errors and
//!   timers of dialogs, which need no room. In a group or lane with a
//!   [capacity](Conversation::set_capacity) of its own no more messages wait than that, except
//!   these, what was given back and what was reserved before. Waiting sends get room in the order
//!   in which they began to wait for it.
//! - For each turn that could begin, one waiting receive is woken. A receive that is woken and
//!   never polled keeps at most one turn from the others.
//!
//! # Memory ordering
//!
//! What happened before a send is visible to the receiver of the message. What happened before a
//! delivery is completed or given back, or a turn dropped, is visible to the group's next turn, and
//! to the thread that gets the unit that came free.
//!
//! # Memory
//!
//! A group takes some 70 bytes, a handle 8. A first message of at most 16 bytes is stored in
//! the group, all others in blocks. The first block has 32 bytes, the next 64; for some more
//! messages, or where many come at once, blocks have 208 bytes; where hundreds wait, more. An
//! idle group keeps one block of up to 64 bytes. All queues of a process share the free blocks:
//! after a burst the memory is given back, except 160 KB, and 68 KB for each thread that sends
//! or receives, until that thread ends. Besides, each lane that lives keeps up to 60 KB for its
//! ready groups, and each queue up to 200 KB until a receive finds nothing.
//!
//! # Panics and re-entry
//!
//! No user code runs under the queue's locks: wakers, drops of messages and the iterator of
//! [`Conversation::send_all`] may call the queue. A waker that panics stops nobody. Messages
//! that are dropped together, as with the queue, are dropped like a `Vec`: if two of the drops
//! panic, the process aborts. So it is with keys that are forgotten together. A send panics if 2^31 messages would wait in one group; that
//! message is not sent.
//!
//! # Cost
//!
//! A send, a message within a turn and the end of a turn take their group's lock. An operation
//! that makes a group ready also appends a token to one list; if the list is long, it takes the
//! list in. A bump takes its group's lock, and the list's if the group is ready. Claiming takes
//! the policy lock once for up to 32 turns. It is O(1) a group, whatever waits in it; O(levels)
//! when the oldest group of a lane with several levels leaves; O(log n) for a group that is
//! bumped in line, or comes back with an old age. While receives wait, each operation that takes
//! the policy lock counts the turns that could begin: a step for each lane with eligible work,
//! but no more steps than receives wait.
//!
//! These take the policy lock too: all steps of a lane that uses tiers, and of a closed queue;
//! all steps of a group that is poisoned, backing off, waited for by name or peeked at; what
//! makes, changes or ends a lane, a group or a conversation; the end of a turn whose first message
//! was not asked for; a send while a receive sleeps.
//! [`Queue::close`], [`Queue::snapshot`], [`Queue::shutdown`], the first cap of a lane and its
//! first tier cost O(groups).
//!
//! A capacity costs an exchange of a word for each send and each completed message, and a count
//! at the beginning and the end of a turn. All threads share that word while the capacity is
//! below 2,048 or less than half of it is free. Otherwise threads cache permits, in eight words
//! of up to 63 each; then no send is refused while one of these words has enough permits,
//! except permits that another send is just moving. A capacity of a group or a lane costs its
//! groups two more locks and a few more words for each message.

mod batch;
mod bounds;
mod builder;
mod capacity;
mod delivery;
mod handles;
mod holders;
mod id;
mod lane;
#[cfg(all(test, loom))]
mod model;
mod named;
mod named_waits;
mod observers;
mod peek;
mod permit_cache;
mod poison;
mod receive;
mod refuse;
mod send;
mod send_many;
mod send_wait;
mod sending;
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
pub(crate) use bounds::{bound_of, own_capacity};
pub use builder::Builder;
pub(crate) use capacity::{Capacity, Permits};
pub use delivery::{Delivery, Detached};
pub use handles::{Conversation, Group};
pub use id::GroupId;
pub use lane::Lane;
pub(crate) use observers::{Side, if_idle};
pub use peek::Peek;
pub use poison::Poisoned;
pub use receive::Turns;
pub use refuse::{LaneError, NoMore, NoTurn, SendError, SendReason, Why};
pub use send_wait::Reserved;
pub use sending::Sending;
pub(crate) use sending::{Pause, Steps};
pub(crate) use shared::{KEPT_IDLE, Shared};
pub use snapshot::{Counts, GroupStatus, LaneStatus, Snapshot};
pub(crate) use state::Observer;
use state::State;
pub use turn::Turn;

// A queue holds its groups, and each of them leads to its queue.
pub(crate) type GroupRef<T> = crate::group::GroupRef<T, Shared<T>>;
type Groups<T> = crate::group::Groups<T, Shared<T>>;
pub(crate) type Pinned<T> = crate::group::Pinned<T, Shared<T>>;

/// A queue of conversations. See the [module](self).
///
/// A handle: clones are the same queue. When the last one is dropped, waiting messages are
/// dropped. Lanes, groups and conversations stay valid: sends are refused, deliveries in flight
/// can be completed, and what is given back is dropped.
#[must_use = "dropping the last handle drops the messages that wait"]
pub struct Queue<T> {
    owner: Arc<Owner<T>>,
}

/// Shared by all handles of a queue. Once it is dropped, nobody receives.
struct Owner<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Builder<T> {
    /// Builds the queue.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if the quantum or the number of attempts is 0, or the capacity is above
    /// [`Limit::MAX`].
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
    pub fn new() -> Self {
        let built = Self::builder().build();
        built.expect("the defaults are in range")
    }

    /// A builder, for settings other than the defaults.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    /// A lane that takes up to `weight` turns in a row, with at most `cap`
    /// messages in flight.
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the queue is closed, the weight is not in
    /// 1..=1,000,000, the cap is above [`Limit::MAX`], or there are 2^24 lanes.
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
        Ok(Lane::new(shared, key))
    }

    /// Refuses new messages, lanes, groups and conversations from now on. Waiting messages, and
    /// messages in flight that come back, are still delivered, and so are ends and errors of
    /// [dialogs](crate::dialog#when-the-peer-is-gone). When nothing is left, receives give
    /// [`NoMore`].
    pub fn close(&self) {
        self.shared().close(|_| ());
    }

    /// Closes the queue and takes out all waiting messages: group by group in ascending order
    /// of their [`GroupId`]s, within a group in its order. A message in flight that is given back
    /// later waits again, and is delivered up to its last attempt.
    ///
    /// To stop by a deadline, [`close`](Self::close) the queue and let the readers go on. At the
    /// deadline set a flag for them, or abort their tasks, and call this. A reader that waits ends
    /// once nothing is in flight; but it waits for what comes back, through a back-off too. So let
    /// each reader that sees the flag call this as its last act; or call it when all have ended.
    ///
    /// Cost: O(groups and messages) under the queue's lock.
    pub fn shutdown(&self) -> Vec<T> {
        let shared = self.shared();
        shared.close(|state| shared.drain_all(state))
    }

    /// How many messages the queue holds at most. See [`Builder::capacity`].
    #[must_use]
    pub fn capacity(&self) -> Limit {
        self.shared().capacity.limit()
    }

    /// How many more messages the queue has room for now, if it has a capacity. Room granted to
    /// waiting sends counts as taken. Negative while dialogs have put more into the queue than
    /// its capacity. The result may be out of date when it is returned.
    #[must_use]
    pub fn room(&self) -> Option<i64> {
        self.shared().capacity.available()
    }

    /// Whether sends are refused.
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
    /// Refuses all sends from now on, and runs `then` in the same event.
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
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written under no lock: the writer is user code.
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
