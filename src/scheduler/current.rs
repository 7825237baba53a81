//! The task that the calling thread runs.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::task::Waker;

use crate::slab::Key;
use crate::sync::{Arc, per_thread};
use crate::trace;
use crate::wait::WakeBatch;

use super::inside::Inside;
use super::outcome::TaskId;
use super::shared::Shared;
use super::stall::Target;
use super::state::State;
use super::task_state::TaskKey;
use super::tokens::CancelToken;

/// A scheduler, and as which worker the thread works for it.
type Worker = (Arc<Shared>, u32);
type Token = (TaskId, CancelToken);

// The scheduler for which the thread works, and as which worker; the task that it runs; whether
// that task was woken on this thread meanwhile; and the token that was asked for last. A thread may
// work until its end, also in destructors of its locals: so none of these has one. They are empty
// while the thread does not work.
per_thread! {
    static WORKER: RefCell<Option<ManuallyDrop<Worker>>> = const { RefCell::new(None) };
    static TASK: Cell<Option<TaskKey>> = const { Cell::new(None) };
    static WOKEN: Cell<bool> = const { Cell::new(false) };
    static TOKEN: RefCell<Option<ManuallyDrop<Token>>> = const { RefCell::new(None) };
}

/// While a worker works: what the thread ran before.
pub(super) struct Working(Option<ManuallyDrop<Worker>>, Option<TaskKey>, bool, Inside);

impl Working {
    pub(super) fn begin(shared: &Arc<Shared>, n: u32) -> Self {
        let now = Some(ManuallyDrop::new((Arc::clone(shared), n)));
        let worker = WORKER.with(|worker| worker.replace(now));
        set_token(None);
        let inside = Inside::begin(&**shared);
        Self(
            worker,
            TASK.with(Cell::take),
            WOKEN.with(Cell::take),
            inside,
        )
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let before = self.0.take();
        let worker = WORKER.with(|worker| worker.replace(before));
        TASK.with(|task| task.set(self.1));
        WOKEN.with(|woken| woken.set(self.2));
        set_token(None);
        drop(worker.map(ManuallyDrop::into_inner));
    }
}

fn set_token(token: Option<Token>) {
    let last = TOKEN.with(|last| last.replace(token.map(ManuallyDrop::new)));
    drop(last.map(ManuallyDrop::into_inner));
}

/// Whether the task that the calling thread runs was cancelled after it began: by
/// [`Task::cancel`](super::Task::cancel), or with its group, caller or scheduler. A long task
/// should ask now and then, and end early. False outside of tasks; threads that help a task ask its
/// [token](CancelToken::current).
///
/// The task still ends as its result says. A task that is cancelled before it begins never runs; a
/// cancelled future is dropped at its next await.
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
    with_token(CancelToken::is_cancelled).unwrap_or(false)
}

impl CancelToken {
    /// A token of the task that the calling thread runs. Other threads can ask it whether the task
    /// was [cancelled](is_cancelled), for as long as they keep it. `None` outside of tasks.
    ///
    /// Cost: the scheduler's lock and a block of memory the first time that a task asks, and for a
    /// future the first time in each poll. Otherwise a load of a flag.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, CancelToken, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(1).build()?;
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// let (begun, begins) = std::sync::mpsc::channel();
    /// let mut task = caller.exec(move || {
    ///     let token = CancelToken::current().ok_or("no task")?;
    ///     let helper = std::thread::spawn(move || {
    ///         while !token.is_cancelled() {
    ///             std::thread::yield_now();
    ///         }
    ///     });
    ///     begun.send(()).map_err(|_| "nobody waits")?;
    ///     helper.join().map_err(|_| "it panicked")
    /// })?;
    /// begins.recv()?;
    /// task.cancel();
    /// assert_eq!(task.outcome().wait()?.verdict.ok(), Some(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn current() -> Option<Self> {
        with_token(Self::clone)
    }
}

