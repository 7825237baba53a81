//! Sends that do not wait.
//!
//! A plain send takes its group's lock, and submits a token if it made the
//! group ready. A flag of the group sends it through the policy lock.

use crate::error::TierGoesDown;
use crate::group::{Flags, POISONED, Phase, SEND_SPECIAL, STARTED, SWEPT, TIERED};
use crate::lanes::LaneKey;
use crate::sync::Ordering;

use super::GroupRef;
use super::handles::Conversation;
use super::parcel::{All, Load, One};
use super::refuse::{SendError, SendReason};
use super::shared::Shared;
use super::state::{Age, State, Was};
use super::submissions::Posted;

impl<T> Conversation<T> {
    /// Sends a message, in the tier of the group's last one (0 before the
    /// first). Never waits for a reader, also while the group is held.
    ///
    /// What was done before the send is seen by whoever receives the message.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed or full, or the
    /// conversation has ended.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.send_holding(message, ())
    }

    /// As [`send`](Self::send); `held`, a lock, is dropped when the message has
    /// its place, before any waker runs.
    #[inline]
    pub(crate) fn send_holding<H>(&self, message: T, held: H) -> Result<(), SendError<T>> {
        let ended = || self.has_ended();
        match self.shared.send_plain(&self.group, ended, Some(message)) {
            Ok(posted) => {
                drop(held);
                self.shared.posted(posted);
                Ok(())
            }
            Err(message) => self.send_special(
                One {
                    message,
                    tier: None,
                },
                held,
            ),
        }
    }

    /// Sends a message in a tier: it is received when all that had arrived in
    /// lower tiers of the same lane is done. Endless arrivals in a lower tier
    /// hold it back for ever.
    ///
    /// The first send in a tier other than 0 costs O(groups of the queue); from
    /// then on each step of that lane takes the policy lock.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); and if an earlier message of the group is
    /// outstanding in a higher tier, for which this one would wait for ever.
    pub fn send_in(&self, tier: u32, message: T) -> Result<(), SendError<T>> {
        let tier = Some(tier);
        self.send_special(One { message, tier }, ())
    }

    /// Sends all of them as [`send`](Self::send) would, with nothing of others
    /// in between: all or none. The iterator is run first, without the lock.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), with all the messages.
    pub fn send_all(&self, messages: impl IntoIterator<Item = T>) -> Result<(), SendError<Vec<T>>> {
        let messages: Vec<T> = messages.into_iter().collect();
        if messages.is_empty() {
            return self.send_special(All(messages), ());
        }
        let mut mailbox = self.group.lock();
        let idle = mailbox.phase == Phase::Idle;
        let special = mailbox.flags & SEND_SPECIAL != 0 || idle && !mailbox.is_plain_but(0);
        if special || self.has_ended() {
            drop(mailbox);
            return self.send_special(All(messages), ());
        }
        for message in messages {
            self.group.append(&mut mailbox, message);
        }
        if idle {
            let posted = self.shared.submit(&self.group, &mut mailbox, false);
            drop(mailbox);
            self.shared.posted(posted);
        }
        Ok(())
    }

    /// In a queue without a capacity.
    pub(super) fn send_load<M: Load<T>>(&self, load: M) -> Result<(), SendError<M::Message>> {
        self.send_special(load, ())
    }

    /// By every rule, as an event, in which `held` is dropped.
    #[cold]
    fn send_special<M: Load<T>, H>(&self, load: M, held: H) -> Result<(), SendError<M::Message>> {
        self.shared.with_state(|state| {
            let _held = held;
            if let Some(reason) = self.refusal(state, load.places()) {
                let message = load.into_message();
                return Err(SendError { message, reason });
            }
            self.shared
                .put(state, &self.group, load)
                .map_err(|(down, load)| SendError {
                    message: load.into_message(),
                    reason: SendReason::TierGoesDown(down),
                })
        })
    }

    /// Why so many messages cannot be sent.
    pub(super) fn refusal(&self, state: &State<T>, more: usize) -> Option<SendReason> {
        let _mailbox = self.group.lock();
        if self.has_ended() {
            return Some(SendReason::Ended);
        }
        state.refusal(more)
    }
}

impl<T> Shared<T> {
    /// Sends in the plain case, or gives the message back.
    #[inline]
    pub(super) fn send_plain(
        &self,
        group: &GroupRef<T>,
        ended: impl FnOnce() -> bool,
        message: Option<T>,
    ) -> Result<Posted, T> {
        let message = message.expect("a message is sent");
        let mut mailbox = group.lock();
        if mailbox.flags & SEND_SPECIAL != 0 || ended() {
            return Err(message);
        }
        match mailbox.phase {
            Phase::Idle if mailbox.is_plain_but(0) => {
                group.append(&mut mailbox, message);
                Ok(self.submit(group, &mut mailbox, false))
            }
            Phase::Idle | Phase::Ended => Err(message),
            _ => {
                group.append(&mut mailbox, message);
                Ok(Posted::Kept)
            }
        }
    }

    /// Puts messages last in a group, by every rule.
    pub(super) fn put<M: Load<T>>(
        &self,
        state: &mut State<T>,
        group: &GroupRef<T>,
        load: M,
    ) -> Result<(), (TierGoesDown, M)> {
        let asked = load.tier();
        if asked.is_some_and(|tier| tier > 0) {
            let lane = group.lock().lane;
            self.use_tiers(state, lane);
        }
        let mut mailbox = self.lock_group(state, group);
        let claimed = state.is_claimed(&mailbox);
        let last = mailbox.last_tier();
        let outstanding = group.waiting() > 0 || mailbox.units(claimed) > 0;
        if let Some(asked) = asked.filter(|&asked| asked < last && outstanding) {
            return Err((TierGoesDown { last, asked }, load));
        }
        let tier = asked.unwrap_or(last);
        let tiered = mailbox.flags & TIERED != 0;
        state.room.take(load.places() as u64);
        load.each(|message| {
            if tiered {
                group.add_waiting(1);
                mailbox.append_in(tier, message);
            } else {
                group.append(&mut mailbox, message);
            }
        });
        if mailbox.phase == Phase::Idle {
            let risen = (Was::Out, Age::New);
            state.place(&self.submissions, group, &mut mailbox, risen);
        } else {
            state.count_head(&mut mailbox);
            state.count_closed(group, &mut mailbox, claimed);
            state.lanes.settle(mailbox.lane.index());
        }
        Ok(())
    }

    /// Has a lane count its tiers from now on. What waits and what is in flight
    /// in it stands in tier 0.
    fn use_tiers(&self, state: &mut State<T>, lane: LaneKey) {
        let index = lane.index();
        if !state.lanes.use_tiers(index) {
            return;
        }
        state.mixed = true;
        for group in state.groups_of(lane) {
            let mut mailbox = self.lock_group(state, &group);
            let claimed = state.is_claimed(&mailbox);
            mailbox.flags |= TIERED;
            let started = mailbox.units(claimed);
            for _ in 0..started {
                state.lanes.arrive_and_start(index);
            }
            let swept: Flags = match (mailbox.phase, claimed) {
                (_, true) => {
                    mailbox.rare().counted = Some(0);
                    STARTED
                }
                (Phase::Held, _) if started > mailbox.detached() => SWEPT,
                _ => 0,
            };
            mailbox.flags |= swept;
            let waits = group.waiting() > 0 && mailbox.flags & POISONED == 0;
            if waits && !claimed {
                mailbox.rare().counted = Some(0);
                state.lanes.change_head(index, None, Some(0));
            }
        }
        state.lanes.settle(index);
        // Relaxed: live turns look under the lock.
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}
