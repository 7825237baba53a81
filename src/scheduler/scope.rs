//! Tasks that borrow from the stack of the thread that waits for them.
//!
//! The function of such a task is boxed, its lifetime is erased, and a token is kept beside the
//! box. A scope ends when none of its tokens is left.
//!
//! Invariants:
//! 1. A token is dropped after the box beside it, whether the task ends, panics, is refused,
//!    cancelled or skipped, or is dropped with its scheduler. A leaked box keeps its token.
//! 2. [`Caller::scope`] neither returns nor unwinds while there is a token.
//! 3. The result of a task, and the payload of its panic, borrow nothing.
//!
//! From these alone it follows that no borrowed value is used after its end, whatever the
//! scheduler does with the task.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::task::{Context, Poll, Waker};

use crate::error::Stalled;
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{Op, Wait, contained, sealed};

use super::borrows::{Borrows, Fate, Token};
use super::cell::{HasOutcome, Program, Runner, Slot};
use super::current::{block, gives_up, keep_on, unblock};
use super::handles::{Caller, Place};
use super::outcome::TaskResult;
use super::reject::{Reason, Rejected};
use super::stall::Target;
use super::task::Task;

impl Caller {
    /// Runs `f`, which may submit tasks that borrow values from outside of it. Then blocks the
    /// thread until none of these tasks borrows any more: each has run, or will never run. The
    /// outcome of a task, and its end in a log, may come a moment after that.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Place, Reason, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(2).build()?;
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// let mut numbers = [3, 1, 2, 6, 5, 4];
    /// caller.scope(|s| {
    ///     for half in numbers.chunks_mut(3) {
    ///         s.exec_detached(Place::new(), || half.sort())?;
    ///     }
    ///     Ok::<_, Reason>(())
    /// })?;
    /// assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Like `std::thread::scope`, with tasks of this caller: they have places and groups, and can
    /// be paused, cancelled and skipped. So only the outcome of a task tells whether it has run.
    /// A task may submit more tasks to its scope. Futures cannot borrow in this way.
    ///
    /// It blocks a thread of an async runtime, too: do not call it in a task of one. Within a task
    /// of the same scheduler it occupies the worker, like any [`wait`](Wait::wait).
    /// If that would be [`Stalled`], the tasks of the scope that have not begun are cancelled.
    ///
    /// # Panics
    ///
    /// At its end, when no task borrows any more: if a task has panicked that had no handle, or
    /// whose handle was dropped before its outcome was taken; or if tasks were cancelled because the
    /// scope was [`Stalled`]. The panic of any other task is told by its outcome alone: also if the
    /// handle is still there at the end of the scope, and is dropped later.
    pub fn scope<'env, T>(
        &'env self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    ) -> T {
        let scope = Scope {
            caller: self,
            borrows: Borrows::new(),
            scope: PhantomData,
            env: PhantomData,
        };
        let mut stalled = false;
        let end = End {
            caller: self,
            borrows: &scope.borrows,
            stalled: &mut stalled,
        };
        let result = f(&scope);
        drop(end);
        assert!(!stalled, "a scope is {Stalled}");
        assert!(!scope.borrows.panicked(), "a task of a scope panicked");
        result
    }
}

/// Submits tasks that borrow from outside of the scope; see [`Caller::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    caller: &'env Caller,
    borrows: Arc<Borrows>,
    // Invariant in both lifetimes.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Submits a task in tier 0 and a group of its own.
    ///
    /// # Errors
    ///
    /// Like [`exec_with`](Self::exec_with).
    pub fn exec<F, T>(&'scope self, f: F) -> Result<Task<T::Ok, T::Error>, Reason>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: TaskResult,
    {
        self.exec_with(Place::new(), f)
    }

    /// Submits a task, like [`Caller::exec_with`].
    ///
    /// # Errors
    ///
    /// The [`Reason`]; the function is dropped.
    pub fn exec_with<F, T>(
        &'scope self,
        place: Place<'_>,
        f: F,
    ) -> Result<Task<T::Ok, T::Error>, Reason>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: TaskResult,
    {
        let fate = Fate::new(&self.borrows);
        let program = self.erase(f, Some(Arc::clone(&fate)));
        let submitted = self.caller.submit_one(place, program, None);
        let task = submitted.map_err(|Rejected { reason, .. }| reason)?;
        let body = task.body;
        Ok(Task {
            body: Arc::new(Watched { body, fate }),
            ..task
        })
    }

    /// Submits a task without a handle, like [`Caller::exec_detached`].
    ///
    /// # Errors
    ///
    /// Like [`exec_with`](Self::exec_with).
    pub fn exec_detached<F, T>(&'scope self, place: Place<'_>, f: F) -> Result<(), Reason>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: TaskResult,
    {
        let submitted = self.caller.submit_detached(place, self.erase(f, None));
        submitted.map_err(|Rejected { reason, .. }| reason)
    }

    /// The one place where a lifetime is erased.
    fn erase<F, T>(&'scope self, f: F, fate: Option<Arc<Fate>>) -> Scoped<T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: TaskResult,
    {
        let f: Box<dyn FnOnce() -> T + Send + 'scope> = Box::new(f);
        // SAFETY: only the lifetime changes. The token is dropped after `f` (invariant 1), so
        // `Caller::scope` has not returned while `f` exists (invariant 2); 'scope, which its body
        // cannot choose, lasts until then. The result of `f` is 'static (invariant 3).
        let f = unsafe {
            std::mem::transmute::<
                Box<dyn FnOnce() -> T + Send + 'scope>,
                Box<dyn FnOnce() -> T + Send + 'static>,
            >(f)
        };
        Scoped {
            f,
            token: Token::new(&self.borrows, fate),
        }
    }
}

/// The program of a task of a scope.
pub struct Scoped<T> {
    // First, since fields are dropped in order: invariant 1.
    f: Box<dyn FnOnce() -> T + Send>,
    token: Token,
}

impl<T: TaskResult> Program for Scoped<T> {
    type Given = Self;
    type Ok = T::Ok;
    type Error = T::Error;

    fn new(given: Self) -> Self {
        given
    }

    fn go(mut self, _: &mut dyn Runner) -> Result<Result<T::Ok, T::Error>, Self> {
        self.token.panics = true;
        // The function is dropped by then, also if it panics; the token comes last.
        let gave = (self.f)().into_result();
        self.token.panics = false;
        Ok(gave)
    }

    fn back(self) -> Self {
        self
    }

    fn is_of_scope(&self, scope: &Borrows) -> bool {
        *self.token.of == *scope
    }
}

/// The body of a task of a scope, as its handle has it.
struct Watched<R, E> {
    body: Arc<dyn HasOutcome<R, E>>,
    fate: Arc<Fate>,
}

impl<R, E> HasOutcome<R, E> for Watched<R, E> {
    fn slot(&self) -> &Slot<R, E> {
        self.body.slot()
    }
}

impl<R, E> Drop for Watched<R, E> {
    fn drop(&mut self) {
        if !self.body.slot().is_taken() {
            self.fate.abandon();
        }
    }
}

/// The end of a scope, which its drop waits for; and that wait.
struct End<'a> {
    caller: &'a Caller,
    borrows: &'a Arc<Borrows>,
    stalled: &'a mut bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Again if a wait panics: invariant 2.
        while !self.borrows.are_over() {
            let wait = Wait::new(&mut *self);
            contained(|| wait.wait());
        }
    }
}

