//! The scheduler's state: the core, and the local queues of the workers.
//!
//! A worker that finds a backlog claims several tasks under one lock. All but the first are
//! *prefetched*: they wait in its local queue, from which it takes them one by one without the
//! state's lock. It also leaves the endings there, until it next takes that lock. The lock of a
//! local queue is taken under the state's lock, never the other way round.
//!
//! A thread that holds the state's lock may *clear* a local queue: the core records the endings,
//! and takes back the claims of tasks that have not started. Then the core is *exact*, as if
//! workers claimed one task at a time. Every event whose result depends on that clears the local
//! queues first ([`exact`](State::exact)); submissions, bumps and levels do not.
//!
//! Cost, in ns a task of a backlog of 20,000 on two pinned workers of two shared
//! processors (medians of 7 rounds side by side, 2026-11-21; they vary by a fifth):
//!
//! | each task | two holds a task | claims 1 | 4 | 8 | 16 | 32 |
//! |---|---|---|---|---|---|---|
//! | nothing | 1,240 | 1,043 | 1,010 | 545 | 447 | 463 |
//! | 250 ns | 1,188 | 1,061 | 780 | 677 | 672 | 666 |
//! | 1 us | 2,243 | 1,854 | 1,636 | 1,667 | 1,627 | 1,338 |
//!
//! "Two holds" takes the lock once for the ending and once for the next task. The rules below cost
//! nothing that could be measured. Since tasks are posted (`submissions`), 32 is 7 % ahead of 16,
//! and 256 by 5 % more. Hence 32. `benches/scheduler.rs` measures it.
//!
//! Invariants:
//! 1. A task in a local queue is claimed in the backlog, and counts in every limit.
//! 2. A local queue has unstarted tasks or endings only while its worker is busy and, as far as
//!    the core knows, runs another task.
//! 3. Nobody waits for an ending in a local queue. The task itself wakes who waits for its outcome.
//!    When a synchronize or a release waits only for claimed tasks, or somebody waits for room in a
//!    caller, the local queues are cleared.
//! 4. No worker rests while a local queue has tasks: a worker that finds nothing clears all local
//!    queues and tries again. With at most `n` workers, none claims more than an `n`-th of the
//!    tasks that could start, so that the rest calls for every free worker.
//! 5. If `PATIENCE` times as many tasks as fit into all local queues were claimed since a local
//!    queue was filled, the next claim clears it. The tasks that go back are then claimed one by
//!    one: each has waited behind one long task, and does not wait behind another.
//!
//! How late a task may start: let `n` workers claim up to `c` each. When a claim does not clear a
//! local queue, other workers have claimed at most `PATIENCE * n * c - 1` tasks since it was
//! filled, and this claim takes at most `c` more. So many later tasks may begin first.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::error::Stale;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::WakeBatch;

use super::core::Core;
use super::local_queue::{LocalQueue, Report, RunResult, Work};
use super::posting::Posting;
use super::reject::Reason;
use super::task_state::{Claimed, Location, Placing, Started, Tag, of_worker};

const PATIENCE: u64 = 2;

/// The local queue of a worker, as the state knows it.
#[derive(Default)]
struct WorkerQueue {
    queue: Arc<LocalQueue>,
    /// How many tasks had been claimed in all when it was filled; 0 if it was cleared since.
    filled: u64,
}

pub(super) struct State {
    pub(super) core: Core<Work>,
    /// The most tasks of a claim.
    claims: u32,
    queues: Vec<WorkerQueue>,
    /// The filled local queues in the order of filling, and some that were cleared since.
    order: VecDeque<(u32, u64)>,
    filled: u32,
    pub(super) taken: u64,
    /// So many tasks that went back must be claimed one by one.
    overdue: u64,
    pub(super) posting: Posting,
    /// How long tasks took lately, as measured by the last worker that found none.
    pub(super) pace: Option<Duration>,
}

impl State {
    pub(super) fn new(core: Core<Work>, claims: u32) -> Self {
        Self {
            core,
            claims,
            queues: Vec::new(),
            order: VecDeque::new(),
            filled: 0,
            taken: 0,
            overdue: 0,
            posting: Posting::default(),
            pace: None,
        }
    }

    /// The core, as if workers claimed one task at a time.
    pub(super) fn exact(&mut self, wakes: &mut WakeBatch) -> &mut Core<Work> {
        self.clear_others(0, wakes);
        &mut self.core
    }

