//! The steps of `random`.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::random::{At, Busy, Caller, Is, MOST, Task, WakesWorker, World, limit};
use super::runs::awaits;
use super::waiting;
use crate::scheduler::cell::{Cell, DetachedCell, Function, HasOutcome, Job, Program};
use crate::scheduler::local_queue::{Report, RunResult, next};
use crate::scheduler::outcome::{Ending, TaskId};
use crate::scheduler::spawn::Stage;
use crate::scheduler::task_state::{Location, Phase, Placing, Tag};
use crate::wait::WakeBatch;
use crate::workers::Activity;

/// A task with a handle, and how to find where it waits.
fn named<P: Program>(program: P, label: Option<Arc<str>>) -> (Arc<dyn Job>, Option<At>) {
    let cell = Arc::new(Cell::new(program, label));
    let same = Arc::clone(&cell);
    (cell, Some(Box::new(move || same.slot().location())))
}

impl World {
    fn works(&mut self, n: u32, tag: Tag) {
        self.starts(n, tag);
        let queue = self.state.queue(n);
        self.busy[n as usize] = Some(Busy { tag, queue });
    }

    fn looks(&mut self, n: u32) {
        let most = [32, 1, 3][self.draw(if self.calm { 1 } else { 3 })];
        let found = self.event(|state, wakes, now| {
            let taken = state.claim(n, most, now, wakes);
            if taken.is_none() && state.core.workers.must_leave() {
                state.core.retire(n);
            }
            taken
        });
        match found {
            Some(first) => self.works(n, first.tag),
            None if self.state.core.workers.activity(n) == Activity::Absent => {}
            None => {
                let waker = Waker::from(Arc::new(WakesWorker(n, Arc::clone(&self.coming))));
                self.event(|state, _, _| state.core.rest(n, Some(waker)));
            }
        }
    }

    /// The task of a worker ends or awaits.
    pub(super) fn ends(&mut self, n: u32) {
        let Some(Busy { tag, queue, .. }) = self.busy[n as usize].take() else {
            return;
        };
        let at = tag.id.0 as usize - 1;
        let result = match (self.happens(15), tag.future.filter(|_| self.draw(3) == 0)) {
            (true, _) => RunResult::Ended(Ending::Failed),
            (_, Some(_)) => RunResult::Suspended(awaits(self.tasks[at].label), self.draw(2) == 0),
            _ => RunResult::Ended(Ending::Ok),
        };
        let c = &mut self.callers[self.tasks[at].caller];
        self.tasks[at].is = match &result {
            RunResult::Ended(ending) => Is::Ended(*ending),
            // It may have been woken already.
            RunResult::Suspended(_, woken) => {
                if *woken {
                    Is::InLine
                } else {
                    Is::Awaiting
                }
            }
        };
        if result.has_failed() && c.skips {
            let tier = self.tasks[at].tier;
            c.skip_above = Some(c.skip_above.map_or(tier, |above| above.min(tier)));
        }
        let woken_before = self.tasks[at].is == Is::Awaiting && self.was_woken(tag);
        if woken_before {
            self.tasks[at].is = Is::InLine;
        }
        let mut ran = Report::new(tag, self.now);
        ran.result = result;
        if next(&queue, &mut ran).is_some() {
            self.check_synced(true);
            self.starts(n, ran.tag);
            let tag = ran.tag;
            self.busy[n as usize] = Some(Busy { tag, queue });
            return;
        }
        let next = self.event(|state, wakes, now| state.finish(n, ran, now, wakes));
        match next {
            Some(next) => self.works(n, next.tag),
            None => self.looks(n),
        }
    }

    fn was_woken(&self, tag: Tag) -> bool {
        let future = self.state.core.future(tag.future.unwrap());
        matches!(future.phase, Phase::Claimed(true))
    }

    fn make(&mut self, caller: usize, group: Option<usize>, tier: u32) -> (Arc<dyn Job>, bool) {
        let label = ["one", "two"][self.draw(2)];
        let label = self.happens(3).then_some(label);
        let (future, has_handle) = (self.happens(6), self.draw(3) == 0);
        let shown = label.map(Arc::from);
        let function = Function(|| Ok::<_, ()>(()));
        let stage = Stage::New(std::future::ready(Ok::<_, ()>(())));
        let (job, at): (Arc<dyn Job>, _) = match (future, has_handle) {
            (false, false) => (Arc::new(DetachedCell::new(function, shown)), None),
            (true, false) => (awaits(label), None),
            (false, true) => named(function, shown),
            (true, true) => named(stage, shown),
        };
        self.tasks.push(Task {
            caller,
            group,
            tier,
            is: Is::Waiting,
            is_future: future,
            future: None,
            label,
            at,
            synced: false,
            covered: false,
        });
        (job, has_handle)
    }

