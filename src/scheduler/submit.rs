//! How tasks are submitted: one, or many at one instant.

use std::any::Any;
use std::iter::once;
use std::time::Duration;

use crate::queue::{Permits, SendReason};
use crate::sync::{Arc, Ordering::Relaxed};

use super::bodies::{Batch, DetachedBatch, TaskBatch};
use super::cell::{Cell, DetachedCell, Function, Job, Program};
use super::handles::{Caller, Group, Place, Registration};
use super::log::{Event, Record, TaskInfo};
use super::outcome::{Ending, TaskId};
use super::reject::{Reason, Rejected};
use super::submissions::To;
use super::task::Task;
use super::task_state::{Body, Kind, Placing, Waiting, nanos};

impl Caller {
    /// Submits a task in tier 0 and a group of its own.
    ///
    /// # Errors
    ///
    /// As [`exec_with`](Self::exec_with).
    pub fn exec<F, R, E>(&self, f: F) -> Result<Task<R, E>, Rejected<F>>
    where
        F: FnOnce() -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.exec_with(Place::new(), f)
    }

    /// Submits a task. Never waits.
    ///
    /// # Errors
    ///
    /// The function comes back, with the [`Reason`].
    pub fn exec_with<F, R, E>(&self, place: Place<'_>, f: F) -> Result<Task<R, E>, Rejected<F>>
    where
        F: FnOnce() -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.submit_one(place, Function(f), None)
    }

    /// Submits a task without a handle, for half of what it costs to [detach](Task::detach) one:
    /// the memory of its body is used again for tasks of its type (some hundred small ones are
    /// kept for that). While all workers are busy, and there is no log, it reads no clock; as the
    /// time of its submission a status then shows when a worker had last looked before. Where a
    /// worker must be sent for, in tiers and with a delay, it takes the scheduler's lock, which
    /// reads the clock once, as each report of a worker does. The times of its run are not
    /// measured.
    ///
    /// # Errors
    ///
    /// As [`exec_with`](Self::exec_with).
    pub fn exec_detached<F, R, E>(&self, place: Place<'_>, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.submit_detached(place, Function(f))
    }

    /// Submits what is to be run, with the room that it takes if that is there already.
    pub(super) fn submit_one<P: Program>(
        &self,
        place: Place<'_>,
        program: P,
        room: Option<Permits<'_>>,
    ) -> Result<TaskOf<P>, Rejected<P::Given>> {
        let cell = Arc::new(Cell::new(program, place.shared_label()));
        let kind = Kind::of(&*cell, true);
        let job = TaskBatch(once(Arc::clone(&cell) as Arc<dyn Job>));
        match self.submit(place, job, kind, room) {
            Ok((id, queued)) => Ok(self.handle(id, queued, cell)),
            Err(refusal) => Err(only::<P>(refusal)),
        }
    }

    /// As [`submit_one`](Self::submit_one), without a handle.
    #[inline]
    pub(super) fn submit_detached<P: Program>(
        &self,
        place: Place<'_>,
        program: P,
    ) -> Result<(), Rejected<P::Given>> {
        let cell = DetachedCell::new(program, place.shared_label());
        let kind = Kind::of(&cell, false);
        match self.submit(place, DetachedBatch(once(cell)), kind, None) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(only::<P>(refusal)),
        }
    }

    /// Submits many tasks at once, all to this place: all of them arrive at one
    /// instant, or none does. The handles come in the same order. With no task at
    /// all there is nothing to refuse.
    ///
    /// Cheaper than one by one, since it takes the scheduler's lock once and sends
    /// for workers once; but it keeps that lock for as long as all of them take,
    /// about a fifth of a microsecond each. The iterator runs before.
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
    /// The functions come back, all of them, with the [`Reason`].
    pub fn exec_all<F, R, E>(
        &self,
        place: Place<'_>,
        tasks: impl IntoIterator<Item = F>,
    ) -> Result<Vec<Task<R, E>>, Rejected<Vec<F>>>
    where
        F: FnOnce() -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        let label = place.shared_label();
        let cell = |f| Arc::new(Cell::new(Function(f), label.clone()));
        let cells: Vec<_> = tasks.into_iter().map(cell).collect();
        let Some(first) = cells.first() else {
            return Ok(Vec::new());
        };
        let kind = Kind::of(&**first, true);
        let jobs = cells.iter().map(|cell| Arc::clone(cell) as Arc<dyn Job>);
        let submitted = self.submit(place, TaskBatch(jobs), kind, None);
        let (first, queued) = submitted.map_err(all::<Function<F>>)?;
        let ids = (first.0..).map(TaskId);
        let tasks = ids.zip(cells);
        Ok(tasks
            .map(|(id, cell)| self.handle(id, queued, cell))
            .collect())
    }

    /// As [`exec_all`](Self::exec_all) of tasks that nobody will ask for; see
    /// [`exec_detached`](Self::exec_detached).
    ///
    /// # Errors
    ///
    /// The functions come back, all of them, with the [`Reason`].
    pub fn exec_all_detached<F, R, E>(
        &self,
        place: Place<'_>,
        tasks: impl IntoIterator<Item = F>,
    ) -> Result<(), Rejected<Vec<F>>>
    where
        F: FnOnce() -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        let label = place.shared_label();
        let cell = |f| DetachedCell::new(Function(f), label.clone());
        let solos: Vec<_> = tasks.into_iter().map(cell).collect();
        let Some(first) = solos.first() else {
            return Ok(());
        };
        let kind = Kind::of(first, false);
        let submitted = self.submit(place, DetachedBatch(solos.into_iter()), kind, None);
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

    /// Takes all of them, or none, with their room if that is there already: the number of
    /// the first, and when, if there are handles.
    #[inline]
    fn submit(
        &self,
        place: Place<'_>,
        mut batch: impl Batch,
        kind: Kind,
        room: Option<Permits<'_>>,
    ) -> Result<Name, Refusal> {
        let Registration { shared, key, .. } = &*self.0;
        let mut permits = room;
        if permits.is_none() && self.0.capacity.is_limited() {
            match self.take_room(batch.len()) {
                Ok(taken) => permits = Some(taken),
                Err(reason) => return Err((reason.into(), batch.make())),
            }
        }
        let mut is_plain = place.placing.is_plain();
        if let Some(Group(g)) = place.group {
            if g.caller != *key || !Arc::ptr_eq(&g.shared, shared) {
                return Err((Reason::ForeignGroup, batch.make()));
            }
            is_plain &= g.row.is_some();
        }
        let is_plain = is_plain && shared.log.is_none();
        let posted = match is_plain {
            true => self.post(place, &mut batch, kind),
            false => Err(batch.make()),
        };
        let name = match posted {
            Ok(name) => name,
            Err(jobs) => self.submit_now(place.placing, kind, jobs)?,
        };
        permits.into_iter().for_each(Permits::keep);
        Ok(name)
    }

    /// Room for so many, also that of tasks whose endings only their workers know.
    fn take_room(&self, tasks: usize) -> Result<Permits<'_>, SendReason> {
        match self.0.capacity.take(tasks) {
            Err(SendReason::Full) => {
                self.0.shared.read_exact(|_| ());
                self.0.capacity.take(tasks)
            }
            taken => taken,
        }
    }

    /// Posts all of them, or none: of tier 0, without a delay, and there is no log.
    #[inline]
    fn post(
        &self,
        place: Place<'_>,
        batch: &mut impl Batch,
        kind: Kind,
    ) -> Result<Name, Vec<Arc<dyn Job>>> {
        let (shared, may_post) = (&*self.0.shared, &*self.0.may_post);
        let now = move || kind.is_named().then(|| shared.origin.elapsed());
        let may_post = || may_post.load(Relaxed);
        let to = To {
            caller: self.0.key,
            row: place.group.and_then(|Group(group)| group.row.as_ref()),
            placing: place.placing,
            kind,
        };
        let posted = shared.submissions.post(&to, batch, now, may_post);
        posted.map(|(first, queued)| (first, queued.unwrap_or_default()))
    }

    /// The same as an event; or as two, of which the log is told in between.
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
        let announced = self.0.shared.with_state(|state, _, now| {
            state.core.admits(self.0.key, &placing)?;
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
        let tell = |event| self.0.shared.tell(event);
        infos.clone().map(Event::Queued).for_each(tell);
        let placed = self.place_now(placing, kind, jobs, Some((first.id, first.queued)));
        if placed.is_err() {
            let gone = infos.map(|task| Record {
                task,
                run: None,
                ended: self.0.shared.origin.elapsed(),
                ending: Ending::Cancelled,
            });
            gone.map(Event::Ended).for_each(tell);
        }
        placed
    }

    /// Puts tasks where they wait, that were announced if they have a name already.
    fn place_now(
        &self,
        placing: Placing,
        kind: Kind,
        jobs: Vec<Arc<dyn Job>>,
        announced: Option<Name>,
    ) -> Result<Name, Refusal> {
        let tasks = jobs.len();
        let submitted = self.0.shared.with_state(|state, wakes, now| {
            let core = &mut state.core;
            let (first, queued) = match announced {
                Some(name) => name,
                None => match core.admits(self.0.key, &placing) {
                    Ok(()) => (core.announce(self.0.key, jobs.len() as u64), now),
                    Err(reason) => return Err((reason, jobs)),
                },
            };
            let alone = !core.has_workers();
            for (id, job) in (first.0..).map(TaskId).zip(jobs) {
                let task = Waiting::new(id, kind, nanos(queued), job);
                let at = core.place(self.0.key, placing, task, queued);
                if announced.is_some() {
                    core.underway -= 1;
                    // It has been meanwhile.
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

    /// Takes so many tasks back, from the first on, for which there was no worker, if the
    /// requested one is not there, because it could not be started. Checked before anything more
    /// is due: for that no worker was requested yet.
    fn take_stranded(&self, first: TaskId, tasks: usize) -> Option<Vec<Arc<dyn Job>>> {
        let state = self.0.shared.state.lock();
        if !state.core.calls_for_workers() || state.core.has_workers() {
            return None;
        }
        self.0.shared.with_locked(state, false, |state, wakes, _| {
            let these = first..TaskId(first.0 + tasks as u64);
            let core = &mut state.core;
            let there = core.find_waiting(Some(self.0.key), |task, _| these.contains(&task.id()));
            let mut all = || there.iter().map(|&at| core.retract(at, wakes)).collect();
            if there.len() == tasks { all() } else { None }
        })
    }
}

/// The handle of a task that runs this.
type TaskOf<P> = Task<<P as Program>::Ok, <P as Program>::Error>;

/// What handles know of tasks that were submitted together: the first one's number, and
/// when.
type Name = (TaskId, Duration);

/// Why tasks were not taken.
type Refusal = (Reason, Vec<Arc<dyn Job>>);

/// What was handed in, of the only one, which was refused.
#[cold]
fn only<P: Program>(refusal: Refusal) -> Rejected<P::Given> {
    let Rejected { mut task, reason } = all::<P>(refusal);
    let task = task.pop().expect("a refused task was never run");
    Rejected { task, reason }
}

/// What was handed in.
#[cold]
fn all<P: Program>((reason, jobs): Refusal) -> Rejected<Vec<P::Given>> {
    let programs = jobs.into_iter().filter_map(reclaim::<P>);
    let task = programs.map(P::back).collect();
    Rejected { task, reason }
}

/// What was to be run in a body of this type, if it did not run.
fn reclaim<P: Program>(job: Arc<dyn Job>) -> Option<P> {
    let job: Arc<dyn Any + Send + Sync> = job;
    match job.downcast::<Cell<P>>() {
        Ok(cell) => cell.take(),
        Err(job) => job.downcast::<DetachedCell<P>>().ok()?.take(),
    }
}
