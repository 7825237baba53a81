//! How much was posted to groups, by stripe: who has taken in all of it knows,
//! without the policy lock, that nothing came since.
//!
//! State: for each stripe of groups the number of messages that were posted to
//! them, and under the policy lock how many of these were taken in. Both wrap:
//! so many posts, and no fewer, between a deal and a look would go unseen.
//!
//! Protocol: a message is counted under the lock of the tokens under which it
//! is posted, so that it cannot be taken in before it is counted. Who reads
//! need hold nothing: whoever comes after a send finds it counted.

use crate::dispatch::GroupKey;
use crate::sync::{AtomicUsize, Ordering, model_size};

/// Groups whose keys differ by a multiple of this are counted together.
const STRIPES: usize = model_size(64, 2);

/// Messages posted, by stripe.
pub(super) struct Arrivals([AtomicUsize; STRIPES]);

/// Messages taken in, by stripe.
pub(super) struct TakenIn([usize; STRIPES]);

impl Arrivals {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicUsize::new(0)))
    }

    /// One is posted, under the tokens' lock.
    pub(super) fn count(&self, group: GroupKey) {
        let stripe = &self.0[stripe(group)];
        // Relaxed: written under that lock only, and read by whoever comes
        // later; the messages themselves go through the lock.
        let before = stripe.load(Ordering::Relaxed);
        stripe.store(before.wrapping_add(1), Ordering::Relaxed);
    }

    /// How many were posted to the group's stripe.
    pub(super) fn of(&self, group: GroupKey) -> usize {
        // Relaxed: see `count`.
        self.0[stripe(group)].load(Ordering::Relaxed)
    }
}

impl TakenIn {
    pub(super) fn new() -> Self {
        Self([0; STRIPES])
    }

    /// One is taken in.
    pub(super) fn count(&mut self, group: GroupKey) {
        let stripe = &mut self.0[stripe(group)];
        *stripe = stripe.wrapping_add(1);
    }

    /// How many of the group's stripe were taken in.
    pub(super) fn of(&self, group: GroupKey) -> usize {
        self.0[stripe(group)]
    }
}

fn stripe(group: GroupKey) -> usize {
    group.index() as usize % STRIPES
}
