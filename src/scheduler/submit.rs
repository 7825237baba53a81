//! Submitting tasks: one, or many at one instant.

use std::any::Any;
use std::iter::once;
use std::time::Duration;

use crate::queue::{Permits, SendReason};
use crate::sync::{Arc, Ordering::Relaxed};

use super::bodies::{Batch, DetachedBatch, TaskBatch};
use super::cell::{Cell, DetachedCell, Function, Job, Program};
use super::clock::nanos;
use super::handles::{Caller, Group, Place, Registration};
use super::log::{Event, Record, TaskInfo};
use super::outcome::{Ending, TaskId, TaskResult};
use super::reject::{Reason, Rejected};
use super::submissions::To;
use super::task::Task;
use super::task_state::{Body, Kind, Placing, Waiting};

impl Caller {
    /// Submits a task in tier 0 and a group of its own. It returns a `Result`, or `()` if it cannot
    /// fail.
    ///
    /// # Errors
    ///
    /// Like [`exec_with`](Self::exec_with).
    pub fn exec<F, T>(&self, f: F) -> Result<Task<T::Ok, T::Error>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskResult,
    {
        self.exec_with(Place::new(), f)
    }

    /// Submits a task. Never waits.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the function.
    pub fn exec_with<F, T>(
        &self,
        place: Place<'_>,
        f: F,
    ) -> Result<Task<T::Ok, T::Error>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskResult,
    {
        self.submit_one(place, Function(f), None)
    }