    fn posts(&mut self) {
        let caller = self.draw(self.callers.len());
        let count = 1 + self.draw(12);
        let grouped = self.draw(4) < if self.calm { 3 } else { 2 };
        let of = self.draw(4) + 4 * caller;
        let group = grouped.then_some(of);
        let Caller { key, tiered, .. } = self.callers[caller];
        if tiered {
            return;
        }
        let run = (0..count)
            .map(|_| {
                let (job, is_named) = self.make(caller, group, 0);
                Some(waiting(self.tasks.len() as u64, is_named, job))
            })
            .collect();
        let bump = (grouped && self.happens(8)).then_some(7);
        let placing = Placing {
            group: group.map(|g| self.groups[g].key),
            bump,
            ..Placing::default()
        };
        let posted = super::posted(key, placing, run);
        self.event(|state, _, _| state.core.submit_posted(posted));
    }

    fn submits(&mut self) {
        let caller = self.draw(self.callers.len());
        let of = self.draw(4) + 4 * caller;
        let group = (self.draw(2) == 0).then_some(of);
        let tier = if self.happens(4) {
            1 + self.draw(3) as u32
        } else {
            0
        };
        let bump = self.happens(6).then(|| self.draw(256) as u8);
        let key = self.callers[caller].key;
        let placing = Placing {
            group: group.map(|g| self.groups[g].key),
            tier: Some(tier),
            bump,
            ..Placing::default()
        };
        if self.state.core.admits(key, &placing).is_err() {
            return;
        }
        self.callers[caller].tiered |= tier > 0;
        let (job, named) = self.make(caller, group, tier);
        let id = self.tasks.len() as u64;
        self.event(|state, wakes, now| {
            let first = state.core.announce(key, 1);
            assert_eq!(first.0, id);
            state.core.place(key, placing, waiting(id, named, job), now);
            if state.core.is_undercut(key) {
                state.exact(wakes);
            }
        });
    }

    fn one_named(&mut self) -> Option<(usize, Location)> {
        let n = self.draw(self.tasks.len().max(1));
        let at = self.tasks.get(n)?.at.as_ref()?()?;
        Some((n, at))
    }

    fn other(&mut self) {
        let caller = self.draw(self.callers.len());
        let key = self.callers[caller].key;
        let g = self.draw(self.groups.len());
        let group = self.groups[g].key;
        match self.draw(15) {
            0 | 1 => self.cancels_one(),
            2 | 3 => {
                let Some((n, at)) = self.one_named() else {
                    return;
                };
                if !matches!(self.tasks[n].is, Is::Ended(_)) {
                    let level = self.draw(256) as u8;
                    self.event(|state, wakes, _| state.bump(at, level, wakes))
                        .unwrap();
                }
            }
            4 => {
                let level = self.draw(256) as u8;
                self.event(|state, wakes, _| state.exact(wakes).backlog.bump(group, level));
            }
            5 => {
                let level = self.draw(256) as u8;
                self.event(|state, _, _| state.core.backlog.set_level(group, level));
            }
            6 => {
                let most = [Some(0), Some(1), Some(1), Some(2), None][self.draw(5)];
                self.groups[g].limit = most;
                self.event(|state, wakes, _| {
                    state.exact(wakes).backlog.set_limit(group, limit(most))
                });
            }
            7 => {
                let cap = [Some(0), Some(1), Some(4), None, None][self.draw(5)];
                self.callers[caller].cap = cap;
                self.event(|state, wakes, _| state.exact(wakes).set_cap(key, limit(cap)))
                    .unwrap();
            }
            8 => {
                let max = 1 + self.draw(MOST - 1) as u32;
                self.event(|state, wakes, _| state.exact(wakes).workers.set_max(max))
                    .unwrap();
            }
            9 => self.synchronizes(caller),
            10 if self.callers[caller].syncs => {
                self.callers[caller].syncs = false;
                self.tasks
                    .iter_mut()
                    .filter(|t| t.caller == caller)
                    .for_each(|t| t.covered = false);
                _ = self.state.core.caller_mut(key).reopen_epoch();
            }
            11 => self.check_status(),
            12 if self.holds == 0 => {
                self.event(|state, wakes, _| state.exact(wakes).hold());
                self.holds = 1;
            }
            13 if self.draw(4) == 0 => self.cancels_all(caller),
            14 if self.draw(4) == 0 => self.cancels_group(g),
            _ => self.lets_go(),
        }
    }

