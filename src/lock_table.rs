//! Locks on a hierarchy of resources: owners, intents, a queue per resource, and deadlocks found when
//! they arise.
//!
//! The protocol is that of J. Gray, R. Lorie, G. Putzolu and I. Traiger, "Granularity of Locks and
//! Degrees of Consistency in a Shared Data Base" (1976): an owner locks the ancestors of a resource
//! in intent modes before it locks the resource, from root to leaf, and releases from leaf to root.
//! The modes are those of [`modes`](crate::modes). The queue's rule for conversions, the soft edges
//! in the deadlock search and what a savepoint gives back are this crate's own.
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
//! release holds the locks of the shards of h + 1 resources for O(h) steps. Each step is O(log n)
//! in the holders of its resource, if these are more than three. With up to three ancestors a
//! request allocates nothing once the owner and the shards have served a few requests. Names that
//! own memory are cloned twice, or three times if the request takes more than one shard; those of a
//! request that is blocked, up to four times. No thread sleeps on the lock of a shard: one that
//! finds it taken yields its processor, also while another looks at the whole table. All requests
//! for one resource contend for one lock.
//!
//! A hot root is the exception: an owner that locks below the same root again and again *keeps* the
//! intent on it. When the owner no longer needs the intent, for the second time in a row, the
//! intent stays in the table. No snapshot shows it, and it blocks nobody: a request that conflicts
//! with it revokes it, with the locks of all shards held, in O(owners that keep an intent on that
//! root). Beginning to keep an intent, and ending it, is O(log n) in those owners. To reuse a kept
//! intent, or to make it idle, is a load and a store of a word of the owner's own, under the lock
//! of what it locks below. A kept intent is dropped with its owner. So for many small transactions
//! make one owner per thread or session, and [renew](Owner::renew) it. An owner made per
//! transaction locks the root's shard twice.
//!
//! Making, renewing or dropping an owner updates a counter that all owners of the table share.
//!
//! A request that has to wait, and any call for a resource that has waiters, takes one lock for the
//! whole table. Under it, to begin to wait, to be granted and to give up are O(log n) in the
//! waiters; a deadlock search costs at most the sum of holders and waiters over the resources that
//! it reaches, and begins again behind a victim that is not the last owner of its cycle. A re-entrant
//! request, and a first one that an ancestor covers, takes no lock at all.
//!
//! A resource takes memory while an owner holds it, waits for it, or keeps its intent. An empty
//! table takes about 9 KiB.
//!
//! # Memory ordering
//!
//! What an owner did before it released or lowered a lock happens before what another owner does
//! after it was granted a mode that conflicted with that lock. Requests that are granted without
//! the table order nothing: no other owner could have been there.

use std::hash::{BuildHasher, Hash, RandomState};

use crate::limit::Bypass;
use crate::shown::shows;
use crate::sync::{self, Apart, AtomicBool, Ordering, UnmodelledArc as Arc, unique};
use crate::wait::{Guarded, WakeBatch};

mod acquire;
mod deadlock;
mod entries;
mod error;
mod first_free;
mod grants;
mod hold;
mod holders;
mod holds;
mod index;
mod kept;
mod name;
mod owner;
mod owners;
mod path;
mod plain;
mod queue;
mod shards;
mod slots;
mod step;
mod view;
mod wait_table;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
mod tests;

pub use self::acquire::Lock;
pub use self::error::{Deadlock, Link, LockError, OwnerId, ReleaseError};
pub use self::first_free::FirstFree;
use self::index::spread;
pub use self::owner::{Owner, Savepoint};
use self::owners::Owners;
pub use self::owners::Priority;
pub use self::queue::Cause;
use self::shards::Shards;
pub use self::view::{Counts, ResourceView, Snapshot, WaiterView};
use self::wait_table::{Deferred, WaitTable};

/// How many ancestors a resource may have.
const MAX_DEPTH: usize = 64;

/// A resource: a name that can be locked. The names give the hierarchy.
///
/// `parent` must return the same for equal names, and its chain must end at a root. If it does not,
/// nothing is unsafe and no lock is granted that conflicts with another, but intents may be
/// missing. A resource that is its own ancestor cannot be locked. If a resource is moved while it
/// is held, its old ancestors stay in force, also for what is locked below it.
pub trait Resource: Hash + Eq + Clone {
    /// The resource that this one is a part of; none for a root.
    fn parent(&self) -> Option<Self>;
}

/// A table of locks. Clones are handles to the same table.
pub struct LockTable<K, S = RandomState> {
    shared: sync::Arc<Shared<K, S>>,
}

