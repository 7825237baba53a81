//! The table through its public interface, with wakers that count, and in random schedules.

mod bad_use;
mod bias;
mod deadlocks;
mod drops;
mod entries;
mod grants;
mod hierarchy;
mod many;
mod names;
mod oracle;
mod overtaking;
mod owners;
mod parents;
mod person;
mod plain;
mod queue;
mod random;
mod savepoints;
mod steps;
mod waiting;
mod world;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use self::names::{Count, Path, path};
use super::{
    Deadlock, Lock, LockError, LockTable, Owner, OwnerId, Priority, ReleaseError, Resource,
    Savepoint,
};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::wait::{Op, Wait};

/// A wait polled by a task of its own.
struct Polled<'a> {
    wait: Wait<Lock<'a, Path>>,
    woken: Arc<Count>,
}

impl<'a> Polled<'a> {
    fn new(wait: Wait<Lock<'a, Path>>) -> Self {
        let woken = Arc::default();
        Self { wait, woken }
    }

    fn poll(&mut self) -> Poll<Result<(), super::LockError<Path>>> {
        let waker = Waker::from(self.woken.clone());
        Pin::new(&mut self.wait).poll(&mut Context::from_waker(&waker))
    }

    /// Polled for the first time and pending.
    fn waits(wait: Wait<Lock<'a, Path>>) -> Self {
        let mut polled = Self::new(wait);
        assert!(polled.poll().is_pending());
        polled
    }

    /// It was woken, and has what it waited for.
    fn granted(mut self) {
        assert!(self.woken.get() > 0, "woken");
        assert_eq!(self.poll(), Poll::Ready(Ok(())));
    }

    fn woken(&self) -> usize {
        self.woken.get()
    }
}

fn owners<const N: usize>(locks: &LockTable<Path>) -> [Owner<Path>; N] {
    [(); N].map(|()| locks.owner(0))
}

/// Takes a lock that must be free.
fn take(owner: &mut Owner<Path>, resource: &Path, mode: Mode) {
    assert_eq!(owner.try_lock(resource, mode), Ok(()), "{mode}");
}

/// Whether another owner could have the lock now.
fn free(locks: &LockTable<Path>, resource: &Path, mode: Mode) -> bool {
    locks.owner(0).try_lock(resource, mode).is_ok()
}