    /// Submits a task without a handle, at half of the cost of [detaching](Task::detach) one: the
    /// memory of tasks that have ended is reused for tasks of the same type. Some hundred small
    /// blocks are kept; a task that finds none costs nearly as much as one with a handle.
    ///
    /// While all workers are busy and there is no log, it reads no clock; a status then shows, as
    /// the time of its submission, when a worker last looked. If a worker must be started or
    /// woken, in tiers and with a delay, it takes the scheduler's lock, which reads the clock once.
    /// The times of its run are not measured.
    ///
    /// # Errors
    ///
    /// Like [`exec_with`](Self::exec_with).
    pub fn exec_detached<F, T>(&self, place: Place<'_>, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskResult,
    {
        self.submit_detached(place, Function(f))
    }

    /// Submits a program, with its `room` if that was taken already.
    pub(super) fn submit_one<P: Program>(
        &self,
        place: Place<'_>,
        program: P,
        room: Option<Permits<'_>>,
    ) -> Result<TaskOf<P>, Rejected<P::Given>> {
        let cell = Arc::new(Cell::new(program, place.shared_label()));
        let job = TaskBatch(once(Arc::clone(&cell) as Arc<dyn Job>));
        let submitted = self.submit::<P>(place, job, true, room);
        let (id, queued) = submitted.map_err(only::<P>)?;
        Ok(self.handle(id, queued, cell))
    }

    /// Like [`submit_one`](Self::submit_one), without a handle.
    #[inline]
    pub(super) fn submit_detached<P: Program>(
        &self,
        place: Place<'_>,
        program: P,
    ) -> Result<(), Rejected<P::Given>> {
        let cell = DetachedCell::new(program, place.shared_label());
        let submitted = self.submit::<P>(place, DetachedBatch(once(cell)), false, None);
        submitted.map(drop).map_err(only::<P>)
    }

    /// Submits many tasks to one place: all of them arrive at one instant, or none does. The
    /// handles come in the same order. Without any task it always succeeds.
    ///
    /// Cheaper than one by one: it takes the scheduler's lock once, and looks for workers once. It
    /// holds the lock for about a fifth of a microsecond a task. The iterator runs before that.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Place, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(2).build()?;
    /// let caller = scheduler.caller("squares", CallerOptions::default())?;
    /// let squares = (0..100_u64).map(|n| move || Ok::<_, String>(n * n));
    /// let tasks = caller.exec_all(Place::new(), squares)?;
    /// assert_eq!(tasks.len(), 100);
    /// assert!(caller.synchronize().wait()?.all_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejected`], with all the functions.
    #[allow(
        clippy::type_complexity,
        reason = "an alias would hide what comes back"
    )]
    pub fn exec_all<F, T>(
        &self,
        place: Place<'_>,
        tasks: impl IntoIterator<Item = F>,
    ) -> Result<Vec<Task<T::Ok, T::Error>>, Rejected<Vec<F>>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskResult,
    {
        let label = place.shared_label();
        let cell = |f| Arc::new(Cell::new(Function(f), label.clone()));
        let cells: Vec<_> = tasks.into_iter().map(cell).collect();
        let jobs = cells.iter().map(|cell| Arc::clone(cell) as Arc<dyn Job>);
        let submitted = self.submit::<Function<F>>(place, TaskBatch(jobs), true, None);
        let (first, queued) = submitted.map_err(all::<Function<F>>)?;
        let ids = (first.0..).map(TaskId);
        let tasks = ids.zip(cells);
        Ok(tasks
            .map(|(id, cell)| self.handle(id, queued, cell))
            .collect())
    }

    /// Like [`exec_all`](Self::exec_all), without handles; see
    /// [`exec_detached`](Self::exec_detached).
    ///
    /// # Errors
    ///
    /// [`Rejected`], with all the functions.
    pub fn exec_all_detached<F, T>(
        &self,
        place: Place<'_>,
        tasks: impl IntoIterator<Item = F>,
    ) -> Result<(), Rejected<Vec<F>>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskResult,
    {
        let label = place.shared_label();
        let cell = |f| DetachedCell::new(Function(f), label.clone());
        let cells: Vec<_> = tasks.into_iter().map(cell).collect();
        let batch = DetachedBatch(cells.into_iter());
        let submitted = self.submit::<Function<F>>(place, batch, false, None);
        submitted.map(drop).map_err(all::<Function<F>>)
    }

    fn handle<P: Program>(&self, id: TaskId, queued: Duration, body: Arc<Cell<P>>) -> TaskOf<P> {
        Task {
            shared: Arc::clone(&self.0.shared),
            id,
            queued,
            body,
        }
    }

    /// Submits all of a batch, or none, with their `room` if that was taken already; with handles
    /// if they are `named`. Posts them if it may: in tier 0, without a delay, and without a log.
    /// Returns the number of the first, and the time if there are handles.
    #[inline]
    fn submit<P: Program>(
        &self,
        place: Place<'_>,
        mut batch: impl Batch,
        named: bool,
        room: Option<Permits<'_>>,
    ) -> Result<Name, Refusal> {
        if batch.len() == 0 {
            return Ok(Name::default());
        }
        let Registration { shared, key, .. } = &*self.0;
        let mut permits = room;
        if permits.is_none() && self.0.capacity.is_limited() {
            match self.take_room(batch.len()) {
                Ok(taken) => permits = Some(taken),
                Err(reason) => return Err((reason.into(), batch.make())),
            }
        }
        let (mut is_plain, mut group) = (place.placing.is_plain(), None);
        if let Some(Group(g)) = place.group {
            if g.caller != *key || !Arc::ptr_eq(&g.shared, shared) {
                return Err((Reason::ForeignGroup, batch.make()));
            }
            group = g.posted.as_ref();
            is_plain &= group.is_some();
        }
        let is_plain = is_plain && shared.log.is_none();
        let kind = Kind::new(named, P::IS_FUTURE, place.label.is_some());
        let posted = match is_plain {
            true => {
                let (shared, may_post) = (&**shared, &*self.0.may_post);
                let now = move || kind.is_named().then(|| shared.origin.elapsed());
                let may_post = || may_post.load(Relaxed);
                let to = To {
                    caller: *key,
                    group,
                    placing: place.placing,
                    kind,
                };
                let posted = shared.submissions.post(&to, &mut batch, now, may_post);
                posted.map(|(first, queued)| (first, queued.unwrap_or_default()))
            }
            false => Err(batch.make()),
        };
        let name = match posted {
            Ok(name) => name,
            Err(jobs) => self.submit_now(place.placing, kind, jobs)?,
        };
        permits.into_iter().for_each(Permits::keep);
        Ok(name)
    }

    /// Room for so many tasks, also the room of tasks whose endings were not reported yet.
    fn take_room(&self, tasks: usize) -> Result<Permits<'_>, SendReason> {
        match self.0.capacity.take(tasks) {
            Err(SendReason::Full) => {
                self.0.shared.read_exact(|_| ());
                self.0.capacity.take(tasks)
            }
            taken => taken,
        }
    }

    /// Submits tasks in one event, or with a log in two, between which it calls the log.
    #[inline(never)]
    fn submit_now(
        &self,
        placing: Placing,
        kind: Kind,
        jobs: Vec<Arc<dyn Job>>,
    ) -> Result<Name, Refusal> {
        if self.0.shared.log.is_none() {
            return self.place_now(placing, kind, jobs, None);
        }
        let announced = self.0.shared.with_state(|state, wakes, now| {
            state.admits(self.0.key, &placing, wakes)?;
            let first = state.core.announce(self.0.key, jobs.len() as u64);
            state.core.underway += jobs.len() as u64;
            let holds = state.core.would_hold(self.0.key, &placing);
            let label = jobs.first().and_then(|job| job.label());
            Ok(state.core.info(first, label, holds, now))
        });
        let first = match announced {
            Ok(first) => first,
            Err(reason) => return Err((reason, jobs)),
        };
        let ids = (first.id.0..).take(jobs.len()).map(TaskId);
        let infos = ids.map(|id| TaskInfo {
            id,
            ..first.clone()
        });
        let log = |event| self.0.shared.log_event(event);
        infos.clone().map(Event::Queued).for_each(log);
        let placed = self.place_now(placing, kind, jobs, Some((first.id, first.queued)));
        if placed.is_err() {
            let gone = infos.map(|task| Record {
                task,
                run: None,
                ended: self.0.shared.origin.elapsed(),
                ending: Ending::Cancelled,
            });
            gone.map(Event::Ended).for_each(log);
        }
        placed
    }

    /// Puts tasks where they wait. If they have a name, they were announced before.
    fn place_now(
        &self,
        placing: Placing,
        kind: Kind,
        jobs: Vec<Arc<dyn Job>>,
        announced: Option<Name>,
    ) -> Result<Name, Refusal> {
        let tasks = jobs.len();
        let submitted = self.0.shared.with_state(|state, wakes, now| {
            let (first, queued) = match announced {
                Some(name) => name,
                None => match state.admits(self.0.key, &placing, wakes) {
                    Ok(()) => (state.core.announce(self.0.key, jobs.len() as u64), now),
                    Err(reason) => return Err((reason, jobs)),
                },
            };
            let core = &mut state.core;
            let alone = !core.has_workers();
            for (id, job) in (first.0..).map(TaskId).zip(jobs) {
                let task = Waiting::new(id, kind, nanos(queued), job);
                let at = core.place(self.0.key, placing, task, queued);
                if announced.is_some() {
                    core.underway -= 1;
                    // It was cancelled since it was announced.
                    if id <= core.cancelled.max(core.caller(self.0.key).cancelled) {
                        core.cancel(at, now);
                    }
                }
            }
            if core.is_undercut(self.0.key) {
                state.exact(wakes);
            }
            Ok(((first, queued), alone))
        });
        let (name, alone) = submitted?;
        let stranded = alone.then(|| self.take_stranded(name.0, tasks));
        match stranded.flatten() {
            Some(jobs) => Err((Reason::NoWorker, jobs)),
            None => Ok(name),
        }
    }

    /// Takes tasks back, from the first of them on, if there was no worker for them and the
    /// requested one could not be started; none if one of them has begun. Checked before more tasks
    /// become due: no worker was requested for those yet.
    fn take_stranded(&self, first: TaskId, tasks: usize) -> Option<Vec<Arc<dyn Job>>> {
        let state = self.0.shared.lock();
        if !state.core.calls_for_workers() || state.core.has_workers() {
            return None;
        }
        self.0.shared.with_locked(state, false, |state, wakes, _| {
            let these = first..TaskId(first.0 + tasks as u64);
            let core = &mut state.core;
            let there = core.find_waiting(Some(self.0.key), |task, _| {
                these.contains(&task.id()) && !core.has_begun(task)
            });
            if there.len() < tasks {
                return None;
            }
            there.iter().map(|&at| core.retract(at, wakes)).collect()
        })
    }
}

