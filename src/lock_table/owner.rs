//! Owners: what they hold, and how they give it back.

use std::hash::{BuildHasher, RandomState};

use super::error::{OwnerId, ReleaseError};
use super::hold::HoldId;
use super::holds::Holds;
use super::index::Room;
use super::kept::Due;
use super::name::empty;
use super::owners::{OwnerKey, Priority};
use super::path::Path;
use super::{Resource, Shared};
use crate::modes::Mode;
use crate::shown::shows;
use crate::sync::Arc;

/// Holds locks: a session, a task or a transaction; not a thread. Made by
/// [`LockTable::owner`](super::LockTable::owner); may be sent to another thread.
///
/// It waits for one request at a time, by the type system: a wait borrows it. An owner never
/// conflicts with itself: what it asks for is joined with what it holds. Each grant is counted, and
/// takes a [`release`](Self::release) of its own. The joined mode stays until the last release, or
/// a [`downgrade`](Self::downgrade).
///
/// Dropping it releases all that it holds.
#[must_use = "an owner that is dropped releases what it holds"]
pub struct Owner<K, S = RandomState> {
    pub(super) shared: Arc<Shared<K, S>>,
    pub(super) id: OwnerKey,
    /// When it began or was renewed: the higher, the younger.
    pub(super) born: u64,
    priority: Priority,
    pub(super) holds: Holds<K>,
    /// How often it has retried since the last `release_all`.
    pub(super) retries: u32,
    /// The hash of what was asked for last, if that was one resource.
    pub(super) hash: u64,
    /// Whether the wait table knows it: a request was begun and neither committed nor put back.
    pub(super) pending: bool,
    /// The path of the current request.
    pub(super) path: Path<K>,
}

/// A moment in the life of an owner, to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    owner: OwnerId,
    epoch: u64,
}

impl<K, S> Owner<K, S> {
    pub(super) fn new(shared: Arc<Shared<K, S>>, priority: i32) -> Self {
        let born = shared.owners.0.begin();
        Self {
            shared,
            id: OwnerKey::from_bits(born).expect("from the first number on"),
            born,
            priority: Priority::new(priority),
            holds: Holds::new(),
            retries: 0,
            hash: 0,
            pending: false,
            path: Path::new(),
        }
    }

    /// The id that names it in snapshots and deadlocks.
    #[must_use]
    pub fn id(&self) -> OwnerId {
        let (table, key) = (self.shared.number, self.id);
        OwnerId { table, key }
    }

