//! Posted tasks: while no worker must be woken for a task, its submitter only puts it into this
//! list, and the state takes it in later. So submitters and workers do not wait for each other.
//!
//! Protocol: a submitter holds the lock of the list only to post. A thread that takes the state's
//! lock first takes in the list. Order of locks: the state, then the list.
//!
//! Invariants:
//! 1. The list is open only while the maximum of workers is busy, or while a started or woken
//!    worker has not looked yet. Each of these takes the state's lock when it is done or has
//!    arrived, so nobody must be woken. The event that changes that closes the list and takes in
//!    what was posted; so does a failed start.
//! 2. Every event closes the list while it lasts, except a worker's look for its next task and a
//!    wake-up. So an event that releases a caller, or begins to use tiers, sees all that was posted
//!    before.
//! 3. Numbers of tasks ascend in each entry, and are above those that the state knows.
//!
//! Memory ordering: by the two locks. `may_post` of a caller changes only while the list is closed,
//! and is read under the list's lock while it is open.
//!
//! Before there was a list, one submitter and two workers on two processors waited for the state's
//! lock for two fifths of their time (`perf`, 2026-11-23).

use std::time::Duration;

use crate::slab::{Key, shrink};
use crate::sync::Mutex;

use super::bodies::{Batch, Bodies};
use super::clock::nanos;
use super::local_queue::Work;
use super::outcome::TaskId;
use super::posting::{LastPosted, MOST, Posted};
use super::state::State;
use super::task_state::{Kind, Placing, Waiting};

/// An empty list keeps room for so many entries.
const FEW: usize = 4;

#[derive(Default)]
struct List {
    open: bool,
    tasks: PostedTasks,
    /// For tasks that are posted.
    bodies: Bodies,
    /// A submitter found too few of them.
    wants_bodies: bool,
}

/// The posted tasks.
#[derive(Default)]
struct PostedTasks {
    /// The number of the list: how often it was taken in.
    number: u64,
    posted: Vec<Posted>,
    /// How many tasks there are.
    len: usize,
    /// When the list was last taken in, in nanoseconds.
    looked: u64,
    /// The number of the last task.
    last: TaskId,
}

/// The list of submissions, on cache lines of its own.
#[repr(align(128))]
pub(super) struct Submissions(Mutex<List>);

impl Submissions {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Posts tasks if the list is open, has room for all of them, and `may_post`. Returns the
    /// number of the first, and the time; or else the tasks.
    #[inline]
    pub(super) fn post(
        &self,
        to: &To<'_>,
        batch: &mut impl Batch,
        now: impl FnOnce() -> Option<Duration>,
        may_post: impl Fn() -> bool,
    ) -> Result<(TaskId, Option<Duration>), Vec<Work>> {
        let more = batch.len();
        let has_room = |list: &List| list.open && list.tasks.len + more <= MOST && may_post();
        let mut list = self.0.lock();
        if !has_room(&list) {
            drop(list);
            return Err(batch.make());
        }
        let List { tasks, bodies, .. } = &mut *list;
        if let Some(jobs) = batch.fill(bodies) {
            return Ok(tasks.put(to, jobs, now()));
        }
        // Allocates under no lock.
        list.wants_bodies = true;
        drop(list);
        let jobs = batch.make();
        let list = &mut *self.0.lock();
        match has_room(list) {
            true => Ok(list.tasks.put(to, jobs.into_iter(), now())),
            false => Err(jobs),
        }
    }

    /// Takes in the posted tasks, if the list was open. With `open` it stays open. Returns the
    /// time, at which all of them had been posted.
    #[inline]
    pub(super) fn take_in(
        &self,
        state: &mut State,
        open: bool,
        clock: impl FnOnce() -> Duration,
    ) -> Duration {
        match state.posting.open {
            true => self.take_posted(state, open, clock),
            false => clock(),
        }
    }

    #[inline(never)]
    fn take_posted(
        &self,
        state: &mut State,
        open: bool,
        clock: impl FnOnce() -> Duration,
    ) -> Duration {
        let mut posted = std::mem::take(&mut state.posting.buffer);
        let now = {
            let list = &mut *self.0.lock();
            // Under the lock: no task starts before it was posted.
            let now = clock();
            let tasks = &mut list.tasks;
            std::mem::swap(&mut tasks.posted, &mut posted);
            (tasks.len, tasks.looked) = (0, nanos(now));
            tasks.number += 1;
            list.leave_bodies(state);
            list.open = open;
            state.posting.open = open;
            now
        };
        for posted in posted.drain(..) {
            state.core.submit_posted(posted);
        }
        state.posting.buffer = posted;
        now
    }

    /// Opens or closes the list after an event, by invariant 1. False if tasks were taken in by
    /// that: then the event goes on.
    #[inline]
    pub(super) fn update(&self, state: &mut State, now: Duration) -> bool {
        let open = !state.core.closed && state.core.workers.needs_nobody();
        let idle = !open && state.posting.used && state.core.unfinished == 0;
        open == state.posting.open && !idle || self.set_open(state, open, now)
    }

    #[inline(never)]
    fn set_open(&self, state: &mut State, open: bool, now: Duration) -> bool {
        if !open {
            let last = state.core.last;
            self.take_in(state, false, || now);
            if state.core.unfinished == 0 {
                // The scheduler is empty: gives back all memory except bodies and a little room.
                let list = &mut *self.0.lock();
                list.bodies.take_in(&mut state.posting.bodies);
                list.wants_bodies = false;
                shrink(&mut list.tasks.posted, FEW);
                shrink(&mut state.posting.buffer, FEW);
                state.posting.used = false;
            }
            return state.core.last == last;
        }
        let list = &mut *self.0.lock();
        list.leave_bodies(state);
        list.open = true;
        (list.tasks.last, list.tasks.looked) = (state.core.last, nanos(now));
        (state.posting.open, state.posting.used) = (true, true);
        true
    }
}

impl List {
    /// Hands over the workers' used bodies, if submitters found too few.
    fn leave_bodies(&mut self, state: &mut State) {
        if self.wants_bodies || self.bodies.is_empty() {
            std::mem::swap(&mut self.bodies, &mut state.posting.bodies);
            self.wants_bodies = false;
        }
    }
}

impl PostedTasks {
    /// Adds tasks. Returns the number of the first, and the time.
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
        let is_bumped = to.placing.bump.is_some();
        for job in jobs {
            self.last.0 += 1;
            let task = Waiting::new(self.last, to.kind, at, job);
            match (to.group, self.posted.last_mut()) {
                (Some(group), _) => self.put_in_group(group, to, task),
                (None, Some(last)) if !is_bumped && last.takes(to.caller) => last.push(task),
                _ => self.posted.push(Posted::new(to.caller, to.placing, task)),
            }
        }
        (first, queued)
    }

    /// Adds a task behind those of its group, unless a bump sets it apart.
    #[inline(never)]
    fn put_in_group(&mut self, group: &LastPosted, to: &To<'_>, task: Waiting<Work>) {
        let others = group.get(self.number).filter(|_| to.placing.bump.is_none());
        match others {
            Some(at) => self.posted[at].push(task),
            None => {
                group.set(self.number, self.posted.len());
                self.posted.push(Posted::new(to.caller, to.placing, task));
            }
        }
    }
}

/// Where to post tasks.
pub(super) struct To<'a> {
    pub(super) caller: Key,
    /// Where the last tasks of their group are, if they have one.
    pub(super) group: Option<&'a LastPosted>,
    pub(super) placing: Placing,
    pub(super) kind: Kind,
}