/// Aligned apart from the count of handles, which changes whenever an owner comes or goes.
#[repr(align(128))]
struct Shared<K, S> {
    /// Unique to this table.
    number: u64,
    shards: sync::Arc<Shards<K>>,
    owners: Apart<Owners>,
    wait_table: Guarded<WaitTable<K>>,
    hasher: S,
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
        let shards = sync::Arc::new(Shards::new());
        let number = unique();
        let shared = Shared {
            wait_table: Guarded::new(WaitTable::new(number, shards.clone())),
            number,
            shards,
            owners: Apart(Owners::new()),
            hasher,
            closed: AtomicBool::new(false),
        };
        Self {
            shared: sync::Arc::new(shared),
        }
    }

    /// The same with a bound on overtaking. A new table has `AtMost(0)`: its queues are strict.
    ///
    /// Strict queues pass a resource from thread to thread, and each has to be woken first. If more
    /// threads than processors want one resource for a moment at a time, each pays for a context
    /// switch. With a bypass the first waiter is woken and retries, and a running thread may be
    /// quicker. Each waiter is overtaken at most so many times for every grant ahead of it and for
    /// its own; conversions that are granted ahead of it do not count. Then it is handed the
    /// resource. One that was woken and does not look, such as a task that is not polled, keeps
    /// those behind it waiting until then.
    #[must_use]
    pub fn with_bypass(self, bypass: Bypass) -> Self {
        self.shared.wait_table.lock().bypass = bypass;
        self
    }

    /// Makes an owner. Of the owners in a deadlock, one with the lowest priority gives up.
    pub fn owner(&self, priority: i32) -> Owner<K, S> {
        Owner::new(self.shared.clone(), priority)
    }

    /// Closes the table for good: every waiting request and every later one fails with an error, and
    /// so does one that was granted and whose wait has not been polled since, as its owner may have
    /// more to ask for on its path. What was held before stays valid, and can be released and
    /// downgraded.
    pub fn close(&self) {
        // Relaxed: an owner that begins to wait later takes the lock later, and sees the flag.
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.with_state(|waits, wakes| {
            let owners: Vec<_> = waits.owners.keys().copied().collect();
            for owner in owners {
                waits.fail(owner, LockError::Closed, wakes);
            }
        });
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// How many resources are held or waited for. Each shard is counted at a moment of its own, so
    /// the sum is exact if no holder or waiter comes or goes meanwhile. O(owners that keep an
    /// intent).
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.shards.in_use()
    }

    /// How many resources, owners, waits and deadlocks there are. The parts are counted one after
    /// the other, as in [`len`](Self::len); what concerns waiters is counted at one moment. Kept
    /// intents stay kept, so frequent calls do not slow down the next transaction of any owner.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let waits = self.shared.wait_table.lock();
        let (contended, locks, deadlocks) = (waits.nodes.len(), waits.waits, waits.found);
        drop(waits);
        Counts {
            resources: self.len(),
            contended,
            owners: self.shared.owners.0.len(),
            locks,
            deadlocks,
        }
    }

    /// The last deadlocks, the oldest first: at most 16, and so many that their cycles have at most
    /// 1,024 owners together. The last is there in any case.
    #[must_use]
    pub fn deadlocks(&self) -> Vec<Arc<Deadlock<K>>> {
        let waits = self.shared.wait_table.lock();
        waits.reports.iter().cloned().collect()
    }

    /// Whether nothing is held or waited for: as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Clone, S> LockTable<K, S> {
    /// The holders and waiters of each resource, and why they wait, at one moment. All locks are
    /// held meanwhile, for O(holders + waiters) steps, and O(n log n) in the longest queue.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        let waits = self.shared.wait_table.lock();
        let mut locked = self.shared.shards.lock_all();
        let (views, owners) = (waits.view(&mut locked), self.shared.owners.0.len());
        drop((locked, waits));
        // The user's `clone` runs with no lock held.
        let named = |view: ResourceView<Arc<K>>| ResourceView {
            resource: K::clone(&view.resource),
            holders: view.holders,
            waiters: view.waiters,
        };
        let resources = views.into_iter().map(named).collect();
        Snapshot { resources, owners }
    }
}

impl<K: Hash, S: BuildHasher> Shared<K, S> {
    #[inline]
    fn hash(&self, resource: &K) -> u64 {
        spread(self.hasher.hash_one(resource))
    }
}

impl<K, S> Shared<K, S> {
    fn is_closed(&self) -> bool {
        // Relaxed: see `close`.
        self.closed.load(Ordering::Relaxed)
    }

    /// Runs `f` under the lock, then grants what can be granted; then unlocks and wakes. If `f`
    /// panics it has made nothing grantable: the user's `Eq` runs before anything changes. Also
    /// returns what is to be dropped. That may panic, and may be what another call has left.
    fn with_state<R>(
        &self,
        f: impl FnOnce(&mut WaitTable<K>, &mut WakeBatch) -> R,
    ) -> (R, Deferred<K>) {
        let mut session = self.wait_table.lock();
        let (waits, wakes) = session.parts();
        let result = f(waits, wakes);
        session.repeat(|waits, wakes| waits.grant_dirty(wakes, false));
        let deferred = std::mem::replace(&mut session.deferred, Deferred::new());
        drop(session);
        (result, deferred)
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

shows! {
    [K, S] LockTable<K, S>, |this| owners: this.shared.owners.0.len();
    if resources: this.shared.shards.try_len()
}
