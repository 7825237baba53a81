//! The workers: threads of the scheduler, or jobs on the user's pool. A worker takes the
//! scheduler's lock at most once a task: to report it, and to claim the next, or several (`state`).
//!
//! A worker that finds nothing spins for about 2 us before it sleeps, as every wait of the crate
//! does. Measured with 0, 2, 5 and 20 us (pinned, medians): a task that comes within that time
//! begins after 2.5 us, else after 7.5, and after 100 us of rest 7.9 to 8.1 with each of them. But
//! with two submitting threads and two workers on two processors, a trivial task took 1.4 and 1.5
//! us with 0 and 2, and 2.1 and 1.9 with 5 and 20: hence 2.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::sync::{Arc, Builder as ThreadBuilder};
use crate::wait::{WakeBatch, drop_quietly, with_parker};

use super::current::Working;
use super::inside::Inside;
use super::local_queue::{Report, Work};
use super::perform::{RunnerState, perform};
use super::pool::{Host, Threads};
use super::shared::Shared;
use super::state::State;
use super::task_state::Started;

/// Starts worker `n`; if that fails, its number is given back.
pub(super) fn start(shared: &Arc<Shared>, n: u32) {
    let handle = WorkerHandle {
        shared: Arc::clone(shared),
        n,
        stage: Stage::Requested,
    };
    // The pool may panic, its error where it is shown, and a thread's name may be a bad one.
    let started = catch_unwind(AssertUnwindSafe(|| match &shared.host {
        Host::Threads(threads) => {
            let named = ThreadBuilder::new().name(format!("{}-{n}", threads.name));
            let shared = Arc::clone(shared);
            let started = named.spawn(move || {
                let _inside = Inside::begin(&*shared);
                Threads::run(&shared.host, n, || handle.work());
            });
            started.map(drop).map_err(|error| error.to_string())
        }
        Host::Pool(pool) => {
            let job = Box::new(move || handle.work());
            pool.submit(job).map_err(|error| error.to_string())
        }
    }));
    let started = started.unwrap_or_else(|payload| {
        drop_quietly(payload);
        Err(String::from("the start panicked"))
    });
    if let Err(why) = started {
        shared.lock().core.start_error = Some(why);
    }
}

/// A worker's number, which is given back however the worker ends.
struct WorkerHandle {
    shared: Arc<Shared>,
    n: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Requested,
    Working,
    Left,
}

impl WorkerHandle {
    fn work(mut self) {
        self.stage = Stage::Working;
        let _working = Working::begin(&self.shared, self.n);
        let queue = self.shared.lock().queue(self.n);
        let mut own = Own::default();
        while let Some(first) = self.next(&mut own) {
            let Own { pace, kept, .. } = &mut own;
            kept.late = false;
            let ran = perform(&self.shared, self.n, first, &queue, kept);
            // Before the lock, since it may wait for that.
            pace.pause(std::mem::take(&mut kept.ran), || match kept.late {
                true => self.shared.origin.elapsed(),
                false => ran.end,
            });
            own.ran = Some(ran);
        }
        self.stage = Stage::Left;
    }

    /// Reports the last task and claims the next, or several; rests while there is none. `None` if
    /// the worker has left.
    fn next(&self, own: &mut Own) -> Option<Started<Work>> {
        own.leaves = None;
        with_parker(|parker, cx| {
            loop {
                match self.look(own, cx.waker()) {
                    Ok(next) => return next,
                    Err(Pause::Drops) => {}
                    Err(Pause::Rest(until)) => _ = parker.sleep_until(until),
                }
            }
        })
    }

