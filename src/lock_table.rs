//! Locks on a hierarchy of resources: owners, intents, a strict queue per resource, and deadlocks
//! found when they arise.
//!
//! The protocol is that of J. Gray, R. Lorie, G. Putzolu and I. Traiger, "Granularity of Locks and
//! Degrees of Consistency in a Shared Data Base" (1976): before a resource is locked, its ancestors
//! are, in intent modes, from root to leaf; they are released from leaf to root. The modes are
//! those of [`modes`](crate::modes); the queue's rule for conversions, soft edges in the search for
//! deadlocks, and what a savepoint gives back are this crate's own.
//!
//! ```
//! use conversant::lock_table::{LockTable, Resource};
//! use conversant::modes::Mode;
//!
//! #[derive(Clone, PartialEq, Eq, Hash, Debug)]
//! enum Name {
//!     Table(u32),
//!     Row(u32, u64),
//! }
//!
//! impl Resource for Name {
//!     fn parent(&self) -> Option<Self> {
//!         match self {
//!             Name::Table(_) => None,
//!             Name::Row(table, _) => Some(Name::Table(*table)),
//!         }
//!     }
//! }
//!
//! let locks = LockTable::new();
//! let (mut a, mut b) = (locks.owner(0), locks.owner(0));
//! a.lock(&Name::Row(1, 7), Mode::X).wait()?;
//! assert_eq!(a.held(&Name::Table(1)), Some(Mode::Ix));
//!
//! // Other rows are free; the whole table is not, and this row is not.
//! b.lock(&Name::Row(1, 8), Mode::X).wait()?;
//! assert!(b.try_lock(&Name::Table(1), Mode::S).is_err());
//! assert_eq!(b.first_free(&[Name::Row(1, 7), Name::Row(1, 9)], Mode::X), Ok(Some(1)));
//!
//! drop(a);
//! b.lock(&Name::Row(1, 7), Mode::S).wait()?;
//! b.release_all();
//!
//! // In a task, of any runtime:
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it builds");
//! # runtime.block_on(async {
//! b.lock(&Name::Table(1), Mode::S).await?;
//! # Ok::<(), conversant::lock_table::LockError<Name>>(()) })?;
//! b.release_all();
//! assert!(locks.is_empty());
//! # Ok::<(), conversant::lock_table::LockError<Name>>(())
//! ```
//!
//! # Bounds
//!
//! The resources are spread over 32 shards with a lock each. With h ancestors, a request or a
//! release holds the locks of the shards of h + 1 resources for O(h) steps, each O(log n) in the
//! holders of a resource that has more than three. It allocates nothing, once the owner and the
//! shards have seen a few; names that own memory are cloned twice, or three times where that takes
//! more than one shard. Nobody sleeps on the lock of a shard: who finds it taken gives its
//! processor away, also while somebody looks at the whole table. All that is at one resource meets
//! at one lock.
//!
//! A hot root does not: an owner that locks below the same root again and again *keeps* the intent
//! on it. From the second time in a row that the intent is not needed any more it stays in the
//! table, as if it were not there: nobody sees it, and who is in conflict with it takes it away,
//! with the locks of all shards and in O(owners that keep one on that root). To begin and to end it
//! is O(log n) in those. To use it again, and to let it rest, is a load and a store of a word of
//! the owner's own, under the lock of what it locks below. It goes with the owner. So whoever has
//! many small transactions has an owner for each thread or session, and [renews](Owner::renew) it;
//! an owner made for each one locks the root itself, twice.
//!
//! To make an owner, to renew and to drop it takes a lock that every sixteenth thread shares, of
//! the thread that made it, and counts in one word that all share; the drop of one that has waited
//! also the lock of those who wait.
//!
//! Only where somebody has to wait, and at a resource that somebody waits for, is there one lock
//! for the whole table: there a step costs O(q) in the queue as well, and the search for a deadlock
//! at most the sum of holders and waiters over the resources that it reaches. A request that is
//! covered or re-entrant takes no lock at all.
//!
//! A resource takes memory while somebody holds it, waits for it, or keeps its intent; an empty
//! table about 12 KiB, with room for one resource in each shard.
//!
//! # Memory ordering
//!
//! What an owner did before it released or lowered a lock happens before what another does after it
//! was granted a mode that conflicted with it. Requests that are granted without the table order
//! nothing: nobody else could have been there.

