//! Keeping the time: a thread, or a future for any runtime.
//!
//! Things with dates do what is due when they are told the time: a [`Queue`](crate::queue::Queue)
//! with back-off, a [`JobQueue`](crate::job_queue::JobQueue) with due times and leases,
//! [`Dialogs`](crate::dialog::Dialogs) with timers, and a
//! [`Scheduler`](crate::scheduler::Scheduler) on a pool. A ticker tells them the time: it sleeps
//! until the next date, wakes up when an earlier one is set, and polls nothing.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use conversant::prelude::*;
//! use conversant::ticker::Ticker;
//!
//! let queue = Queue::builder().back_off(Duration::from_millis(2), Duration::from_secs(1)).build()?;
//! let _ticker = Ticker::spawn(queue.clone(), Instant::now())?;
//! let hooks = queue.lane(1, Limit::Unlimited)?.conversation()?;
//! hooks.send("created")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::future::Future;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::time::{Duration, Instant};

use crate::semaphore::Semaphore;
use crate::shown::shows;
use crate::sync::{Arc, Builder as ThreadBuilder, JoinHandle, current};
use crate::wait::drop_quietly;

pub use crate::due::Timed;

/// A thread that keeps the time of one thing, until it is dropped.
///
/// It holds a handle of that thing, sleeps until the next date, and wakes up when an earlier one is
/// set. No date is served early; a date is served as soon as the thread gets to run.
///
/// From its start on, lengths begin at the clock's time: a back-off at the failure, a lease at its
/// claim, a dialog's timer at its setting, a task's delay at its submission. This stays so after
/// the ticker is dropped. Before the first ticker, they begin at the last time that was told.
///
/// When the ticker is dropped, dates stay as they are, but nothing becomes due until another ticker
/// begins or the time is told by a call of [`advance`](Timed::advance). A [`Scheduler`] on a pool
/// then accepts no more tasks with a delay, unless `advance` was called while it had no ticker.
/// Tasks whose delay is over also start when a task is submitted or ends. The others are cancelled
/// when it is shut down or dropped: see [`Place::after`].
///
/// [`Scheduler`]: crate::scheduler::Scheduler
/// [`Place::after`]: crate::scheduler::Place::after
#[must_use = "dropping it ends it: keep it in a variable, as in `let _ticker = ...`"]
pub struct Ticker {
    /// Closed to stop the thread.
    stop: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts a ticker. Times count from `origin`: the date `origin.elapsed() + delay` is that long
    /// from now.
    ///
    /// If the thing has or had another ticker, times still count from the origin of the first one.
    /// If you compute dates, give all tickers of the thing the same origin. The origin must not be
    /// later than now, nor than that from which you counted in calls of
    /// [`advance`](Timed::advance): all lengths would last longer by the difference.
    ///
    /// # Errors
    ///
    /// The system's error, if it cannot start a thread.
    pub fn spawn(timed: impl Timed + Send + 'static, origin: Instant) -> io::Result<Self> {
        let kept = Kept::begin(timed, origin);
        let stop = Arc::new(Semaphore::const_new(0));
        let stopped = Arc::clone(&stop);
        let named = ThreadBuilder::new().name(String::from("conversant-ticker"));
        let thread = Some(named.spawn(move || keep_until(&stopped, &kept))?);
        Ok(Self { stop, thread })
    }
}

// Nothing of it is seen broken after a panic.
impl UnwindSafe for Ticker {}
impl RefUnwindSafe for Ticker {}

shows!(Ticker, |_| );

impl Drop for Ticker {
    /// Stops the thread, and waits until it has ended. If it is in an `advance`, that is finished
    /// first. Code that this `advance` wakes or runs may drop the ticker, too: then the thread ends
    /// after that `advance`, and the drop does not wait.
    fn drop(&mut self) {
        self.stop.close();
        let thread = self.thread.take();
        thread
            .filter(|thread| thread.thread().id() != current().id())
            .map(JoinHandle::join)
            .into_iter()
            .for_each(drop_quietly);
    }
}

/// Keeps the time of a thing in an async task, for as long as the future is polled.
///
/// It counts as a [`Ticker`] from this call until the future is dropped; for `origin` see
/// [`Ticker::spawn`]. `sleep` is the runtime's: it returns a future that is ready after that
/// length.
///
/// ```
/// # use std::time::Instant;
/// # use conversant::{queue::Queue, ticker::keep_time};
/// # fn example(queue: Queue<String>) {
/// tokio::spawn(keep_time(queue.clone(), Instant::now(), tokio::time::sleep));
/// # }
/// ```
///
/// Cancel safe. The future is `Send` if the thing, the function and its sleeps are.
pub fn keep_time<S: Future>(
    timed: impl Timed,
    origin: Instant,
    sleep: impl FnMut(Duration) -> S,
) -> impl Future<Output = std::convert::Infallible> {
    keep(Kept::begin(timed, origin), sleep)
}

async fn keep<S: Future>(
    kept: Kept<impl Timed>,
    mut sleep: impl FnMut(Duration) -> S,
) -> std::convert::Infallible {
    let Kept { timed, origin } = &kept;
    loop {
        let due = timed.advance(origin.elapsed());
        let earlier = timed.next_due(due);
        let Some(due) = due else {
            earlier.await;
            continue;
        };
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        let sleeps = pin!(sleep(origin.checked_add(due).map_or(Duration::MAX, left)));
        earlier.or(sleeps).await.ok();
    }
}

/// The thing whose time is kept as long as this lives.
struct Kept<T: Timed> {
    timed: T,
    origin: Instant,
}

impl<T: Timed> Kept<T> {
    fn begin(timed: T, mut origin: Instant) -> Self {
        timed.with_dates(&mut |_, dates| origin = dates.begin(origin));
        Self { timed, origin }
    }
}

impl<T: Timed> Drop for Kept<T> {
    fn drop(&mut self) {
        self.timed.with_dates(&mut |_, dates| dates.end());
    }
}

fn keep_until(stop: &Semaphore, kept: &Kept<impl Timed>) {
    let Kept { timed, origin } = kept;
    loop {
        let due = timed.advance(origin.elapsed());
        let wait = stop.acquire(1).or(timed.next_due(due));
        let stopped = match due.map(|due| origin.checked_add(due)) {
            Some(Some(deadline)) => wait
                .wait_deadline(deadline)
                .is_ok_and(|first| first.is_ok()),
            _ => wait.wait().is_ok(),
        };
        if stopped {
            return;
        }
    }
}
