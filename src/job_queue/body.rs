//! A job, in its queue or in its claim.
//!
//! A claim without a lease has the job by value, and brings it back. With a lease the job
//! must stay in the queue too, as another may claim it while the first claim still shows
//! it: the two share it, and whoever is to have it by value at last clones it if it is
//! still shown elsewhere.

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

/// What the queue has of a job: nothing while its claim has it by value.
pub(super) type Stored<J> = Option<Body<J>>;

impl<J> Body<J> {
    /// The job by value. What runs is the user's.
    pub(super) fn into_job(self) -> J {
        match self {
            Self::Own(job) => job,
            Self::Shared(lent) => match Arc::try_unwrap(lent) {
                Ok(lent) => lent.job,
                Err(lent) => (lent.clone)(&lent.job),
            },
        }
    }

    /// Takes it out, or shares it if `clone` says how.
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

    /// Puts it back where it was taken out; one that is shared is there still.
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

/// What no claim has.
pub(super) fn unwrapped<J>(job: Stored<J>) -> J {
    job.expect("no claim has it").into_job()
}

/// The same, of jobs that were taken out.
pub(super) fn taken<K, J>(taken: Taken<K, Stored<J>>) -> Taken<K, J> {
    let Taken { key, job, attempts } = taken;
    let job = unwrapped(job);
    Taken { key, job, attempts }
}