use std::fmt;
use std::hash::{Hash, RandomState};

use crate::sync::{Arc, AtomicBool, Ordering, unique};
use crate::wait::{Guarded, Session, WakeBatch};

mod acquire;
mod bias;
mod deadlock;
mod enter;
mod entries;
mod error;
mod first_free;
mod grants;
mod hold;
mod holders;
mod holds;
mod index;
mod kept;
mod log;
mod merge;
mod name;
mod node;
mod owner;
mod owners;
mod path;
mod plain;
mod shards;
mod slots;
mod step;
mod view;
mod wait_table;

#[cfg(all(test, not(shuttle)))]
mod tests;

pub use self::acquire::Lock;
pub use self::error::{Deadlock, Link, LockError, OwnerId, ReleaseError, TryLockError};
pub use self::first_free::FirstFree;
pub use self::node::Cause;
pub use self::owner::{Owner, Savepoint};
use self::owners::Owners;
use self::shards::{Locked, Shards};
pub use self::view::{Counts, ResourceView, Snapshot, WaiterView};
use self::wait_table::{Deferred, Outcome, WaitTable};

/// How many ancestors a resource may have.
pub const MAX_DEPTH: usize = 64;

/// What can be locked. The hierarchy comes from the names.
///
/// `parent` must give the same for equal names, and lead to a root. If it does not, nothing is
/// unsafe and no lock is granted against its compatibility, but intents may be missing; what is its
/// own ancestor cannot be locked. What is moved while it is held keeps the ancestors that it had,
/// also for what is locked below it.
pub trait Resource: Hash + Eq + Clone {
    /// What this is a part of; none for a root.
    fn parent(&self) -> Option<Self>;
}

/// A table of locks. Clones are handles to the same one.
pub struct LockTable<K, S = RandomState> {
    shared: Arc<Shared<K, S>>,
}

/// Apart from the count of handles, which owners that come and go change.
#[repr(align(128))]
struct Shared<K, S> {
    /// No other table has it.
    number: u64,
    shards: Arc<Shards<K>>,
    owners: Owners,
    wait_table: Guarded<WaitTable<K>>,
    hasher: S,
    /// As in the wait table; for requests that do not lock it.
    closed: AtomicBool,
}

impl<K> LockTable<K> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(RandomState::new())
    }
}

