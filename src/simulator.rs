//! The scheduler in virtual time: the same decisions, no thread and no clock.
//!
//! A [`Simulation`] has callers, groups and workers as a [`Scheduler`](crate::scheduler::Scheduler)
//! has, on the same core. Its tasks only say how long they take. So you can try a workload with
//! other weights, caps, tiers or numbers of workers, exactly and without waiting, and a test of
//! your policy gives the same figures in every run.
//!
//! # One instant
//!
//! What falls on one instant happens in this order:
//! 1. Tasks arrive whose delay is over.
//! 2. Futures are woken.
//! 3. Tasks end or begin to await, by worker.
//! 4. The owner's calls (submissions, settings) take effect, in the order of the calls.
//! 5. When time is next told to move, dispatch: the idle worker with the lowest number takes a
//!    task, until no worker is idle or nothing is eligible.
//!
//! Tasks that take no time end at the same instant. All of this is repeated until nothing changes.
//!
//! # Example
//!
//! Two workers, two tiers: the second starts when the first is done.
//!
//! ```
//! use std::time::Duration;
//! use conversant::scheduler::CallerOptions;
//! use conversant::simulator::{Simulation, Work};
//!
//! let mut sim = Simulation::new(2)?;
//! let caller = sim.caller("etl", CallerOptions::default())?;
//! for tier in [1, 1, 1, 2] {
//!     sim.submit(caller, Work::takes(Duration::from_secs(10)).tier(tier))?;
//! }
//! sim.run();
//! assert_eq!(sim.now(), Duration::from_secs(30));
//! let last = sim.records().last().unwrap();
//! assert_eq!(last.run.unwrap().start, Duration::from_secs(20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod control;
mod driver;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod work;

use std::collections::BTreeMap;
use std::task::Poll;
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::error::{OutOfRange, Stalled};
use crate::limit::{Bypass, Limit};
use crate::queue::Capacity;
use crate::scheduler::{
    CallerOptions, Core, Reason, Record, Run, Started, Status, Summary, SyncError, Tag,
};
use crate::shown::shows;
use crate::slab::Key;
use crate::sync::Arc;
use crate::timers::Timers;
use crate::wait::WakeBatch;
use crate::workers::Action;

use work::{Job, Task};

pub use crate::scheduler::GroupId;
pub use driver::Driver;
pub use work::{CallerId, SimTask, Work};

/// A scheduler in virtual time, for some 584 years of it: later times in records are not right.
///
/// # Panics
///
/// Methods that take a [`CallerId`], or change a group, panic if it belongs to another simulation.
/// A submission to a group of another simulation is refused as to a foreign group, and a task of
/// another simulation is [`Stale`](crate::error::Stale).
pub struct Simulation {
    core: Core<Job>,
    now: Duration,
    idle: Option<Duration>,
    /// The tasks that run, by the time of their end and by worker, with their rows so far.
    ends: BTreeMap<(Duration, u32), Started<Job>>,
    /// The workers that rest, and when each will have rested long enough.
    rests: BTreeMap<u32, Duration>,
    /// When futures that await are woken.
    pauses: Timers<Key>,
    records: Vec<Record>,
    wakes: WakeBatch,
}

impl Simulation {
    /// A simulation with this many workers (1 to 1024) and the default bypass.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for the number of workers.
    pub fn new(workers: u32) -> Result<Self, OutOfRange> {
        Self::with_bypass(workers, Bypass::default())
    }

    /// The same with another bypass.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for the number of workers.
    pub fn with_bypass(workers: u32, bypass: Bypass) -> Result<Self, OutOfRange> {
        Ok(Self {
            core: Core::new(workers, bypass)?,
            now: Duration::ZERO,
            idle: None,
            ends: BTreeMap::new(),
            rests: BTreeMap::new(),
            pauses: Timers::new(),
            records: Vec::new(),
            wakes: WakeBatch::new(),
        })
    }

    /// Lets workers leave after they have rested this long; otherwise they never leave.
    #[must_use]
    pub fn with_idle(self, idle: Duration) -> Self {
        let idle = Some(idle);
        Self { idle, ..self }
    }

