//! Which threads hold what only they can finish: live turns, deliveries and peeks that they
//! received from a queue with a capacity.
//!
//! State: each thread counts what it has received from each queue, less what it has finished.
//! The count of the queue that it received from last is kept apart (`Latest`). What other
//! threads finish for it is counted in a second number, through which the queue knows the
//! threads that received from it.
//!
//! Invariants:
//! 1. A thread's count less what others have finished for it is the number of live things that
//!    it received from that queue.
//! 2. A thread forgets a queue only while that number is 0. A queue forgets a thread only when
//!    the thread has forgotten the queue or has ended.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{RefUnwindSafe, UnwindSafe};

// Only for shared ownership: it synchronizes nothing.
use crate::sync::{
    AtomicU64, Ordering, UnmodelledMutex, WakeArc as Arc, per_thread, thread_number, unique,
};

/// The thread that received a live thing, as its number plus 1, until [`let_go`](Self::let_go).
/// Has no `Drop`, so that no turn pays for it.
pub(super) struct Holder(u64);

const NOBODY: u64 = 0;

/// A thread whose locals are destroyed: nothing asks for it any more.
const GONE: u64 = u64::MAX;

/// The threads of a queue; the queue is known by its number.
#[derive(Debug)]
pub(super) struct Holders {
    queue: u64,
    pub(super) known: UnmodelledMutex<Vec<(u64, Others)>>,
}

// No user code runs under its lock.
impl UnwindSafe for Holders {}
impl RefUnwindSafe for Holders {}

/// How much others have finished for a thread.
pub(super) type Others = Arc<AtomicU64>;

/// What a thread has received from a queue.
struct Received {
    count: u64,
    others: Others,
}

impl Received {
    fn is_live(&self) -> bool {
        // Relaxed: the thread sees what it knows to be finished.
        self.count > self.others.load(Ordering::Relaxed)
    }
}

/// The count for the queue that a thread received from last; the thread as in [`Holder`].
struct Latest {
    thread: Cell<u64>,
    queue: Cell<u64>,
    count: Cell<u64>,
    /// How many more times another queue becomes the latest before the next sweep.
    until_sweep: Cell<usize>,
}

per_thread! {
    static LATEST: Latest = const { Latest {
        thread: Cell::new(NOBODY),
        queue: Cell::new(u64::MAX),
        count: Cell::new(0),
        until_sweep: Cell::new(FEW),
    } };
    static RECEIVED: RefCell<BTreeMap<u64, Received>> = const { RefCell::new(BTreeMap::new()) };
}

/// Fewer entries than this are not worth removing.
const FEW: usize = 8;

impl Holder {
    pub(super) const NONE: Self = Self(NOBODY);

    #[inline]
    pub(super) fn is_some(&self) -> bool {
        self.0 != NOBODY
    }

    #[inline]
    pub(super) fn thread(&self) -> u64 {
        self.0.wrapping_sub(1)
    }

    #[inline]
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::NONE)
    }

    /// What was received is no longer live.
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
            received.get(&self.queue).is_some_and(Received::is_live)
        });
        is_own
            .or_else(|_| LATEST.try_with(|latest| latest.is_live(self)))
            .unwrap_or(false)
    }

    #[cold]
    fn finished_for(&self, thread: u64) {
        let known = self.known.lock();
        let found = known.iter().find(|(known, _)| *known == thread);
        // Relaxed: see `is_live`.
        found.map(|(_, others)| others.fetch_add(1, Ordering::Relaxed));
    }

    /// Registers a thread that receives for the first time, or that has forgotten the queue, as
    /// the queue then has forgotten the thread.
    fn know(&self, thread: u64) -> Others {
        let mut known = self.known.lock();
        known.retain(|(_, others)| Arc::strong_count(others) > 1);
        let others = Others::default();
        known.push((thread, Others::clone(&others)));
        others
    }
}

impl Latest {
    /// Adds one for this queue, and returns the thread.
    #[inline]
    fn add(&self, of: &Holders) -> u64 {
        if self.queue.get() != of.queue && !self.pick_up(of) {
            return GONE;
        }
        self.count.set(self.count.get() + 1);
        self.thread.get()
    }

    /// Subtracts one, if this is the thread that received it.
    #[inline]
    fn remove(&self, of: &Holders, thread: u64) -> bool {
        if self.thread.get() != thread || self.queue.get() != of.queue && !self.pick_up(of) {
            return false;
        }
        self.count.set(self.count.get() - 1);
        true
    }

    /// From now on this is the queue that the thread received from last, unless its locals are
    /// destroyed.
    #[cold]
    fn pick_up(&self, of: &Holders) -> bool {
        let picked_up = RECEIVED.try_with(|received| {
            let mut received = received.borrow_mut();
            self.put_down(&mut received);
            match self.until_sweep.get() {
                0 => {
                    received.retain(|_, one| one.is_live());
                    // So each step of the next sweep is paid for.
                    self.until_sweep.set(received.len().max(FEW));
                }
                more => self.until_sweep.set(more - 1),
            }
            self.thread.set(thread_number().saturating_add(1));
            self.queue.set(of.queue);
            let one = received.entry(of.queue).or_insert_with(|| Received {
                count: 0,
                others: of.know(self.thread.get()),
            });
            self.count.set(one.count);
        });
        picked_up.is_ok()
    }

    /// Whether something that the thread received from this queue is live, for a thread whose
    /// other counts are destroyed. False if this is not its latest queue, or forgets it already.
    #[cold]
    fn is_live(&self, of: &Holders) -> bool {
        let (queue, thread, count) = (self.queue.get(), self.thread.get(), self.count.get());
        let known = of.known.lock();
        let mut own = known.iter().filter(|(known, _)| *known == thread);
        // Relaxed: see `Received::is_live`.
        queue == of.queue && own.any(|(_, others)| count > others.load(Ordering::Relaxed))
    }

    /// Writes the latest count back to the others.
    fn put_down(&self, received: &mut BTreeMap<u64, Received>) {
        if let Some(one) = received.get_mut(&self.queue.get()) {
            one.count = self.count.get();
        }
    }
}
