//! Delayed tasks, in virtual time: they block nothing and arrive on time, and a worker keeps the
//! time.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::limit::{Bypass, Limit};
use crate::scheduler::caller::{CallerOptions, OnFailure};
use crate::scheduler::clock::TimeKeeper;
use crate::scheduler::core::Core;
use crate::scheduler::outcome::Ending;
use crate::scheduler::stall::Target;
use crate::scheduler::status::Why;
use crate::scheduler::task_state::{Location, Placing};
use crate::slab::Key;
use crate::wait::{Waiters, WakeBatch};

struct World {
    core: Core<&'static str>,
    caller: Key,
    wakes: WakeBatch,
    now: Duration,
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl World {
    fn new(workers: u32, failures: OnFailure) -> Self {
        let mut core = Core::new(workers, Bypass::default()).unwrap();
        core.clock.keeps = TimeKeeper::Workers;
        let options = CallerOptions {
            on_failure: failures,
            ..CallerOptions::default()
        };
        let caller = core.add_caller(Arc::from("main"), &options);
        Self {
            core,
            caller: caller.unwrap(),
            wakes: WakeBatch::new(),
            now: Duration::ZERO,
        }
    }

    fn group(&mut self) -> GroupKey {
        self.core
            .add_group(self.caller, Limit::SERIAL, 100)
            .unwrap()
    }

    fn submit(&mut self, name: &'static str, placing: Placing) -> Location {
        assert_eq!(self.core.admits(self.caller, &placing), Ok(()));
        let task = self.core.submit(self.caller, placing, name, self.now);
        self.settle();
        task
    }

    /// In seconds from now.
    fn later(&mut self, name: &'static str, after: u64) -> Location {
        let after = at(after);
        self.submit(
            name,
            Placing {
                after,
                ..Placing::default()
            },
        )
    }

    fn go_to(&mut self, seconds: u64) {
        self.now = at(seconds);
        self.core.advance(self.now);
        self.settle();
    }

    fn settle(&mut self) {
        assert!(self.core.decide(&mut self.wakes));
        self.wakes.fire();
    }

    /// One worker runs all tasks that can start, one after the other.
    fn run(&mut self) -> Vec<&'static str> {
        let mut done = Vec::new();
        while let Some(started) = self.core.claim(1, self.now) {
            done.push(started.job);
            self.core
                .finish(1, started.tag, Ending::Ok, self.now, &mut self.wakes);
            self.settle();
        }
        done
    }

    /// Worker `n` finds nothing and rests: until when, if it keeps the time.
    fn rests(&mut self, n: u32) -> Option<Duration> {
        assert!(self.core.claim(n, self.now).is_none());
        let due = self.core.clock.keep(n);
        self.core.rest(n, Some(Waker::noop().clone()));
        self.settle();
        due
    }

    fn sent_for(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.core.todo.to_start)
    }

    fn why(&self) -> Vec<Why> {
        let waiting = self.core.status(0).waiting;
        waiting.into_iter().map(|task| task.why).collect()
    }
}

#[test]
fn it_starts_when_it_is_due_and_not_before() {
    let mut world = World::new(1, OnFailure::Continue);
    world.later("ten", 10);
    world.later("five", 5);
    world.submit("now", Placing::default());
    assert_eq!(world.run(), ["now"]);
    let due = |seconds| Why::NotDue { due: at(seconds) };
    assert_eq!(world.why(), [due(10), due(5)]);
    world.go_to(4);
    assert!(world.run().is_empty());
    world.go_to(5);
    assert_eq!(world.run(), ["five"]);
    world.go_to(60);
    assert_eq!(world.run(), ["ten"]);
    assert_eq!(world.core.next_due(), None);
}

