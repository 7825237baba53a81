//! Turns: the exclusive right to receive from one group.
//!
//! The plain steps are here: they take the group's lock and nothing else. What a flag of the
//! group makes rare is in `special`.

use std::borrow::Cow;
use std::mem::ManuallyDrop;

use crate::group::{BARE, BUMPED, CAPPED, Group, Mailbox, Phase, UNPINNED};
use crate::shown::shows;
use crate::sync::Arc;

use super::GroupRef;
use super::batch::Batch;
use super::delivery::Delivery;
use super::id::GroupId;
use super::shared::Shared;
use super::special::{self, LIVE, Live, Owner};

/// The exclusive right to receive from one group, until it is dropped.
///
/// A turn holds one unit of the group's limit and of the lane's cap, from its claim to its end.
/// After the drop, a group with work and a free unit is in line again, as the youngest.
///
/// Each message is a [`Delivery`] that borrows the turn, so there is one at a time, and a turn is no
/// iterator: loop by `while let Some(delivery) = turn.next()`. [`Delivery::detach`] makes one that
/// outlives the turn.
///
/// If a turn is forgotten (`mem::forget`), its group stays held for ever.
///
/// # Cost
///
/// One short lock of the group at the beginning and at the end; the first message comes with
/// it. It takes no lock that readers of other groups take, except in the cases that the
/// [module](super) lists.
#[must_use = "dropping a turn lets the next receive have its group"]
pub struct Turn<'q, T> {
    shared: Owner<'q, T>,
    live: Live<T>,
}

impl<T> Live<T> {
    /// Takes the next message out, if there is one for the turn now.
    #[inline]
    fn advance(&mut self, shared: &Owner<'_, T>) -> bool {
        self.taken.is_some() || self.group().waiting() > 0 && self.take_next(shared)
    }

    #[inline(never)]
    fn take_next(&mut self, shared: &Owner<'_, T>) -> bool {
        let group: &Group<T> = self.group.as_ref().expect(LIVE);
        let mut mailbox = group.lock();
        let within_cap = || mailbox.flags == CAPPED && shared.epoch() == self.epoch;
        // If the turn had no unit of its own, the flags would say so.
        if mailbox.flags == 0 || within_cap() {
            self.taken = group.take(&mut mailbox);
            return self.taken.is_some();
        }
        drop(mailbox);
        special::take_next(shared, self)
    }

    /// At the end of the turn: whether a token must return a unit of the lane's cap. If the cap
    /// has changed since the turn looked, the unit comes back alone.
    #[inline]
    fn unit_goes_by_token(&self, shared: &Shared<T>, mailbox: &Mailbox<T>) -> bool {
        let alone = || shared.epoch() != self.epoch;
        let units = &shared.submissions.units;
        let counted = self.unit && mailbox.flags & CAPPED != 0;
        counted && (alone() || units.give_back(mailbox.lane.index()))
    }
}

impl<'q, T> Turn<'q, T> {
    /// Begins the turn of a claimed group. Never fails: a group that was paused meanwhile gives
    /// nothing. `epoch` is the queue's epoch before the claim.
    #[inline(always)]
    pub(super) fn begin(shared: &'q Arc<Shared<T>>, group: GroupRef<T>, epoch: u64) -> Self {
        let mut live = Live {
            group: ManuallyDrop::new(None),
            taken: None,
            quota: shared.built.quantum,
            epoch,
            plain: false,
            unit: true,
            counted: false,
            holder: shared.capacity.hold(),
        };
        let mut mailbox = group.lock();
        live.plain = mailbox.flags == 0 && !live.holder.is_some();
        if mailbox.flags & !CAPPED == 0 {
            mailbox.phase = Phase::Held;
            live.taken = group.take(&mut mailbox);
            drop(mailbox);
        } else {
            (live.taken, live.counted) = special::begin(shared, &group, mailbox);
        }
        live.group = ManuallyDrop::new(Some(group));
        let shared = Cow::Borrowed(shared);
        Self { shared, live }
    }

