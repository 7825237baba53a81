//! The capacities of a group and of its lane: how many of its messages may wait.
//!
//! State: one semaphore for each capacity, with a permit for each message that may wait; and how
//! many permits of each the messages of the group have.
//!
//! Protocol: a send takes the permits of a single capacity with the group locked, if they are there.
//! Otherwise it takes its permits under no lock, and brings them in with its messages. Messages
//! taken out or put back meanwhile are counted before the group is unlocked: permits go back, or
//! are taken even if none are available. Sends that wait for permits are served under no lock. A
//! capacity that is removed is closed: sends that wait for it look again.
//!
//! Invariants, when the group is unlocked:
//! 1. [`BOUNDED`] is set exactly if there is a capacity.
//! 2. For each capacity the messages of the group have as many permits as messages wait.

use crate::limit::{Bypass, Limit};
use crate::semaphore::{Permit, Semaphore};
use crate::sync::Arc;
use crate::wait::WaitCounts;

use super::{BOUNDED, CLOSED, Mailbox};

/// One for the group, and one for its lane.
pub(super) type Both<S> = [Option<S>; 2];

/// The index of the group's own capacity.
pub(crate) const GROUP: usize = 0;
/// The index of the lane's capacity.
pub(crate) const LANE: usize = 1;

/// Permits that a send has taken, for the capacities that there are.
pub(crate) type Admitted = Both<Permit<Arc<Semaphore>>>;

/// See the [module](self).
pub(super) struct Bounds {
    semaphores: Both<Arc<Semaphore>>,
    /// How many permits of each capacity the messages have.
    has: u32,
}

/// Permits for so many messages; sends that wait for them are served in order.
pub(crate) fn bound(most: u32) -> Arc<Semaphore> {
    let semaphore = Semaphore::const_new(most);
    Arc::new(semaphore.with_bypass(Bypass::AtMost(0)))
}

impl<T> Mailbox<T> {
    fn bounds(&mut self) -> Option<&mut Bounds> {
        self.rare.as_mut()?.bounds.as_deref_mut()
    }

    /// The semaphore of the group's own capacity or of its lane's, if there is one and the queue is
    /// not closed.
    pub(crate) fn bound(&mut self, which: usize) -> Option<Arc<Semaphore>> {
        if self.flags & CLOSED != 0 {
            return None;
        }
        self.bounds()?.semaphores[which].clone()
    }

    /// The group's own capacity, and how many sends wait for it.
    pub(crate) fn own_bound(&mut self) -> (Limit, WaitCounts) {
        let bounds = self.bounds();
        of_bound(bounds.and_then(|bounds| bounds.semaphores[GROUP].as_ref()))
    }

    /// Sets or removes the semaphore of a capacity, while `waiting` messages wait. Returns the old.
    pub(crate) fn set_bound(
        &mut self,
        waiting: u32,
        which: usize,
        new: Option<Arc<Semaphore>>,
    ) -> Option<Arc<Semaphore>> {
        if let Some(new) = &new {
            new.acquire_past(waiting);
        }
        let bounds = &mut self.rare().bounds;
        let first = || {
            Box::new(Bounds {
                semaphores: [None, None],
                has: waiting,
            })
        };
        let semaphores = &mut bounds.get_or_insert_with(first).semaphores;
        let old = std::mem::replace(&mut semaphores[which], new);
        if semaphores.iter().any(Option::is_some) {
            self.flags |= BOUNDED;
        } else {
            *bounds = None;
            self.flags &= !BOUNDED;
        }
        old
    }

    /// Takes permits of the only capacity for so many messages that are put in next. If that is not
    /// possible at once, or there is not one capacity, takes none.
    pub(crate) fn take_room(&mut self, messages: usize) -> bool {
        let Some(bounds) = self.bounds() else {
            return false;
        };
        let ([Some(only), None] | [None, Some(only)]) = &bounds.semaphores else {
            return false;
        };
        let taken = u32::try_from(messages).is_ok_and(|n| only.take(n));
        if taken {
            bounds.has += messages as u32;
        }
        taken
    }

    /// So many messages were put in, with the permits of `admitted`. Permits of a capacity that was
    /// removed stay in `admitted`. For a capacity that was set since, permits are taken even if
    /// none are available.
    pub(crate) fn bring_in(&mut self, admitted: &mut Admitted, messages: usize) {
        let Some(bounds) = self.bounds() else { return };
        // Fewer than 2^32 wait.
        let messages = messages as u32;
        for (semaphore, permit) in bounds.semaphores.iter().zip(admitted) {
            let Some(semaphore) = semaphore else { continue };
            match permit.take_if(|permit| std::ptr::eq(permit.semaphore(), &raw const **semaphore))
            {
                Some(permit) => permit.pass_on(),
                None => semaphore.acquire_past(messages),
            }
        }
        bounds.has += messages;
    }

    /// So many messages wait now. Returns the semaphores that are to be served, under no lock.
    pub(crate) fn count_waiting(&mut self, waiting: u32) -> Both<Arc<Semaphore>> {
        let Some(bounds) = self.bounds() else {
            return [None, None];
        };
        let had = std::mem::replace(&mut bounds.has, waiting);
        let count = |semaphore: &Arc<Semaphore>| {
            if had < waiting {
                semaphore.acquire_past(waiting - had);
            }
            had > waiting && semaphore.put(had - waiting)
        };
        let semaphores = bounds.semaphores.each_ref();
        semaphores.map(|semaphore| semaphore.as_ref().filter(|&one| count(one)).cloned())
    }
}

/// A capacity, and how many sends wait for it.
pub(crate) fn of_bound(semaphore: Option<&Arc<Semaphore>>) -> (Limit, WaitCounts) {
    semaphore.map_or((Limit::Unlimited, WaitCounts::default()), |semaphore| {
        let waits = semaphore.counts().acquires;
        (Limit::AtMost(semaphore.limit()), waits)
    })
}
