//! Groups and conversations: the handles of senders.

use crate::error::{Closed, OutOfRange, Stale};
use crate::group::{BUMPED, KeepsGroups, Pin};
use crate::lanes::LaneLevel;
use crate::limit::Limit;
use crate::ready::Age;
use crate::shown::shows;
use crate::sync::Arc;
use crate::trace;

use super::bounds::{self, own_capacity};
use super::id::GroupId;
use super::shared::Shared;
use super::state::State;
use super::{GroupRef, Pinned, Queue};

impl<T> Queue<T> {
    /// Bumps a group, like [`Group::bump`]. If a message of the group must go first, bump first
    /// and then send: otherwise a reader may take the message before the bump.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn bump(&self, group: GroupId, level: u8) -> Result<(), Stale> {
        self.shared().bump(&self.find(group)?, level);
        Ok(())
    }

    /// How many messages wait in a group; receives none.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn waiting_in(&self, group: GroupId) -> Result<usize, Stale> {
        Ok(self.find(group)?.waiting_exactly())
    }

    /// A handle of a group: to pause it, to change its level, or for one more conversation.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn group(&self, group: GroupId) -> Result<Group<T>, Stale> {
        self.by_name(group, |state, group| {
            let pin = state.groups.pin(group, &mut group.lock(), self.shared());
            Group { pin }
        })
    }

    pub(super) fn by_name<R>(
        &self,
        group: GroupId,
        f: impl FnOnce(&mut State<T>, &GroupRef<T>) -> R,
    ) -> Result<R, Stale> {
        let key = self.shared().key(group)?;
        self.shared().with_state(|state| {
            let group = state.groups.get(key).ok_or(Stale)?;
            Ok(f(state, &group))
        })
    }

    /// Not inlined: inlined beside sends it makes them slower.
    #[inline(never)]
    pub(super) fn find(&self, group: GroupId) -> Result<GroupRef<T>, Stale> {
        let key = self.shared().key(group)?;
        match self.shared().names.try_get(key) {
            Some(found) => found,
            None => self.by_name(group, |_, group| group.clone()),
        }
    }
}

/// One or more conversations that share a limit, a level and their order.
///
/// A handle: clones are the same group. A group lives until its last handle and conversation are
/// gone and no message of it waits or is in flight.
#[must_use = "a group ends with its last handle and conversation"]
pub struct Group<T> {
    pub(crate) pin: Pinned<T>,
}

impl<T> Clone for Group<T> {
    fn clone(&self) -> Self {
        let pin = self.pin.another();
        Self { pin }
    }
}