    /// The time, from zero.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// A new caller.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for its weight, cap or capacity.
    pub fn caller(&mut self, name: &str, options: CallerOptions) -> Result<CallerId, OutOfRange> {
        let key = self.core.add_caller(Arc::from(name), &options)?;
        let capacity = Capacity::under_a_lock(options.capacity)?;
        self.core.caller_mut(key).capacity = Arc::new(capacity);
        Ok(CallerId(self.core.number, key))
    }

    /// A new group of a caller.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for its limit. Panics for a caller of another simulation.
    pub fn group(
        &mut self,
        caller: CallerId,
        limit: impl Into<Limit>,
        level: u8,
    ) -> Result<GroupId, OutOfRange> {
        let key = self.key(caller);
        let key = self.core.add_group(key, limit.into(), level)?;
        Ok(self.core.name_of(key))
    }

    /// Submits a task at this instant.
    ///
    /// # Errors
    ///
    /// [`Reason`]: its tier goes down in its group, the group is another caller's, or the
    /// caller is full. Panics for a caller of another simulation.
    pub fn submit(&mut self, caller: CallerId, work: Work) -> Result<SimTask, Reason> {
        let caller = self.key(caller);
        let capacity = Arc::clone(&self.core.caller_mut(caller).capacity);
        let room = capacity.take(1)?;
        let mut placing = work.placing;
        if let Some(group) = work.group {
            let key = self.core.key_of(group);
            placing.group = Some(key.ok_or(Reason::ForeignGroup)?);
        }
        self.core.admits(caller, &placing)?;
        let job = Task::new(work);
        self.core.submit(caller, placing, job.clone(), self.now);
        room.keep();
        self.collect_unrun();
        Ok(SimTask {
            number: self.core.number,
            job,
            id: self.core.last,
        })
    }

    /// What runs, what waits, and why, at this instant.
    #[must_use]
    pub fn status(&self) -> Status {
        self.core.status(0)
    }

    /// The rows of the tasks that have ended, in order of their ends. A task that is queued after
    /// 2^64 nanoseconds, 584 years, is said to be queued then.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Takes out the rows that [`records`](Self::records) shows.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Lets time pass up to `then`. At `then` itself tasks end, but nothing is dispatched before
    /// time moves again. Does nothing if `then` is not in the future.
    pub fn advance_to(&mut self, then: Duration) {
        while self.step_to(then) {}
    }

    /// As [`advance_to`](Self::advance_to), but only up to the next instant at which a task ends,
    /// is due or is woken: true if that is before `then`.
    pub fn step_to(&mut self, then: Duration) -> bool {
        if then <= self.now {
            return false;
        }
        if self.dispatch() {
            return true;
        }
        let next = self.next_event().map_or(then, |next| next.min(then));
        self.move_to(next);
        next < then
    }

    /// Lets time pass until every task that can run has ended.
    pub fn run(&mut self) {
        while self.step() {}
    }

    /// As [`run`](Self::run), but only up to the next instant at which a task ends, is due or is
    /// woken: false if there is none. Then submit what the [ended](Self::take_records) let start. A
    /// scheduler with one worker and `claims(1)` has the same order, if each task submits this
    /// before it ends; but not always with tiers, or a limit or cap of 1, since until then the task
    /// holds its place.
    pub fn step(&mut self) -> bool {
        if self.dispatch() {
            return true;
        }
        let next = self.next_event();
        next.into_iter().for_each(|next| self.move_to(next));
        next.is_some()
    }

    /// Lets time pass until all tasks have ended that this caller has submitted since its last
    /// synchronize. At that instant nothing more is dispatched yet.
    ///
    /// # Errors
    ///
    /// [`SyncError`]: nothing is outstanding; or the wait is stalled, because something paused
    /// keeps a task from ending.
    pub fn synchronize(&mut self, caller: CallerId) -> Result<Summary, SyncError> {
        self.synchronize_by(caller, true)
    }

    /// The same; unless it `waits`, what has not ended by now is stalled.
    fn synchronize_by(&mut self, caller: CallerId, waits: bool) -> Result<Summary, SyncError> {
        let caller = self.key(caller);
        let mut synced = self.core.synchronize(caller);
        loop {
            if let Poll::Ready(gives) = synced {
                return gives;
            }
            let some_ended = self.dispatch();
            synced = self.core.caller_mut(caller).synced();
            if some_ended || synced.is_ready() {
                continue;
            }
            let Some(next) = self.next_event().filter(|_| waits) else {
                let _none = self.core.caller_mut(caller).reopen_epoch();
                return Err(SyncError::Stalled(Stalled));
            };
            self.move_to(next);
            synced = self.core.caller_mut(caller).synced();
        }
    }

