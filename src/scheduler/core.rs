//! All decisions of a scheduler, as plain data driven by events.
//!
//! It has no locks, threads or clocks; the time is an argument. The scheduler drives it under one
//! mutex, the simulator in virtual time, so both decide alike.
//!
//! Protocol: one event (a submission, a claim, an ending, a setting); then [`Core::decide`] until
//! it returns true; then the owner, after its lock, does what is left [to do](Todo).
//!
//! Invariants:
//! 1. A waiting task is in the backlog, with its timer, or, if it is a future, with its entry. A
//!    task that a worker has is only counted here. Each task has exactly one ending.
//! 2. Nothing is left of a task after its ending, nor of a caller without handles after the ending
//!    of its last task.

use std::task::Waker;

use crate::backlog::{Backlog, GroupKey};
use crate::error::{OutOfRange, Stale};
use crate::lanes::LaneKey;
use crate::limit::{Bypass, Limit};
use crate::queue::Capacity;
use crate::shown::says;
use crate::slab::{Key, Slab, shrink};
use crate::sync::{Arc, unique};
use crate::wait::{Waiters, WakeBatch};
use crate::workers::{Action, Workers};

use super::caller::{CallerOptions, CallerState};
use super::clock::Clock;
use super::log::GroupId;
use super::outcome::TaskId;
use super::stall::Stalls;
use super::summary::Summary;
use super::task_state::{Body, Ended, FutureState, Later, Running, Waiting, of_worker};
use super::tokens::CancelToken;

/// How a caller or a scheduler ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum How {
    /// Waiting tasks are still done.
    #[default]
    Drain,
    /// Waiting tasks are cancelled; running ones end.
    Cancel,
}

says!(How {
    Self::Drain => "drain",
    Self::Cancel => "cancel",
});

pub(crate) struct Core<J> {
    /// Tells its ids from those of other schedulers.
    pub(crate) number: u64,
    pub(crate) backlog: Backlog<Waiting<J>>,
    pub(super) callers: Slab<CallerState>,
    /// By lane: its caller.
    pub(super) by_lane: Vec<Key>,
    pub(super) futures: Slab<FutureState<J>>,
    /// By worker; out of date while there are local queues.
    pub(super) running: Vec<Option<Running>>,
    /// By worker: the last of its tasks that had a token, but for futures.
    pub(super) tokens: Vec<(TaskId, CancelToken)>,
    pub(crate) workers: Workers,
    idle_wakers: Vec<Option<Waker>>,
    pub(crate) last: TaskId,
    pub(super) unfinished: u64,
    /// How the tasks have ended so far; its field `tasks` is not used.
    pub(super) ended_so_far: Summary,
    /// Futures that wait to be woken.
    pub(super) suspended: u64,
    /// Tasks that the owner logs or drops without the lock: each is placed or counted in a
    /// later event.
    pub(super) underway: u64,
    pub(super) closed: bool,
    /// The last of all tasks that are to be cancelled.
    pub(super) cancelled: TaskId,
    /// While there is one, no task starts or goes on.
    pub(super) holds: u32,
    /// The scheduler itself is gone: nobody can hold tasks or find a group by its id.
    pub(super) dropped: bool,
    pub(super) shutdown_waiters: Waiters<()>,
    pub(super) stalls: Stalls,
    pub(super) start_failures: u64,
    pub(super) start_error: Option<String>,
    pub(crate) todo: Todo<J>,
    /// Somebody waits only for claimed tasks, or for room.
    pub(super) pressing: bool,
    /// There is a log: records are made.
    pub(super) records: bool,
    pub(super) clock: Clock<Later<J>>,
}

/// What the owner does after its lock.
pub(crate) struct Todo<J> {
    /// Workers to start.
    pub(crate) to_start: Vec<u32>,
    /// Tasks that ended unrun, to be logged and dropped.
    pub(crate) ended: Vec<Ended<J>>,
    /// Capacities with new room for waiters, to be served.
    pub(super) freed: Vec<Arc<Capacity>>,
}

impl<J> Default for Todo<J> {
    fn default() -> Self {
        Self {
            to_start: Vec::new(),
            ended: Vec::new(),
            freed: Vec::new(),
        }
    }
}

