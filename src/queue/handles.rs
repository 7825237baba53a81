//! Lanes, groups and conversations: the handles of those who send.

use std::fmt;

use crate::dispatch::{GroupKey, LaneKey};
use crate::error::{Closed, OutOfRange};
use crate::limit::Limit;
use crate::rank::STANDING_LEVEL;
use crate::sync::{Arc, AtomicBool, Ordering};
use crate::tokens::Desk;

use super::posts::Post;
use super::refuse::{LaneError, SendError, SendReason};
use super::room::SenderId;
use super::shared::{Books, Shared};

/// Names a group, for as long as there is one: a copyable name that pins
/// nothing. It never names another group, of this queue or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    queue: u64,
    key: GroupKey,
}

impl GroupId {
    pub(super) fn new<T>(shared: &Shared<T>, key: GroupKey) -> Self {
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
        let key = self.add_group(limit, level)?;
        let shared = self.shared.clone();
        Ok(Group { shared, key })
    }

    /// A conversation in a serial group of its own, at the default level 100.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed.
    pub fn conversation(&self) -> Result<Conversation<T>, Closed> {
        let key = self
            .add_group(Limit::SERIAL, STANDING_LEVEL)
            .map_err(|_| Closed)?;
        Ok(Conversation::new(&self.shared, key))
    }

    /// Changes how many messages of this lane may be in flight at once.
    /// Lowering it takes nothing back, it leaves a debt; 0 is a pause.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_cap(&self, cap: Limit) -> Result<(), OutOfRange> {
        self.shared
            .event(|books| books.backlog.set_cap(self.key, cap))
    }

    pub(super) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    pub(super) fn key(&self) -> LaneKey {
        self.key
    }

    /// A group with one pin, which its handle takes over.
    fn add_group(&self, limit: Limit, level: u8) -> Result<GroupKey, LaneError> {
        self.shared.event(|books| {
            books.open()?;
            Ok(books.backlog.add_group(self.key, limit, level)?)
        })
    }
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        self.shared
            .event(|books| books.backlog.close_lane(self.key));
    }
}

/// One or more conversations that share a limit, a level and their order.
///
/// A group lives until its last handle and conversation are gone, nothing
/// waits in it and nothing is in flight; then nothing of it remains.
pub struct Group<T> {
    pub(super) shared: Arc<Shared<T>>,
    pub(super) key: GroupKey,
}

impl<T> Group<T> {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> GroupId {
        GroupId::new(&self.shared, self.key)
    }

    /// One more conversation in this group.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed.
    pub fn conversation(&self) -> Result<Conversation<T>, Closed> {
        self.shared.event(|books| {
            books.open()?;
            books.backlog.pin(self.key);
            Ok(())
        })?;
        Ok(Conversation::new(&self.shared, self.key))
    }

    /// Has the group's next turn go ahead of all groups of its lane that are
    /// not bumped, and of those bumped to a lower level; ties go to whoever was
    /// bumped and ready first. To another level it replaces the old bump, to
    /// the same one the group keeps its place. An idle group keeps its bump
    /// until it has a turn.
    pub fn bump(&self, level: u8) {
        self.shared
            .event(|books| books.backlog.bump(self.key, level));
    }

    /// Changes the level at which the group stands when it is not bumped.
    pub fn set_level(&self, level: u8) {
        self.shared
            .event(|books| books.backlog.set_level(self.key, level));
    }

    /// Changes how many of the group's messages may be in flight at once.
    /// Lowering it takes nothing back, it leaves a debt; 0 is a pause, and
    /// raising it again resumes.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_limit(&self, limit: Limit) -> Result<(), OutOfRange> {
        let set = self
            .shared
            .event(|books| books.backlog.set_limit(self.key, limit));
        set.expect(PINNED)
    }

    /// How many messages wait in it.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.look(|books| books.backlog.waiting_in(self.key))
    }
}

const PINNED: &str = "a handle pins its group";

impl<T> Drop for Group<T> {
    fn drop(&mut self) {
        self.shared.event(|books| books.backlog.unpin(self.key));
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
    pub(super) key: GroupKey,
    /// Whether the pin is being taken out. Written under the lock of the
    /// queue's tokens, and read under that or, later than the policy lock has
    /// seen the pin, under the policy lock.
    ended: AtomicBool,
}

impl<T> Conversation<T> {
    /// Takes over one pin.
    pub(super) fn new(shared: &Arc<Shared<T>>, key: GroupKey) -> Self {
        Self {
            shared: shared.clone(),
            key,
            ended: AtomicBool::new(false),
        }
    }