    /// One hold of the lock: records the ending, and finds the next task, unless the worker has it
    /// already; `None` if the worker has left. The error is what it does before it looks again.
    fn look(&self, own: &mut Own, waker: &Waker) -> Result<Option<Started<Work>>, Pause> {
        let Own { ran, kept, .. } = own;
        let (ran, to_wake) = (ran.take(), kept.to_wake.take());
        let mut session = self.shared.lock();
        session.posting.bodies.take_in(&mut kept.bodies);
        self.shared.with_locked(session, true, |state, wakes, now| {
            wakes.extend(to_wake);
            match ran.and_then(|ran| state.finish(self.n, ran, now, wakes)) {
                None => self.find(state, own, waker, now, wakes),
                next => Ok(next),
            }
        })
    }

    fn find(
        &self,
        state: &mut State,
        own: &mut Own,
        waker: &Waker,
        now: Duration,
        wakes: &mut WakeBatch,
    ) -> Result<Option<Started<Work>>, Pause> {
        let Self { shared, n, .. } = self;
        // A drop may wait for a task, so the worker claims nothing before it has dropped all.
        if state.core.todo.ended.is_empty() {
            let most = own.pace.most(state.pace, now, shared.claim_time);
            let first = state.claim(*n, most, now, wakes);
            if first.is_some() {
                return Ok(first);
            }
        }
        // The claim may have cleared local queues, and so ended futures.
        if !state.core.todo.ended.is_empty() {
            state.core.drops(*n);
            return Err(Pause::Drops);
        }
        state.pace = own.pace.recent;
        let leaves = now.saturating_add(shared.idle);
        let leaves = *own.leaves.get_or_insert(leaves);
        // The keeper of the time stays until the next date. On a pool no worker rests.
        let until = state.core.clock.keep(*n);
        let until = until.or((now < leaves).then_some(leaves));
        let rests = matches!(shared.host, Host::Threads(_)) && !state.core.workers.must_leave();
        let Some(until) = until.filter(|_| rests) else {
            state.core.retire(*n);
            return Ok(None);
        };
        state.core.rest(*n, Some(waker.clone()));
        Err(Pause::Rest(shared.origin.checked_add(until)))
    }
}

/// What a worker that found nothing does before it looks again.
enum Pause {
    /// It drops the tasks that ended unrun in this hold.
    Drops,
    /// It rests, until then at most.
    Rest(Option<Instant>),
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        match self.stage {
            Stage::Left => {}
            Stage::Working => self
                .shared
                .with_state(|state, wakes, _| state.leave(self.n, wakes)),
            Stage::Requested => self
                .shared
                .with_state(|state, _, now| state.core.start_failed(self.n, now)),
        }
    }
}

/// How long a worker's recent tasks took. A worker claims no more tasks than fit into the claim
/// time: if tasks are long, or wait for each other, more gains nothing.
#[derive(Default)]
struct Pace {
    /// The time of its last claim.
    since: Duration,
    /// The time of a task: follows a longer one at once, and a shorter one gradually.
    recent: Option<Duration>,
}

impl Pace {
    /// It has run so many tasks since then.
    fn pause(&mut self, ran: u32, now: impl FnOnce() -> Duration) {
        if ran > 0 {
            let last = now().saturating_sub(self.since) / ran;
            let before = self.recent.unwrap_or_default();
            self.recent = Some(last.max(before / 4 * 3));
        }
    }

    /// How many tasks fit into the `claim_time`; asked at each claim. While it has run none, it
    /// uses what another worker measured `before`; one if nothing is known.
    fn most(&mut self, before: Option<Duration>, now: Duration, claim_time: Duration) -> u32 {
        self.since = now;
        self.recent = self.recent.or(before);
        self.recent.map_or(1, |recent| {
            let fit = claim_time.as_nanos() / recent.as_nanos().max(1);
            u32::try_from(fit).unwrap_or(u32::MAX).max(1)
        })
    }
}

/// What a worker keeps between tasks.
#[derive(Default)]
struct Own {
    pace: Pace,
    /// The last task, to be reported.
    ran: Option<Report>,
    kept: RunnerState,
    /// When it leaves, if it goes on resting; `None` before it rests.
    leaves: Option<Duration>,
}
