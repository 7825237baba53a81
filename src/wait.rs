//! The one way to wait: an operation that may have to wait returns a lazy [`Wait`].
//!
//! A task awaits it, on any runtime. A thread calls [`wait`](Wait::wait) or
//! [`wait_timeout`](Wait::wait_timeout). To give up, drop it.
//!
//! A thread's wait ends with its result, with its time-out, or when what it waits on is closed and
//! nothing more can come: no other thread can drop it. Only a wait for a date goes on after a
//! close. Where it must also end on a signal, as for one reader of many that leaves, or a session
//! that is killed, wait for one or the other: [`or`](Wait::or).
//!
//! ```
//! use conversant::prelude::*;
//! use std::time::Duration;
//!
//! let queue = Queue::new();
//! let orders = queue.lane(1, Limit::Unlimited)?.conversation()?;
//! assert!(queue.receive().wait_timeout(Duration::from_millis(1)).is_err());
//! orders.send_all(["first", "second"])?;
//!
//! // In a thread:
//! let mut turn = queue.receive().wait()?;
//! assert_eq!(turn.next().map(|order| order.complete()), Some("first"));
//! drop(turn);
//!
//! // In a task, where `wait()` would keep the runtime's thread:
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let mut turn = queue.receive().await?;
//! assert_eq!(turn.next().map(|order| order.complete()), Some("second"));
//! # Ok::<(), conversant::queue::NoMore>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// ```text
//           Pending            Ready
//   New -------------> Waiting -----> Done
//    |     poll          |             ^
//    +-------------------+-- cancel ---+   drop, time-out
//       Ready at once
// ```
//
// Protocol: a poll that finds nothing registers the waker under the lock under which it looked
// (`list`). A thread that makes something available notifies waiters under that lock, and wakes
// them after it releases the lock (`session`). A blocking call polls the same operation with a
// parker of its own thread (`parker`); before that it may try for a moment without registering.
//
// Invariants:
// 1. `cancel` is called exactly once if the operation was ever Pending and has not been Ready
//    since. Otherwise it is never called.
// 2. A blocking call sleeps only after a poll that was Pending. It polls again after every sleep,
//    including a sleep that the deadline ended.
// 3. No user code (clone, wake and drop of a waker) runs under an internal lock. If a waker panics
//    when it is woken or dropped, the other waiters are still served (`session`).
// 4. `block` and `unblock` come in pairs, around everything between the first sleep and the end of
//    an untimed blocking call.
//
// Memory ordering: the lock or word of an operation publishes what was done before the operation
// was granted. The parker publishes what was done before a wake.

mod list;
mod or;
mod panics;
mod parker;
mod pause;
mod session;

#[cfg(all(test, not(shuttle)))]
#[path = "wait/tests/gate.rs"]
mod gate;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::error::TimedOut;
use crate::shown::shows;

pub use self::list::{WaitCounts, WaiterState};
pub use self::parker::wakeups;

pub(crate) use self::{
    list::{Removed, Ticket, Waiters},
    panics::Panics,
    parker::with_parker,
    pause::{AT_ONCE, BACK_OFF, OFTEN, SELDOM, back_off, lost},
    session::{ClonedWaker, Guarded, Session, WakeBatch, contained, drop_quietly},
};

/// Closes [`Op`] to other crates.
pub(crate) mod sealed {
    pub trait Sealed {}
}

/// An operation that may have to wait: what a [`Wait`] waits for. It cannot be implemented outside
/// this crate.
pub trait Op: sealed::Sealed + Unpin {
    /// The result of the wait.
    type Output;

    /// An untimed blocking call tries this first: a short path for what is available at once.
    /// `None` changes nothing.
    #[doc(hidden)]
    #[inline]
    fn at_once(&mut self) -> Option<Self::Output> {
        None
    }

    /// An untimed blocking call tries this before the first poll and after every wake-up. It may
    /// take about as long as a sleep would cost. Neither `None` nor a panic changes anything.
    #[doc(hidden)]
    #[inline]
    fn attempt(&mut self) -> Option<Self::Output> {
        None
    }

    /// Tries. If nothing is available, arranges that the waker is woken when something may be. It
    /// is not called again after `Ready`. If a first poll panics, nothing is left behind; after a
    /// panic in a later poll, [`cancel`](Self::cancel) undoes what is left.
    #[doc(hidden)]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output>;

