//! Sends that do not wait.
//!
//! A plain send takes its group's lock, and submits a token if it made the group ready. If the
//! group has a flag that matters, the send takes the policy lock.

use crate::error::TierGoesDown;
use crate::group::{
    Admitted, BOUNDED, BUMPED, Group, Mailbox, POISONED, Phase, SEND_SPECIAL, STARTED, TIERED,
};
use crate::lanes::LaneKey;
use crate::ready::Age;
use crate::sync::Ordering;

use super::GroupRef;
use super::bounds::{Granted, admit};
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};
use super::shared::Shared;
use super::state::State;
use super::submissions::Posted;

impl<T> Conversation<T> {
    /// Sends a message, in the tier of the group's last message (0 if there was none). Never
    /// waits for a reader, even if one holds the group.
    ///
    /// What happened before the send is visible to the receiver of the message.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed, or the queue, the group or the
    /// lane is full.
    #[inline(always)]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let queue = || self.pin.queue();
        Shared::send_holding(&self.pin, queue, message, ())
    }

    /// Sends a message in a tier: it is received when all messages that had arrived in lower
    /// tiers of the same lane are done. Those that wait in a poisoned group do not count until the
    /// group goes on: the tier ends without them. Endless arrivals in a lower tier block it for
    /// ever. A turn that holds a unit when the lane's first message in another tier than 0 is sent
    /// counts as a message of tier 0, until it takes its next message, detaches or gives back
    /// the one that it has, or ends.
    ///
    /// The first send in a tier other than 0 costs O(groups of the queue); from
    /// then on each step of that lane takes the policy lock. With t tiers outstanding in the lane,
    /// one that comes or goes between others moves up to t / 2 entries of 16 bytes.
    ///
    /// # Errors
    ///
    /// Like [`send`](Self::send); and if the group's last message was sent in a higher tier,
    /// while anything of the group is outstanding or a turn of it holds a unit, even in a lower one:
    /// this one could wait for ever.
    pub fn send_in(&self, tier: u32, message: T) -> Result<(), SendError<T>> {
        let to = (&*self.pin, Some(tier));
        let sent = self.pin.queue().send_asking(to, [message], ());
        sent.map_err(SendError::single)
    }

    /// Sends all messages or none, like [`send`](Self::send), with no message of others between
    /// them. The iterator runs first, without the lock.
    ///
    /// # Errors
    ///
    /// Like [`send`](Self::send), with all the messages.
    pub fn send_all(&self, messages: impl IntoIterator<Item = T>) -> Result<(), SendError<Vec<T>>> {
        let (queue, to) = (self.pin.queue(), (&*self.pin, None));
        queue.send_new(to, Vec::from_iter(messages), ())
    }
}

impl<T> Mailbox<T> {
    /// Whether a send only appends, and submits a token if the group was idle.
    #[inline]
    pub(super) fn sends_plainly(&self) -> bool {
        self.flags == 0 || self.flags & SEND_SPECIAL == 0 && self.appends()
    }

    /// Checks that a message may be sent in a tier, given whether others are `outstanding`.
    pub(super) fn check_tier(
        &self,
        tier: Option<u32>,
        outstanding: bool,
    ) -> Result<(), SendReason> {
        let last = self.last_tier();
        match tier.filter(|&asked| asked < last && outstanding) {
            Some(asked) => Err(SendReason::TierGoesDown(TierGoesDown { last, asked })),
            None => Ok(()),
        }
    }

    /// The same, without the flags of [`SEND_SPECIAL`].
    #[inline]
    fn appends(&self) -> bool {
        match self.phase {
            Phase::Idle => self.is_plain_but(BUMPED),
            phase => phase != Phase::Ended,
        }
    }
}

