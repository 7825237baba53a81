//! The workers: threads of our own, or jobs on the embedder's pool. A worker takes the
//! scheduler's lock at most once a task: to report one and claim the next, or several
//! (`state`).
//!
//! Before it sleeps a worker that found nothing looks for its wake-up for about 2 us,
//! as every wait of the crate does. Measured with 0, 2, 5 and 20 us (pinned, medians):
//! a task that comes within that time begins after 2.5 us, else after 7.5, and after
//! 100 us of rest 7.9 to 8.1 with each of them. But where two threads submit beside two
//! workers on two processors, a task of nothing took 1.4 and 1.5 us with 0 and 2, and
//! 2.1 and 1.9 with 5 and 20: hence 2.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::sync::{Arc, Builder as ThreadBuilder};
use crate::wait::{Op, Wait, WakeBatch, drop_quietly, look_twice, sealed};

use super::current::Working;
use super::local_queue::Report;
use super::perform::{RunnerState, perform};
use super::pool::{Host, Threads};
use super::shared::Shared;
use super::state::{State, Taken};

/// Starts worker `n`; if that cannot be done its number is given back.
pub(super) fn start(shared: &Arc<Shared>, n: u32) {
    let handle = WorkerHandle {
        shared: Arc::clone(shared),
        n,
        stage: Stage::Requested,
    };
    let sent = match &shared.host {
        Host::Threads(threads) => {
            let named = ThreadBuilder::new().name(format!("{}-{n}", threads.name));
            let shared = Arc::clone(shared);
            let started = named.spawn(move || Threads::run(&shared.host, n, || handle.work()));
            started.map(drop).map_err(|error| error.to_string())
        }
        Host::Pool(pool) => {
            let job = Box::new(move || handle.work());
            let sent = catch_unwind(AssertUnwindSafe(|| pool.submit(job)));
            match sent {
                Ok(sent) => sent.map_err(|error| error.to_string()),
                Err(payload) => {
                    drop_quietly(payload);
                    Err(String::from("the pool panicked"))
                }
            }
        }
    };
    if let Err(why) = sent {
        shared.state.lock().core.start_error = Some(why);
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
        let mut own = Own::default();
        while let Some(taken) = self.next(&mut own) {
            let Own { pace, kept, .. } = &mut own;
            kept.late = false;
            let ran = perform(&self.shared, self.n, taken, kept);
            // Before the lock, for which it may wait.
            pace.pause(std::mem::take(&mut kept.ran), || match kept.late {
                true => self.shared.origin.elapsed(),
                false => ran.end,
            });
            own.ran = Some(ran);
        }
        self.stage = Stage::Left;
    }

    /// Reports the last task and takes the next, or several; `None` if the worker has
    /// left.
    fn next(&self, own: &mut Own) -> Option<Taken> {
        own.leaves = None;
        loop {
            let ends = Cell::new(None);
            let mut wait = Wait::new(Next {
                shared: &self.shared,
                n: self.n,
                own,
                ends: &ends,
                fresh: true,
            });
            let found = wait.wait_at_most(|| ends.get());
            drop(wait);
            match found {
                Ok(Some(taken)) => return Some(taken),
                _ if own.left => return None,
                _ => {}
            }
        }
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        match self.stage {
            Stage::Left => {}
            Stage::Working => {
                let leave =
                    |state: &mut State, wakes: &mut WakeBatch, _| state.leave(self.n, wakes);
                self.shared.with_state(leave);
            }
            Stage::Requested => self.shared.start_failed(self.n),
        }
    }
}

/// How long a worker's recent tasks took. A worker prefetches no more than lasts it for the
/// claim time: where tasks are long, or wait for each other, more gains nothing.
#[derive(Default)]
struct Pace {
    /// When it claimed last.
    since: Duration,
    /// What each took: at once if that is more than before, else by and by.
    recent: Option<Duration>,
}

impl Pace {
    /// It has run so many since then.
    fn pause(&mut self, ran: u32, now: impl FnOnce() -> Duration) {
        if ran > 0 {
            let last = now().saturating_sub(self.since) / ran;
            let before = self.recent.unwrap_or_default();
            self.recent = Some(last.max(before / 4 * 3));
        }
    }

