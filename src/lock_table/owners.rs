//! The numbers of owners, which give their ages too, and the owners' priorities.

use crate::slab::Key;
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

/// The number of one owner of a table, and never of another. It has eight bytes that need no
/// alignment of eight, and some of them are never 0. No slab gives it out.
pub(super) type OwnerKey = Key;

/// The first number that is a key.
const FIRST: u64 = 1 << 32;

/// What all owners change when they begin, end, or are renewed, which is both.
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

    /// Begins an owner; the higher the number, the younger.
    pub(super) fn begin(&self) -> u64 {
        // Relaxed: of two owners the later one gets the higher number, as from every counter.
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends an owner.
    pub(super) fn end(&self) {
        // Relaxed: as above.
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        // Relaxed: exact if no owner begins or ends meanwhile.
        let ended = self.ended.load(Ordering::Relaxed);
        let begun = self.begun.load(Ordering::Relaxed);
        begun.saturating_sub(ended) as usize
    }
}

/// A handle to an owner's priority: of the owners in a deadlock, one with the lowest gives up.
/// Anybody may change it, also while the owner waits.
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

    /// The priority now.
    #[must_use]
    pub fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed).cast_signed()
    }

    /// Sets the priority. It counts from the next deadlock on.
    pub fn set(&self, priority: i32) {
        // Relaxed: it orders nothing; a search for a cycle that comes after it goes by it.
        self.0.store(priority.cast_unsigned(), Ordering::Relaxed);
    }
}