    /// [`Core::admits`], when all endings that could change a refusal are reported.
    pub(super) fn admits(
        &mut self,
        caller: Key,
        placing: &Placing,
        wakes: &mut WakeBatch,
    ) -> Result<(), Reason> {
        match self.core.admits(caller, placing) {
            Err(Reason::TierGoesDown(_)) => self.exact(wakes).admits(caller, placing),
            admitted => admitted,
        }
    }

    /// [`Core::cancel`], also for tasks in local queues.
    pub(super) fn cancel(&mut self, at: Location, now: Duration, wakes: &mut WakeBatch) -> bool {
        self.core.cancel(at, now) || self.exact(wakes).cancel(at, now)
    }

    /// [`Core::bump`], also for tasks in local queues.
    pub(super) fn bump(
        &mut self,
        at: Location,
        level: u8,
        wakes: &mut WakeBatch,
    ) -> Result<(), Stale> {
        match at {
            Location::Backlog(spot) if self.core.backlog.bump_at(spot, level).is_some() => Ok(()),
            _ => self.exact(wakes).bump(at, level),
        }
    }

    /// Whether the core is exact.
    pub(super) fn is_exact(&self) -> bool {
        self.filled == 0 && !self.posting.open
    }

    /// It is `now`: due tasks arrive.
    #[inline]
    pub(super) fn advance(&mut self, now: Duration, wakes: &mut WakeBatch) {
        if !self.core.clock.is_empty() && self.core.advance(now) {
            self.exact(wakes);
        }
    }

    /// Worker `n` leaves.
    pub(super) fn leave(&mut self, n: u32, wakes: &mut WakeBatch) {
        let _ = self.clear(n, wakes);
        self.core.retire(n);
    }

    /// Worker `n` has run a task. The core records it, with the endings in its local queue. If that
    /// has more tasks, the worker goes on with the next.
    pub(super) fn finish(
        &mut self,
        n: u32,
        mut ran: Report,
        now: Duration,
        wakes: &mut WakeBatch,
    ) -> Option<Started<Work>> {
        if ran.result.has_failed() && self.skips_others(ran.tag) {
            let _ = self.clear(n, wakes);
        }
        self.core.set_running(n, None);
        let queue = self.queue(n);
        let local = &mut *queue.lock();
        let next = local.go_on(&mut ran, now);
        let past = local.past.drain(..);
        report(&mut self.core, n, past, &local.groups, wakes);
        local.groups.clear();
        if let Some((job, record)) = next {
            let (tag, start) = (ran.tag, now);
            return Some(Started {
                tag,
                job,
                record,
                start,
            });
        }
        local.running = None;
        self.set_cleared(n);
        self.core.workers.finished(n);
        None
    }

    /// Whether a failure of this task skips others. A drop of one of these may wait for a task in
    /// the worker's local queue, so that must be cleared. (A cancelled future has been reported: a
    /// cancel clears all local queues.)
    fn skips_others(&self, Tag { holds, .. }: Tag) -> bool {
        let caller = self.core.caller_of(holds.lane);
        self.core.caller(caller).would_skip(holds.tier)
    }

    /// Worker `n` looks for work, and claims up to `most` tasks. Returns the first; the others are
    /// in its local queue.
    pub(super) fn claim(
        &mut self,
        n: u32,
        most: u32,
        now: Duration,
        wakes: &mut WakeBatch,
    ) -> Option<Started<Work>> {
        self.clear_overdue(wakes);
        let mut taken = self.take(n, most, now);
        if taken.is_none() && self.filled > 0 {
            self.exact(wakes);
            taken = self.take(n, most, now);
        }
        if taken.is_some() && std::mem::take(&mut self.core.pressing) {
            self.clear_others(n, wakes);
        }
        taken
    }

    /// See [`Core::decide`].
    pub(super) fn decide(&mut self, wakes: &mut WakeBatch) -> bool {
        if std::mem::take(&mut self.core.pressing) {
            self.exact(wakes);
        }
        self.core.decide(wakes)
    }

