//! Who there is: a number for each owner, which gives its age too, and its priority.

use crate::slab::Key;
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

/// Of one owner of a table, and never of another: a number, in eight bytes that need no
/// alignment of eight, of which some are never 0. No slab has it.
pub(super) type OwnerKey = Key;

/// The first number that is one.
const FIRST: u64 = 1 << 32;

/// What all owners change as they come and go, or are renewed, which is both.
pub(super) struct Owners {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Owners {
    pub(super) fn new() -> Self {
        Self {
            begun: AtomicU64::new(FIRST),
            ended: AtomicU64::new(FIRST),
        }
    }

    /// One begins; the higher the number, the younger.
    pub(super) fn begin(&self) -> u64 {
        // Relaxed: of two the one that is made later is counted later, as by every counter.
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// One is gone.
    pub(super) fn end(&self) {
        // Relaxed: as above.
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        // Relaxed: exact if nobody comes or goes.
        let ended = self.ended.load(Ordering::Relaxed);
        let begun = self.begun.load(Ordering::Relaxed);
        begun.saturating_sub(ended) as usize
    }
}

/// How little an owner is to give up in a deadlock. A handle, by which anybody changes it, also
/// while the owner waits.
///
/// ```
/// # use conversant::lock_table::{LockTable, Resource};
/// # #[derive(Clone, PartialEq, Eq, Hash)]
/// # struct Name(u32);
/// # impl Resource for Name {
/// #     fn parent(&self) -> Option<Self> {
/// #         None
/// #     }
/// # }
/// let owner = LockTable::<Name>::new().owner(0);
/// let priority = owner.priority();
/// priority.set(5);
/// assert_eq!(owner.priority().get(), 5);
/// ```
#[derive(Clone, Debug)]
pub struct Priority(Arc<AtomicU32>);

impl Priority {
    pub(super) fn new(priority: i32) -> Self {
        Self(Arc::new(AtomicU32::new(priority.cast_unsigned())))
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed).cast_signed()
    }

    /// Counts from the next deadlock on.
    pub fn set(&self, priority: i32) {
        // Relaxed: it orders nothing; who closes a circle after it goes by it.
        self.0.store(priority.cast_unsigned(), Ordering::Relaxed);
    }
}