    /// The key of a caller of this simulation.
    fn key(&self, CallerId(number, key): CallerId) -> Key {
        assert!(number == self.core.number, "a caller of another simulation");
        key
    }

    fn next_end(&self) -> Option<Duration> {
        self.ends.keys().next().map(|&(end, _)| end)
    }

    /// The key of a group of this simulation.
    fn group_key(&self, group: GroupId) -> GroupKey {
        let key = self.core.key_of(group);
        key.expect("a group of another simulation")
    }

    /// The next time at which a task ends, is due or is woken.
    fn next_event(&self) -> Option<Duration> {
        self.next_end()
            .into_iter()
            .chain(self.core.next_due())
            .chain(self.pauses.next())
            .min()
    }

    /// Moves time to `then`: tasks that are due arrive, futures are woken, and tasks that end then
    /// end, by worker.
    fn move_to(&mut self, then: Duration) {
        self.now = then;
        self.core.advance(then);
        self.pauses.advance(then);
        while let Some((_, future)) = self.pauses.due() {
            self.core.wake_task(future);
        }
        self.collect_unrun();
        self.retire_rested();
        while self.next_end() == Some(then)
            && let Some(((end, worker), started)) = self.ends.pop_first()
        {
            let Started {
                tag, job, record, ..
            } = started;
            let awaits = job.awaits();
            let ending = job.work.ending;
            match awaits {
                Some(pause) => self.await_again(worker, (tag, job), pause),
                None => {
                    job.ended();
                    self.core.finish(worker, tag, ending, end, &mut self.wakes);
                }
            }
            self.core.rest(worker, None);
            if let Some(idle) = self.idle {
                self.rests.insert(worker, end.saturating_add(idle));
            }
            if let Some(mut row) = record.filter(|_| awaits.is_none()) {
                (row.ended, row.ending) = (end, ending);
                self.records.push(*row);
            }
        }
        self.collect_unrun();
    }

    /// A future was polled, and awaits for `pause`.
    fn await_again(&mut self, worker: u32, (tag, job): (Tag, Job), pause: Duration) {
        let since = self.now.saturating_sub(job.work.takes);
        let polled = ((tag, job.clone()), pause.is_zero());
        let times = (since, self.now);
        let awaits = self.core.suspend_one(polled, worker, times);
        let awaits = awaits && pause < Duration::MAX;
        let wakes = tag.future.filter(|_| awaits);
        let at = self.now.saturating_add(pause);
        job.progress.lock().pause = wakes.map(|future| self.pauses.set(at, future));
    }

    /// Idle workers take one eligible task each; those that take no time end at once. Returns
    /// whether some have ended.
    fn dispatch(&mut self) -> bool {
        while let Some(Action::Start(n) | Action::Wake(n)) = self.core.next_action() {
            self.take(n);
        }
        let some_end = self.next_end() == Some(self.now);
        some_end.then(|| self.move_to(self.now)).is_some()
    }

    fn take(&mut self, worker: u32) {
        self.rests.remove(&worker);
        let Some(mut started) = self.core.claim(worker, self.now) else {
            self.core.retire(worker);
            return;
        };
        let start = self.now;
        let end = start.saturating_add(started.job.work.takes);
        started.record.iter_mut().for_each(|row| {
            let start = row.run.map_or(start, |run| run.start);
            row.run = Some(Run { worker, start, end });
        });
        self.ends.insert((end, worker), started);
    }

    fn retire_rested(&mut self) {
        let (core, now) = (&mut self.core, self.now);
        self.rests.retain(|worker, until| {
            let stays = *until > now;
            if !stays {
                core.retire(*worker);
            }
            stays
        });
    }

    /// Collects the rows of tasks that ended without running.
    fn collect_unrun(&mut self) {
        for ended in std::mem::take(&mut self.core.todo.ended) {
            let pause = ended.job.ended().into_iter();
            pause.for_each(|pause| _ = self.pauses.cancel(pause));
            self.core.dropped(ended.tag, ended.ending, &mut self.wakes);
            self.records.extend(ended.record.map(|row| *row));
        }
    }
}

shows!(Simulation, |this| now: this.now, running: this.ends.len());
