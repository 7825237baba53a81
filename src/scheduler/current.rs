//! The task that the calling thread runs.

use std::cell::{Cell, RefCell};

use crate::slab::Key;
use crate::sync::{Arc, per_thread};

use super::shared::Shared;
use super::stall::Target;

/// A worker of a scheduler, and the task that it runs.
#[derive(Clone, Copy)]
struct Current {
    whose: *const Shared,
    worker: u32,
    task: Key,
    /// The task was woken on this thread, by itself or by what it called.
    woken: bool,
}

per_thread! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
    static WORKS_FOR: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// While a worker works: for whom, and for whom the thread did before.
pub(super) struct Working(Option<Arc<Shared>>);

impl Working {
    pub(super) fn begin(shared: &Arc<Shared>) -> Self {
        let shared = Some(Arc::clone(shared));
        Self(WORKS_FOR.with(|whom| whom.replace(shared)))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let before = self.0.take();
        drop(WORKS_FOR.with(|whom| whom.replace(before)));
    }
}

/// Whether the task that the calling thread runs has been cancelled since it began:
/// by [`Task::cancel`](super::Task::cancel), or with its caller or scheduler. A task that
/// takes long looks now and then, and ends early. Outside of tasks it gives false.
///
/// The task ends as what it returns says; what is cancelled before it begins never runs,
/// and a future that was cancelled is dropped where it awaits next.
///
/// Cost: the scheduler's lock. Look every millisecond rather than every microsecond.
///
/// ```
/// use conversant::scheduler::{CallerOptions, How, Scheduler, is_cancelled};
///
/// let scheduler = Scheduler::builder().workers(1).build()?;
/// let caller = scheduler.caller("main", CallerOptions::default())?;
/// let mut task = caller.exec(|| {
///     while !is_cancelled() {
///         std::thread::yield_now();
///     }
///     Err::<(), _>("stopped")
/// })?;
/// caller.release(How::Cancel).wait()?;
/// // It may have begun or not.
/// assert_ne!(task.outcome().wait()?.verdict.ok(), Some(()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn is_cancelled() -> bool {
    let current = CURRENT.with(Cell::get);
    let shared = WORKS_FOR.with(|whom| whom.borrow().clone());
    current.zip(shared).is_some_and(|(current, shared)| {
        let is_its = std::ptr::eq(current.whose, Arc::as_ptr(&shared));
        is_its && shared.state.lock().is_cancelled(current.task)
    })
}

fn of(shared: &Arc<Shared>) -> Option<Current> {
    let current = CURRENT.with(Cell::get)?;
    std::ptr::eq(current.whose, Arc::as_ptr(shared)).then_some(current)
}

/// The worker whose task the calling thread runs, if it is one of `shared`'s.
pub(super) fn current(shared: &Arc<Shared>) -> Option<u32> {
    of(shared).map(|current| current.worker)
}

/// Runs `f` as worker `n`'s task; whether that was woken by itself meanwhile.
#[inline]
pub(super) fn as_task<R>(
    shared: &Arc<Shared>,
    worker: u32,
    task: Key,
    f: impl FnOnce() -> R,
) -> (R, bool) {
    let current = Current {
        whose: Arc::as_ptr(shared),
        worker,
        task,
        woken: false,
    };
    let outer = CURRENT.with(|c| c.replace(Some(current)));
    let result = f();
    let current = CURRENT.with(|c| c.replace(outer));
    (result, current.is_some_and(|current| current.woken))
}

/// Wakes the task that the calling thread runs; false if it runs another.
pub(super) fn wake_current(shared: &Arc<Shared>, task: Key) -> bool {
    let Some(current) = of(shared).filter(|current| current.task == task) else {
        return false;
    };
    let woken = true;
    CURRENT.with(|c| c.set(Some(Current { woken, ..current })));
    true
}

/// The calling thread is about to sleep until `target` comes; that counts if
/// it runs a task of this scheduler.
pub(super) fn block(shared: &Arc<Shared>, target: Target) {
    if let Some(n) = current(shared) {
        shared.with_state(|state, wakes, _| state.exact(wakes).block(n, target));
    }
}

/// The calling thread is awake again.
pub(super) fn unblock(shared: &Arc<Shared>) {
    if let Some(n) = current(shared) {
        shared.with_state(|state, _, _| state.unblock(n));
    }
}
