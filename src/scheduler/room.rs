//! The wait for room in a caller with a capacity, and then the submission.

use std::future::Future;

use crate::queue::{Pending, Permits, SendError, Sending};
use crate::wait::{Wait, sealed};

use super::cell::{Function, Program};
use super::handles::{Caller, Place};
use super::reject::Rejected;
use super::spawn::Stage;
use super::task::Task;

/// What is to be submitted, while it waits for room.
pub struct ToSubmit<'a, P> {
    caller: &'a Caller,
    place: Place<'a>,
    program: P,
}

/// The wait of [`Caller::exec_wait`] and [`Caller::spawn_wait`].
pub type Submitting<'a, P> = Sending<'a, ToSubmit<'a, P>>;

impl<P> sealed::Sealed for ToSubmit<'_, P> {}

impl<P: Program> Pending for ToSubmit<'_, P> {
    type Message = P::Given;
    type Sent = Task<P::Ok, P::Error>;
    type Refused = Rejected<P::Given>;

    fn send(self, permits: Permits<'_>) -> Result<Self::Sent, Self::Refused> {
        let Self { caller, place, .. } = self;
        caller.submit_one(place, self.program, Some(permits))
    }

    fn into_message(self) -> P::Given {
        self.program.back()
    }

    /// From now on each ending is told at once.
    fn waits(&self) {
        self.caller.shared.read_exact(|_| ());
    }
}

impl<F> From<SendError<F>> for Rejected<F> {
    fn from(error: SendError<F>) -> Self {
        Self {
            task: error.message,
            reason: error.reason.into(),
        }
    }
}

impl Caller {
    /// Submits a task as soon as its caller has room for it: at most
    /// [`capacity`](super::CallerOptions::capacity) of its tasks have not ended.
    ///
    /// Those who wait are served in order; an immediate [`exec`](Self::exec) is refused
    /// while they want the room. A task that waits so for room in its own caller keeps
    /// its worker, and perhaps the room.
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
    /// Cancel safe: a wait that is dropped has submitted nothing.
    /// [`into_message`](Wait::into_message) and
    /// [`give_back_after`](Wait::give_back_after) give the function back.
    ///
    /// # Errors
    ///
    /// As [`exec_with`](Self::exec_with), but that a full caller is waited for.
    pub fn exec_wait<'a, F, R, E>(
        &'a self,
        place: Place<'a>,
        f: F,
    ) -> Wait<Submitting<'a, Function<F>>>
    where
        F: FnOnce() -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.when_there_is_room(place, Function(f))
    }

    /// As [`exec_wait`](Self::exec_wait), of a future.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn spawn_wait<'a, F, R, E>(
        &'a self,
        place: Place<'a>,
        future: F,
    ) -> Wait<Submitting<'a, Stage<F>>>
    where
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.when_there_is_room(place, Stage::New(future))
    }

    fn when_there_is_room<'a, P: Program>(
        &'a self,
        place: Place<'a>,
        program: P,
    ) -> Wait<Submitting<'a, P>> {
        let pending = ToSubmit {
            caller: self,
            place,
            program,
        };
        Sending::wait(&self.capacity, 1, pending)
    }
}
