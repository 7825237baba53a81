//! The table through its public face, with wakers that count; the random schedules stand beside it.

mod bad_use;
mod deadlocks;
mod hierarchy;
mod oracle;
mod queue;
mod random;
mod savepoints;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Lock, LockTable, Owner, Resource};
use crate::modes::Mode;
use crate::wait::Wait;

/// A path from the root: `[1, 2]` is the second part of the first root.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Path(pub(super) Vec<u32>);

impl Resource for Path {
    fn parent(&self) -> Option<Self> {
        let (_, up) = self.0.split_last()?;
        (!up.is_empty()).then(|| Path(up.to_vec()))
    }
}

pub(super) fn path<const N: usize>(parts: [u32; N]) -> Path {
    Path(parts.to_vec())
}

#[derive(Default)]
pub(super) struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A wait polled by a task of its own.
pub(super) struct Polled<'a> {
    wait: Wait<Lock<'a, Path>>,
    woken: Arc<Count>,
}

impl<'a> Polled<'a> {
    pub(super) fn new(wait: Wait<Lock<'a, Path>>) -> Self {
        let woken = Arc::default();
        Self { wait, woken }
    }

    pub(super) fn poll(&mut self) -> Poll<Result<(), super::LockError<Path>>> {
        let waker = Waker::from(self.woken.clone());
        Pin::new(&mut self.wait).poll(&mut Context::from_waker(&waker))
    }

    /// Polled for the first time and pending.
    pub(super) fn waits(wait: Wait<Lock<'a, Path>>) -> Self {
        let mut polled = Self::new(wait);
        assert!(polled.poll().is_pending());
        polled
    }

    /// It was woken, and has what it waited for.
    pub(super) fn granted(mut self) {
        assert!(self.woken.get() > 0, "woken");
        assert_eq!(self.poll(), Poll::Ready(Ok(())));
    }

    pub(super) fn woken(&self) -> usize {
        self.woken.get()
    }
}

pub(super) fn owners<const N: usize>(locks: &LockTable<Path>) -> [Owner<Path>; N] {
    [(); N].map(|()| locks.owner(0))
}

/// Takes a lock that must be free.
pub(super) fn take(owner: &mut Owner<Path>, resource: &Path, mode: Mode) {
    assert_eq!(owner.try_lock(resource, mode), Ok(()), "{mode}");
}

/// Whether somebody else could have the lock now.
pub(super) fn free(locks: &LockTable<Path>, resource: &Path, mode: Mode) -> bool {
    locks.owner(0).try_lock(resource, mode).is_ok()
}
