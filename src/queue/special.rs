//! The steps of turns and deliveries for groups with flags: the same steps as in `turn` and
//! `delivery`, with every rule, under the policy lock and the group's. And the state of a live
//! turn.

use std::borrow::Cow;
use std::iter::once;
use std::mem::ManuallyDrop;

use crate::group::{
    BACKING_OFF, BARE, BOUNDED, BUMPED, CAPPED, Flags, Guard, Head, Mailbox, POISONED, Phase,
    STARTED, SUSPENDED, TIERED, Taken, ordinal,
};

use crate::ready::Age;
use crate::sync::Arc;
use crate::trace;

use super::bounds;
use super::capacity::number;
use super::holders::Holder;
use super::shared::Shared;
use super::state::State;
use super::suspended::Failure;
use super::{GroupRef, Pinned};

/// The queue of a turn: borrowed or owned.
pub(super) type Owner<'q, T> = Cow<'q, Arc<Shared<T>>>;

pub(super) struct Live<T> {
    /// `None` once the turn has ended, which it does before it is dropped.
    pub(super) group: ManuallyDrop<Option<GroupRef<T>>>,
    /// The message taken out: with a delivery, or to be delivered next.
    pub(super) taken: Option<Taken<T>>,
    /// How many more deliveries the turn may make.
    pub(super) quota: u32,
    /// The queue's epoch when the cap was last looked at.
    pub(super) epoch: u64,
    /// The group had no flag when the turn began, the queue has no capacity, and nothing was
    /// given back, was detached or counts in a tier.
    pub(super) plain: bool,
    /// The turn holds a unit: the last delivery was not detached.
    pub(super) unit: bool,
    /// `taken` counts as started in the lane's tiers.
    pub(super) counted: bool,
    /// The thread that received the turn, if the queue has a capacity.
    pub(super) holder: Holder,
}

impl<T> Live<T> {
    #[inline]
    pub(super) fn group(&self) -> &GroupRef<T> {
        self.group.as_ref().expect(LIVE)
    }

    /// Whether a completed message was counted, in its tier or in the capacity.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        !self.plain && (self.counted || self.holder.is_some())
    }
}

pub(super) const LIVE: &str = "a turn is live until it is dropped";

/// Begins the turn of a group with flags. Returns its first message, and whether that counts as
/// started.
#[inline(never)]
pub(super) fn begin<T>(
    shared: &Shared<T>,
    group: &GroupRef<T>,
    mut mailbox: Guard<'_, Mailbox<T>>,
) -> (Option<Taken<T>>, bool) {
    if mailbox.flags & TIERED != 0 {
        drop(mailbox);
        let taken = begin_in_tier(shared, group);
        let counted = taken.is_some();
        return (taken, counted);
    }
    mailbox.phase = Phase::Held;
    mailbox.flags &= !BUMPED;
    let mut taken = None;
    if mailbox.may_take() {
        taken = group.take(&mut mailbox);
    }
    if mailbox.flags & BOUNDED != 0 {
        bounds::count_taken(group, mailbox);
    }
    (taken, false)
}

/// Takes the message that started when its group was claimed, if it is still first.
#[cold]
fn begin_in_tier<T>(shared: &Shared<T>, group: &GroupRef<T>) -> Option<Taken<T>> {
    shared.with_group(group, |state, mailbox| {
        mailbox.phase = Phase::Held;
        mailbox.flags &= !(BUMPED | STARTED);
        let (started, head) = (mailbox.counted(), mailbox.head());
        let mut taken = None;
        if mailbox.may_take() && head.map(|head| head.tier) == started {
            mailbox.rare().counted = None;
            taken = group.take(mailbox);
        } else if let Some(tier) = started {
            state.lanes.tiers(mailbox.lane.index()).give_back(tier);
        }
        (taken, Age::Same)
    })
}

/// Takes the next message for a turn whose group has flags, or that has no unit.
#[inline(never)]
pub(super) fn take_next<T>(shared: &Shared<T>, live: &mut Live<T>) -> bool {
    let group = live.group.as_ref().expect(LIVE);
    let mut mailbox = group.lock();
    let epoch = shared.epoch();
    let look = !live.unit || epoch != live.epoch;
    if mailbox.flags & TIERED != 0 || mailbox.flags & CAPPED != 0 && look {
        drop(mailbox);
        return take_admitted(shared, live, epoch);
    }
    if !mailbox.may_take() {
        return false;
    }
    live.taken = group.take(&mut mailbox);
    if live.taken.is_some() && !live.unit {
        live.unit = true;
        mailbox.flags &= !BARE;
    }
    if mailbox.flags & BOUNDED != 0 {
        bounds::count_taken(group, mailbox);
    }
    live.taken.is_some()
}