impl<J> Todo<J> {
    /// One test for all three: this is asked at each event.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.to_start.len() | self.ended.len() | self.freed.len() == 0
    }

    /// Takes over all of `more`, with its memory if there is nothing here.
    pub(super) fn append(&mut self, more: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, more);
        }
        self.to_start.append(&mut more.to_start);
        self.ended.append(&mut more.ended);
        self.freed.append(&mut more.freed);
    }
}

impl<J: Body> Core<J> {
    pub(crate) fn new(workers: u32, bypass: Bypass) -> Result<Self, OutOfRange> {
        Ok(Self {
            number: unique(),
            backlog: Backlog::new(bypass),
            callers: Slab::new(),
            by_lane: Vec::new(),
            futures: Slab::new(),
            running: Vec::new(),
            tokens: Vec::new(),
            workers: Workers::new(workers)?,
            idle_wakers: Vec::new(),
            last: TaskId(0),
            unfinished: 0,
            ended_so_far: Summary::default(),
            suspended: 0,
            underway: 0,
            closed: false,
            cancelled: TaskId(0),
            holds: 0,
            dropped: false,
            shutdown_waiters: Waiters::new(),
            stalls: Stalls::default(),
            start_failures: 0,
            start_error: None,
            todo: Todo::default(),
            pressing: false,
            records: true,
            clock: Clock::new(),
        })
    }

    // Callers and groups.

    pub(crate) fn add_caller(
        &mut self,
        name: Arc<str>,
        options: &CallerOptions,
    ) -> Result<Key, OutOfRange> {
        let capacity = Arc::new(Capacity::new(options.capacity)?);
        let lane = self.backlog.add_lane(options.weight, options.cap)?;
        let caller = CallerState::new(name, lane, capacity, options);
        let caller = self.callers.insert(caller);
        self.set_caller_of(lane, caller);
        Ok(caller)
    }

    /// Notes the caller of a lane.
    pub(super) fn set_caller_of(&mut self, lane: LaneKey, caller: Key) {
        let index = lane.index() as usize;
        let len = self.by_lane.len().max(index + 1);
        self.by_lane.resize(len, caller);
        self.by_lane[index] = caller;
    }

    /// The caller of a lane.
    #[inline]
    pub(super) fn caller_of(&self, lane: LaneKey) -> Key {
        self.by_lane[lane.index() as usize]
    }

    pub(crate) fn set_cap(&mut self, caller: Key, cap: Limit) -> Result<(), OutOfRange> {
        let lane = self.caller(caller).lane;
        self.backlog.set_cap(lane, cap)
    }

    pub(crate) fn add_group(
        &mut self,
        caller: Key,
        limit: Limit,
        level: u8,
    ) -> Result<GroupKey, OutOfRange> {
        let lane = self.caller(caller).lane;
        self.backlog.add_group(lane, limit, level)
    }

    pub(crate) fn name_of(&self, key: GroupKey) -> GroupId {
        let scheduler = self.number;
        GroupId { scheduler, key }
    }

    /// The key of this id, if it is of this scheduler; the group may be gone.
    pub(crate) fn key_of(&self, id: GroupId) -> Option<GroupKey> {
        (id.scheduler == self.number).then_some(id.key)
    }

    /// Adds a pin to a group. Returns its caller, which still exists.
    pub(super) fn pin(&mut self, id: GroupId) -> Result<Key, Stale> {
        let group = self.key_of(id).ok_or(Stale)?;
        let lane = self.backlog.lane_of(group).ok_or(Stale)?;
        // The lane's place is kept as long as the group is there.
        let caller = self.caller_of(lane);
        self.callers.get(caller).ok_or(Stale)?;
        self.backlog.pin(group);
        Ok(caller)
    }

    // Workers.

    /// Worker `n` looks for work. Returns whether it may take a task.
    pub(super) fn look(&mut self, n: u32) -> bool {
        self.clock.end_rest(n);
        self.workers.look(n) && !self.is_held()
    }

    /// Worker `n` drops tasks that ended unrun. It counts as busy, so others take what comes.
    pub(super) fn drops(&mut self, n: u32) {
        self.clock.end_rest(n);
        self.workers.claimed(n);
    }

