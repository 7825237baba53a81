//! Tenants and groups by handle.

use crate::error::Closed;
use crate::jobs::{Jobs, Name, Pinned, Place, Scope};
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{Op, Wait};

use super::JobQueue;
use super::body::Stored;
use super::claim::Claim;
use super::claiming::{self, Claiming};
use super::refuse::PushError;
use super::shared::Shared;
use crate::jobs::JobId;

/// A handle of a tenant or a group: its operations do not look the name up.
///
/// A group can also stand for a *kind* of job: workers that do one kind [claim](Self::claim) from
/// its group, which has the [limit](JobQueue::set_limit) that the kind needs.
///
/// A clone is cheap. The drop of the last clone forgets the name, unless a job is in it or
/// something is set for it. A handle does not keep the queue open: when the queue is dropped,
/// pushes are refused.
///
/// ```
/// use conversant::job_queue::JobQueue;
///
/// let queue = JobQueue::new();
/// let shop = queue.tenant("shop");
/// let mail = shop.group("mail");
/// queue.set_limit(mail.scope(), 2)?;
/// for key in [3, 1, 2] {
///     mail.push(key, "a mail")?;
/// }
/// shop.push(0, "a bill")?;
/// queue.tenant("office").push(0, "a letter")?;
/// assert_eq!(mail.try_claim(9).len(), 2);
/// let claims = shop.try_claim(9);
/// assert_eq!((claims.len(), *claims[0]), (3, "a bill"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Part<K, J> {
    pub(super) pin: Arc<Pin<K, J>>,
}

/// Keeps a name while a handle of it lives.
pub(super) struct Pin<K, J> {
    pub(super) shared: Arc<Shared<K, J>>,
    pub(super) pinned: Pinned,
}

impl<K, J> JobQueue<K, J> {
    /// The tenant of this name, made if there is none yet.
    ///
    /// Cost: one look-up; the operations of the handle need none.
    pub fn tenant(&self, name: impl Into<Name>) -> Part<K, J> {
        let name = name.into();
        Part::of(self.shared(), |jobs| jobs.pin(&name))
    }
}

impl<K: Ord, J> Part<K, J> {
    /// Pushes a job that is due. As [`JobQueue::push`]; to set more than tenant and group, pass a
    /// [place](Self::place) of this part to that method.
    ///
    /// # Errors
    ///
    /// As [`JobQueue::push`].
    ///
    /// # Panics
    ///
    /// As [`JobQueue::push`].
    pub fn push(&self, key: K, job: J) -> Result<JobId, PushError<(K, J)>> {
        self.pin.shared.push(key, job, self.place())
    }

    /// Claims up to `n` jobs of this tenant or group that may run now. They come in the order of
    /// their keys. The claim does not count as the tenant's turn. As [`JobQueue::try_claim`].
    ///
    /// # Panics
    ///
    /// As [`JobQueue::try_claim`].
    #[must_use = "dropping the claims fails the jobs"]
    pub fn try_claim(&self, n: usize) -> Vec<Claim<'_, K, J>> {
        let Pin { shared, pinned } = &*self.pin;
        shared.with_state(|state| claiming::claim(shared, state, Some(*pinned), n))
    }

    /// Waits for at least one job of this tenant or group. Claims up to `n` that may run then. As
    /// [`JobQueue::claim`].
    ///
    /// Claims that wait for this part and claims that wait for any job have wait queues of their
    /// own. A job that may run wakes one claim of each; the first to look gets the job. Where
    /// several parts want the room of one tenant or of the queue, as many of their claims are woken
    /// as there is room, in turn. One that was woken and is never polled keeps that room from the
    /// others; dropping it passes the room on. A change looks at its own tenant and group, and at
    /// the parts that it makes room for: O(log n) for each claim that it wakes, and for each part
    /// whose jobs others have claimed while its claims waited for room.
    ///
    /// # Errors
    ///
    /// As [`JobQueue::claim`]: the wait ends with the queue, not with the part.
    ///
    /// # Panics
    ///
    /// As [`JobQueue::claim`].
    pub fn claim(&self, n: usize) -> Wait<impl Op<Output = Result<Vec<Claim<'_, K, J>>, Closed>>> {
        let Pin { shared, pinned } = &*self.pin;
        Claiming::several(shared, Some(*pinned), n)
    }

    /// Claims the first job of this tenant or group that may run now, if there is one. As
    /// [`try_claim`](Self::try_claim), without a list.
    ///
    /// # Panics
    ///
    /// As [`JobQueue::try_claim`].
    pub fn try_claim_one(&self) -> Option<Claim<'_, K, J>> {
        let Pin { shared, pinned } = &*self.pin;
        shared.with_state(|state| claiming::claim_one(shared, state, Some(*pinned)))
    }

    /// Waits for a job of this tenant or group, and claims it. As [`claim`](Self::claim), without
    /// a list.
    ///
    /// # Errors
    ///
    /// As [`JobQueue::claim`].
    ///
    /// # Panics
    ///
    /// As [`JobQueue::claim`].
    pub fn claim_one(&self) -> Wait<impl Op<Output = Result<Claim<'_, K, J>, Closed>>> {
        let Pin { shared, pinned } = &*self.pin;
        Claiming::one(shared, Some(*pinned))
    }
}

impl<K, J> Part<K, J> {
    fn of(shared: &Arc<Shared<K, J>>, pin: impl FnOnce(&mut Jobs<K, Stored<J>>) -> Pinned) -> Self {
        let pin = Pin {
            pinned: shared.with_state(|state| pin(&mut state.jobs)),
            shared: shared.clone(),
        };
        Self { pin: Arc::new(pin) }
    }

    /// The group of this name in the part's tenant, made if there is none yet. The handle of a
    /// group gives another group of its tenant.
    #[must_use]
    pub fn group(&self, name: impl Into<Name>) -> Self {
        let (name, pinned) = (name.into(), self.pin.pinned);
        Self::of(&self.pin.shared, |jobs| jobs.pin_group(pinned, &name))
    }

    /// The place of a job in this part, for all pushes of the queue: no name is looked up. It is
    /// valid while the handle lives, or a job or a setting keeps the name.
    ///
    /// ```
    /// use conversant::job_queue::JobQueue;
    ///
    /// let queue = JobQueue::new();
    /// let [ann, bob] = ["ann", "bob"].map(|name| queue.tenant("mail").group(name));
    /// let mails = [(1, "to Ann", &ann), (2, "to Bob", &bob), (3, "to both", &bob)];
    /// queue.push_all(mails.map(|(key, mail, to)| (key, mail, to.place())))?;
    /// assert_eq!(queue.try_claim(9).len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn place(&self) -> Place {
        let Pin { shared, pinned } = &*self.pin;
        Place::pinned(shared.number, *pinned)
    }

    /// The names by which limits, lists and snapshots know this part.
    #[must_use]
    pub fn scope(&self) -> Scope {
        let pinned = self.pin.pinned;
        self.pin.shared.read(|state| state.jobs.scope_of(pinned))
    }
}

impl<K, J> Drop for Pin<K, J> {
    fn drop(&mut self) {
        let pinned = self.pinned;
        self.shared.with_state(|state| state.jobs.unpin(pinned));
    }
}

impl<K, J> Clone for Part<K, J> {
    fn clone(&self) -> Self {
        Self {
            pin: self.pin.clone(),
        }
    }
}

shows! {
    [K, J] Part<K, J>, |this|;
    if scope: this.pin.shared.try_read(|state| state.jobs.scope_of(this.pin.pinned))
}