/// Takes the next message in a lane with tiers, or for a turn that needs a unit of the lane's
/// cap.
#[cold]
fn take_admitted<T>(shared: &Shared<T>, live: &mut Live<T>, epoch: u64) -> bool {
    shared.with_state(|state| {
        let group = live.group.as_ref().expect(LIVE);
        let mut mailbox = shared.lock_group(state, group);
        let lane = mailbox.lane.index();
        finish_swept(state, &mut mailbox);
        let head = mailbox.head().filter(|_| mailbox.may_take());
        let Some(head) = head.filter(|head| state.lanes.lane(lane).may_start(head.tier)) else {
            state.lanes.update(lane);
            return false;
        };
        let room = match live.unit {
            true => state.lanes.lane(lane).is_within_cap(),
            false => state.lanes.take_unit(lane),
        };
        if room {
            live.epoch = epoch;
            live.unit = true;
            mailbox.flags &= !BARE;
            if mailbox.flags & TIERED != 0 {
                state.lanes.tiers(lane).start(head.tier);
                mailbox.rare().counted = None;
                (live.counted, live.plain) = (true, false);
            }
            live.taken = group.take(&mut mailbox);
        }
        state.place(&shared.submissions, group, &mut mailbox, Age::Same);
        room
    })
}

/// Counts the message as done that a turn had taken before tiers came into use.
fn finish_swept<T>(state: &mut State<T>, mailbox: &mut Mailbox<T>) {
    if mailbox.flags & TIERED != 0 && std::mem::take(&mut mailbox.rare().swept) {
        state.lanes.tiers(mailbox.lane.index()).finish(0);
    }
}

/// `messages` messages are done; the first may count as started.
#[inline(never)]
pub(super) fn completed<T>(shared: &Shared<T>, live: &mut Live<T>, tier: u32, messages: usize) {
    // Each branch ends with a call of its own: 6 instructions fewer than one common end.
    match live.counted {
        true => completed_in_tier(shared, live, tier, messages),
        false => shared.capacity.done(&live.holder, number(messages)),
    }
}

#[cold]
fn completed_in_tier<T>(shared: &Shared<T>, live: &mut Live<T>, tier: u32, messages: usize) {
    live.counted = false;
    let lane = live.group().lock().lane.index();
    // First, because a waker in what follows may send.
    shared.capacity.done(&live.holder, number(messages));
    shared.with_state(|state| {
        state.lanes.tiers(lane).finish(tier);
        state.lanes.update(lane);
    });
}

/// Gives back the message taken out and those `behind` it. The first of all these has failed; the
/// others were not looked at.
#[cold]
pub(super) fn fail<T>(shared: &Shared<T>, live: &mut Live<T>, behind: Vec<Taken<T>>, how: Failure) {
    let mut behind = behind.into_iter();
    let Some(failed) = live.taken.take().or_else(|| behind.next()) else {
        return;
    };
    // The group now has a block for rare state, which the turn's end frees.
    live.plain = false;
    let failed = shared.failed(failed);
    let message = failed.head();
    let group = live.group.as_ref().expect(LIVE);
    if how == Failure::ByRule && shared.built.retry.is_plain(failed.attempts) {
        let mut mailbox = group.lock();
        let wanted = |taken: &Taken<T>| shared.wants(&taken.message);
        let mut all = once(&failed).chain(behind.as_slice());
        if mailbox.is_plain_but(BARE) && all.all(wanted) {
            for taken in behind.rev().chain([failed]) {
                group.put_back(&mut mailbox, taken);
            }
            _ = mailbox.count_waiting(group.waiting());
            return;
        }
    }
    live.counted = false;
    let suspended = shared.with_group(group, |state, mailbox| {
        let counted = is_started(mailbox);
        for taken in behind.rev() {
            give_back(shared, state, group, mailbox, (taken, false, None));
        }
        let flag = give_back(shared, state, group, mailbox, (failed, counted, Some(how)));
        ((flag, mailbox.tag()), Age::Same)
    });
    trace_failure(shared, group, message, suspended);
}