    /// Claims tasks into the local queue of worker `n`, and takes the first out of it.
    fn take(&mut self, n: u32, most: u32, now: Duration) -> Option<Started<Work>> {
        if !self.core.look(n) {
            return None;
        }
        let workers = u64::from(self.core.workers.max());
        let most = u64::from(most.min(self.claims));
        // Of the tasks that could start now; those behind them in their groups could not.
        let share = match self.overdue {
            0 => self.core.startable(most * workers) / workers,
            _ => 1,
        };
        // Nor does a task that is claimed alone bring those behind it.
        let most = if share > 1 { most } else { 1 };
        let queue = self.queue(n);
        let mut local = queue.lock();
        let (mut turns, mut taken) = (0, 0);
        // A task that a blocked task waits for must not be one of several: its end is reported.
        let blocked = !self.core.stalls.is_empty();
        // If somebody waits for an ending, it must not wait for another task.
        while taken == 0 || turns < share && taken < most && !self.core.pressing {
            let several = if blocked { 1 } else { (most - taken) as usize };
            let share = (share - turns) as usize;
            match self.core.prefetch(share, several, &mut local.waiting) {
                (0, _) => break,
                (more, all) => (turns, taken) = (turns + more as u64, taken + all as u64),
            }
        }
        let first = local.begin(now)?;
        self.core.workers.claimed(n);
        self.core.set_running(n, local.running.clone());
        drop(local);
        self.taken += taken;
        self.overdue = self.overdue.saturating_sub(taken);
        if taken > 1 {
            self.queues[n as usize].filled = self.taken;
            self.order.push_back((n, self.taken));
            self.filled += 1;
        }
        Some(first)
    }

    /// The local queue of worker `n`.
    pub(super) fn queue(&mut self, n: u32) -> Arc<LocalQueue> {
        Arc::clone(&of_worker(&mut self.queues, n).queue)
    }

    fn is_filled(&self, n: u32) -> bool {
        let queue = self.queues.get(n as usize);
        queue.is_some_and(|queue| queue.filled > 0)
    }

    /// Clears all local queues except that of worker `n`.
    fn clear_others(&mut self, n: u32, wakes: &mut WakeBatch) {
        if self.filled == 0 {
            return;
        }
        for other in (0..self.queues.len() as u32).rev() {
            if other != n {
                let _ = self.clear(other, wakes);
            }
        }
    }

    /// Keeps invariant 5.
    fn clear_overdue(&mut self, wakes: &mut WakeBatch) {
        let workers = u64::from(self.core.workers.max());
        let due = PATIENCE * workers * u64::from(self.claims);
        while let Some(&(n, filled)) = self.order.front() {
            let queue = &self.queues[n as usize];
            if queue.filled == filled && self.taken - filled < due {
                break;
            }
            self.order.pop_front();
            if queue.filled == filled {
                self.overdue += self.clear(n, wakes);
            }
        }
    }

    /// Clears a local queue. Returns how many tasks go back.
    fn clear(&mut self, n: u32, wakes: &mut WakeBatch) -> u64 {
        if !self.is_filled(n) {
            return 0;
        }
        self.set_cleared(n);
        let local = std::mem::take(&mut *self.queues[n as usize].queue.lock());
        report(&mut self.core, n, local.past, &local.groups, wakes);
        self.core.set_running(n, local.running);
        let back = local.waiting.iter().map(Claimed::len).sum::<usize>();
        for claimed in local.waiting.into_iter().rev() {
            self.core.unclaim(claimed);
        }
        back as u64
    }

    fn set_cleared(&mut self, n: u32) {
        if self.is_filled(n) {
            self.queues[n as usize].filled = 0;
            self.filled -= 1;
        }
    }
}

/// The core records what worker `n` has run, and which groups are free.
fn report(
    core: &mut Core<Work>,
    n: u32,
    all: impl IntoIterator<Item = Report>,
    mut groups: &[GroupKey],
    wakes: &mut WakeBatch,
) {
    let mut woken = None;
    for ran in all {
        let Report {
            tag, start, end, ..
        } = ran;
        match ran.result {
            RunResult::Ended(ending) => {
                let (free, others) = groups.split_at(ran.groups as usize);
                groups = others;
                core.end(tag, (ran.tasks, free), ending, end, wakes);
            }
            RunResult::Suspended(job, by_itself) => {
                let polled = ((tag, job), by_itself);
                core.suspend(polled, n, (start, end), &mut woken);
            }
        }
    }
    core.enqueue_run(woken);
}
