//! Turns: the exclusive right to receive from one group.
//!
//! The plain steps are here: they take the group's lock and nothing else.
//! Whatever a flag of the group makes rare is in `special`.

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
use super::special::{self, LIVE, Live};

/// The queue of a turn: borrowed, or kept.
type Owner<'q, T> = Cow<'q, Arc<Shared<T>>>;

/// The exclusive right to receive from one group, until it is dropped.
///
/// It holds one unit of the group's limit and of the lane's cap from its claim
/// to its end. Dropping it lets the next receive go on: a group with work and a
/// free unit stands in line again, as the youngest.
///
/// Each message is a [`Delivery`], which borrows the turn, so that there is one
/// at a time; [`Delivery::detach`] makes one that outlives the turn.
///
/// A turn that is forgotten (`mem::forget`) keeps its group for ever.
///
/// # Cost
///
/// One short lock of the group at the beginning and at the end; the first
/// message comes with it. No lock that readers of other groups take, but in the
/// cases that the [module](super) lists.
#[must_use = "dropping a turn lets the next receive have its group"]
pub struct Turn<'q, T> {
    shared: Owner<'q, T>,
    live: Live<T>,
}

impl<T> Live<T> {
    /// Has the next message taken out, if there is one for it now.
    #[inline]
    fn advance(&mut self, shared: &Owner<'_, T>) -> bool {
        self.taken.is_some() || self.group().waiting() > 0 && self.take_next(shared)
    }

    #[inline(never)]
    fn take_next(&mut self, shared: &Owner<'_, T>) -> bool {
        let group: &Group<T> = self.group.as_ref().expect(LIVE);
        let mut mailbox = group.lock();
        let within_cap = || mailbox.flags == CAPPED && shared.epoch() == self.epoch;
        // Without a unit of its own the flags would say so.
        if mailbox.flags == 0 || within_cap() {
            self.taken = group.take(&mut mailbox);
            return self.taken.is_some();
        }
        drop(mailbox);
        special::take_next(shared, self)
    }

    /// The turn ends: whether a token has to say that a unit of the lane's cap
    /// came back. One that is older than a change of caps comes back alone.
    #[inline]
    fn unit_goes_by_token(&self, shared: &Shared<T>, mailbox: &Mailbox<T>) -> bool {
        let alone = || shared.epoch() != self.epoch;
        let units = &shared.submissions.units;
        let counted = self.unit && mailbox.flags & CAPPED != 0;
        counted && (alone() || units.give_back(mailbox.lane.index()))
    }
}

impl<'q, T> Turn<'q, T> {
    /// Begins the turn of a group that was claimed. Never fails: a group that
    /// was paused meanwhile gives nothing. `epoch`: the queue's from before the
    /// claim.
    #[inline(always)]
    pub(super) fn begin(shared: &'q Arc<Shared<T>>, group: GroupRef<T>, epoch: u32) -> Self {
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

    /// Whose turn it is.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.shared.id(self.live.group().key())
    }

    /// The group's [tag](super::Conversation::set_tag), 0 if it was given none.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.live.group().lock().tag()
    }

    /// The group's next message, to be [completed](Delivery::complete): a delivery that
    /// is dropped was *not* done, and its message is delivered again.
    ///
    /// Nothing if the quantum is used up, if nothing waits, or if no unit is
    /// free: the group or its lane was paused, a delivery was detached and the
    /// limit is reached, another tier is open. What comes later may be taken:
    /// after nothing there may be something again. The first message is taken out when
    /// the turn is received: it comes also if there was a pause since.
    ///
    /// A `complete` that was forgotten is counted in [`Counts::dropped`](super::Counts::dropped),
    /// and told to [`Builder::on_dropped`](super::Builder::on_dropped).
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

    /// Up to `n` messages, lent as one, to be completed all or up to some number: what is
    /// not is delivered again. Nothing where [`next`](Self::next) gives nothing. Each message
    /// counts in the quantum.
    #[inline]
    pub fn next_batch(&mut self, n: usize) -> Option<Batch<'_, T>> {
        let live = &mut self.live;
        if n == 0 || live.quota == 0 || !live.advance(&self.shared) {
            return None;
        }
        let most = u32::try_from(n).unwrap_or(u32::MAX).min(live.quota);
        Some(Batch::take(&self.shared, live, most))
    }

    /// The same turn, with a queue of its own: it may be stored, and outlive
    /// the queue's handles.
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

/// Ends a turn after which its group is just idle, if it is so `also` by this.
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
    /// Ends the turn of a group that is not just idle then, or in a queue with a
    /// capacity.
    #[inline(never)]
    fn end(&mut self, group: GroupRef<T>) {
        match self.live.holder.is_some() {
            true => self.end_limited(group),
            false => self.end_by_token(group),
        }
    }

    /// Ends a turn in a queue with a capacity.
    #[inline(never)]
    fn end_limited(&mut self, mut group: GroupRef<T>) {
        let live = &mut self.live;
        self.shared.capacity.let_go(&mut live.holder);
        if live.taken.is_none() && group.waiting() == 0 {
            match rest_idle(group, Mailbox::is_closed_up) {
                Ok(()) => return,
                Err(back) => group = back,
            }
        }
        self.end_by_token(group);
    }

    /// Ends the turn of a group that is not just idle then.
    #[inline(never)]
    fn end_by_token(&mut self, group: GroupRef<T>) {
        let (shared, live) = (&self.shared, &mut self.live);
        let posted = group.end_if(|group, mailbox| {
            let waiting = group.waiting() + u32::from(live.taken.is_some());
            let ends = mailbox.flags & UNPINNED != 0 && waiting == 0;
            let wanted = live
                .taken
                .as_ref()
                .map(|taken| shared.wants(&taken.message));
            if !mailbox.is_plain_but(BARE | BUMPED) || ends || wanted == Some(false) {
                return None;
            }
            mailbox.flags &= !BARE;
            if let Some(taken) = live.taken.take() {
                group.put_back(mailbox, taken);
                _ = mailbox.count_waiting(group.waiting());
            }
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

shows!(impl<T> Turn<'_, T>, |turn| group: turn.group(), left: turn.live.quota);
