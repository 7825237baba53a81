//! The capacities of groups and lanes: how many messages may wait in one, in addition to the
//! capacity of the whole queue.
//!
//! State: one semaphore for each capacity. A group finds its own and its lane's under its lock.
//! The queue's state has a lane's too, for future groups.
//!
//! Protocol: a send takes permits of the group, then of the lane, then of the queue, under no
//! lock: a wait for a group that nobody serves keeps nothing that others need. If only the group
//! or the lane has a capacity, and room, the permits are taken with the group locked. A message
//! holds the first two while it waits. When a capacity is removed, and when the queue is closed, the
//! semaphore is closed: its waiters then look again.
//!
//! A send that looked before a capacity was set may take permits that the capacity does not have.

use crate::error::OutOfRange;
use crate::group::{Admitted, BOUNDED, CLOSED, GROUP, Guard, LANE, Mailbox, bound};
use crate::limit::Limit;
use crate::semaphore::{AcquireError, Permit, Semaphore};
use crate::sync::Arc;
use crate::turnstile::Turnstile;

use super::GroupRef;
use super::capacity::{Permits, is_above, number};
use super::refuse::SendReason;

/// The most messages that may wait where a capacity is set. They may all be a debt of its
/// permits, which has room for as many that come back later.
const MOST_WAITING: u32 = 1 << 30;

/// The current semaphore of the group's capacity (`GROUP`) or of the lane's (`LANE`).
pub(crate) type Bound<O> = fn(&mut O, usize) -> Option<Arc<Semaphore>>;

/// Room for what is to be sent. Given back on drop, which must be under no lock.
#[derive(Default)]
pub(crate) struct Granted<'a> {
    pub(crate) permits: Permits<'a>,
    /// Room in the group and its lane.
    pub(super) parts: Admitted,
}

/// The semaphore of a group's capacity or of its lane's.
pub(crate) fn bound_of<T>(group: &GroupRef<T>, which: usize) -> Option<Arc<Semaphore>> {
    group.lock().bound(which)
}

/// Takes permits of a group's capacity and of its lane's for `messages`, unless waiters want
/// them or the group refuses the tier. What was taken must be dropped under no lock, also after
/// a refusal.
pub(super) fn admit<T>(
    (group, tier): (&GroupRef<T>, Option<u32>),
    messages: usize,
    admitted: &mut Admitted,
) -> Result<(), SendReason> {
    let (n, mut mailbox) = (number(messages), group.lock());
    let outstanding = group.waiting() > 0 || mailbox.units(false) > 0;
    if mailbox.flags & CLOSED != 0 {
        return Err(SendReason::Closed);
    }
    mailbox.check_tier(tier, outstanding)?;
    if mailbox.flags & BOUNDED == 0 {
        return Ok(());
    }
    let (own, lane) = (mailbox.bound(GROUP), mailbox.bound(LANE));
    drop(mailbox);
    if [&own, &lane]
        .into_iter()
        .flatten()
        .any(|bound| is_above(bound, n))
    {
        return Err(SendReason::AboveCapacity);
    }
    let full = |bound: &Semaphore| messages > 0 && bound.available() < n.into();
    if let (Some(own), Some(lane)) = (&own, &lane)
        && full(lane)
    {
        // Nothing is taken even for a moment, so that no other send is refused for it.
        if full(own) {
            return Err(SendReason::GroupFull);
        }
        take(group, LANE, Some(Arc::clone(lane)), n, admitted)?;
        return take(group, GROUP, Some(Arc::clone(own)), n, admitted);
    }
    take(group, GROUP, own, n, admitted)?;
    take(group, LANE, lane, n, admitted)
}

/// Takes permits of one capacity: `bound`, or its replacement if `bound` is closed.
#[inline]
fn take<T>(
    group: &GroupRef<T>,
    which: usize,
    mut bound: Option<Arc<Semaphore>>,
    n: u32,
    admitted: &mut Admitted,
) -> Result<(), SendReason> {
    while let Some(asked) = bound {
        match asked.try_now(n) {
            Ok(()) => {
                admitted[which] = Some(Permit::of(asked, n));
                break;
            }
            Err(AcquireError::Closed) => bound = bound_of(group, which),
            Err(AcquireError::AboveLimit) => return Err(SendReason::AboveCapacity),
            Err(AcquireError::NoPermits) if which == GROUP => {
                return Err(SendReason::GroupFull);
            }
            Err(AcquireError::NoPermits) => return Err(SendReason::LaneFull),
        }
    }
    Ok(())
}

/// Messages were taken out of a group that has a capacity, or whose lane has one.
#[cold]
pub(super) fn count_taken<T>(group: &GroupRef<T>, mut mailbox: Guard<'_, Mailbox<T>>) {
    let freed = mailbox.count_waiting(group.waiting());
    drop(mailbox);
    if freed.iter().any(Option::is_some) {
        serve(freed);
    }
}

/// Serves the waiters for permits that came back. Under no lock.
#[cold]
pub(super) fn serve(bounds: impl IntoIterator<Item = Option<Arc<Semaphore>>>) {
    for bound in bounds.into_iter().flatten() {
        bound.serve();
    }
}

/// The group's own capacity.
pub(crate) fn own_capacity<T>(group: &GroupRef<T>) -> Limit {
    group.lock().own_bound().0
}

/// Whether a first capacity can be set where so many messages wait.
pub(super) fn check_waiting(waiting: u64) -> Result<(), OutOfRange> {
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    OutOfRange::check("messages that wait", waiting, 0, MOST_WAITING)
}

/// Changes the capacity of a locked group in which `waiting` messages wait. [`finish_change`] must
/// follow for what it returns. An error has changed nothing.
pub(super) fn change<T>(
    mailbox: &mut Mailbox<T>,
    waiting: u32,
    capacity: Limit,
) -> Result<Option<Arc<Semaphore>>, OutOfRange> {
    let Limit::AtMost(most) = capacity else {
        return Ok(mailbox.set_bound(waiting, GROUP, None));
    };
    let old = mailbox.bound(GROUP);
    if old.is_none() {
        check_waiting(waiting.into())?;
        _ = mailbox.set_bound(waiting, GROUP, Some(bound(most)));
    }
    Ok(old)
}

/// Ends the change of a bound to this capacity. Under no lock.
pub(super) fn finish_change(bound: Option<Arc<Semaphore>>, capacity: Limit) {
    let Some(bound) = bound else { return };
    match capacity {
        Limit::Unlimited => bound.close(),
        Limit::AtMost(most) => {
            let set = bound.set_limit(most);
            debug_assert!(set.is_ok(), "it was checked");
        }
    }
}