    /// How many tasks last for the `claim_time`: as those of another worker took `before`, as
    /// long as it has run none; one, if nothing is known. Asked at each claim.
    fn most(&mut self, before: Option<Duration>, now: Duration, claim_time: Duration) -> u32 {
        self.since = now;
        self.recent = self.recent.or(before);
        self.recent.map_or(1, |recent| {
            let fit = claim_time.as_nanos() / recent.as_nanos().max(1);
            u32::try_from(fit).unwrap_or(u32::MAX).max(1)
        })
    }
}

/// What a worker has from one task to the next.
#[derive(Default)]
struct Own {
    pace: Pace,
    /// The last task, which is to be reported.
    ran: Option<Report>,
    kept: RunnerState,
    /// When it has rested for long enough to leave; not known before it must.
    leaves: Option<Duration>,
    /// When the next task is due, if it keeps the time.
    until: Option<Duration>,
    left: bool,
}

/// The wait of a worker for its next task; on a pool it never lasts. When it times out the worker
/// leaves, if it has rested for long enough and does not keep the time. The first
/// poll reports the task before. Gives nothing if the worker has left; or keeps the time
/// from now on, for which it must rest anew.
struct Next<'a> {
    shared: &'a Arc<Shared>,
    n: u32,
    own: &'a mut Own,
    /// When to wake up if nobody wakes it: never if that is no date.
    ends: &'a Cell<Option<Instant>>,
    /// Before the end of the first poll, from which its deadline follows.
    fresh: bool,
}

impl Next<'_> {
    fn find(
        &mut self,
        state: &mut State,
        (fresh, cloned): (bool, &mut Option<Waker>),
        now: Duration,
        wakes: &mut WakeBatch,
    ) -> Option<Option<Taken>> {
        let Self { shared, n, .. } = *self;
        let own = &mut *self.own;
        let most = own.pace.most(state.pace, now, shared.claim_time);
        if let Some(taken) = state.claim(n, most, now, wakes) {
            return Some(Some(taken));
        }
        state.pace = own.pace.recent;
        // On a pool none rests.
        let rests = matches!(shared.host, Host::Threads(_));
        if !rests || state.core.workers.must_leave() {
            state.core.retire(n);
            own.left = true;
            return Some(None);
        }
        let before = std::mem::replace(&mut own.until, state.core.clock.keep(n));
        let sooner = |due| before.is_none_or(|before| due < before);
        if !fresh && own.until.is_some_and(sooner) {
            return Some(None);
        }
        let leaves = now.saturating_add(shared.idle);
        let leaves = *own.leaves.get_or_insert(leaves);
        let ends = own.until.unwrap_or(leaves);
        self.ends.set(shared.origin.checked_add(ends));
        if let Some(waker) = cloned.take() {
            *cloned = state.core.rest(n, Some(waker));
        }
        None
    }
}

impl sealed::Sealed for Next<'_> {}

impl Op for Next<'_> {
    type Output = Option<Taken>;

    /// One hold of the lock: records the ending, and finds the next task, unless the worker
    /// has it already.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared;
        let fresh = std::mem::take(&mut self.fresh);
        look_twice(cx, |_, cloned| {
            let Own { ran, kept, .. } = &mut *self.own;
            let (ran, to_wake) = (ran.take(), kept.to_wake.take());
            let mut session = shared.state.lock();
            session.posting.bodies.take_in(&mut kept.bodies);
            let found = shared.with_locked(session, true, |state, wakes, now| {
                wakes.extend(to_wake);
                let more = ran.and_then(|ran| state.finish(self.n, ran, now, wakes));
                match more {
                    Some(taken) => Some(Some(taken)),
                    None => self.find(state, (fresh, cloned), now, wakes),
                }
            });
            found.map(Poll::Ready)
        })
    }

    fn cancel(&mut self) {
        let Self { shared, n, .. } = *self;
        shared.with_state(|state, _, now| {
            let rested = self.own.leaves.is_some_and(|leaves| leaves <= now);
            if rested && !state.core.clock.keeps(n) {
                state.core.retire(n);
                self.own.left = true;
            }
        });
    }
}
