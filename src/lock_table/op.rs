//! The wait for locks.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::Resource;
use super::books::{Books, Outcome};
use super::deadlock::Report;
use super::error::{Deadlock, LockError, TryLockError};
use super::owner::Owner;
use super::plan::{Plan, Reached, Taken};
use super::shards::Shards;
use crate::slab::Key;
use crate::sync::{Arc, model_size, spin_loop, yield_now};
use crate::wait::{Op, WakeBatch, sealed};

/// How long a thread looks before it stands in line. By time, since a pause instruction takes from 4
/// to 140 cycles.
const BACK_OFF: Duration = Duration::from_nanos(model_size(2_000, 0) as u64);

/// The wait of [`Owner::lock`] and [`Owner::lock_many`].
pub struct Lock<'a, K: Resource, S: BuildHasher = RandomState> {
    owner: &'a mut Owner<K, S>,
    /// None if a resource is too deep, and when it is done.
    plan: Option<Plan<K>>,
    begun: bool,
}

/// What an attempt came to.
enum Attempt<K> {
    Done,
    WantsWaker,
    Waits,
    Closed,
    Deadlock(Arc<Report<K>>),
}

impl<'a, K: Resource, S: BuildHasher> Lock<'a, K, S> {
    pub(super) fn new(owner: &'a mut Owner<K, S>, plan: Option<Plan<K>>) -> Self {
        Self {
            owner,
            plan,
            begun: false,
        }
    }

    /// Takes all of it now, or nothing.
    pub(super) fn try_now(mut self) -> Result<(), TryLockError> {
        let attempt = match self.take() {
            Ok(Taken::All) => Ok(Attempt::Done),
            Ok(Taken::Nothing) => Ok(Attempt::WantsWaker),
            Ok(Taken::Unknown) => self.ask(None),
            Err(error) => Err(error),
        };
        match attempt {
            Ok(Attempt::Done) => Ok(()),
            Ok(Attempt::Closed) | Err(LockError::Closed) => Err(TryLockError::Closed),
            Err(LockError::TooDeep) => Err(TryLockError::TooDeep),
            // What it took is put back on drop.
            Ok(_) | Err(LockError::Deadlock(_)) => Err(TryLockError::WouldBlock),
        }
    }

    /// Without the books: all of it, or nothing has changed.
    #[inline]
    fn take(&mut self) -> Result<Taken, LockError<K>> {
        let Self { owner, plan, .. } = self;
        let plan = plan.as_mut().ok_or(LockError::TooDeep)?;
        if owner.shared.is_closed() {
            return Err(LockError::Closed);
        }
        owner.settle_last();
        let taken = if plan.is_local() {
            Taken::All
        } else {
            plan.take(&owner.shared.shards, owner.id)
        };
        if taken == Taken::All {
            plan.commit(&mut owner.holds);
        }
        Ok(taken)
    }

