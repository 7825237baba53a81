//! Submissions that wait for room in a caller with a capacity.

use std::future::Future;

use crate::queue::{Pause, Sending, Steps};
use crate::wait::Wait;

use super::cell::{Function, Program};
use super::current::{block, gives_up, unblock};
use super::handles::{Caller, Place};
use super::outcome::TaskResult;
use super::reject::Rejected;
use super::spawn::Stage;
use super::stall::Target;
use super::task::Task;

/// The wait of [`Caller::exec_wait`] and [`Caller::spawn_wait`].
type Submitting<'a, F, R, E> = Sending<'a, (&'a Caller, Place<'a>), F, Submitted<F, R, E>>;

/// The result of a submission.
type Submitted<F, R, E> = Result<Task<R, E>, Rejected<F>>;

impl Caller {
    /// Submits a task as soon as its caller has room for it, within its
    /// [`capacity`](super::CallerOptions::capacity).
    ///
    /// Waiting submissions are served in order; an immediate [`exec`](Self::exec) is refused while
    /// they want the room. A task that waits for room in its own caller keeps its worker, and the
    /// room that it takes itself. If nothing can go on because of that, [`wait()`](Wait::wait)
    /// returns the function as [`Stalled`](super::Reason::Stalled). Await in a future instead.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Place, Reason, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(1).build()?;
    /// let options = CallerOptions { capacity: 1.into(), ..Default::default() };
    /// let caller = scheduler.caller("small", options)?;
    /// let hold = scheduler.hold();
    /// caller.exec(|| Ok::<_, ()>(1))?.detach();
    /// let refused = caller.exec(|| Ok::<_, ()>(2)).unwrap_err();
    /// assert_eq!(refused.reason, Reason::Full);
    /// drop(hold);
    /// caller.exec_wait(Place::new(), || Ok::<_, ()>(2)).wait()?.detach();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cancel safe: a dropped wait has submitted nothing. [`into_message`](Wait::into_message) and
    /// [`or_return_after`](Wait::or_return_after) return the function.
    ///
    /// # Errors
    ///
    /// Like [`exec_with`](Self::exec_with), except [`Full`](super::Reason::Full).
    pub fn exec_wait<'a, F, T>(
        &'a self,
        place: Place<'a>,
        f: F,
    ) -> Wait<Submitting<'a, F, T::Ok, T::Error>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskResult,
    {
        self.when_there_is_room::<Function<F>>(place, f)
    }

    /// Like [`exec_wait`](Self::exec_wait), for a future.
    ///
    /// # Errors
    ///
    /// Like [`exec_wait`](Self::exec_wait).
    pub fn spawn_wait<'a, F, T>(
        &'a self,
        place: Place<'a>,
        future: F,
    ) -> Wait<Submitting<'a, F, T::Ok, T::Error>>
    where
        F: Future<Output = T> + Send + 'static,
        T: TaskResult,
    {
        self.when_there_is_room::<Stage<F>>(place, future)
    }

    fn when_there_is_room<'a, P: Program>(
        &'a self,
        place: Place<'a>,
        task: P::Given,
    ) -> Wait<Submitting<'a, P::Given, P::Ok, P::Error>> {
        let mut steps = Steps::new(
            |(caller, place): (&Self, _), task, granted| {
                caller.submit_one(place, P::new(task), Some(granted.permits))
            },
            |task, reason| {
                let reason = reason.into();
                Err(Rejected { task, reason })
            },
        );
        steps.on_pause = |(caller, _), pause| caller.waits_for_room(pause);
        Sending::wait(&self.0.capacity, 1, ((self, place), task), steps)
    }

    /// What `Steps::on_pause` asks; a wait gives up by the rule of `stall`.
    fn waits_for_room(&self, pause: Pause<'_>) -> bool {
        let shared = &self.0.shared;
        match pause {
            // From now on each ending is reported at once.
            Pause::Waits => {
                shared.read_exact(|_| ());
                return true;
            }
            Pause::Sleeps(ticket, waker) => {
                let room = Target::Room(self.0.key, ticket);
                block(shared, vec![room], waker, || false);
            }
            Pause::WokenInVain => return gives_up(shared),
            Pause::Over => unblock(shared),
        }
        false
    }
}
