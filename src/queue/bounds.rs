//! The capacities of groups and lanes: how many messages may wait in one, beside what the
//! whole queue may hold.
//!
//! State: of each capacity a semaphore. A group finds its own and its lane's under its
//! lock; that of a lane stands in the queue's state as well, for groups to come.
//!
//! Protocol: a send takes its permits of the group first, of the lane then, and of the
//! queue last, under no lock: who waits for a group that nobody serves keeps nothing that
//! others wait for. Messages have the first two for as long as they wait. A capacity that
//! is changed to none, and all when the queue is closed, have their semaphores closed: who
//! waits for one looks again.
//!
//! A send that has looked already when a capacity is set takes permits that are not there.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::error::OutOfRange;
use crate::group::{Admitted, BOUNDED, CLOSED, GROUP, Guard, LANE, Mailbox, bound};
use crate::limit::Limit;
use crate::semaphore::{Acquire, AcquireError, Semaphore, TryAcquireError};
use crate::sync::Arc;
use crate::turnstile::Turnstile;
use crate::wait::Wait;

use super::GroupRef;
use super::capacity::{Capacity, Permits, number};
use super::refuse::SendReason;

/// The semaphore of the group's capacity or of the lane's, as things are now.
pub(crate) type Bound<O> = fn(&mut O, usize) -> Option<Arc<Semaphore>>;

/// Room for what is to be sent. Dropped, it is given back, under no lock.
#[derive(Default)]
pub(crate) struct Granted<'a> {
    /// In the queue.
    pub(crate) permits: Permits<'a>,
    /// In the group and its lane; `None` if they were not asked.
    pub(super) parts: Option<Admitted>,
}

/// The wait for room in a group and its lane.
pub(super) struct Admission {
    /// Which it waits for; past both it has what it needs.
    which: usize,
    asked: Option<Wait<Acquire<Arc<Semaphore>>>>,
    pub(super) admitted: Admitted,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self {
            which: GROUP,
            asked: None,
            admitted: Admitted::default(),
        }
    }

    /// Whether there may be anything to wait for.
    pub(super) fn may_wait(&self, capacity: &Capacity) -> bool {
        self.which <= LANE && capacity.has_parts()
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut bound: impl FnMut(usize) -> Option<Arc<Semaphore>>,
        messages: usize,
    ) -> Poll<Result<(), SendReason>> {
        while self.which <= LANE {
            if self.asked.is_none() {
                let ask = |bound| Wait::new(Semaphore::request(bound, number(messages)));
                self.asked = bound(self.which).map(ask);
            }
            if let Some(asked) = &mut self.asked {
                let answer = ready!(Pin::new(asked).poll(cx));
                self.asked = None;
                match answer {
                    Ok(permit) => self.admitted[self.which] = Some(permit),
                    Err(AcquireError::Closed) => continue,
                    Err(AcquireError::AboveLimit) => {
                        return Poll::Ready(Err(SendReason::AboveCapacity));
                    }
                }
            }
            self.which += 1;
        }
        Poll::Ready(Ok(()))
    }

    /// It has that room, and waits for the queue alone from now on.
    pub(super) fn is_over(&mut self) {
        self.which = LANE + 1;
    }

    /// It waits no more, and gives back what it has.
    pub(super) fn cancel(&mut self) {
        self.asked = None;
        self.admitted = Admitted::default();
    }
}

/// The semaphore of a group's capacity or of its lane's.
pub(crate) fn bound_of<T>(group: &GroupRef<T>, which: usize) -> Option<Arc<Semaphore>> {
    group.lock().bound(which)
}

/// Takes permits of a group's capacity and of its lane's for so many messages, if nobody
/// who waits wants them, and the group does not refuse them for their tier. What was taken
/// is to be dropped under no lock, also if others were refused.
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
    if let (Some(own), Some(lane)) = (&own, &lane)
        && lane.available() < n.into()
    {
        // Nothing of the group's is taken, not for a moment, where its lane is full.
        if own.available() < n.into() {
            let above = (1..n).contains(&own.limit());
            let full = SendReason::GroupFull;
            return Err(if above {
                SendReason::AboveCapacity
            } else {
                full
            });
        }
        take(group, LANE, Some(Arc::clone(lane)), n, admitted)?;
        return take(group, GROUP, Some(Arc::clone(own)), n, admitted);
    }
    take(group, GROUP, own, n, admitted)?;
    take(group, LANE, lane, n, admitted)
}

/// Takes permits of one capacity, which is `bound` unless that is no more.
#[inline]
fn take<T>(
    group: &GroupRef<T>,
    which: usize,
    mut bound: Option<Arc<Semaphore>>,
    n: u32,
    admitted: &mut Admitted,
) -> Result<(), SendReason> {
    while let Some(asked) = bound {
        match Semaphore::try_acquire_owned(&asked, n) {
            Ok(permit) => {
                admitted[which] = Some(permit);
                break;
            }
            Err(TryAcquireError::Closed) => bound = bound_of(group, which),
            Err(TryAcquireError::AboveLimit) => return Err(SendReason::AboveCapacity),
            Err(TryAcquireError::NoPermits) if which == GROUP => {
                return Err(SendReason::GroupFull);
            }
            Err(TryAcquireError::NoPermits) => return Err(SendReason::LaneFull),
        }
    }
    Ok(())
}

/// Messages were taken out of a group that has a capacity, or its lane.
#[cold]
pub(super) fn count_taken<T>(group: &GroupRef<T>, mut mailbox: Guard<'_, Mailbox<T>>) {
    let freed = mailbox.count_waiting(group.waiting());
    drop(mailbox);
    serve(freed);
}

/// Serves who waits for permits that came back. Under no lock.
#[cold]
pub(super) fn serve(bounds: impl IntoIterator<Item = Option<Arc<Semaphore>>>) {
    for bound in bounds.into_iter().flatten() {
        bound.serve();
    }
}

/// What is left to do of a change of a capacity, under no lock.
#[must_use]
pub(super) enum Changed {
    No,
    /// It is no more.
    Gone(Arc<Semaphore>),
    To(Arc<Semaphore>, u32),
}

impl Changed {
    pub(super) fn finish(self) {
        match self {
            Self::No => {}
            Self::Gone(bound) => bound.close(),
            Self::To(bound, most) => {
                let set = bound.set_limit(most);
                debug_assert!(set.is_ok(), "it was checked");
            }
        }
    }
}

/// A capacity of a group or a lane, if it is in range.
pub(crate) fn checked(capacity: Limit) -> Result<Limit, OutOfRange> {
    if let Limit::AtMost(most) = capacity {
        OutOfRange::check("capacity", most, 0, Limit::MAX)?;
    }
    Ok(capacity)
}

/// Changes the capacity of a locked group in which so many messages wait.
pub(super) fn change<T>(mailbox: &mut Mailbox<T>, waiting: u32, capacity: Limit) -> Changed {
    let Limit::AtMost(most) = capacity else {
        let old = mailbox.set_bound(waiting, GROUP, None);
        return old.map_or(Changed::No, Changed::Gone);
    };
    if let Some(bound) = mailbox.bound(GROUP) {
        return Changed::To(bound, most);
    }
    _ = mailbox.set_bound(waiting, GROUP, Some(bound(most)));
    Changed::No
}