    /// Its group; if it has ended, perhaps a stale name.
    #[must_use]
    pub fn group(&self) -> GroupId {
        GroupId::new(&self.shared, self.key)
    }

    /// Sends a message, in the tier of the group's last one (0 before the
    /// first). Never waits for a reader, also while the group is held.
    ///
    /// What was done before the send is seen by whoever receives the message.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed or full, or the
    /// conversation has ended.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.send_holding(message, ())
    }

    /// As [`send`](Self::send); `held`, a lock, is dropped when the message has
    /// its place, before any waker runs.
    pub(crate) fn send_holding<H>(&self, message: T, held: H) -> Result<(), SendError<T>> {
        if self.shared.bounded {
            return self.send_now(None, message, held);
        }
        match self.desk() {
            Ok(desk) => {
                let posted = self.shared.post_sends(desk, self.key, [message]);
                drop(held);
                self.shared.posted(posted);
                Ok(())
            }
            Err(reason) => Err(SendError { message, reason }),
        }
    }

    /// Sends a message in a tier: it is received when all that had arrived in
    /// lower tiers of the same lane is done. Endless arrivals in a lower tier
    /// hold it back for ever.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); and if an earlier message of the group is
    /// outstanding in a higher tier, for which this one would wait for ever.
    pub fn send_in(&self, tier: u32, message: T) -> Result<(), SendError<T>> {
        self.send_now(Some(tier), message, ())
    }

    /// Sends all of them as [`send`](Self::send) would, with nothing of others
    /// in between: all or none. The iterator is run first, without the lock.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), with all the messages.
    pub fn send_all(&self, messages: impl IntoIterator<Item = T>) -> Result<(), SendError<Vec<T>>> {
        let messages: Vec<T> = messages.into_iter().collect();
        if !self.shared.bounded {
            return match self.desk() {
                Ok(desk) => {
                    let posted = self.shared.post_sends(desk, self.key, messages);
                    self.shared.posted(posted);
                    Ok(())
                }
                Err(reason) => Err(SendError {
                    message: messages,
                    reason,
                }),
            };
        }
        self.shared.brief(|books| {
            if let Some(reason) = self.refusal(books, messages.len()) {
                let message = messages;
                return Err(SendError { message, reason });
            }
            for message in messages {
                let sent = books.backlog.send(self.key, None, None, message);
                debug_assert!(sent.is_ok(), "the last tier does not go down");
            }
            Ok(())
        })
    }

    /// Ends the conversation: sends are refused from now on, what waits is
    /// still delivered. A second end does nothing; a drop ends it too.
    pub fn end(&self) {
        let desk = self.shared.tokens.lock();
        // Relaxed: under the lock.
        let before = self.ended.swap(true, Ordering::Relaxed);
        drop(desk);
        if before {
            return;
        }
        self.shared.event(|books| {
            books.backlog.unpin(self.key);
            let sender = self.sender();
            let (books, wakes) = books.parts();
            books.room.refuse(sender, wakes);
        });
    }

    /// The right to post a message, or why there is none.
    fn desk(&self) -> Result<Desk<'_, Post<T>>, SendReason> {
        let desk = self.shared.tokens.lock();
        // Relaxed: under the lock.
        if self.ended.load(Ordering::Relaxed) {
            Err(SendReason::Ended)
        } else if desk.is_closed() {
            Err(SendReason::Closed)
        } else {
            Ok(desk)
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    pub(super) fn key(&self) -> GroupKey {
        self.key
    }

    /// Which it is, while somebody waits to send on it and keeps it where it is.
    pub(super) fn sender(&self) -> SenderId {
        SenderId::of(&self.ended)
    }

    /// As an event of its own, in which `held` is dropped.
    fn send_now<H>(&self, tier: Option<u32>, message: T, held: H) -> Result<(), SendError<T>> {
        self.shared.event(|books| {
            let _held = held;
            if let Some(reason) = self.refusal(books, 1) {
                return Err(SendError { message, reason });
            }
            let sent = books.backlog.send(self.key, tier, None, message);
            sent.map(drop).map_err(|(error, message)| SendError {
                message,
                reason: SendReason::TierGoesDown(error),
            })
        })
    }

    /// Why so many messages cannot be sent.
    pub(super) fn refusal(&self, books: &Books<T>, more: usize) -> Option<SendReason> {
        // Relaxed: under the lock.
        if self.ended.load(Ordering::Relaxed) {
            return Some(SendReason::Ended);
        }
        books.refusal(more)
    }
}

impl<T> Drop for Conversation<T> {
    fn drop(&mut self) {
        self.end();
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