    /// A handle to its priority. Of the owners in a deadlock, one with the lowest gives up.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority.clone()
    }

    /// Makes a savepoint, to which [`release_to`](Self::release_to) can go back. It costs next to
    /// nothing, however much is held, and may be forgotten. From the first savepoint on, the owner
    /// remembers each grant, in 16 bytes: also after its release, but at most 64 in all, or twice as
    /// many as it holds grants and resources.
    pub fn savepoint(&mut self) -> Savepoint {
        self.holds.epoch += 1;
        Savepoint {
            owner: self.id(),
            epoch: self.holds.epoch,
        }
    }

    /// Gives back all that was granted since the savepoint: counts of grants and modes go back to
    /// what they were then. What has been released or downgraded since stays so. A resource that
    /// was covered then, and has been locked in the table since, stays locked there in its old
    /// mode, with its intents. It is allowed to go back to one savepoint several times.
    ///
    /// A deadlock that this owner has lost closes again, unless the savepoint is older than its lock
    /// that another owner of the cycle waits for: the [`Link`](super::Link) that is `blocked_by` the
    /// victim names it. Then [`retry`](Self::retry) instead.
    ///
    /// It costs what was granted since, however much was held before: a savepoint for each
    /// statement of a long transaction is cheap.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Foreign`] if the savepoint is another owner's, of this table or of another.
    pub fn release_to(&mut self, savepoint: Savepoint) -> Result<(), ReleaseError> {
        if savepoint.owner != self.id() {
            return Err(ReleaseError::Foreign);
        }
        self.abort_pending();
        self.holds.release_to(savepoint.epoch);
        self.enter();
        Ok(())
    }

    /// After a deadlock: [`release_all`](Self::release_all), to do the same work once more. Undo
    /// first what you have changed: after this, others see it.
    ///
    /// Until the next `release_all`, in a deadlock between owners of one priority, those that have
    /// retried more often do not give up. So an owner that retries gets through at last.
    ///
    /// ```
    /// use conversant::lock_table::{LockError, LockTable, Owner, Resource};
    /// use conversant::modes::Mode;
    ///
    /// # #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    /// # struct Name(u32);
    /// # impl Resource for Name {
    /// #     fn parent(&self) -> Option<Self> {
    /// #         None
    /// #     }
    /// # }
    /// let locks = LockTable::new();
    /// let mut owner = locks.owner(0);
    /// let both = |owner: &mut Owner<Name>| {
    ///     owner.lock(&Name(1), Mode::X).wait()?;
    ///     owner.lock(&Name(2), Mode::X).wait()
    /// };
    /// loop {
    ///     match both(&mut owner) {
    ///         Err(LockError::Deadlock(_)) => owner.retry(),
    ///         other => break other?,
    ///     }
    /// }
    /// assert_eq!(owner.holdings().count(), 2);
    /// owner.release_all();
    /// # Ok::<(), LockError<Name>>(())
    /// ```
    pub fn retry(&mut self) {
        let retries = self.retries.saturating_add(1);
        self.release_all();
        self.retries = retries;
    }

    /// [`release_all`](Self::release_all), for another piece of work: its age counts from now on.
    ///
    /// With one owner per thread or session, renewed at the end of each transaction, a hot root is
    /// not touched: the next transaction finds its intent kept.
    ///
    /// ```
    /// # use conversant::lock_table::{LockError, LockTable, Resource};
    /// # use conversant::modes::Mode;
    /// # #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    /// # struct Name(u32);
    /// # impl Resource for Name {
    /// #     fn parent(&self) -> Option<Self> {
    /// #         (self.0 > 0).then_some(Name(0))
    /// #     }
    /// # }
    /// let locks = LockTable::new();
    /// let mut owner = locks.owner(0);
    /// for leaf in 1..4 {
    ///     owner.lock(&Name(leaf), Mode::X).wait()?;
    ///     owner.renew();
    ///     assert!(owner.holdings().next().is_none());
    /// }
    /// # Ok::<(), LockError<Name>>(())
    /// ```
    pub fn renew(&mut self) {
        self.release_all();
        self.shared.owners.0.end();
        self.born = self.shared.owners.0.begin();
    }

    /// Releases all that it holds, whatever the counts, as a drop does. The owner keeps its age.
    ///
    /// | then it does | use |
    /// |---|---|
    /// | the same work again, after a deadlock | [`retry`](Self::retry), or it may be the victim again |
    /// | other work, as old as it was | `release_all` |
    /// | other work, as a new owner would | [`renew`](Self::renew) |
    pub fn release_all(&mut self) {
        self.retries = 0;
        self.abort_pending();
        if self.holds.only().is_some_and(|id| self.release_plain(id)) {
            return;
        }
        self.holds.clear();
        self.enter();
    }

    /// All that it holds, in no particular order: the resource, its mode, and whether that is held
    /// in the table (true) or covered by an ancestor.
    pub fn holdings(&self) -> impl Iterator<Item = (&K, Mode, bool)> {
        let holds = self.holds.slots.iter();
        holds.filter_map(|(_, hold)| Some((hold.key.as_ref()?, hold.mode()?, hold.is_real())))
    }

    /// Puts back what was left by a wait that was forgotten, or whose poll panicked.
    #[inline]
    pub(super) fn abort_pending(&mut self) {
        if self.pending {
            self.abort();
        }
    }

    /// The same, and forgets what that wait asked for: the next one would ask for it, if its own
    /// request is granted and its poll panics.
    #[inline]
    pub(super) fn forget_asked(&mut self) {
        self.abort_pending();
        self.path.forget();
    }

    #[cold]
    fn abort(&mut self) {
        self.pending = false;
        self.shared.with_state(|waits, _| waits.abort(self.id));
    }
}

impl<K: Resource, S: BuildHasher> Owner<K, S> {
    /// Gives one grant of the resource back. With the last grant, the mode falls to what the holds
    /// below need, and intents on its ancestors that nothing else needs are released.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::NotHeld`] if it was not granted (intents for what is below are not grants);
    /// [`StillCovers`](ReleaseError::StillCovers) if it is the last grant and something below is
    /// covered by it. Nothing has changed then.
    pub fn release(&mut self, resource: &K) -> Result<(), ReleaseError> {
        self.abort_pending();
        let id = self.find(resource).ok_or(ReleaseError::NotHeld)?;
        if self.release_plain(id) {
            return Ok(());
        }
        self.holds.release(id)?;
        self.enter();
        Ok(())
    }