/// The handle of a task with this program.
type TaskOf<P> = Task<<P as Program>::Ok, <P as Program>::Error>;

/// The number of the first of the tasks that were submitted together, and when they were.
type Name = (TaskId, Duration);

/// Why tasks were refused, and these tasks.
type Refusal = (Reason, Vec<Arc<dyn Job>>);

/// The rejection of a single task.
#[cold]
fn only<P: Program>(refusal: Refusal) -> Rejected<P::Given> {
    let Rejected { mut task, reason } = all::<P>(refusal);
    let task = task.pop().expect("a refused task was never run");
    Rejected { task, reason }
}

/// The rejection of several tasks.
#[cold]
fn all<P: Program>((reason, jobs): Refusal) -> Rejected<Vec<P::Given>> {
    let programs = jobs.into_iter().filter_map(reclaim::<P>);
    let task = programs.map(P::back).collect();
    Rejected { task, reason }
}

/// The program of a body of this type, if it did not run.
fn reclaim<P: Program>(job: Arc<dyn Job>) -> Option<P> {
    let job: Arc<dyn Any + Send + Sync> = job;
    match job.downcast::<Cell<P>>() {
        Ok(cell) => cell.take(),
        Err(job) => job.downcast::<DetachedCell<P>>().ok()?.take(),
    }
}