fn with_token<R>(f: impl FnOnce(&CancelToken) -> R) -> Option<R> {
    let key = TASK.with(Cell::get)?;
    let is_last = |last: &ManuallyDrop<Token>| last.0 == key.id;
    if !TOKEN.with(|last| last.borrow().as_ref().is_some_and(is_last)) {
        let worker = WORKER.with(|worker| worker.borrow().clone());
        let (shared, n) = ManuallyDrop::into_inner(worker?);
        let token = shared.lock().core.token(key, n).clone();
        set_token(Some((key.id, token)));
    }
    TOKEN.with(|last| last.borrow().as_ref().map(|last| f(&last.1)))
}

/// The task of this scheduler that the calling thread runs, and as which worker, if it does.
fn current_task(shared: &Arc<Shared>) -> Option<(TaskId, u32)> {
    let task = TASK.with(Cell::get)?.id;
    Some((task, worker_of(shared)?))
}

/// Whether the calling thread runs a task of this scheduler.
pub(super) fn is_here(shared: &Arc<Shared>) -> bool {
    current_task(shared).is_some()
}

/// The worker of this scheduler as which the calling thread works, if it does.
fn worker_of(shared: &Arc<Shared>) -> Option<u32> {
    WORKER.with(|worker| {
        let worker = worker.borrow();
        let (whose, n) = &**worker.as_ref()?;
        Arc::ptr_eq(whose, shared).then_some(*n)
    })
}

/// Runs `f` as the worker's task.
#[inline]
pub(super) fn as_task<R>(task: TaskKey, f: impl FnOnce() -> R) -> R {
    if task.future.is_some() {
        WOKEN.with(|woken| woken.set(false));
    }
    TASK.with(|running| running.set(Some(task)));
    let result = f();
    TASK.with(|running| running.set(None));
    result
}

/// Whether the future that the thread ran last woke itself meanwhile.
pub(super) fn woke_itself() -> bool {
    WOKEN.with(Cell::take)
}

/// Notes that the future woke itself, if the calling thread polls it; false if it does not.
#[inline]
pub(super) fn wake_current(shared: &Arc<Shared>, future: Key) -> bool {
    let is_it = TASK
        .with(Cell::get)
        .is_some_and(|task| task.future == Some(future));
    let woken = is_it && worker_of(shared).is_some();
    if woken {
        WOKEN.with(|woken| woken.set(true));
    }
    woken
}

/// The calling thread is about to sleep until one of `targets` comes or its waker is woken. Counts
/// if the thread runs a task of this scheduler, and nothing that it waits for `has_come` by then.
pub(super) fn block(
    shared: &Arc<Shared>,
    targets: Vec<Target>,
    waker: &Waker,
    has_come: impl FnOnce() -> bool,
) {
    of_current(shared, trace::task_blocked, |state, wakes, n| {
        let core = state.exact(wakes);
        let has_come = has_come();
        !core.block(n, targets, waker, has_come)
    });
}

/// Whether the wait of the calling thread's task, for which nothing has come, must give up.
pub(super) fn gives_up(shared: &Arc<Shared>) -> bool {
    current_task(shared).is_some_and(|(_, n)| shared.lock().core.stalls.gives_up(n))
}

/// The wait must give up, and cannot: it goes on. `ends` tells whether it has cancelled tasks, so
/// that it ends as one that gave up.
pub(super) fn keep_on(shared: &Arc<Shared>, ends: bool) {
    of_current(shared, trace::task_stalled, |state, _, n| {
        state.core.stalls.keep_on(n);
        ends
    });
}

/// The calling thread is awake again.
pub(super) fn unblock(shared: &Arc<Shared>) {
    of_current(shared, trace::task_stalled, |state, _, n| {
        state.core.stalls.unblock(n)
    });
}

/// One event, if the calling thread runs a task of this scheduler. If `f` returns true, it is
/// traced.
fn of_current(
    shared: &Arc<Shared>,
    trace: fn(u64, Option<&str>, u32),
    f: impl FnOnce(&mut State, &mut WakeBatch, u32) -> bool,
) {
    if let Some((task, n)) = current_task(shared) {
        let label = shared.with_state(|state, wakes, _| {
            let traced = f(state, wakes, n);
            traced.then(|| state.core.label_on(n))
        });
        if let Some(label) = label {
            trace(task.get(), label.as_deref(), n);
        }
    }
}