    /// Gives up after a `Pending`: removes the waiter from the wait queue, and passes on a
    /// notification or a grant that the waiter has not used.
    #[doc(hidden)]
    fn cancel(&mut self);

    /// The thread is about to sleep without a deadline, for the first time in this wait. It sleeps
    /// until this waker, which is one of this crate's, is woken.
    #[doc(hidden)]
    fn block(&mut self, _waker: &Waker) {}

    /// The thread has slept since `block`, and the last poll was Pending. Returns a result if the
    /// wait must give up: then it is cancelled.
    #[doc(hidden)]
    fn give_up(&mut self) -> Option<Self::Output> {
        None
    }

    /// The wait that called `block` has ended: it was granted, or it unwinds.
    #[doc(hidden)]
    fn unblock(&mut self) {}
}

/// Calls `look` without a cloned waker first: nothing is cloned if there is no need to wait. If it
/// returns `None`, calls it again with a clone, which it may store. A waker that `look` leaves in
/// the clone's place is dropped here, under no lock.
pub(crate) fn look_twice<R>(
    cx: &mut Context<'_>,
    mut look: impl FnMut(&Waker, &mut Option<Waker>) -> Option<Poll<R>>,
) -> Poll<R> {
    if let Some(looked) = look(cx.waker(), &mut ClonedWaker::default().0) {
        return looked;
    }
    look_again(cx, look)
}

/// The second call of [`look_twice`], for a caller that has just found nothing.
pub(crate) fn look_again<R>(
    cx: &mut Context<'_>,
    mut look: impl FnMut(&Waker, &mut Option<Waker>) -> Option<Poll<R>>,
) -> Poll<R> {
    let mut cloned = ClonedWaker::of(cx);
    look(cx.waker(), &mut cloned.0).unwrap_or(Poll::Pending)
}

/// A wait for one operation: a lazy future, and a blocking call.
///
/// Before it is polled, or one of the blocking methods is called, it tries nothing and is not in
/// the wait queue.
///
/// # Cancel safety
///
/// Dropping the wait cancels it, as does a time-out: it leaves the wait queue, what it was notified
/// of or granted goes to the next waiter, and nothing is lost that others could use. What it was to
/// send, push or submit is dropped with it, unless you take that out before: see
/// [`into_message`](Self::into_message).
///
/// # Cost
///
/// The wait itself neither allocates nor reads the clock while the operation succeeds at once,
/// after a thread's first wait; the operation may, as a claim of several jobs allocates their list.
/// A thread that has to wait spins for about two microseconds, then sleeps until it is woken.
/// Nothing polls. Each time it is woken for a permit or a mode that others keep taking before it,
/// it spins for at most 100 microseconds more.
///
/// # A wait that owns
///
/// A wait borrows what it waits on. If a future must be `'static`, wrap both in an `async` block:
/// the block owns them, and gives the handle back at its end:
///
/// ```
/// use conversant::queue::{Conversation, Queue, SendError};
///
/// # fn spawn<T>(_: impl Future<Output = T> + Send + 'static) {}
/// type Sent = Result<(), SendError<u32>>;
/// async fn send(orders: Conversation<u32>, order: u32) -> (Conversation<u32>, Sent) {
///     let sent = orders.send_wait(order).await;
///     (orders, sent)
/// }
/// let queue = Queue::builder().capacity(100).build()?;
/// let orders = queue.lane(1, 8)?.conversation()?;
/// spawn(send(orders, 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A result that borrows the handle is made owned first (`into_owned`, `acquire_owned`,
/// `lock_owned`), or used up in the block. If that future is dropped before its end, the wait is
/// cancelled, and then the handle is dropped.
/// To keep the handle, pass a clone into the block, if the handle can be cloned.
///
/// # Polled again
///
/// - After its result, which may be an error, a wait is done: polling it panics. For another result
///   make another wait.
/// - A poll may panic because a clone of the waker panics, or other code of yours that it runs: a
///   comparison, hash, clone or `parent` of a key or resource, the drop of a key that a `Keyed`
///   forgets, the other future of [`or`](Self::or). The wait is then as if that poll had not been:
///   it can be polled again, and can be dropped. What it was granted by then it still has to give.
///   There are two exceptions. A release or shutdown may have begun; and a push whose key's
///   comparison panicked is done: key and job are gone.
/// - After a time-out it is gone: it was passed by value.
#[must_use = "a wait does nothing unless it is awaited or one of its `wait` methods is called"]
pub struct Wait<O: Op> {
    op: O,
    stage: Stage,
    /// Whether `block` was called (invariant 4).
    blocked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Waiting,
    Done,
}