    /// Worker `n` rests until its parker is woken.
    pub(crate) fn rest(&mut self, n: u32, waker: Option<Waker>) {
        self.workers.rest(n);
        *of_worker(&mut self.idle_wakers, n) = waker;
    }

    /// Worker `n` leaves.
    pub(crate) fn retire(&mut self, n: u32) {
        self.clock.end_rest(n);
        self.workers.retired(n);
    }

    /// Whether there is a worker, or one is starting.
    pub(crate) fn has_workers(&self) -> bool {
        self.workers.live() > 0
    }

    /// The worker to start or wake next, if more are needed.
    #[inline]
    pub(crate) fn next_action(&mut self) -> Option<Action> {
        if !self.workers.may_act() {
            return None;
        }
        // It need not count further than one more than are coming.
        let enough = u64::from(self.workers.coming()) + 1;
        let wanted = self.startable(enough) + self.clock.wants_keeper();
        self.workers.next_action(wanted)
    }

    /// How many tasks could start now if there were workers, up to `most`.
    pub(super) fn startable(&self, most: u64) -> u64 {
        match self.is_held() {
            true => 0,
            false => self.backlog.eligible(most),
        }
    }

    /// If no more work will come, workers that find none leave. An announced task may still have a
    /// delay.
    #[inline]
    pub(super) fn close_workers(&mut self) {
        if self.closed && self.underway == 0 && self.clock.is_empty() {
            self.workers.close();
        }
    }

    /// Whether there is work for one more worker.
    pub(super) fn calls_for_workers(&self) -> bool {
        self.startable(1) + self.clock.wants_keeper() > 0
    }

    /// Whether no task may start.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.holds > 0
    }

    /// Begins a hold.
    pub(crate) fn hold(&mut self) {
        self.holds += 1;
    }

    /// Ends a hold, if there is one.
    pub(crate) fn unhold(&mut self) {
        self.holds = self.holds.saturating_sub(1);
    }

    /// Ends an event: starts or wakes the workers that the eligible work needs, completes a
    /// shutdown, and resolves a stall. False if the batch is full: fire it and call again.
    #[inline]
    pub(crate) fn decide(&mut self, wakes: &mut WakeBatch) -> bool {
        self.clock.notify(wakes);
        let all_is_quiet = !self.workers.may_act() && !self.closed && self.stalls.is_empty();
        all_is_quiet || self.decide_all(wakes)
    }

    fn decide_all(&mut self, wakes: &mut WakeBatch) -> bool {
        self.close_workers();
        loop {
            if wakes.is_full() {
                return false;
            }
            match self.next_action() {
                Some(Action::Start(n)) => self.todo.to_start.push(n),
                Some(Action::Wake(n)) => wakes.extend(of_worker(&mut self.idle_wakers, n).take()),
                None => break,
            }
        }
        self.workers.end_event();
        if self.closed && self.unfinished == 0 && self.workers.live() == 0 {
            while self.shutdown_waiters.notify_next(wakes).is_some() {}
        }
        if !self.stalls.is_empty() {
            self.resolve_stall(wakes);
        }
        true
    }

    pub(super) fn caller(&self, caller: Key) -> &CallerState {
        self.callers.get(caller).expect(OWNED)
    }

    pub(crate) fn caller_mut(&mut self, caller: Key) -> &mut CallerState {
        self.callers.get_mut(caller).expect(OWNED)
    }

    pub(super) fn reap_caller(&mut self, caller: Key) {
        let Some(c) = self.callers.get(caller) else {
            return;
        };
        if !c.has_handles && c.unfinished() == 0 {
            let lanes = [Some(c.lane), c.woken_lane];
            self.callers.remove(caller);
            for lane in lanes.into_iter().flatten() {
                self.backlog.close_lane(lane);
            }
            self.forget_places();
        }
    }

    /// Lanes may be gone: forgets the places behind the last one.
    pub(super) fn forget_places(&mut self) {
        self.by_lane.truncate(self.backlog.lane_places());
        shrink(&mut self.by_lane, 0);
    }
}

const OWNED: &str = "a caller exists while its handle or a task of its does";
