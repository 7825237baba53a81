//! The capacities of a group and of its lane: how many of its messages may wait.
//!
//! State: of each capacity a semaphore, with a permit for each message that may wait;
//! and how many permits of each the messages of the group have.
//!
//! Protocol: a send takes its permits under no lock, and brings them in with its messages.
//! What was taken out or put back since is counted before the group is unlocked: permits
//! go back, or are taken whether they are there or not. Who waits for them is served under
//! no lock. A capacity that is no more is closed: who waits for it looks again.
//!
//! Invariants, when the group is unlocked:
//! 1. [`BOUNDED`] is set exactly if there is a capacity.
//! 2. Of each the messages of the group have as many permits as wait.

use crate::limit::{Bypass, Limit};
use crate::semaphore::{Permit, Semaphore};
use crate::sync::Arc;
use crate::wait::WaitCounts;

use super::{BOUNDED, CLOSED, Mailbox};

/// Of a group, and of its lane.
pub(super) type Both<S> = [Option<S>; 2];

/// The place of the group's own.
pub(crate) const GROUP: usize = 0;
/// The place of the lane's.
pub(crate) const LANE: usize = 1;

/// Permits that a send has taken, where it needs them.
pub(crate) type Admitted = Both<Permit<Arc<Semaphore>>>;

/// See the [module](self).
pub(super) struct Bounds {
    semaphores: Both<Arc<Semaphore>>,
    /// How many permits of each the messages have.
    has: u32,
}

/// Permits for so many messages, for which who waits is served in order.
pub(crate) fn bound(most: u32) -> Arc<Semaphore> {
    let semaphore = Semaphore::const_new(most);
    Arc::new(semaphore.with_bypass(Bypass::AtMost(0)))
}

impl<T> Mailbox<T> {
    fn bounds(&mut self) -> Option<&mut Bounds> {
        self.rare.as_mut()?.bounds.as_deref_mut()
    }

    /// The semaphore of its own capacity or of its lane's, if there is one and the queue
    /// is not closed.
    pub(crate) fn bound(&mut self, which: usize) -> Option<Arc<Semaphore>> {
        if self.flags & CLOSED != 0 {
            return None;
        }
        self.bounds()?.semaphores[which].clone()
    }

    /// Its own capacity, and how many sends wait for it.
    pub(crate) fn own_bound(&mut self) -> (Limit, WaitCounts) {
        let bounds = self.bounds();
        of_bound(bounds.and_then(|bounds| bounds.semaphores[GROUP].as_deref()))
    }

    /// Has a new semaphore, or none, for a capacity: the old one. So many messages wait.
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

    /// So many messages were put in, with the permits of `admitted`. Those of a capacity
    /// that is no more stay there; and where there is one since, permits are taken whether
    /// they are there or not.
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

    /// So many messages wait now. The semaphores that are to be served, under no lock.
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
pub(crate) fn of_bound(semaphore: Option<&Semaphore>) -> (Limit, WaitCounts) {
    semaphore.map_or((Limit::Unlimited, WaitCounts::default()), |semaphore| {
        let waits = semaphore.counts().acquires;
        (Limit::AtMost(semaphore.limit()), waits)
    })
}
