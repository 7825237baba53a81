//! How tasks are submitted: one, or many at one instant.

use std::iter::once;
use std::time::Duration;

use crate::queue::Permits;
use crate::slab::Key;
use crate::sync::{Arc, Ordering::Relaxed};

use super::cell::{Cell, Function, Job, Program};
use super::handles::{Caller, Place};
use super::outcome::TaskId;
use super::placing::Placing;
use super::reject::{Reason, Rejected};
use super::task::Task;

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
        self.submit_one(place, Function(f), |Function(f)| f, true)
            .map(|one| self.handle(one))
    }

    /// Submits a task that nobody will ask for. No handle is made and, without a log, no
    /// clock is read: that costs an eighth less than to [detach](Task::detach) it. A
    /// status says when the scheduler heard of it, which may be when the next worker is
    /// done with what it has.
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
        self.submit_one::<_, _, R, E>(place, Function(f), |Function(f)| f, false)
            .map(drop)
    }

    /// Submits what is to be run; if it is refused, `back` makes of it what was given.
    /// Somebody wants to know when, if it is `timed`.
    pub(super) fn submit_one<P, T, R, E>(
        &self,
        place: Place<'_>,
        program: P,
        back: impl FnOnce(P) -> T,
        timed: bool,
    ) -> Result<Submitted<P, R, E>, Rejected<T>>
    where
        P: Program<R, E> + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        match self.capacity.take(1) {
            Ok(permits) => self.submit_permitted(place, program, back, timed, permits),
            Err(reason) => Err(Rejected {
                task: back(program),
                reason: reason.into(),
            }),
        }
    }

    /// The same, with the room that it takes.
    pub(super) fn submit_permitted<P, T, R, E>(
        &self,
        place: Place<'_>,
        program: P,
        back: impl FnOnce(P) -> T,
        timed: bool,
        permits: Permits<'_>,
    ) -> Result<Submitted<P, R, E>, Rejected<T>>
    where
        P: Program<R, E> + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        let cell = Arc::new(Cell::new(program));
        let mut name = None;
        match self.submit(place, once(job(&cell)), &mut name, timed, permits) {
            Ok(()) => Ok((name.expect("it was taken"), cell)),
            Err(reason) => {
                let task = back(cell.reclaim().expect(NEVER_RUN));
                Err(Rejected { task, reason })
            }
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
        let cell = |f| Arc::new(Cell::new(Function(f)));
        let cells: Vec<_> = tasks.into_iter().map(cell).collect();
        if cells.is_empty() {
            return Ok(Vec::new());
        }
        let mut names = Vec::with_capacity(cells.len());
        let permits = self.capacity.take(cells.len()).map_err(Reason::from);
        let submitted = permits.and_then(|permits| {
            self.submit(place, cells.iter().map(job), &mut names, true, permits)
        });
        match submitted {
            Ok(()) => {
                let pairs = names.into_iter().zip(cells);
                Ok(pairs.map(|one| self.handle(one)).collect())
            }
            Err(reason) => {
                let back = |cell: &Arc<Cell<_, R, E>>| {
                    let Function(f) = cell.reclaim().expect(NEVER_RUN);
                    f
                };
                let task = cells.iter().map(back).collect();
                Err(Rejected { task, reason })
            }
        }
    }

    pub(super) fn handle<P, R, E>(
        &self,
        ((key, id, queued), cell): Submitted<P, R, E>,
    ) -> Task<R, E>
    where
        P: Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        Task {
            shared: Arc::clone(&self.shared),
            key,
            id,
            queued,
            gift: cell,
        }
    }

    /// Takes all of them, or none.
    fn submit(
        &self,
        place: Place<'_>,
        mut jobs: impl ExactSizeIterator<Item = Arc<dyn Job>>,
        names: &mut impl Names,
        timed: bool,
        permits: Permits<'_>,
    ) -> Result<(), Reason> {
        if place
            .group
            .is_some_and(|g| g.caller != self.key || !Arc::ptr_eq(&g.shared, &self.shared))
        {
            return Err(Reason::ForeignGroup);
        }
        let label = place.label.map(Arc::from);
        let placing = Placing {
            tier: place.tier,
            group: place.group.map(|g| g.key),
            bump: place.bump,
            after: place.after,
            label: label.as_ref(),
        };
        let is_plain = placing.tier.is_none_or(|tier| tier == 0) && placing.after.is_zero();
        if is_plain && self.post(placing, &mut jobs, names, timed) {
            permits.keep();
            return Ok(());
        }
        let (submitted, alone) = self.shared.with_state(|state, wakes, now| {
            for job in jobs {
                match state.submit(self.key, placing, job, now) {
                    Ok((key, id)) => names.add((key, id, now)),
                    // What refuses one refuses the first: none is in.
                    Err((refused, job)) => return (Err((refused, job)), false),
                }
            }
            if state.is_undercut(self.key) {
                state.exact(wakes);
            }
            (Ok(()), !state.has_workers())
        });
        submitted.map_err(|(refused, _)| Reason::from(refused))?;
        if alone && self.are_stranded(names.all()) {
            return Err(Reason::NoWorker);
        }
        permits.keep();
        Ok(())
    }

    /// Posts all of them, or none: of tier 0, without a delay.
    fn post(
        &self,
        placing: Placing<'_>,
        jobs: &mut impl ExactSizeIterator<Item = Arc<dyn Job>>,
        names: &mut impl Names,
        timed: bool,
    ) -> bool {
        let submissions = &self.shared.submissions;
        let timed = timed || self.shared.log.is_some();
        submissions.post(
            self.key,
            placing,
            jobs,
            || timed.then(|| self.shared.origin.elapsed()),
            || self.may_post.load(Relaxed),
            |key, id, queued| names.add((key, id, queued.unwrap_or_default())),
        )
    }

    /// Takes tasks back for which there was no worker, if the requested one
    /// is not there, because it could not be started. Checked before anything more
    /// is due: for that no worker was requested yet.
    fn are_stranded(&self, keys: &[Name]) -> bool {
        let state = self.shared.state.lock();
        if !state.calls_for_workers() || state.has_workers() {
            return false;
        }
        let taken_back = self.shared.with_locked(state, false, |state, wakes, _| {
            if !keys.iter().all(|&(key, ..)| state.waits(key)) {
                return Vec::new();
            }
            let back = keys.iter().rev();
            back.map(|&(key, ..)| state.retract(key, wakes)).collect()
        });
        !taken_back.is_empty()
    }
}

/// What a handle knows of its task: when it was submitted, too.
type Name = (Key, TaskId, Duration);

/// A task that was taken.
pub(super) type Submitted<P, R, E> = (Name, Arc<Cell<P, R, E>>);

/// Where a submission leaves the names of its tasks: of one, or of many.
trait Names {
    fn add(&mut self, name: Name);
    fn all(&self) -> &[Name];
}

impl Names for Option<Name> {
    fn add(&mut self, name: Name) {
        *self = Some(name);
    }

    fn all(&self) -> &[Name] {
        self.as_slice()
    }
}

impl Names for Vec<Name> {
    fn add(&mut self, name: Name) {
        self.push(name);
    }

    fn all(&self) -> &[Name] {
        self
    }
}

const NEVER_RUN: &str = "a refused task was never run";

fn job<P, R, E>(cell: &Arc<Cell<P, R, E>>) -> Arc<dyn Job>
where
    P: Program<R, E> + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    Arc::clone(cell) as Arc<dyn Job>
}
