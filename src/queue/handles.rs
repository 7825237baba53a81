//! Lanes, groups and conversations: the handles of those who send.

use std::fmt;

use crate::error::{Closed, OutOfRange};
use crate::group::{BUMPED, GroupKey};
use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::ready::STANDING_LEVEL;
use crate::sync::{Arc, AtomicBool, Ordering};

use super::GroupRef;
use super::refuse::LaneError;
use super::shared::Shared;
use super::state::Age;

/// Names a group, for as long as there is one: a copyable name that pins
/// nothing. It never names another group, of this queue or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    queue: u64,
    key: GroupKey,
}

impl GroupId {
    pub(crate) fn new<T>(shared: &Shared<T>, key: GroupKey) -> Self {
        let queue = shared.number;
        Self { queue, key }
    }

    /// The group's key, if it is one of this queue's.
    pub(super) fn key_in<T>(self, shared: &Shared<T>) -> Option<GroupKey> {
        (self.queue == shared.number).then_some(self.key)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupId({}: {:?})", self.queue, self.key)
    }
}

/// One caller's share of a queue: its weight, its cap and its groups.
///
/// Lanes take turns by weighted round robin. Dropping the handle leaves its
/// groups alone; the lane goes with the last of them.
pub struct Lane<T> {
    shared: Arc<Shared<T>>,
    key: LaneKey,
}

impl<T> Lane<T> {
    pub(super) fn new(shared: &Arc<Shared<T>>, key: LaneKey) -> Self {
        let shared = shared.clone();
        Self { shared, key }
    }

    /// A group with at most `limit` messages in flight (1: serial; 0: paused),
    /// of standing level `level` (255 is served first).
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the queue is closed, or the limit above [`Limit::MAX`].
    pub fn group(&self, limit: Limit, level: u8) -> Result<Group<T>, LaneError> {
        let group = self.add_group(limit, level)?;
        let shared = Arc::clone(&self.shared);
        Ok(Group { shared, group })
    }

    /// A conversation in a serial group of its own, at the default level 100.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed.
    pub fn conversation(&self) -> Result<Conversation<T>, Closed> {
        let group = self.add_group(Limit::SERIAL, STANDING_LEVEL);
        let group = group.map_err(|_| Closed)?;
        Ok(Conversation::new(&self.shared, group))
    }

    /// Changes how many messages of this lane may be in flight at once.
    /// Lowering it takes nothing back, it leaves a debt; 0 is a pause.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_cap(&self, cap: Limit) -> Result<(), OutOfRange> {
        self.shared.set_cap(self.key, cap)
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// A group with one pin, which its handle takes over.
    pub(crate) fn add_group(&self, limit: Limit, level: u8) -> Result<GroupRef<T>, LaneError> {
        self.shared.with_state(|state| {
            state.open()?;
            Ok(state.add_group(self.key, limit, level)?)
        })
    }
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        self.shared
            .with_state(|state| state.lanes.end_lane(self.key));
    }
}

/// One or more conversations that share a limit, a level and their order.
///
/// A group lives until its last handle and conversation are gone, nothing
/// waits in it and nothing is in flight; then nothing of it remains.
pub struct Group<T> {
    pub(super) shared: Arc<Shared<T>>,
    pub(super) group: GroupRef<T>,
}

impl<T> Group<T> {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> GroupId {
        GroupId::new(&self.shared, self.group.key())
    }

    /// One more conversation in this group.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed.
    pub fn conversation(&self) -> Result<Conversation<T>, Closed> {
        self.shared.with_state(|state| state.open())?;
        self.group.lock().add_pin();
        Ok(Conversation::new(&self.shared, self.group.clone()))
    }

    /// Has the group's next turn go ahead of all groups of its lane that are
    /// not bumped, and of those bumped to a lower level; ties go to whoever was
    /// bumped and ready first. To another level it replaces the old bump, to
    /// the same one the group keeps its place. An idle group keeps its bump
    /// until it has a turn.
    pub fn bump(&self, level: u8) {
        self.shared.bump(&self.group, level);
    }

    /// Changes the level at which the group stands when it is not bumped.
    pub fn set_level(&self, level: u8) {
        self.shared.set_level(&self.group, level);
    }