impl sealed::Sealed for &mut End<'_> {}

impl Op for &mut End<'_> {
    type Output = ();

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.borrows.poll(cx)
    }

    fn cancel(&mut self) {
        self.borrows.leave();
    }

    fn block(&mut self, waker: &Waker) {
        let target = Target::Borrows(Arc::clone(self.borrows));
        let are_over = || self.borrows.are_over();
        block(&self.caller.0.shared, vec![target], waker, are_over);
    }

    /// It cannot: what runs still borrows. It cancels what has not begun, and waits on.
    fn give_up(&mut self) -> Option<()> {
        let shared = &self.caller.0.shared;
        if gives_up(shared) {
            let cancelled = shared.cancel_scope(self.caller.0.key, self.borrows);
            *self.stalled |= cancelled;
            keep_on(shared, cancelled);
        }
        None
    }

    fn unblock(&mut self) {
        unblock(&self.caller.0.shared);
    }
}

shows!(Scope<'_, '_>, |scope| caller: scope.caller);

/// What does not compile. A task that borrows from the body of its scope:
///
/// ```compile_fail,E0597
/// # fn test(caller: &conversant::scheduler::Caller) {
/// caller.scope(|s| {
///     let own = String::new();
///     let borrows: &String = &own;
///     s.exec(move || Ok::<_, ()>(borrows.len())).unwrap().detach();
/// });
/// # }
/// ```
///
/// Two tasks that borrow one value to change it:
///
/// ```compile_fail,E0499
/// # fn test(caller: &conversant::scheduler::Caller) {
/// let mut one = String::new();
/// caller.scope(|s| {
///     s.exec(|| Ok::<_, ()>(one.push('a'))).unwrap().detach();
///     s.exec(|| Ok::<_, ()>(one.push('b'))).unwrap().detach();
/// });
/// # }
/// ```
///
/// A change of a borrowed value while the scope is open:
///
/// ```compile_fail,E0506
/// # fn test(caller: &conversant::scheduler::Caller) {
/// let mut one = 1;
/// caller.scope(|s| {
///     s.exec(|| Ok::<_, ()>(one + 1)).unwrap().detach();
///     one = 2;
/// });
/// # }
/// ```
///
/// A result that borrows, since its handle may outlive the scope:
///
/// ```compile_fail,E0597
/// # fn test(caller: &conversant::scheduler::Caller) {
/// let one = String::new();
/// caller.scope(|s| s.exec(|| Ok::<&str, ()>(&one)).unwrap().detach());
/// # }
/// ```
///
/// A payload of a panic that borrows:
///
/// ```compile_fail,E0597
/// # fn test(caller: &conversant::scheduler::Caller) {
/// let one = String::new();
/// let task = || -> Result<(), ()> { std::panic::panic_any(&*one) };
/// caller.scope(|s| s.exec(task).unwrap().detach());
/// # }
/// ```
///
/// A scope that is used after its end:
///
/// ```compile_fail,E0521
/// # fn test(caller: &conversant::scheduler::Caller) {
/// let mut kept = None;
/// caller.scope(|s| kept = Some(s));
/// # }
/// ```
///
/// A task that is not `Send`:
///
/// ```compile_fail,E0277
/// # fn test(caller: &conversant::scheduler::Caller) {
/// let one = std::rc::Rc::new(1);
/// caller.scope(|s| s.exec(|| Ok::<i32, ()>(*one)).unwrap().detach());
/// # }
/// ```
#[cfg(doctest)]
mod does_not_compile {}