impl<O: Op> Wait<O> {
    #[inline]
    pub(crate) fn new(op: O) -> Self {
        Self {
            op,
            stage: Stage::New,
            blocked: false,
        }
    }

    /// Blocks the calling thread until the operation is done. In a task await the wait instead:
    /// this method would block a thread of the runtime.
    ///
    /// Waits may be nested on one thread.
    // If there is no need to wait, all of it is to be inlined into the caller.
    #[inline(always)]
    pub fn wait(mut self) -> O::Output {
        if self.stage == Stage::New
            && let Some(output) = self.op.at_once()
        {
            self.stage = Stage::Done;
            return output;
        }
        self.wait_longer()
    }

    /// [`wait`](Self::wait) for an operation that was not ready at once.
    #[inline(never)]
    fn wait_longer(mut self) -> O::Output {
        with_parker(|parker, cx| {
            loop {
                if self.stage != Stage::Done
                    && let Some(output) = self.op.attempt()
                {
                    self.stage = Stage::Done;
                    return output;
                }
                if let Poll::Ready(output) = self.step(cx) {
                    return output;
                }
                if self.blocked {
                    if let Some(output) = self.op.give_up() {
                        self.cancel();
                        return output;
                    }
                } else if parker.spin() {
                    continue;
                } else {
                    // Set first, so that a `block` that panics is unblocked too.
                    self.blocked = true;
                    self.op.block(cx.waker());
                }
                parker.sleep(None);
            }
        })
    }

    /// Blocks the thread as [`wait`](Self::wait) does, but for at most `timeout`.
    ///
    /// It blocks a thread of a runtime, too. The operation is tried at least once, and once more
    /// when the time is up. If `timeout` ends beyond the range of `Instant`, it never ends the wait.
    ///
    /// # Errors
    ///
    /// [`TimedOut`] if the operation was not done by then; the wait is cancelled.
    pub fn wait_timeout(mut self, timeout: Duration) -> Result<O::Output, TimedOut> {
        // The clock is read only by a wait that must wait.
        self.wait_at_most(|| Instant::now().checked_add(timeout))
    }

    /// Blocks the thread as [`wait`](Self::wait) does, but until `deadline` at the latest.
    ///
    /// It blocks a thread of a runtime, too. The operation is tried at least once, even if the
    /// deadline has passed, and once more when it passes.
    ///
    /// # Errors
    ///
    /// [`TimedOut`] if the operation was not done by then; the wait is cancelled.
    pub fn wait_deadline(mut self, deadline: Instant) -> Result<O::Output, TimedOut> {
        self.wait_at_most(|| Some(deadline))
    }

    /// Waits until `deadline` at the latest. After a time-out the wait is cancelled, and the caller
    /// can ask its operation what is left.
    pub(crate) fn wait_at_most(
        &mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<O::Output, TimedOut> {
        with_parker(|parker, cx| {
            if let Poll::Ready(output) = self.step(cx) {
                return Ok(output);
            }
            let deadline = deadline();
            loop {
                let in_time = parker.sleep_until(deadline);
                if let Poll::Ready(output) = self.step(cx) {
                    return Ok(output);
                }
                if !in_time {
                    self.cancel();
                    return Err(TimedOut);
                }
            }
        })
    }

    /// Polls once, and keeps invariant 1.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<O::Output> {
        assert!(
            self.stage != Stage::Done,
            "a `Wait` was polled after it gave its result"
        );
        let poll = self.op.poll(cx);
        self.stage = if poll.is_ready() {
            Stage::Done
        } else {
            Stage::Waiting
        };
        poll
    }

    /// The operation, between polls.
    pub(crate) fn op_mut(&mut self) -> &mut O {
        &mut self.op
    }

    #[inline]
    pub(crate) fn cancel(&mut self) {
        if std::mem::replace(&mut self.stage, Stage::Done) == Stage::Waiting {
            self.op.cancel();
        }
    }
}

impl<O: Op> Future for Wait<O> {
    type Output = O::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O::Output> {
        self.get_mut().step(cx)
    }
}

impl<O: Op> Drop for Wait<O> {
    #[inline]
    fn drop(&mut self) {
        if self.blocked {
            self.op.unblock();
        }
        self.cancel();
    }
}

shows!([O: Op] Wait<O>, |this| stage: this.stage);