impl<K, S> LockTable<K, S> {
    /// An empty table whose resources are hashed by `hasher`.
    pub fn with_hasher(hasher: S) -> Self {
        let shards = Arc::new(Shards::new());
        let number = unique();
        let shared = Shared {
            wait_table: Guarded::new(WaitTable::new(number, shards.clone())),
            number,
            shards,
            owners: Owners::new(),
            hasher,
            closed: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Somebody who locks. Of the owners in a deadlock, one of the lowest priority gives up.
    #[must_use = "an owner that is dropped releases what it holds"]
    pub fn owner(&self, priority: i32) -> Owner<K, S> {
        Owner::new(self.shared.clone(), priority)
    }

    /// Gives an owner another priority, which counts from the next deadlock on; it may wait
    /// meanwhile. False if the owner is gone, or another table's. Takes the lock of those who wait.
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
    /// let locks = LockTable::<Name>::new();
    /// let owner = locks.owner(0);
    /// let id = owner.id();
    /// assert!(locks.set_priority(id, 5));
    /// assert_eq!(owner.priority(), 5);
    /// drop(owner);
    /// assert!(!locks.set_priority(id, 6));
    /// ```
    pub fn set_priority(&self, owner: OwnerId, priority: i32) -> bool {
        if owner.table != self.shared.number {
            return false;
        }
        let mut waits = self.shared.wait_table.lock();
        waits.set_priority(owner.key, priority);
        self.shared.owners.set_priority(owner.key, priority)
    }

    /// Closes the table for good: everybody who waits gets an error, and so does every later
    /// request. What is held stays valid, and can be released and downgraded.
    pub fn close(&self) {
        // Relaxed: whoever goes to the table learns it under its lock.
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.with_state(|waits, wakes| {
            for owner in waits.close() {
                waits.fail(owner, Outcome::Closed, wakes);
            }
        });
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// How many resources somebody holds or waits for. Locks and costs as
    /// [`counts`](Self::counts).
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts().resources
    }

    /// How many resources, owners and waits there are, and how many deadlocks there were. O(owners
    /// that keep an intent), under the lock of every shard, taken together with that of those who
    /// wait, and of each part of the owners. What is kept stays so: who asks often slows down
    /// nobody's next transaction.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.look(|waits, locked| Counts {
            resources: locked.in_use(),
            contended: waits.nodes.len(),
            owners: self.shared.owners.len(),
            locks: waits.waits,
            deadlocks: waits.found,
        })
    }

    /// At all of it, locked.
    fn look<R>(&self, look: impl FnOnce(&WaitTable<K>, &mut Locked<'_, K>) -> R) -> R {
        let waits = self.shared.wait_table.lock();
        let mut locked = self.shared.shards.lock_all();
        look(&waits, &mut locked)
    }

    /// Whether nobody holds or waits for anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Clone, S> LockTable<K, S> {
    /// Who holds what, who waits, and why, at one moment. All locks are held meanwhile: O(holders
    /// + waiters times those in their way).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        let owners = || self.shared.owners.len();
        let (views, owners) = self.look(|waits, locked| (waits.view(locked), owners()));
        let resources = views.into_iter().map(ResourceView::from_shared).collect();
        Snapshot { resources, owners }
    }

    /// The last deadlocks, at most 16, the oldest first.
    #[must_use]
    pub fn deadlocks(&self) -> Vec<Deadlock<K>> {
        let waits = self.shared.wait_table.lock();
        let reports: Vec<_> = waits.reports.iter().cloned().collect();
        drop(waits);
        reports.iter().map(Deadlock::from_report).collect()
    }
}

impl<K, S> Shared<K, S> {
    fn is_closed(&self) -> bool {
        // Relaxed: see `close`.
        self.closed.load(Ordering::Relaxed)
    }

    /// Runs `f` under the lock, then grants what can be granted; then, without the lock, wakes and
    /// drops.
    fn with_state<R>(&self, f: impl FnOnce(&mut WaitTable<K>, &mut WakeBatch) -> R) -> R {
        // Declared first, so that it is dropped last, also on unwinding.
        let mut deferred = Deferred::new();
        let mut locking = Locking {
            session: self.wait_table.lock(),
            deferred: &mut deferred,
        };
        let (waits, wakes) = locking.session.parts();
        f(waits, wakes)
    }
}

/// A locked wait table; grants what can be granted before it is unlocked, also on a panic.
struct Locking<'a, 'w, K> {
    session: Session<'a, WaitTable<K>>,
    deferred: &'w mut Deferred<K>,
}

impl<K> Drop for Locking<'_, '_, K> {
    fn drop(&mut self) {
        self.session.settle(WaitTable::grant_dirty);
        std::mem::swap(self.deferred, &mut self.session.deferred);
    }
}

impl<K, S> Clone for LockTable<K, S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K, S: Default> Default for LockTable<K, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, S> fmt::Debug for LockTable<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("LockTable");
        debug.field("owners", &self.shared.owners.len());
        if let Some(resources) = self.shared.shards.try_len() {
            debug.field("resources", &resources);
        }
        debug.finish_non_exhaustive()
    }
}