/// Reports that a message was given back; `flag` is what its group got by that, if anything.
/// Under no lock.
fn trace_failure<T>(
    shared: &Shared<T>,
    group: &GroupRef<T>,
    failed: Head,
    (flag, tag): (Flags, u64),
) {
    let (group, message) = (shared.id(group.key()), ordinal(failed.place()));
    match flag {
        BACKING_OFF => trace::group_backs_off(&group, tag, message, failed.attempts),
        POISONED => trace::group_poisoned(&group, tag, message, failed.attempts),
        _ => {}
    }
}

/// Whether the message taken out counts as started; from now on its turn counts it no more.
fn is_started<T>(mailbox: &mut Mailbox<T>) -> bool {
    let tiered = mailbox.flags & TIERED != 0;
    if tiered {
        mailbox.rare().swept = false;
    }
    tiered
}

/// Puts a message back under both locks, unless nobody will ever receive it. `counted`: it
/// counts as started; `failed`: its attempt counts, and how. Returns the flag, if this suspends
/// the group.
pub(super) fn give_back<T>(
    shared: &Shared<T>,
    state: &mut State<T>,
    group: &GroupRef<T>,
    mailbox: &mut Mailbox<T>,
    (taken, counted, failed): (Taken<T>, bool, Option<Failure>),
) -> Flags {
    let (lane, tier) = (mailbox.lane.index(), taken.tier);
    if !shared.wants(&taken.message) {
        shared.free(state, 1);
        state.unwanted.push(taken.message);
        if counted {
            state.lanes.tiers(lane).finish(tier);
        }
        return 0;
    }
    let mut flag = 0;
    if let Some(how) = failed
        && mailbox.flags & POISONED == 0
    {
        let (retry, suspended) = (shared.built.retry, &mut state.suspended);
        flag = suspended.failed(retry, group.key(), taken.head(), how);
        if flag == POISONED {
            mailbox.flags &= !SUSPENDED;
        }
        mailbox.flags |= flag;
    }
    group.put_back(mailbox, taken);
    if counted {
        // Both wait: the message that comes back, and the one that was first until now.
        state.lanes.tiers(lane).give_back(tier);
        state.count_head(mailbox);
        state.lanes.tiers(lane).leave(tier);
    }
    flag
}

#[cold]
pub(super) fn end<T>(shared: &Shared<T>, live: &mut Live<T>, group: GroupRef<T>) {
    shared.with_group(&group, |state, mailbox| {
        if live.unit && mailbox.flags & CAPPED != 0 {
            state.lanes.return_units(mailbox.lane.index(), 1);
        }
        if let Some(taken) = live.taken.take() {
            let message = (taken, is_started(mailbox), None);
            give_back(shared, state, &group, mailbox, message);
        } else {
            finish_swept(state, mailbox);
        }
        mailbox.flags &= !BARE;
        mailbox.phase = Phase::Idle;
        ((), Age::New)
    });
}

/// Makes a pin of a group.
#[cold]
pub(super) fn pin<T>(shared: &Arc<Shared<T>>, group: &GroupRef<T>) -> Pinned<T> {
    shared.with_state(|state| state.groups.pin(group, &mut group.lock(), shared))
}

/// Ends a detached delivery of a message of this tier: the message is done, or has `failed` and
/// goes back. Its units come back. The group becomes the youngest if it was not ready, since no
/// unit was free, or if this suspends it.
#[cold]
pub(super) fn end_detached<T>(
    shared: &Shared<T>,
    group: &GroupRef<T>,
    tier: u32,
    failed: Option<(Taken<T>, Failure)>,
) {
    let failed = failed.map(|(taken, how)| (shared.failed(taken), how));
    let message = failed.as_ref().map(|(taken, _)| taken.head());
    let suspended = shared.with_group(group, |state, mailbox| {
        // `change_group` has taken it out of line, or before that a receive by name.
        let in_line = matches!(mailbox.phase, Phase::Idle | Phase::Blocked);
        let ready = in_line && group.waiting() > 0 && mailbox.may_take();
        mailbox.change_room(|rare| rare.detached -= 1);
        let lane = mailbox.lane.index();
        if mailbox.flags & CAPPED != 0 {
            state.lanes.return_units(lane, 1);
        }
        let counted = mailbox.flags & TIERED != 0;
        let mut flag = 0;
        if let Some((failed, how)) = failed {
            flag = give_back(shared, state, group, mailbox, (failed, counted, Some(how)));
        } else if counted {
            state.lanes.tiers(lane).finish(tier);
        }
        let stays = ready && mailbox.flags & SUSPENDED == 0;
        let age = if stays { Age::Same } else { Age::New };
        ((flag, mailbox.tag()), age)
    });
    if let Some(message) = message {
        trace_failure(shared, group, message, suspended);
    }
}
