//! Random steps of workers that claim several tasks at once: what holds when a task begins, and
//! what is known and left of it at its end.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake};
use std::time::Duration;

use super::late::draws;
use crate::backlog::GroupKey;
use crate::limit::{Bypass, Limit};
use crate::scheduler::caller::{CallerOptions, OnFailure};
use crate::scheduler::core::Core;
use crate::scheduler::local_queue::LocalQueue;
use crate::scheduler::outcome::Ending;
use crate::scheduler::state::State;
use crate::scheduler::task_state::{Ended, Location, Tag};
use crate::slab::Key;
use crate::wait::WakeBatch;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Is {
    Waiting,
    Running,
    /// It has begun, and waits to be woken, or is in line again.
    Awaiting,
    InLine,
    Ended(Ending),
}

pub(super) type At = Box<dyn Fn() -> Option<Location>>;

pub(super) struct Task {
    pub(super) caller: usize,
    pub(super) group: Option<usize>,
    pub(super) tier: u32,
    pub(super) is: Is,
    pub(super) is_future: bool,
    pub(super) future: Option<Key>,
    pub(super) label: Option<&'static str>,
    pub(super) at: Option<At>,
    pub(super) synced: bool,
    pub(super) covered: bool,
}

pub(super) struct Caller {
    pub(super) key: Key,
    pub(super) cap: Option<u32>,
    pub(super) skips: bool,
    pub(super) skip_above: Option<u32>,
    pub(super) tiered: bool,
    /// A synchronize is under way.
    pub(super) syncs: bool,
    pub(super) cancelled: usize,
}

pub(super) struct Group {
    pub(super) key: GroupKey,
    pub(super) limit: Option<u32>,
}

pub(super) struct Busy {
    pub(super) tag: Tag,
    pub(super) queue: Arc<LocalQueue>,
}

pub(super) struct WakesWorker(pub(super) u32, pub(super) Arc<Mutex<Vec<u32>>>);