    /// Changes how many of the group's messages may be in flight at once.
    /// Lowering it takes nothing back, it leaves a debt; 0 is a pause, and
    /// raising it again resumes.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_limit(&self, limit: Limit) -> Result<(), OutOfRange> {
        self.shared.set_limit(&self.group, limit)
    }

    /// How many messages wait in it.
    #[must_use]
    pub fn waiting(&self) -> usize {
        super::waiting_in(&self.group)
    }
}

impl<T> Drop for Group<T> {
    fn drop(&mut self) {
        self.shared.unpin(&self.group);
    }
}

/// An ordered stream of messages into one group.
///
/// Messages of one conversation are delivered in the order in which they were
/// sent; sends from several threads take the order of one lock. It
/// ends when it is dropped, or by [`end`](Self::end): what waits is delivered
/// all the same.
pub struct Conversation<T> {
    pub(super) shared: Arc<Shared<T>>,
    pub(super) group: GroupRef<T>,
    /// Written and read under the group's lock, or the policy lock.
    ended: AtomicBool,
}

impl<T> Conversation<T> {
    /// Takes over one pin.
    pub(super) fn new(shared: &Arc<Shared<T>>, group: GroupRef<T>) -> Self {
        Self {
            shared: Arc::clone(shared),
            group,
            ended: AtomicBool::new(false),
        }
    }

    /// Its group; if it has ended, perhaps a stale name.
    #[must_use]
    pub fn group(&self) -> GroupId {
        GroupId::new(&self.shared, self.group.key())
    }

    /// Ends the conversation: sends are refused from now on, what waits is
    /// still delivered. A second end does nothing; a drop ends it too.
    pub fn end(&self) {
        let mailbox = self.group.lock();
        // Relaxed: under the lock.
        let before = self.ended.swap(true, Ordering::Relaxed);
        drop(mailbox);
        if before {
            return;
        }
        self.shared.capacity.refuse(self.owner());
        self.shared.unpin(&self.group);
    }

    /// Whether it has ended. Under the group's lock.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        // Relaxed: under the lock.
        self.ended.load(Ordering::Relaxed)
    }

    /// Which it is, while somebody waits to send on it and keeps it where it is.
    pub(super) fn owner(&self) -> usize {
        std::ptr::from_ref(&self.ended).addr()
    }
}

impl<T> Drop for Conversation<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T> Shared<T> {
    /// One owner less; the last leaves the group to end after its last message.
    pub(crate) fn unpin(&self, group: &GroupRef<T>) {
        let mut mailbox = group.lock();
        if mailbox.pins() > 1 {
            mailbox.remove_pin();
            return;
        }
        drop(mailbox);
        self.with_group(group, |_, mailbox| {
            mailbox.remove_pin();
            ((), Age::Same)
        });
    }

    pub(crate) fn bump(&self, group: &GroupRef<T>, level: u8) {
        self.with_state(|state| {
            let mailbox = self.lock_group(state, group);
            let same = mailbox.bump().is_some_and(|(old, _)| old == level);
            // One that was claimed uses its bump up at once.
            if same || state.is_claimed(&mailbox) {
                return;
            }
            drop(mailbox);
            self.change_group(state, group, |state, mailbox| {
                state.mixed = true;
                mailbox.rare().bump = (level, state.mint(&self.submissions));
                mailbox.flags |= BUMPED;
                ((), Age::Same)
            });
        });
    }

    pub(super) fn set_level(&self, group: &GroupRef<T>, level: u8) {
        self.with_group(group, |state, mailbox| {
            state.mixed = true;
            mailbox.level = level;
            ((), Age::Same)
        });
    }

    pub(super) fn set_limit(&self, group: &GroupRef<T>, limit: Limit) -> Result<(), OutOfRange> {
        let limit = limit.checked()?;
        self.with_group(group, |_, mailbox| {
            mailbox.set_limit(limit);
            ((), Age::Same)
        });
        Ok(())
    }
}

impl<T> fmt::Debug for Lane<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Conversation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("group", &self.group())
            .finish_non_exhaustive()
    }
}