    fn cancels_one(&mut self) {
        let Some((n, at)) = self.one_named() else {
            return;
        };
        let before = self.tasks[n].is;
        let cancelled = self.event(|state, wakes, now| state.cancel(at, now, wakes));
        let waits = matches!(before, Is::Waiting | Is::Awaiting | Is::InLine);
        assert_eq!(cancelled, waits, "{} is {before:?}", n + 1);
        if before == Is::Running {
            let id = TaskId(n as u64 + 1);
            self.event(|state, _, _| state.core.cancel_running(|_, tag| tag.id == id));
        }
    }

    /// All tasks of a caller that is not released.
    fn cancels_all(&mut self, caller: usize) {
        let key = self.callers[caller].key;
        self.callers[caller].cancelled = self.tasks.len();
        self.event(|state, wakes, now| state.exact(wakes).cancel_all(Some(key), now));
    }

    /// All tasks of a group, and no others.
    fn cancels_group(&mut self, g: usize) {
        let group = self.groups[g].key;
        let waits = |t: &Task| matches!(t.is, Is::Waiting | Is::Awaiting | Is::InLine);
        let before: Vec<_> = self.tasks.iter().map(waits).collect();
        self.event(|state, wakes, now| state.exact(wakes).cancel_group(group, now));
        for (n, (task, waited)) in self.tasks.iter().zip(before).enumerate() {
            let cancelled = task.is == Is::Ended(Ending::Cancelled);
            if waited {
                assert_eq!(cancelled, task.group == Some(g), "{}", n + 1);
            }
        }
    }

    fn synchronizes(&mut self, caller: usize) {
        let key = self.callers[caller].key;
        if self.callers[caller].syncs {
            return;
        }
        let some = self.tasks.iter().any(|t| t.caller == caller && !t.synced);
        let synced = {
            let mut wakes = WakeBatch::new();
            if self.state.core.caller(key).is_claimed() {
                self.state.exact(&mut wakes);
            }
            self.state.core.synchronize(key)
        };
        if let Poll::Ready(Err(_)) = synced {
            assert!(!some);
            return;
        }
        self.callers[caller].syncs = true;
        let of = self
            .tasks
            .iter_mut()
            .filter(|t| t.caller == caller && !t.synced);
        of.for_each(|t| t.covered = true);
        if let Poll::Ready(Ok(summary)) = synced {
            let covered = self
                .tasks
                .iter_mut()
                .filter(|t| t.covered && t.caller == caller);
            let mut tasks = 0;
            for task in covered {
                assert!(matches!(task.is, Is::Ended(_)));
                (task.covered, task.synced, tasks) = (false, true, tasks + 1);
            }
            assert_eq!(summary.tasks, tasks);
            self.callers[caller].syncs = false;
            self.callers[caller].skip_above = None;
        }
        self.event(|_, _, _| ());
    }

    fn wakes(&mut self) {
        let n = self.draw(self.tasks.len().max(1));
        let Some(future) = self.tasks.get(n).and_then(|task| task.future) else {
            return;
        };
        if matches!(self.tasks[n].is, Is::Ended(_)) {
            // A wake-up after the end.
            self.event(|state, _, _| assert!(!state.core.wake_task(future)));
            return;
        }
        if self.tasks[n].is == Is::Awaiting {
            self.tasks[n].is = Is::InLine;
        }
        self.event(|state, _, _| state.core.wake_task(future));
    }

    pub(super) fn comes(&mut self) {
        let n = self.draw(64);
        let mut coming = self.coming.lock().unwrap();
        if coming.is_empty() {
            return;
        }
        let n = n % coming.len();
        let n = coming.swap_remove(n);
        drop(coming);
        self.looks(n);
    }

    pub(super) fn step(&mut self) {
        match self.draw(40) {
            0..4 => self.posts(),
            4 if self.happens(1) => self.submits(),
            5..8 if self.happens(1) => self.other(),
            8..11 => self.wakes(),
            11..16 => self.comes(),
            _ => {
                let n = 1 + self.draw(MOST) as u32;
                self.ends(n);
            }
        }
    }
}