    /// The turn's group.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        self.shared.id(self.live.group().key())
    }

    /// The group's [tag](super::Conversation::set_tag); 0 if none was set.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.live.group().lock().tag()
    }

    /// The group's next message, to be [completed](Delivery::complete): if the delivery is
    /// dropped, the message is *not* done and is delivered again.
    ///
    /// `None` if the quantum is used up, if nothing waits, if the group backs off or is poisoned,
    /// if another tier is open, or if no unit is free: the group or its lane was paused, or a
    /// delivery was detached and the limit is reached. This is not final: a later call may give a
    /// message. The first message is taken out when the turn is received, so it comes even if there
    /// was a pause since.
    ///
    /// [`Counts::dropped`](super::Counts::dropped) counts forgotten calls of `complete`, and
    /// [`Builder::on_dropped`](super::Builder::on_dropped) reports them.
    #[allow(
        clippy::should_implement_trait,
        reason = "a delivery borrows the turn, which an iterator cannot say"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Delivery<'_, T>> {
        let live = &mut self.live;
        if live.quota == 0 || !live.advance(&self.shared) {
            return None;
        }
        live.quota -= 1;
        Some(Delivery::new(&self.shared, live))
    }

    /// Up to `n` messages, lent as one batch, to be completed all or up to some number; the
    /// rest is delivered again. `None` where [`next`](Self::next) gives `None`, and for an `n` of
    /// 0. Each message counts in the quantum, but the whole batch holds one unit of the group's
    /// limit and of the lane's cap, that of the turn.
    ///
    /// A batch ends before a message that has failed, and before a gap where messages were taken
    /// out. In a lane that has used a tier other than 0 each batch is one message.
    ///
    /// Cost: a step for each message, under the group's lock. Those that come back take O(log n)
    /// each, under the same lock, or under the queue's if the failure makes the group pause or
    /// poisons it, or in the cases that the [module](super) lists: ask for no more than you expect
    /// to complete.
    #[inline]
    pub fn next_batch(&mut self, n: usize) -> Option<Batch<'_, T>> {
        let live = &mut self.live;
        if n == 0 || live.quota == 0 || !live.advance(&self.shared) {
            return None;
        }
        let most = u32::try_from(n).unwrap_or(u32::MAX).min(live.quota);
        Some(Batch::take(&self.shared, live, most))
    }

    /// The same turn, which borrows nothing: it may be stored, and may outlive the queue's handles.
    /// It does not keep the queue: when the last handle is dropped, what waits in the group is too.
    pub fn into_owned(mut self) -> Turn<'static, T> {
        let live = &mut self.live;
        Turn {
            shared: Cow::Owned(Arc::clone(&self.shared)),
            live: Live {
                group: ManuallyDrop::new(live.group.take()),
                taken: live.taken.take(),
                holder: live.holder.take(),
                ..*live
            },
        }
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let live = &mut self.live;
        let Some(group) = live.group.take() else {
            return;
        };
        if live.taken.is_some() || !live.plain || group.waiting() > 0 {
            return self.end(group);
        }
        if let Err(group) = rest_idle(group, |_| true) {
            self.end(group);
        }
    }
}

/// Ends a turn that leaves its group idle, if `also` agrees.
#[inline(always)]
fn rest_idle<T>(
    group: GroupRef<T>,
    also: impl FnOnce(&Mailbox<T>) -> bool,
) -> Result<(), GroupRef<T>> {
    group.end_if(|group, mailbox| {
        let idle = mailbox.flags == 0 && group.waiting() == 0 && also(mailbox);
        idle.then(|| mailbox.rest_idle())
    })
}

impl<T> Turn<'_, T> {
    /// Ends a turn that does not just leave its group idle, or in a queue with a capacity.
    #[inline(never)]
    fn end(&mut self, mut group: GroupRef<T>) {
        let (shared, live) = (&self.shared, &mut self.live);
        if live.holder.is_some() {
            shared.capacity.let_go(&mut live.holder);
            if live.taken.is_none() && group.waiting() == 0 {
                match rest_idle(group, Mailbox::is_closed_up) {
                    Ok(()) => return,
                    Err(back) => group = back,
                }
            }
        }
        let posted = group.end_if(|group, mailbox| {
            let waiting = group.waiting();
            let ends = mailbox.flags & UNPINNED != 0 && waiting == 0;
            if !mailbox.is_plain_but(BARE | BUMPED) || ends || live.taken.is_some() {
                return None;
            }
            mailbox.flags &= !BARE;
            let unit = live.unit_goes_by_token(shared, mailbox);
            if waiting > 0 {
                return Some(shared.submit(group, mailbox, unit));
            }
            mailbox.rest_idle();
            mailbox.close_up();
            Some(shared.return_unit(mailbox, unit))
        });
        match posted {
            Ok(posted) => shared.posted(posted),
            Err(group) => special::end(shared, live, group),
        }
    }
}

shows!([T] Turn<'_, T>, |turn| group: turn.group_id(), left: turn.live.quota);