/// Others of its group and tier start as if it were not there.
#[test]
fn until_it_is_due_it_blocks_nothing() {
    let mut world = World::new(1, OnFailure::Continue);
    let group = world.group();
    let placing = |tier, after| Placing {
        tier: Some(tier),
        group: Some(group),
        after: at(after),
        ..Placing::default()
    };
    world.submit("low, later", placing(0, 5));
    world.submit("first", placing(1, 0));
    world.submit("high", placing(2, 0));
    assert_eq!(world.run(), ["first", "high"]);
    // No other task of the group is outstanding, so it stays in its own tier.
    world.go_to(5);
    let high = world.submit("high again", placing(2, 0));
    assert_eq!(world.run(), ["low, later", "high again"]);
    assert!(!world.core.cancel(high, world.now));
    // If the group's last task is in a higher tier, it goes there.
    world.submit("raised", placing(0, 5));
    world.submit("before", placing(3, 0));
    world.go_to(10);
    assert_eq!(world.core.status(0).waiting[0].tier, 3);
    assert_eq!(world.run(), ["before", "raised"]);
}

#[test]
fn a_synchronize_covers_it_from_its_submission() {
    let mut world = World::new(1, OnFailure::Continue);
    world.later("later", 5);
    assert!(matches!(
        world.core.synchronize(world.caller),
        Poll::Pending
    ));
    world.go_to(5);
    assert_eq!(world.run(), ["later"]);
    let synced = world.core.caller_mut(world.caller).synced();
    assert!(matches!(synced, Poll::Ready(Ok(summary)) if summary.tasks == 1));
}

/// One without a group, and one that alone keeps its group.
#[test]
fn it_can_be_cancelled_and_leaves_nothing() {
    let mut world = World::new(1, OnFailure::Continue);
    let later = world.later("later", 5);
    let group = world.group();
    let placing = Placing {
        group: Some(group),
        after: at(7),
        ..Placing::default()
    };
    let in_group = world.submit("kept", placing);
    world.core.backlog.unpin(group);
    let World {
        core, wakes, now, ..
    } = &mut world;
    assert!(core.cancel(later, *now));
    assert!(!core.cancel(later, *now));
    assert_eq!(core.next_due(), Some(at(7)));
    assert!(core.backlog.contains(group));
    assert_eq!(core.retract(in_group, wakes), Some("kept"));
    assert!(!core.backlog.contains(group));
    assert_eq!(core.next_due(), None);
    assert_eq!(core.backlog.group_count(), 0);
    let ended: Vec<_> = core.todo.ended.drain(..).map(|ended| ended.job).collect();
    assert_eq!(ended, ["later"]);
    world.go_to(9);
    assert!(world.run().is_empty());
}

/// If its tier is too high, it is skipped at once.
#[test]
fn a_failure_skips_it() {
    let mut world = World::new(1, OnFailure::SkipHigherTiers);
    let placing = |tier, after| Placing {
        tier,
        after: at(after),
        ..Placing::default()
    };
    let [above, lowest] = [Some(2), None].map(|tier| world.submit("later", placing(tier, 5)));
    world.submit("fails", placing(Some(1), 0));
    let failing = world.core.claim(1, world.now).unwrap();
    let World {
        core, wakes, now, ..
    } = &mut world;
    let failed = Ending::Failed;
    core.finish(1, failing.tag, failed, *now, wakes);
    assert!(!core.cancel(above, *now));
    assert_eq!(core.todo.ended.last().unwrap().ending, Ending::Skipped);
    let new = world.submit("new", placing(Some(2), 1));
    assert_eq!(world.core.find_waiting(None, |_, _| true), [lowest]);
    assert!(!world.core.cancel(new, world.now));
    world.go_to(5);
    assert_eq!(world.run(), ["later"]);
}

