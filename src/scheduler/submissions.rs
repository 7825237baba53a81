//! Tasks that are submitted while no worker need be woken for them: they are posted here,
//! and the state hears of them later. So submitters and workers do not wait for each other.
//!
//! Protocol: a submitter posts under the lock of this list, which is held for no more.
//! Whoever takes the lock of the state takes in first what is here. Order of locks: the
//! state, then this list.
//!
//! Invariants:
//! 1. The list is open only while as many workers as there may be are busy, or while one
//!    that was started or woken is on its way: each of them takes the lock of the state when
//!    it is done, or there, so that nobody need be woken. The event that changes that closes
//!    the list, and takes in what came before; so does a start that failed.
//! 2. Every event closes the list while it lasts, but for those of a worker that looks
//!    for its next task, and for wake-ups. So whoever is told that a caller is released,
//!    or that tiers are in use, sees all that was posted before.
//! 3. Tasks have their numbers in the order of each row, behind all that the state knows.
//!
//! Memory ordering: that of the two locks. `may_post` of a caller changes only while the
//! list is closed, and is read under its lock while it is open.
//!
//! Before, one submitter and two workers on two processors spent two fifths of their time
//! waiting for the lock of the state (`perf`, 2026-11-23).

use std::time::Duration;

use crate::slab::Key;
use crate::sync::Mutex;

use super::bodies::{Batch, Bodies};
use super::local_queue::Work;
use super::outcome::TaskId;
use super::posting::{LastPosted, MOST, Posted, Posting};
use super::state::State;
use super::task_state::{Kind, Placing, Waiting, nanos};

struct List {
    open: bool,
    rows: PostedTasks,
    /// For those that are to be posted.
    bodies: Bodies,
    /// Somebody has looked there in vain.
    wants_bodies: bool,
}

/// What was posted.
#[derive(Default)]
struct PostedTasks {
    /// Which list it is: another one whenever it was taken in.
    number: u64,
    posted: Vec<Posted>,
    /// How many tasks they are.
    len: usize,
    /// When they were looked at last, as tasks keep it.
    looked: u64,
    /// The number of the last.
    last: TaskId,
}

impl List {
    fn new(number: u64, bodies: Bodies) -> Self {
        let rows = PostedTasks {
            number,
            ..PostedTasks::default()
        };
        Self {
            open: false,
            rows,
            bodies,
            wants_bodies: false,
        }
    }
}

/// The list of submissions, on cache lines of its own.
#[repr(align(128))]
pub(super) struct Submissions(Mutex<List>);

impl Submissions {
    pub(super) fn new() -> Self {
        Self(Mutex::new(List::new(1, Bodies::default())))
    }

    /// Posts tasks if the list is open and has room for all of them, and `may_post`: the
    /// number of the first, and when; or gives them back.
    #[inline]
    pub(super) fn post(
        &self,
        to: &To<'_>,
        batch: &mut impl Batch,
        now: impl FnOnce() -> Option<Duration>,
        may_post: impl Fn() -> bool,
    ) -> Result<(TaskId, Option<Duration>), Vec<Work>> {
        let tasks = batch.len();
        let has_room = |list: &List| list.open && list.rows.len + tasks <= MOST && may_post();
        let mut list = self.0.lock();
        if !has_room(&list) {
            drop(list);
            return Err(batch.make());
        }
        let List { rows, bodies, .. } = &mut *list;
        if let Some(jobs) = batch.fill(bodies) {
            return Ok(rows.put(to, jobs, now()));
        }
        // The allocator is asked under no lock.
        list.wants_bodies = true;
        drop(list);
        let jobs = batch.make();
        let list = &mut *self.0.lock();
        match has_room(list) {
            true => Ok(list.rows.put(to, jobs.into_iter(), now())),
            false => Err(jobs),
        }
    }

    /// Takes in what was posted, if the list was open; it stays so if `open`.
    #[inline]
    pub(super) fn take_in(&self, state: &mut State, open: bool, now: Duration) {
        if state.posting.open {
            self.take_posted(state, open, now);
        }
    }

