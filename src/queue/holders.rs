//! Which threads hold what only they can finish: turns, deliveries and looks that
//! they have received from a queue with a capacity, and that are live.
//!
//! State: each thread counts for itself what it has received from each queue, less
//! what it has finished; the count of the queue that it received from last stands apart
//! (`Latest`). What others finish for it is counted beside its count: a queue knows the
//! threads that have received from it.
//!
//! Invariants:
//! 1. A thread's count less what others have finished for it is the number of what it
//!    has received from that queue and is live.
//! 2. A thread forgets a queue only while that is 0, and a queue a thread only when
//!    the thread has forgotten it, or has ended.

use std::cell::{Cell, RefCell};
use std::panic::{RefUnwindSafe, UnwindSafe};

// Shared ownership and no more: nothing is synchronized by it.
use crate::sync::{
    AtomicU64, Ordering, UnmodelledMutex, WakeArc as Arc, per_thread, thread_number, unique,
};

/// Held by what is live, for the thread that has received it, until
/// [`let_go`](Self::let_go): one more than that thread's number. Nothing is done
/// when it is dropped, so that no turn pays for a look.
pub(super) struct Holder(u64);

const NOBODY: u64 = 0;

/// A thread whose locals are destroyed: nobody asks for it any more.
const GONE: u64 = u64::MAX;

/// The threads of a queue, which is told apart from others by its number.
#[derive(Debug)]
pub(super) struct Holders {
    queue: u64,
    known: UnmodelledMutex<Vec<(u64, Others)>>,
}

// No code of the user's runs under its lock.
impl UnwindSafe for Holders {}
impl RefUnwindSafe for Holders {}

/// How much others have finished for a thread.
type Others = Arc<AtomicU64>;

/// What a thread has received from a queue.
struct Received {
    queue: u64,
    count: u64,
    others: Others,
}

impl Received {
    fn is_live(&self) -> bool {
        // Relaxed: what this thread knows to be finished is seen.
        self.count > self.others.load(Ordering::Relaxed)
    }
}

/// The count of the queue that a thread received from last, and the thread as in
/// [`Holder`].
struct Latest {
    thread: Cell<u64>,
    queue: Cell<u64>,
    count: Cell<u64>,
}

per_thread! {
    static LATEST: Latest = const { Latest::nothing() };
    static RECEIVED: RefCell<Vec<Received>> = const { RefCell::new(Vec::new()) };
}

/// So many are not worth forgetting.
const FEW: usize = 8;

impl Holder {
    pub(super) const NONE: Self = Self(NOBODY);

    #[inline]
    pub(super) fn is_some(&self) -> bool {
        self.0 != NOBODY
    }

    /// The thread's number.
    #[inline]
    pub(super) fn thread(&self) -> u64 {
        self.0.wrapping_sub(1)
    }

    #[inline]
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::NONE)
    }

    /// What was received is live no more.
    #[inline(never)]
    pub(super) fn let_go(&mut self, of: &Holders) {
        let Self(thread) = self.take();
        let own = LATEST.try_with(|latest| latest.remove(of, thread));
        if !own.unwrap_or(false) {
            of.finished_for(thread);
        }
    }
}

impl Holders {
    pub(super) fn new() -> Self {
        Self {
            queue: unique(),
            known: UnmodelledMutex::new(Vec::new()),
        }
    }

    /// The calling thread has received something.
    #[inline(never)]
    pub(super) fn hold(&self) -> Holder {
        let thread = LATEST.try_with(|latest| latest.add(self));
        Holder(thread.unwrap_or(GONE))
    }

    /// Whether something that the calling thread received is live.
    pub(super) fn is_own(&self) -> bool {
        let is_own = RECEIVED.try_with(|received| {
            let mut received = received.borrow_mut();
            _ = LATEST.try_with(|latest| latest.put_down(&mut received));
            let found = received.iter().find(|one| one.queue == self.queue);
            found.is_some_and(Received::is_live)
        });
        is_own.unwrap_or(false)
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn known(&self) -> usize {
        self.known.lock().len()
    }

    #[cold]
    fn finished_for(&self, thread: u64) {
        let known = self.known.lock();
        let found = known.iter().find(|(known, _)| *known == thread);
        // Relaxed: see `is_live`.
        found.map(|(_, others)| others.fetch_add(1, Ordering::Relaxed));
    }

    /// A thread receives for the first time, or has forgotten that it did; and so has the
    /// queue then.
    fn know(&self, thread: u64) -> Others {
        let mut known = self.known.lock();
        known.retain(|(_, others)| Arc::strong_count(others) > 1);
        let others = Others::default();
        known.push((thread, Others::clone(&others)));
        others
    }
}

impl Latest {
    const fn nothing() -> Self {
        Self {
            thread: Cell::new(NOBODY),
            queue: Cell::new(u64::MAX),
            count: Cell::new(0),
        }
    }

    /// One more of this queue: the thread.
    #[inline]
    fn add(&self, of: &Holders) -> u64 {
        if self.queue.get() != of.queue && !self.pick_up(of) {
            return GONE;
        }
        self.count.set(self.count.get() + 1);
        self.thread.get()
    }

    /// One less, if this is the thread that has received it.
    #[inline]
    fn remove(&self, of: &Holders, thread: u64) -> bool {
        if self.thread.get() != thread || self.queue.get() != of.queue && !self.pick_up(of) {
            return false;
        }
        self.count.set(self.count.get() - 1);
        true
    }

    /// The thread received from another queue last from now on, unless its locals are
    /// destroyed.
    #[cold]
    fn pick_up(&self, of: &Holders) -> bool {
        let picked_up = RECEIVED.try_with(|received| {
            let mut received = received.borrow_mut();
            self.put_down(&mut received);
            if received.len() >= FEW {
                received.retain(Received::is_live);
            }
            self.thread.set(thread_number().saturating_add(1));
            self.queue.set(of.queue);
            let found = received.iter().find(|one| one.queue == of.queue);
            let count = found.map(|one| one.count).unwrap_or_else(|| {
                received.push(Received {
                    queue: of.queue,
                    count: 0,
                    others: of.know(self.thread.get()),
                });
                0
            });
            self.count.set(count);
        });
        picked_up.is_ok()
    }

    /// Notes the latest count with the others.
    fn put_down(&self, received: &mut [Received]) {
        let queue = self.queue.get();
        if let Some(one) = received.iter_mut().find(|one| one.queue == queue) {
            one.count = self.count.get();
        }
    }
}
