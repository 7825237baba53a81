//! The wait for room, and then the push.

use crate::jobs::{JobId, Place, PushReason};
use crate::queue::{Sending, Steps};
use crate::shown::shows;
use crate::wait::Wait;

use super::JobQueue;
use super::body::unwrapped;
use super::push::{entering, refused};
use super::refuse::PushError;
use super::room::Room;
use super::shared::Shared;

/// Where a job is to be pushed.
pub struct ToPush<'a, K, J> {
    shared: &'a Shared<K, J>,
    place: Place,
}

shows!([K, J] ToPush<'_, K, J>, |to| place: to.place);

type Pushing<'a, K, J> = Sending<'a, ToPush<'a, K, J>, (K, J), Result<JobId, PushError<(K, J)>>>;

impl<K: Ord, J> JobQueue<K, J> {
    /// Puts a job in as soon as the queue has room for it.
    ///
    /// Pushes that wait are served in the order in which they began to wait. An immediate
    /// [`push`](Self::push) is refused while waiting pushes want the room. A wait that has been
    /// granted room and is never polled keeps its own room, and no more.
    ///
    /// An agent that waits here while it holds claims may itself hold the room that it waits for.
    /// It should complete the claims first, or wait with a time limit.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place, PushReason};
    ///
    /// let queue = JobQueue::builder().capacity(1).build()?;
    /// queue.push(1, "first", Place::new())?;
    /// let refused = queue.push(2, "second", Place::new()).unwrap_err();
    /// assert_eq!((refused.content, refused.reason), ((2, "second"), PushReason::Full));
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| queue.push_wait(2, "second", Place::new()).wait());
    ///     for expected in ["first", "second"] {
    ///         let claim = queue.claim_one().wait().unwrap();
    ///         assert_eq!(claim.complete().unwrap().job, expected);
    ///     }
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped has pushed nothing: key and job are dropped, and room that it was
    /// granted goes to the next wait. If you need key and job after a drop or a
    /// [`wait_timeout`](Wait::wait_timeout), use [`into_message`](Wait::into_message) or
    /// [`or_return_after`](Wait::or_return_after) instead.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push), but a full queue is waited for. The wait also ends if the queue is
    /// closed meanwhile.
    ///
    /// # Panics
    ///
    /// If the key's `Ord` does; key and job are dropped, nothing else has changed.
    pub fn push_wait(&self, key: K, job: J, place: Place) -> Wait<Pushing<'_, K, J>> {
        let shared: &Shared<K, J> = self.shared();
        let to = ToPush { shared, place };
        let mut steps = Steps::new(
            |ToPush { shared, place }, (key, job), granted| {
                let mut entering = entering(key, job, place);
                let room = Room::granted(&shared.capacity, granted.permits);
                let pushed = shared.push_into(&mut entering, room);
                pushed.map_err(|why| refused(entering.0, why))
            },
            |content, reason| {
                let reason = reason.into();
                Err(PushError { content, reason })
            },
        );
        // A job that is refused for another reason does not wait for room, and takes none.
        steps.at_once = Some(|ToPush { shared, place }, (key, job)| {
            let mut entering = entering(key, job, place);
            match shared.push_into(&mut entering, Room::of(&shared.capacity)) {
                Err(PushReason::Full) => {
                    let (left, place) = entering;
                    let (key, job) = left.expect("it is still here");
                    Err((ToPush { shared, place }, (key, unwrapped(job))))
                }
                pushed => Ok(pushed.map_err(|why| refused(entering.0, why))),
            }
        });
        Sending::wait(&shared.capacity, 1, (to, (key, job)), steps)
    }
}
