//! A job, in its queue or in its claim.
//!
//! A claim without a lease takes the job by value, and brings it back. With a lease the job must
//! stay in the queue too, because another agent may claim it while the first claim still shows it.
//! So the queue and its claims share the job. An operation that returns it by value clones it if a
//! claim still shows it.

use std::ops::Deref;

use crate::jobs::Taken;
use crate::sync::Arc;

/// A job.
#[derive(Debug)]
pub(super) enum Body<J> {
    Own(J),
    Shared(Arc<Lent<J>>),
}

/// A job that is shared, and how it is cloned.
#[derive(Debug)]
pub(super) struct Lent<J> {
    job: J,
    clone: Clones<J>,
}

/// `J::clone`.
pub(super) type Clones<J> = fn(&J) -> J;

/// The job as the queue stores it: `None` while its claim has it by value.
pub(super) type Stored<J> = Option<Body<J>>;

impl<J> Body<J> {
    /// The job by value. It may run the user's `clone`.
    pub(super) fn into_job(self) -> J {
        match self {
            Self::Own(job) => job,
            Self::Shared(lent) => match Arc::try_unwrap(lent) {
                Ok(lent) => lent.job,
                Err(lent) => (lent.clone)(&lent.job),
            },
        }
    }

    /// Takes a job out, or shares it if there is a `clone`.
    #[inline]
    pub(super) fn lend(stored: &mut Stored<J>, clone: Option<Clones<J>>) -> Stored<J> {
        let lent = match (stored.take()?, clone) {
            (body, None) => return Some(body),
            (Self::Own(job), Some(clone)) => Arc::new(Lent { job, clone }),
            (Self::Shared(lent), Some(_)) => lent,
        };
        *stored = Some(Self::Shared(Arc::clone(&lent)));
        Some(Self::Shared(lent))
    }

    /// Puts a job back that was taken out; a shared one is still there.
    #[inline]
    pub(super) fn put_back(lent: &mut Stored<J>, stored: &mut Stored<J>) {
        if stored.is_none() {
            *stored = lent.take();
        }
    }
}

impl<J> Deref for Body<J> {
    type Target = J;

    fn deref(&self) -> &J {
        match self {
            Self::Own(job) => job,
            Self::Shared(lent) => &lent.job,
        }
    }
}

/// The content of a job that no claim has.
pub(super) fn unwrapped<J>(job: Stored<J>) -> J {
    job.expect("no claim has it").into_job()
}

/// The same for a job that was taken out.
pub(super) fn taken<K, J>(taken: Taken<K, Stored<J>>) -> Taken<K, J> {
    let Taken { key, job, attempts } = taken;
    let job = unwrapped(job);
    Taken { key, job, attempts }
}