/// It is requested for that; when it gets work, another one keeps the time.
#[test]
fn one_worker_keeps_the_time() {
    let mut world = World::new(3, OnFailure::Continue);
    world.later("ten", 10);
    assert_eq!(world.sent_for(), [1], "to keep the time");
    assert_eq!(world.rests(1), Some(at(10)));
    world.later("twenty", 20);
    assert!(world.sent_for().is_empty());
    // Due before the keeper would wake up: it is woken, and sleeps for less.
    world.later("five", 5);
    assert_eq!(world.core.workers.coming(), 1);
    assert_eq!(world.rests(1), Some(at(5)));
    // It gets work, so another worker is requested to keep the time.
    world.submit("work", Placing::default());
    let work = world.core.claim(1, world.now).unwrap();
    world.settle();
    assert_eq!(world.sent_for(), [2]);
    assert_eq!(world.rests(2), Some(at(5)));
    let World {
        core, wakes, now, ..
    } = &mut world;
    core.finish(1, work.tag, Ending::Ok, *now, wakes);
    assert_eq!(world.rests(1), None, "the other keeps the time");
    // When that one leaves, the first keeps the time.
    world.core.retire(2);
    world.settle();
    assert_eq!(world.core.workers.coming(), 1);
    assert_eq!(world.rests(1), Some(at(5)));
    assert!(world.sent_for().is_empty());
}

#[test]
fn workers_leave_a_closed_scheduler_without_delayed_tasks() {
    let mut world = World::new(2, OnFailure::Continue);
    world.later("later", 10);
    assert_eq!(world.sent_for(), [1]);
    assert_eq!(world.rests(1), Some(at(10)));
    assert!(world.core.close(None).is_none());
    world.settle();
    assert!(!world.core.workers.must_leave());
    world.go_to(10);
    assert_eq!(world.run(), ["later"]);
    assert!(world.core.workers.must_leave());
    world.core.retire(1);
    world.settle();
    assert!(world.sent_for().is_empty());
    assert!(world.core.close(None).is_some());
}

/// The announced task may have a delay.
#[test]
fn no_worker_leaves_a_closed_scheduler_while_a_task_is_announced() {
    let mut world = World::new(1, OnFailure::Continue);
    world.core.underway = 1;
    world.core.close(None);
    world.settle();
    assert!(!world.core.workers.must_leave());
    world.core.underway = 0;
    world.settle();
    assert!(world.core.workers.must_leave());
}

/// The delayed task may end the wait of the blocked one, if another worker can run it.
#[test]
fn no_wait_stalls_while_another_worker_could_run_a_delayed_task() {
    for (workers, stalls) in [(1, true), (2, false)] {
        let mut world = World::new(workers, OnFailure::Continue);
        world.submit("waits", Placing::default());
        assert!(world.core.claim(1, world.now).is_some());
        world.later("later", 10);
        let (later, waker) = (Target::Task(world.core.last), Waker::noop());
        world.core.block(1, vec![later], waker, false);
        world.settle();
        assert_eq!(world.core.stalls.gives_up(1), stalls);
    }
}

/// One task waits for room that is there, but does not know yet: it may end the other's wait.
#[test]
fn no_wait_stalls_while_another_is_to_get_room() {
    let (mut ticket, waker) = (None, Waker::noop());
    let mut clone = Some(waker.clone());
    assert!(Waiters::new().enqueue((), &mut ticket, waker, &mut clone));
    for (room, stalls) in [(false, true), (true, false)] {
        let mut world = World::new(2, OnFailure::Continue);
        for n in 1..=2 {
            world.submit("waits", Placing::default());
            assert!(world.core.claim(n, world.now).is_some());
        }
        let target = match room {
            true => Target::Room(world.caller, ticket.unwrap()),
            false => Target::Shutdown,
        };
        world.core.block(1, vec![target], waker, false);
        world.core.block(2, vec![Target::Shutdown], waker, false);
        world.settle();
        assert_eq!(world.core.stalls.gives_up(2), stalls);
    }
}

#[test]
fn a_bump_before_it_is_due_takes_effect_when_it_is() {
    let mut world = World::new(1, OnFailure::Continue);
    let task = world.later("bumped", 5);
    world.core.bump(task, 1).unwrap();
    world.submit("first", Placing::default());
    world.go_to(5);
    assert_eq!(world.run(), ["bumped", "first"]);
}