impl Wake for WakesWorker {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

pub(super) struct World {
    pub(super) state: State,
    pub(super) now: Duration,
    pub(super) draw: Box<dyn FnMut(usize) -> usize>,
    pub(super) callers: Vec<Caller>,
    pub(super) groups: Vec<Group>,
    pub(super) tasks: Vec<Task>,
    pub(super) busy: Vec<Option<Busy>>,
    pub(super) coming: Arc<Mutex<Vec<u32>>>,
    pub(super) holds: u32,
    /// The most tasks of a claim.
    pub(super) claims: u32,
    /// Hardly anything happens but submissions and endings, so workers claim many at once.
    pub(super) calm: bool,
}

/// The most workers.
pub(super) const MOST: usize = 8;

pub(super) fn limit(most: Option<u32>) -> Limit {
    most.map_or(Limit::Unlimited, Limit::AtMost)
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = draws(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let calm = draw(2) == 0;
        let workers = 1 + draw(if calm { 2 } else { 4 }) as u32;
        let bypass = [Bypass::AtMost(0), Bypass::AtMost(2), Bypass::Unbounded][draw(3)];
        let mut core = Core::new(workers, bypass).unwrap();
        core.records = !calm && draw(4) == 0;
        let claims = [1, 2, 4, 9, 32][if calm { 2 + draw(3) } else { draw(5) }];
        let (mut callers, mut groups) = (vec![], vec![]);
        for _ in 0..1 + draw(if calm { 1 } else { 3 }) {
            let skips = draw(2) == 0;
            let cap = [None, Some(1), Some(3)][if calm { 0 } else { draw(3) }];
            let options = CallerOptions {
                weight: 1 + draw(5) as u32,
                cap: limit(cap),
                on_failure: if skips {
                    OnFailure::SkipHigherTiers
                } else {
                    OnFailure::Continue
                },
                ..CallerOptions::default()
            };
            let key = core.add_caller(Arc::from("one"), &options).unwrap();
            callers.push(Caller {
                key,
                cap,
                skips,
                skip_above: None,
                tiered: false,
                syncs: false,
                cancelled: 0,
            });
            for most in [1, 1, 1, 2 - u32::from(calm)].map(Some) {
                let level = [100, 200][usize::from(!calm && draw(4) == 0)];
                let key = core.add_group(key, limit(most), level).unwrap();
                groups.push(Group { key, limit: most });
            }
        }
        Self {
            state: State::new(core, claims),
            now: Duration::from_secs(1),
            draw: Box::new(draw),
            callers,
            groups,
            tasks: vec![],
            busy: (0..=MOST).map(|_| None).collect(),
            coming: Arc::default(),
            holds: 0,
            claims,
            calm,
        }
    }

    pub(super) fn draw(&mut self, below: usize) -> usize {
        (self.draw)(below)
    }

    /// True once in so many times; seldom in a calm world.
    pub(super) fn happens(&mut self, one_in: usize) -> bool {
        let one_in = if self.calm { 20 * one_in } else { one_in };
        self.draw(one_in) == 0
    }

    /// An event, and what follows from it.
    pub(super) fn event<R>(
        &mut self,
        f: impl FnOnce(&mut State, &mut WakeBatch, Duration) -> R,
    ) -> R {
        self.now += Duration::from_millis(1);
        let mut wakes = WakeBatch::new();
        let result = f(&mut self.state, &mut wakes, self.now);
        self.follow(wakes);
        self.check_synced(false);
        result
    }

    fn follow(&mut self, mut wakes: WakeBatch) {
        while !self.state.decide(&mut wakes) {
            wakes.fire();
        }
        wakes.fire();
        let todo = std::mem::take(&mut self.state.core.todo);
        self.coming.lock().unwrap().extend(todo.to_start);
        for Ended { tag, ending, .. } in todo.ended {
            let task = &mut self.tasks[tag.id.0 as usize - 1];
            match ending {
                Ending::Skipped => {
                    assert_eq!(task.is, Is::Waiting, "{} is skipped", tag.id);
                    let above = self.callers[task.caller].skip_above;
                    assert!(above.is_some_and(|above| task.tier > above));
                }
                _ => assert_eq!(ending, Ending::Cancelled),
            }
            assert!(
                !matches!(task.is, Is::Running | Is::Ended(_)),
                "{}: {:?}",
                tag.id,
                task.is
            );
            task.is = Is::Ended(ending);
            let mut wakes = WakeBatch::new();
            self.state.core.dropped(tag, ending, &mut wakes);
            self.follow(wakes);
        }
    }

    /// A synchronize is ready once all its tasks have ended, and not before.
    pub(super) fn check_synced(&mut self, hidden: bool) {
        for n in 0..self.callers.len() {
            if !self.callers[n].syncs {
                continue;
            }
            let covered = self.tasks.iter().filter(|t| t.caller == n && t.covered);
            let all = covered.clone().all(|t| matches!(t.is, Is::Ended(_)));
            assert!(
                !(all && hidden),
                "an ending is hidden that somebody waits for"
            );
            let key = self.callers[n].key;
            match self.state.core.caller_mut(key).synced() {
                Poll::Ready(Ok(summary)) => {
                    assert!(all);
                    let count = |how| covered.clone().filter(|t| t.is == Is::Ended(how)).count();
                    assert_eq!(summary.tasks, covered.clone().count() as u64);
                    assert_eq!(summary.ok, count(Ending::Ok) as u64);
                    assert_eq!(summary.failed, count(Ending::Failed) as u64);
                    assert_eq!(summary.cancelled, count(Ending::Cancelled) as u64);
                    assert_eq!(summary.skipped, count(Ending::Skipped) as u64);
                    let first = summary.first_failure;
                    assert!(first.is_none_or(|id| self.tasks[id.0 as usize - 1].covered));
                    for task in self.tasks.iter_mut().filter(|t| t.caller == n && t.covered) {
                        (task.covered, task.synced) = (false, true);
                    }
                    let mut rest = self.tasks.iter().filter(|t| t.caller == n && !t.synced);
                    if rest.all(|t| t.is != Is::Ended(Ending::Failed)) {
                        self.callers[n].skip_above = None;
                    }
                    self.callers[n].syncs = false;
                }
                Poll::Ready(error) => panic!("{error:?}"),
                Poll::Pending => assert!(!all, "all has ended, and the synchronize waits"),
            }
        }
    }

    /// Tasks that have begun and not ended.
    pub(super) fn begun(&self, of: impl Fn(&Task) -> bool) -> u32 {
        let begun = |t: &&Task| matches!(t.is, Is::Running | Is::Awaiting | Is::InLine);
        self.tasks.iter().filter(begun).filter(|t| of(t)).count() as u32
    }

    /// A task begins, or goes on.
    pub(super) fn starts(&mut self, n: u32, tag: Tag) {
        assert_eq!(self.holds, 0, "{} starts under a hold", tag.id);
        let at = tag.id.0 as usize - 1;
        let Task {
            caller,
            group,
            tier,
            is,
            ..
        } = self.tasks[at];
        match is {
            Is::Waiting => {
                let waits = |t: &Task| t.is == Is::Waiting;
                if let Some(g) = group {
                    let most = self.groups[g].limit;
                    let begun = self.begun(|t| t.group == group);
                    assert!(
                        most.is_none_or(|most| begun < most),
                        "{}: its group is full",
                        tag.id
                    );
                    let first = self.tasks.iter().position(|t| t.group == group && waits(t));
                    if most == Some(1) || self.claims == 1 {
                        assert_eq!(first, Some(at), "the first of its group, one above");
                    }
                }
                let c = &self.callers[caller];
                let begun = self.begun(|t| t.caller == caller);
                assert!(c.cap.is_none_or(|cap| begun < cap), "{}: the cap", tag.id);
                assert!(c.skip_above.is_none_or(|above| tier <= above));
                assert!(at >= c.cancelled, "{} was cancelled", tag.id);
                let mut others = self.tasks.iter().filter(|t| t.caller == caller);
                let shuts = |t: &Task| match t.is {
                    Is::Waiting => t.tier < tier,
                    Is::Ended(_) => false,
                    _ => t.tier != tier,
                };
                assert!(!others.any(shuts), "{}: another tier", tag.id);
            }
            Is::InLine => {}
            _ => panic!("{} is {is:?}", tag.id),
        }
        assert_eq!(tag.future.is_some(), self.tasks[at].is_future);
        self.tasks[at].is = Is::Running;
        self.tasks[at].future = tag.future;
        assert!(self.busy[n as usize].is_none());
    }

    pub(super) fn check_status(&mut self) {
        let status = self.event(|state, wakes, _| state.exact(wakes).status(0));
        let running: BTreeSet<_> = status.running.iter().map(|t| (t.id.0, t.worker)).collect();
        let busy = (0..).zip(&self.busy);
        let busy = busy.filter_map(|(n, busy)| Some((busy.as_ref()?.tag.id.0, n)));
        assert_eq!(running, busy.collect());
        for task in &status.running {
            let known = &self.tasks[task.id.0 as usize - 1];
            assert_eq!(
                (task.label.as_deref(), task.tier),
                (known.label, known.tier),
                "{}",
                task.id
            );
            let group = known.group.map(|g| self.groups[g].key);
            assert_eq!(task.group.map(|group| group.key), group);
        }
        let waiting: BTreeSet<_> = status.waiting.iter().map(|t| t.id.0).collect();
        let waits = |t: &Task| matches!(t.is, Is::Waiting | Is::Awaiting | Is::InLine);
        let known = (1..).zip(&self.tasks).filter(|(_, t)| waits(t));
        assert_eq!(waiting, known.map(|(id, _)| id).collect());
        let left = self
            .tasks
            .iter()
            .filter(|t| !matches!(t.is, Is::Ended(_)))
            .count();
        assert_eq!(self.state.core.unfinished, left as u64);
        let awaits = self.tasks.iter().filter(|t| t.is == Is::Awaiting).count();
        assert_eq!(self.state.core.suspended, awaits as u64);
        for (n, caller) in (0..).zip(&self.callers) {
            let lane = self
                .state
                .core
                .backlog
                .lane(self.state.core.caller(caller.key).lane);
            assert_eq!(lane.in_use, self.begun(|t| t.caller == n));
        }
    }

    pub(super) fn lets_go(&mut self) {
        if self.holds > 0 {
            self.holds = 0;
            self.event(|state, _, _| state.core.unhold());
        }
    }

    pub(super) fn settle(&mut self) {
        while !self.coming.lock().unwrap().is_empty() || self.busy.iter().any(Option::is_some) {
            self.comes();
            (1..=MOST as u32).for_each(|n| self.ends(n));
        }
    }

    fn drain(mut self) {
        self.lets_go();
        self.settle();
        // No worker rests while a task can start.
        assert_eq!(self.state.core.startable(9), 0, "nobody comes");
        for g in 0..self.groups.len() {
            let group = self.groups[g].key;
            self.groups[g].limit = Some(1);
            self.event(|state, wakes, _| {
                state.exact(wakes).backlog.set_limit(group, Limit::SERIAL)
            });
        }
        for c in 0..self.callers.len() {
            let key = self.callers[c].key;
            self.callers[c].cap = None;
            self.event(|state, wakes, _| state.exact(wakes).set_cap(key, Limit::Unlimited))
                .unwrap();
        }
        loop {
            self.settle();
            let awaiting = self.tasks.iter().position(|t| t.is == Is::Awaiting);
            let Some(n) = awaiting else { break };
            let future = self.tasks[n].future.unwrap();
            self.tasks[n].is = Is::InLine;
            self.event(|state, _, _| state.core.wake_task(future));
        }
        for (id, task) in (1..).zip(&self.tasks) {
            assert!(matches!(task.is, Is::Ended(_)), "{id} is {:?}", task.is);
        }
        self.check_status();
        let core = &self.state.core;
        assert_eq!((core.unfinished, core.suspended, core.underway), (0, 0, 0));
        assert!(core.futures.len() == 0 && core.stalls.is_empty());
        assert_eq!((core.backlog.waiting(), core.backlog.in_flight()), (0, 0));
        let ended = core.ended_so_far;
        let sum = ended.ok + ended.failed + ended.cancelled + ended.skipped;
        assert_eq!(sum as usize, self.tasks.len());
    }
}

#[test]
fn each_task_begins_where_it_may_and_ends_once() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        let steps = 20 + world.draw(500);
        (0..steps).for_each(|_| world.step());
        world.drain();
    }
}