impl<T> Shared<T> {
    /// Sends a message. `held`, a lock, is dropped when the message has its place, before any
    /// waker runs.
    #[inline(always)]
    pub(super) fn send_holding<'a, H>(
        group: &GroupRef<T>,
        queue: impl Fn() -> &'a Self,
        message: T,
        held: H,
    ) -> Result<(), SendError<T>>
    where
        T: 'a,
    {
        match Self::send_at_once(group, &queue, message) {
            Ok(posted) => {
                drop(held);
                if posted != Posted::Kept {
                    queue().posted(posted);
                }
                Ok(())
            }
            Err(message) => queue().send_one((group, None), message, held),
        }
    }

    /// Sends in the plain case, if a permit is free or none is needed; otherwise returns the
    /// message. Calls `queue` only if it needs it, since the queue is on another cache line.
    #[inline(always)]
    pub(crate) fn send_at_once<'a>(
        group: &GroupRef<T>,
        queue: impl Fn() -> &'a Self,
        message: T,
    ) -> Result<Posted, T>
    where
        T: 'a,
    {
        let group = group.local();
        let mut mailbox = group.lock();
        let permitted = || !group.is_limited() || queue().capacity.take_one();
        if !mailbox.sends_plainly() || !permitted() {
            return Err(message);
        }
        group.append(&mut mailbox, message);
        if mailbox.phase != Phase::Idle {
            return Ok(Posted::Kept);
        }
        Ok(queue().submit(&group, &mut mailbox, false))
    }

    /// Sends a message that could not be sent at once and has no permit yet.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_one<H>(
        &self,
        to: (&GroupRef<T>, Option<u32>),
        message: T,
        held: H,
    ) -> Result<(), SendError<T>> {
        let sent = self.send_new(to, [message], held);
        sent.map_err(SendError::single)
    }

    /// Sends messages that have no room yet. The queue's permits are taken last, so that a
    /// refusal by the group or the lane takes none from others.
    #[inline(always)]
    fn send_new<M: Messages<T>, H>(
        &self,
        to: (&GroupRef<T>, Option<u32>),
        mut message: M,
        held: H,
    ) -> Result<(), SendError<M>> {
        if !to.0.is_limited() {
            match self.append(to, message, None) {
                Ok(posted) => {
                    drop(held);
                    self.posted(posted);
                    return Ok(());
                }
                Err(back) => message = back,
            }
        }
        self.send_asking(to, message, held)
    }

    /// Takes room and sends.
    fn send_asking<M: Messages<T>, H>(
        &self,
        to: (&GroupRef<T>, Option<u32>),
        message: M,
        held: H,
    ) -> Result<(), SendError<M>> {
        let (messages, mut granted, mut serve) =
            (message.as_ref().len(), Granted::default(), false);
        let taken = match self.capacity.is_below(messages) {
            true => Err(SendReason::AboveCapacity),
            false => admit(to, messages, &mut granted.parts),
        };
        let sent = match taken.and_then(|()| self.capacity.take_locked(messages, &mut serve)) {
            Ok(permits) => {
                granted.permits = permits;
                self.send_granted(to, message, granted, held)
            }
            Err(reason) => {
                drop(held);
                Err(SendError { message, reason })
            }
        };
        if serve {
            // `held` is released already.
            self.capacity.serve();
        }
        sent
    }

    /// Sends messages that have their room, in a tier if one is given. `held` is dropped when
    /// they have their places.
    #[inline(always)]
    pub(crate) fn send_granted<M: Messages<T>, H>(
        &self,
        to: (&GroupRef<T>, Option<u32>),
        message: M,
        mut granted: Granted<'_>,
        held: H,
    ) -> Result<(), SendError<M>> {
        let message = match self.append(to, message, Some(&mut granted.parts)) {
            Ok(posted) => {
                granted.permits.keep();
                drop(held);
                self.posted(posted);
                return Ok(());
            }
            Err(message) => message,
        };
        let sent = self.with_state(|state| {
            let _held = held;
            if state.closed {
                let reason = SendReason::Closed;
                return Err(SendError { message, reason });
            }
            self.put(state, to, message, &mut granted.parts)
        });
        if sent.is_ok() {
            granted.permits.keep();
        }
        sent
    }

    /// Appends messages, if nothing but capacities makes that special; otherwise returns them.
    /// `parts` is their room in the group and lane; without it that is taken here.
    #[inline(always)]
    fn append<M: Messages<T>>(
        &self,
        (group, tier): (&GroupRef<T>, Option<u32>),
        message: M,
        parts: Option<&mut Admitted>,
    ) -> Result<Posted, M> {
        let (mut mailbox, messages) = (group.lock(), message.as_ref().len());
        let plain = mailbox.flags & (SEND_SPECIAL & !BOUNDED) == 0 && mailbox.appends();
        if !plain || tier.is_some() || messages == 0 {
            return Err(message);
        }
        if mailbox.flags & BOUNDED != 0 {
            match parts {
                Some(parts) => mailbox.bring_in(parts, messages),
                None if mailbox.take_room(messages) => {}
                None => return Err(message),
            }
        }
        message.append_to(group, &mut mailbox);
        if mailbox.phase != Phase::Idle {
            return Ok(Posted::Kept);
        }
        Ok(self.submit(group, &mut mailbox, false))
    }

    /// Appends messages to a group, by every rule. `parts` is their room in the group and lane.
    pub(super) fn put<M: Messages<T>>(
        &self,
        state: &mut State<T>,
        (group, tier): (&GroupRef<T>, Option<u32>),
        message: M,
        parts: &mut Admitted,
    ) -> Result<(), SendError<M>> {
        let messages = message.as_ref().len();
        if messages > 0 && tier.is_some_and(|tier| tier > 0) {
            let lane = group.lock().lane.key();
            self.use_tiers(state, lane);
        }
        let mut mailbox = self.lock_group(state, group);
        let claimed = state.is_claimed(&mailbox);
        let outstanding = group.waiting() > 0 || mailbox.units(claimed) > 0;
        if let Err(reason) = mailbox.check_tier(tier, outstanding) {
            return Err(SendError { message, reason });
        }
        if messages == 0 {
            return Ok(());
        }
        let tier = tier.unwrap_or_else(|| mailbox.last_tier());
        group.append_in(&mut mailbox, tier, message.into_iter());
        mailbox.bring_in(parts, messages);
        let age = match mailbox.phase {
            Phase::Idle => Age::New,
            _ => Age::Same,
        };
        state.place(&self.submissions, group, &mut mailbox, age);
        Ok(())
    }

    /// Makes a lane count its tiers from now on. What waits or is in flight in it counts in
    /// tier 0.
    fn use_tiers(&self, state: &mut State<T>, lane: LaneKey) {
        let index = lane.index();
        if !state.lanes.use_tiers(index) {
            return;
        }
        self.submissions.mix();
        for group in state.groups_of(lane) {
            let mut mailbox = self.lock_group(state, &group);
            let claimed = state.is_claimed(&mailbox);
            mailbox.flags |= TIERED;
            let started = mailbox.units(claimed);
            for _ in 0..started {
                state.lanes.tiers(index).arrive(0);
                state.lanes.tiers(index).start(0);
            }
            let waits = group.waiting() > 0 && mailbox.flags & POISONED == 0;
            if waits || claimed {
                mailbox.rare().counted = Some(0);
            }
            if claimed {
                mailbox.flags |= STARTED;
            } else if waits {
                state.lanes.change_head(index, None, Some(0));
            }
            if mailbox.phase == Phase::Held && started > mailbox.detached() {
                mailbox.rare().swept = true;
            }
        }
        state.lanes.update(index);
        // Relaxed: live turns look under the lock.
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}

/// Messages that are sent as one.
pub(crate) trait Messages<T>:
    AsRef<[T]> + IntoIterator<Item = T, IntoIter: ExactSizeIterator>
{
    /// Puts them last in a group.
    fn append_to(self, group: &Group<T>, mailbox: &mut Mailbox<T>);
}

impl<T> Messages<T> for [T; 1] {
    #[inline(always)]
    fn append_to(self, group: &Group<T>, mailbox: &mut Mailbox<T>) {
        let [message] = self;
        group.append(mailbox, message);
    }
}

impl<T> Messages<T> for Vec<T> {
    #[inline(always)]
    fn append_to(self, group: &Group<T>, mailbox: &mut Mailbox<T>) {
        group.append_all(mailbox, self);
    }
}