impl<T> Group<T> {
    /// The group's name.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.pin.queue().id(self.pin.key())
    }

    /// One more conversation in this group.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed.
    pub fn conversation(&self) -> Result<Conversation<T>, Closed> {
        self.pin.queue().with_state(|state| state.open())?;
        let pin = self.pin.another();
        Ok(Conversation { pin })
    }

    /// Bumps the group: its next turn, whenever that is, goes ahead of all groups of its lane
    /// that are not bumped or are bumped to a lower level, as far as the
    /// [bypass](super::Builder::bypass) allows. Of two that are bumped to one level, the group goes
    /// first that was first both bumped and ready. A bump to another level replaces the old one; a
    /// bump to the same level changes nothing.
    pub fn bump(&self, level: u8) {
        self.pin.queue().bump(&self.pin, level);
    }

    /// Changes the group's standing level. A bump stays as it is.
    pub fn set_level(&self, level: u8) {
        let queue = self.pin.queue();
        queue.with_group(&self.pin, |_, mailbox| {
            queue.submissions.mix();
            mailbox.lane = LaneLevel::new(mailbox.lane.key(), level);
            ((), Age::Same)
        });
    }

    /// Changes how many of the group's messages may be in flight at once; 0 is a pause. A lower
    /// limit takes nothing back, it leaves a debt.
    ///
    /// To let a group rest after a message, as between two requests to a host, set 0 while you
    /// have its turn, and let a timer set the limit back. A queue that is closed waits for it.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_limit(&self, limit: impl Into<Limit>) -> Result<(), OutOfRange> {
        let limit = limit.into().checked("limit")?;
        let paused = self.pin.queue().with_group(&self.pin, |_, mailbox| {
            let pauses = limit == Limit::AtMost(0) && mailbox.limit() != limit;
            mailbox.change_room(|rare| rare.limit = limit);
            (pauses.then(|| mailbox.tag()), Age::Same)
        });
        if let Some(tag) = paused {
            trace::group_paused(&self.id(), tag);
        }
        Ok(())
    }

    /// How many messages wait in the group.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pin.waiting_exactly()
    }

    /// Like [`Conversation::set_tag`].
    pub fn set_tag(&self, tag: u64) {
        self.pin.lock().rare().tag = tag;
    }

    /// Like [`Conversation::set_capacity`].
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`], or if there is no capacity yet and more than 2^30
    /// messages wait; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        set_capacity(&self.pin, capacity.into())
    }

    /// How many messages may wait in the group.
    #[must_use]
    pub fn capacity(&self) -> Limit {
        own_capacity(&self.pin)
    }
}

/// An ordered stream of messages into one group. It ends when it is dropped; waiting messages
/// are still delivered. Sends from several threads are ordered by one lock. As small as a
/// pointer.
///
/// If it is forgotten (`mem::forget`), its group and its queue's memory stay.
#[must_use = "dropping a conversation ends it"]
pub struct Conversation<T> {
    pub(super) pin: Pinned<T>,
}

impl<T> Conversation<T> {
    /// The group's name.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        self.pin.queue().id(self.pin.key())
    }

    /// Tags the group with a number, 0 by default: for instance an index into your data about its
    /// sender. [`Turn::tag`](super::Turn::tag) and snapshots return it.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::Queue;
    ///
    /// let customers = ["Anna", "Bert"];
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let bert = lane.conversation()?;
    /// bert.set_tag(1);
    /// bert.send("a message")?;
    /// let turn = queue.try_receive()?;
    /// assert_eq!(customers[turn.tag() as usize], "Bert");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The group of a key keeps its tag while the group is kept. If the group was
    /// [forgotten](crate::keyed::Keyed::keep_idle), the next group of the key has 0 again:
    ///
    /// ```
    /// # use conversant::{keyed::Keyed, limit::Limit, queue::Queue};
    /// # let queue = Queue::new();
    /// let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?);
    /// orders.send("Bert", "a message")?;
    /// let bert = orders.group_id(&"Bert").expect("something of Bert's waits");
    /// queue.group(bert)?.set_tag(1);
    /// assert_eq!(queue.try_receive()?.tag(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: a short lock, and some 120 bytes if the group has no other rare state.
    pub fn set_tag(&self, tag: u64) {
        self.pin.lock().rare().tag = tag;
    }

    /// Sets how many messages may wait in the group, in addition to the capacities of the
    /// [queue](super::Builder::capacity) and the [lane](super::Lane::set_capacity); no limit at
    /// first. A customer who is not served then fills only its own group, and the queue has room
    /// for all others.
    ///
    /// A message waits if it was sent and is not in flight. As in a bounded channel, a message
    /// that a turn takes out makes room; a message that is given back waits again, whether
    /// there is room or not. Messages of a poisoned group wait, and so does one that is being
    /// peeked at. A full group refuses a send at once with
    /// [`GroupFull`](super::SendReason::GroupFull). Waiting [sends](Self::send_wait) and
    /// [reservations](Self::reserve) get room in their order: first in the group, then in the
    /// lane, then in the queue.
    ///
    /// The capacity may be changed at any time. Lowering it takes nothing out; 0 lets nothing
    /// in until it is raised. So 0 closes a key or an actor: its sends are refused. Sends that wait
    /// go on waiting, unless they wait for room [or](crate::wait::Wait::or) for a signal. A send
    /// under way when a group without a capacity gets one may exceed it, and so may room that was
    /// reserved before. Sends that wait lose their order if the capacity is removed and set again.
    ///
    /// ```
    /// use conversant::prelude::*;
    /// use conversant::queue::SendReason;
    ///
    /// let queue = Queue::builder().capacity(100).build()?;
    /// let customers = queue.lane(1, Limit::Unlimited)?;
    /// let (dead, alive) = (customers.conversation()?, customers.conversation()?);
    /// dead.set_capacity(2)?;
    /// dead.send_all(["one", "two"])?;
    /// let refused = dead.send("three").unwrap_err();
    /// assert_eq!((refused.message, refused.reason), ("three", SendReason::GroupFull));
    /// alive.send("has room")?;
    ///
    /// let mut turn = queue.try_receive()?;
    /// assert_eq!(turn.next().map(|delivery| delivery.complete()), Some("one"));
    /// dead.send("three")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Handlers
    ///
    /// A reader that holds the turn of a full group and waits for room in it waits for itself,
    /// for ever. In a queue with a capacity of its own, [`wait()`](crate::wait::Wait::wait)
    /// then returns [`OwnQueue`](super::SendReason::OwnQueue).
    ///
    /// # Cost
    ///
    /// O(1) under the queue's lock. Lowering it, or raising it from 0, then takes a step for each
    /// send that waits for room in the group, under a lock of the capacity's own. From then on each
    /// send into the group costs one more read-modify-write, and each message taken out one
    /// addition; if the lane or the queue has a capacity too, a send also costs two short locks.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`], or if there is no capacity yet and more than 2^30
    /// messages wait; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        set_capacity(&self.pin, capacity.into())
    }

    /// How many messages may wait in the group.
    #[must_use]
    pub fn capacity(&self) -> Limit {
        own_capacity(&self.pin)
    }
}