    /// Looks for a moment, ever less often, unless somebody stands in line already.
    #[cold]
    fn back_off(&mut self) -> Option<Result<(), LockError<K>>> {
        if BACK_OFF.is_zero() {
            return None;
        }
        let start = Instant::now();
        let mut pauses = 1;
        let mut late = 0;
        while late < 3 {
            if start.elapsed() < BACK_OFF {
                (0..pauses).for_each(|_| spin_loop());
                pauses = (pauses * 2).min(64);
            } else {
                late += 1;
                yield_now();
            }
            match self.take() {
                Ok(Taken::All) => return Some(Ok(())),
                Ok(Taken::Unknown) => return None,
                Ok(Taken::Nothing) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// With the books.
    fn ask(&mut self, waker: Option<Waker>) -> Result<Attempt<K>, LockError<K>> {
        let Self { owner, plan, begun } = self;
        let plan = plan.as_mut().ok_or(LockError::TooDeep)?;
        // From here on the table may hold something that is not in our holds.
        owner.unsettled = true;
        let begins = !std::mem::replace(begun, true);
        let (id, locks) = (owner.id, owner.holds.real());
        let shards = &owner.shared.shards;
        let attempt = owner.shared.event(|books, wakes| {
            if begins {
                books.begin(id, locks);
            }
            go_on(books, wakes, (shards, id), plan, waker)
        });
        match attempt {
            Attempt::Done => plan.commit(&mut owner.holds),
            Attempt::WantsWaker | Attempt::Waits => return Ok(attempt),
            Attempt::Closed | Attempt::Deadlock(_) => {}
        }
        owner.unsettled = false;
        Ok(attempt)
    }
}

/// As far as it goes now; with a waker, into the queue if need be.
fn go_on<K: Resource>(
    books: &mut Books<K>,
    wakes: &mut WakeBatch,
    (shards, owner): (&Shards<K>, Key),
    plan: &mut Plan<K>,
    waker: Option<Waker>,
) -> Attempt<K> {
    if books.waits(owner) {
        let ended = match books.take_outcome(owner) {
            Some(Outcome::Deadlock(report)) => Attempt::Deadlock(report),
            Some(Outcome::Closed) => Attempt::Closed,
            Some(Outcome::Granted) => {
                plan.granted();
                return ask(books, wakes, (shards, owner), plan, waker);
            }
            None => {
                let Some(waker) = waker else {
                    return Attempt::WantsWaker;
                };
                books.rewait(owner, waker);
                return Attempt::Waits;
            }
        };
        books.waste_waker(waker);
        return ended;
    }
    ask(books, wakes, (shards, owner), plan, waker)
}

fn ask<K: Resource>(
    books: &mut Books<K>,
    wakes: &mut WakeBatch,
    (shards, owner): (&Shards<K>, Key),
    plan: &mut Plan<K>,
    waker: Option<Waker>,
) -> Attempt<K> {
    if books.is_closed() {
        books.waste_waker(waker);
        books.abort(owner);
        return Attempt::Closed;
    }
    let mut locked = shards.lock(plan.set());
    let (id, mode) = match plan.advance(books, &mut locked, owner) {
        Reached::Busy(id, mode) => (id, mode),
        Reached::All => {
            books.waste_waker(waker);
            return Attempt::Done;
        }
    };
    let Some(waker) = waker else {
        return Attempt::WantsWaker;
    };
    books.stand(&mut locked, (owner, id, mode), waker);
    drop(locked);
    match books.break_cycles(owner, wakes) {
        Some(report) => Attempt::Deadlock(report),
        None => Attempt::Waits,
    }
}

/// Nothing in it is ever pinned.
impl<K: Resource, S: BuildHasher> Unpin for Lock<'_, K, S> {}

impl<K: Resource, S: BuildHasher> sealed::Sealed for Lock<'_, K, S> {}

impl<K: Resource, S: BuildHasher> Op for Lock<'_, K, S> {
    type Output = Result<(), LockError<K>>;

    #[inline]
    fn at_once(&mut self) -> Option<Self::Output> {
        match self.take() {
            Ok(Taken::All) => Some(Ok(())),
            Ok(Taken::Nothing | Taken::Unknown) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn attempt(&mut self) -> Option<Self::Output> {
        if self.begun {
            return None;
        }
        match self.take() {
            Ok(Taken::All) => Some(Ok(())),
            Ok(Taken::Unknown) => None,
            Ok(Taken::Nothing) => self.back_off(),
            Err(error) => Some(Err(error)),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.begun
            && let Some(result) = self.at_once()
        {
            return Poll::Ready(result);
        }
        let mut waker = None;
        loop {
            match self.ask(waker) {
                Ok(Attempt::Done) => return Poll::Ready(Ok(())),
                Ok(Attempt::Closed) => return Poll::Ready(Err(LockError::Closed)),
                Ok(Attempt::Deadlock(report)) => {
                    let deadlock = Box::new(Deadlock::from_report(&report));
                    return Poll::Ready(Err(LockError::Deadlock(deadlock)));
                }
                Ok(Attempt::Waits) => return Poll::Pending,
                Ok(Attempt::WantsWaker) => waker = Some(cx.waker().clone()),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn cancel(&mut self) {
        self.owner.settle_last();
    }
}

/// Also after a poll that panicked, and for `try_now`.
impl<K: Resource, S: BuildHasher> Drop for Lock<'_, K, S> {
    #[inline]
    fn drop(&mut self) {
        self.owner.settle_last();
        if let Some(plan) = self.plan.take() {
            self.owner.steps = plan.into_steps();
        }
    }
}

impl<K: Resource, S: BuildHasher> fmt::Debug for Lock<'_, K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("owner", self.owner)
            .finish_non_exhaustive()
    }
}