    /// Lowers the mode that was granted; the counts stay. The resource is then held in the join of
    /// `mode` and what the holds below need.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::NotHeld`]; [`NotWeaker`](ReleaseError::NotWeaker) if what was granted does
    /// not cover `mode`; [`StillCovers`](ReleaseError::StillCovers) if `mode` does not cover what
    /// is covered below. Nothing has changed then.
    pub fn downgrade(&mut self, resource: &K, mode: Mode) -> Result<(), ReleaseError> {
        self.abort_pending();
        let id = self.find(resource).ok_or(ReleaseError::NotHeld)?;
        self.holds.downgrade(id, mode)?;
        self.enter();
        Ok(())
    }

    /// The mode in which it holds the resource, also as an intent or covered.
    #[must_use]
    pub fn held(&self, resource: &K) -> Option<Mode> {
        self.holds.slots.get(self.find(resource)?).mode()
    }

    /// How many grants of the resource it has to release; an intent alone counts as none.
    #[must_use]
    pub fn grants(&self, resource: &K) -> u64 {
        let id = self.find(resource);
        id.map_or(0, |id| self.holds.slots.get(id).grants.count())
    }

    /// Plans a new request; the hash of the first resource may be known.
    #[inline]
    pub(super) fn plan(
        &mut self,
        asked: impl IntoIterator<Item = (K, Mode)>,
        mut known: Option<u64>,
    ) {
        let hash = |key: &K| known.take().unwrap_or_else(|| self.shared.hash(key));
        self.path.plan(asked, hash, &self.holds);
    }

    #[inline]
    pub(super) fn find(&self, resource: &K) -> Option<HoldId> {
        let slots = &self.holds.slots;
        let recent = slots.recent().filter(|&id| slots.get(id).is_of(resource));
        recent.or_else(|| slots.find(self.shared.hash(resource), resource))
    }
}

impl<K: Resource, S> Owner<K, S> {
    /// Takes all of the path, or nothing.
    #[inline]
    pub(super) fn take(&mut self) -> Room {
        let Holds { kept, gone, .. } = &mut self.holds;
        let kept = self.path.keeps.then(|| &**kept.word());
        self.path.take(&self.shared.shards, (self.id, kept), gone)
    }

    /// Gives up what it keeps and does not use; the path may have to ask for that now.
    #[cold]
    pub(super) fn give_up_kept(&mut self) {
        self.path.forget_kept();
        self.holds.forget_idle();
        self.enter_changes();
    }
}

impl<K, S> Owner<K, S> {
    /// Enters in the table what has changed in the holds.
    pub(super) fn enter(&mut self) {
        self.holds.slots.compact();
        self.enter_changes();
    }

    /// As `enter`, but ids of holds stay what they are.
    fn enter_changes(&mut self) {
        let Holds {
            kept,
            gone,
            changes,
            ..
        } = &mut self.holds;
        if !changes.is_empty() {
            let all = changes.iter().copied();
            if self.shared.shards.lower(self.id, all, kept, gone) {
                empty(changes);
            } else {
                self.enter_busy();
            }
        }
        self.holds.gone.drop_all();
    }

    #[cold]
    fn enter_busy(&mut self) {
        if self.holds.kept.due != Due::Nothing {
            self.holds.forget_idle();
        }
        // Taken out, so that nothing is entered twice if the drop of a name panics.
        let changes = std::mem::take(&mut self.holds.changes);
        self.shared
            .with_state(|waits, _| waits.lower(self.id, changes.into_iter()));
    }
}

impl<K, S> Drop for Owner<K, S> {
    fn drop(&mut self) {
        self.shared.owners.0.end();
        // All at once, before the drop of any name can panic.
        let Holds {
            slots, kept, gone, ..
        } = &mut self.holds;
        let changes = slots.nodes().map(|node| (node, None));
        kept.due = Due::Nothing;
        let shared = &*self.shared;
        if self.pending || !shared.shards.lower(self.id, changes.clone(), kept, gone) {
            shared.with_state(|waits, _| {
                waits.abort(self.id);
                waits.lower(self.id, changes);
            });
        }
    }
}

shows!([K, S] Owner<K, S>, |this| id: this.id());