fn set_capacity<T>(group: &Pinned<T>, capacity: Limit) -> Result<(), OutOfRange> {
    let capacity = capacity.checked("capacity")?;
    group.queue().set_capacity(group, capacity)
}

impl<T> KeepsGroups<T> for Shared<T> {
    /// After its last pin is gone, a group ends with its last message.
    #[cold]
    fn unpin(this: &Arc<Self>, pin: Pin<'_, T, Self>) {
        this.with_group(pin.group, |state, mailbox| {
            state.groups.unpin(pin, mailbox);
            ((), Age::Same)
        });
    }
}

impl<T> Shared<T> {
    /// Changes the group's own capacity, which is in range.
    pub(crate) fn set_capacity(
        &self,
        group: &GroupRef<T>,
        capacity: Limit,
    ) -> Result<(), OutOfRange> {
        self.capacity.use_parts();
        let changed = self.with_group(group, |_, mailbox| {
            let changed = bounds::change(mailbox, group.waiting(), capacity);
            (changed, Age::Same)
        });
        bounds::finish_change(changed?, capacity);
        Ok(())
    }

    /// Bumps a group. Takes only its lock, unless the group has other flags than [`BUMPED`].
    #[inline(never)]
    pub(crate) fn bump(&self, group: &GroupRef<T>, level: u8) {
        let mut mailbox = group.lock();
        let bumped = if !mailbox.is_plain_but(BUMPED) {
            drop(mailbox);
            self.bump_special(group, level)
        } else if mailbox.takes_bump(level) {
            let tag = mailbox.tag();
            let posted = self.submissions.bump(&mut mailbox, level);
            drop(mailbox);
            self.posted(posted);
            Some(tag)
        } else {
            None
        };
        if let Some(tag) = bumped {
            trace::group_bumped(&self.id(group.key()), tag, level);
        }
    }

    /// The group's tag, if this has bumped it.
    #[cold]
    fn bump_special(&self, group: &GroupRef<T>, level: u8) -> Option<u64> {
        self.with_state(|state| {
            let mailbox = self.lock_group(state, group);
            // A claimed group uses its bump up at once.
            if !mailbox.takes_bump(level) || state.is_claimed(&mailbox) {
                return None;
            }
            drop(mailbox);
            self.change_group(state, group, |state, mailbox| {
                mailbox.rare().bump = (level, state.mint(&self.submissions));
                mailbox.flags |= BUMPED;
                (Some(mailbox.tag()), Age::Same)
            })
        })
    }
}

shows!([T] Group<T>, |group| id: group.id());

shows!([T] Conversation<T>, |conversation| id: conversation.group_id());
