//! Who keeps the time: a thread, or a future for any runtime.
//!
//! What has dates (a [`Queue`](crate::queue::Queue) with back-off, a
//! [`JobQueue`](crate::job_queue::JobQueue) with due times and leases,
//! [`Dialogs`](crate::dialog::Dialogs) with timers, a
//! [`Scheduler`](crate::scheduler::Scheduler) on a pool) does what is due when it is told
//! the time. These tell it: they sleep until the next date, wake up when an earlier one is
//! set, and poll nothing.
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
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::due::NextDue;
use crate::semaphore::{Acquire, Semaphore};
use crate::sync::{Arc, Builder as ThreadBuilder, JoinHandle, current};
use crate::wait::{Op, Wait, drop_quietly, sealed};

pub use crate::due::Timed;

/// A thread that keeps the time of one thing, until it is dropped.
///
/// It holds a handle of that thing, sleeps until the next date, and wakes up when an earlier
/// one is set. No date is served early, and none later than the thread gets to run.
///
/// From its start on the clock says from when something counts: a back-off from the failure, a
/// lease from its claim, a dialog's timer from its setting, a task's delay from its submission.
/// That stays so when the ticker is dropped. Before the first ticker they count from the last
/// time told.
///
/// When it is dropped dates stay as they are, but nothing is due by itself any more, until
/// another ticker begins or somebody tells the time. A [`Scheduler`] on a pool then takes no
/// more tasks with a delay, and cancels those it has when it is shut down or dropped: see
/// [`Place::after`].
///
/// [`Scheduler`]: crate::scheduler::Scheduler
/// [`Place::after`]: crate::scheduler::Place::after
#[derive(Debug)]
#[must_use = "dropping it ends it: keep it in a variable, as in `let _ticker = ...`"]
pub struct Ticker {
    /// Closed to end it.
    stop: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts one. Times count from `origin`: in so long is the date `origin.elapsed() + delay`.
    ///
    /// Give all tickers of one thing the same origin, also those that follow one another, and
    /// count from it where you call [`advance`](Timed::advance) yourself. Time never goes back:
    /// after a ticker that ran for an hour, one with an origin of now does nothing for an hour.
    ///
    /// # Errors
    ///
    /// That of the system, if there is no thread to be had.
    pub fn spawn(timed: impl Timed + Send + 'static, origin: Instant) -> io::Result<Self> {
        let kept = Kept::begin(timed, origin);
        let stop = Arc::new(Semaphore::const_new(0));
        let stopped = Arc::clone(&stop);
        let named = ThreadBuilder::new().name(String::from("conversant-ticker"));
        let thread = Some(named.spawn(move || keep_until(&stopped, &kept))?);
        Ok(Self { stop, thread })
    }
}

impl Drop for Ticker {
    /// Ends it, and waits until it has ended; an `advance` that it is in is done first.
    /// What that wakes or runs may drop it too: then it ends after that `advance`, and the
    /// drop waits for nothing.
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

/// Keeps the time of something in an async task, for as long as it is polled. It counts as a
/// [`Ticker`] from this call on, until the future is dropped; for `origin` see
/// [there](Ticker::spawn). `sleep` is the runtime's: a future that is ready after so long.
///
/// ```
/// # use std::time::Instant;
/// # use conversant::{queue::Queue, ticker::keep_time};
/// # fn example(queue: Queue<String>) {
/// tokio::spawn(keep_time(queue.clone(), Instant::now(), tokio::time::sleep));
/// # }
/// ```
///
/// Cancel safe. It crosses threads if the thing and the sleeps do.
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
        let mut earlier = timed.next_due(due);
        let Some(due) = due else {
            earlier.await;
            continue;
        };
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        let mut sleeps = pin!(sleep(origin.checked_add(due).map_or(Duration::MAX, left)));
        std::future::poll_fn(|cx| {
            let woken = Pin::new(&mut earlier).poll(cx).is_ready();
            match woken || sleeps.as_mut().poll(cx).is_ready() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

/// What a ticker keeps the time of, for as long as this lives, and from when it counts.
struct Kept<T: Timed> {
    timed: T,
    origin: Instant,
}

impl<T: Timed> Kept<T> {
    fn begin(timed: T, origin: Instant) -> Self {
        timed.with_dates(&mut |_, dates| dates.begin(origin));
        Self { timed, origin }
    }
}

impl<T: Timed> Drop for Kept<T> {
    fn drop(&mut self) {
        self.timed.with_dates(&mut |_, dates| dates.end());
    }
}

fn keep_until(stop: &Semaphore, Kept { timed, origin }: &Kept<impl Timed>) {
    loop {
        let due = timed.advance(origin.elapsed());
        let wait = Wait::new(OrStopped {
            stopped: Wait::new(Semaphore::request(stop, 1)),
            earlier: timed.next_due(due),
        });
        let stopped = match due.map(|due| origin.checked_add(due)) {
            Some(Some(deadline)) => wait.wait_deadline(deadline).unwrap_or(false),
            _ => wait.wait(),
        };
        if stopped {
            return;
        }
    }
}

/// Whether it was stopped before an earlier date came.
struct OrStopped<'a, T: Timed> {
    stopped: Wait<Acquire<&'a Semaphore>>,
    earlier: Wait<NextDue<'a, T>>,
}

impl<T: Timed> sealed::Sealed for OrStopped<'_, T> {}

impl<T: Timed> Op for OrStopped<'_, T> {
    type Output = bool;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let stopped = Pin::new(&mut self.stopped).poll(cx).is_ready();
        match stopped || Pin::new(&mut self.earlier).poll(cx).is_ready() {
            true => Poll::Ready(stopped),
            false => Poll::Pending,
        }
    }

    /// The two waits cancel themselves when they are dropped.
    fn cancel(&mut self) {}
}