    #[inline(never)]
    fn take_posted(&self, state: &mut State, open: bool, now: Duration) {
        let mut posted = std::mem::take(&mut state.posting.buffer);
        {
            let list = &mut *self.0.lock();
            let rows = &mut list.rows;
            std::mem::swap(&mut rows.posted, &mut posted);
            (rows.len, rows.looked) = (0, nanos(now));
            rows.number += 1;
            list.leave_bodies(state);
            list.open = open;
            state.posting.open = open;
        }
        for posted in posted.drain(..) {
            let Posted {
                caller,
                placing,
                one,
                run,
                named,
            } = posted;
            match one {
                Some(task) => state.core.submit_one(caller, placing, task),
                None => state.core.submit_run(caller, placing, run, named),
            }
        }
        state.posting.buffer = posted;
    }

    /// Opens or closes the list after an event, by invariant 1. Whether that is done:
    /// else something was taken in, and is to be updated.
    #[inline]
    pub(super) fn update(&self, state: &mut State, now: Duration) -> bool {
        let open = state.may_post();
        let idle = !open && state.posting.used && state.core.unfinished == 0;
        open == state.posting.open && !idle || self.set_open(state, open, now)
    }

    #[inline(never)]
    fn set_open(&self, state: &mut State, open: bool, now: Duration) -> bool {
        if !open {
            let last = state.core.last;
            self.take_in(state, false, now);
            if state.core.unfinished == 0 {
                // Nothing is there any more: all memory is given back, but for bodies.
                let list = &mut *self.0.lock();
                list.bodies.take_in(&mut state.posting.bodies);
                let bodies = std::mem::take(&mut list.bodies);
                *list = List::new(list.rows.number + 1, bodies);
                let bodies = std::mem::take(&mut state.posting.bodies);
                state.posting = Posting {
                    bodies,
                    ..Posting::default()
                };
            }
            return state.core.last == last;
        }
        let list = &mut *self.0.lock();
        list.leave_bodies(state);
        list.open = true;
        (list.rows.last, list.rows.looked) = (state.core.last, nanos(now));
        (state.posting.open, state.posting.used) = (true, true);
        true
    }
}

impl List {
    /// What workers have handed in goes where submitters have looked in vain.
    fn leave_bodies(&mut self, state: &mut State) {
        if self.wants_bodies || self.bodies.is_empty() {
            std::mem::swap(&mut self.bodies, &mut state.posting.bodies);
            self.wants_bodies = false;
        }
    }
}

impl PostedTasks {
    /// The number of the first, and when.
    #[inline(always)]
    fn put(
        &mut self,
        to: &To<'_>,
        jobs: impl ExactSizeIterator<Item = Work>,
        queued: Option<Duration>,
    ) -> (TaskId, Option<Duration>) {
        let first = TaskId(self.last.0 + 1);
        self.len += jobs.len();
        let at = queued.map_or(self.looked, nanos);
        for job in jobs {
            self.last.0 += 1;
            let task = Waiting::new(self.last, to.kind, at, job);
            match (to.row, self.posted.last_mut()) {
                (Some(row), _) => self.put_in_group(row, to, task),
                (None, Some(last)) if !to.is_bumped() && last.takes(to.caller) => last.push(task),
                _ => self.posted.push(to.posted(task)),
            }
        }
        (first, queued)
    }

    /// Behind those of its group, if a bump does not set it apart.
    #[inline(never)]
    fn put_in_group(&mut self, row: &LastPosted, to: &To<'_>, task: Waiting<Work>) {
        let others = row.get(self.number).filter(|_| !to.is_bumped());
        match others {
            Some(at) => self.posted[at].push(task),
            None => {
                row.set(self.number, self.posted.len());
                self.posted.push(to.posted(task));
            }
        }
    }
}

/// Where tasks are to be posted.
pub(super) struct To<'a> {
    pub(super) caller: Key,
    /// If it is a group.
    pub(super) row: Option<&'a LastPosted>,
    pub(super) placing: Placing,
    pub(super) kind: Kind,
}

impl To<'_> {
    #[inline]
    fn is_bumped(&self) -> bool {
        self.placing.bump.is_some()
    }

    #[inline]
    fn posted(&self, task: Waiting<Work>) -> Posted {
        Posted::new(self.caller, self.placing, task)
    }
}

impl State {
    /// Whether nobody need be woken for more work, and more is taken.
    fn may_post(&mut self) -> bool {
        !self.core.closed && self.core.workers.needs_nobody()
    }
}
