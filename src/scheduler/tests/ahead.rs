//! What readers have taken ahead, step by step: when it goes back, and what the
//! books say of it.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::limit::{Bypass, Limit};
use crate::scheduler::books::{Books, Ran, Taken, Tray};
use crate::scheduler::caller::{OnFailure, Synced};
use crate::scheduler::cell::Cell;
use crate::scheduler::core::{Core, Placing};
use crate::scheduler::outcome::Ending;
use crate::scheduler::stall::Target;
use crate::scheduler::state::Started;
use crate::scheduler::status::Why;
use crate::slab::Key;
use crate::wait::WakeBatch;

type Work = Arc<dyn crate::scheduler::cell::Job>;

struct World {
    books: Books,
    caller: Key,
    wakes: WakeBatch,
    now: Duration,
    /// By number, from 1.
    tasks: Vec<Key>,
}

impl World {
    fn new(readers: u32, claims: u32) -> Self {
        let mut core = Core::new(readers, Bypass::default()).unwrap();
        let (name, failures) = (Arc::from("main"), OnFailure::Continue);
        let caller = core.add_caller(name, 1, Limit::Unlimited, failures);
        Self {
            books: Books::new(core, claims),
            caller: caller.unwrap(),
            wakes: WakeBatch::new(),
            now: Duration::ZERO,
            tasks: vec![],
        }
    }

    fn with_tasks(readers: u32, claims: u32, tasks: usize) -> Self {
        let mut world = Self::new(readers, claims);
        world.submit(tasks);
        world
    }

    fn submit(&mut self, tasks: usize) {
        for _ in 0..tasks {
            let job: Work = Arc::new(Cell::new(|| Ok::<(), ()>(())));
            let task = self
                .books
                .submit(self.caller, Placing::default(), job, self.now);
            self.tasks.push(task.ok().unwrap());
        }
    }

    fn task(&self, n: usize) -> Key {
        self.tasks[n - 1]
    }

    fn number(&self, task: Key) -> usize {
        1 + self.tasks.iter().position(|&t| t == task).unwrap()
    }

    fn claim(&mut self, reader: u32, most: u32) -> Option<(usize, Option<Arc<Tray>>)> {
        self.now += Duration::from_secs(1);
        let taken = self.books.claim(reader, most, self.now, &mut self.wakes);
        taken.map(|Taken { first, tray }| (self.number(first.task), tray))
    }

    fn ran(&self, n: usize, ending: Ending) -> Ran {
        let (task, start, end) = (self.task(n), self.now, self.now);
        Ran {
            task,
            ending,
            start,
            end,
        }
    }

    fn finish(&mut self, reader: u32, n: usize) -> Option<usize> {
        let ran = self.ran(n, Ending::Ok);
        let taken = self.books.finish(reader, ran, self.now, &mut self.wakes);
        taken.map(|taken| self.number(taken.first.task))
    }

    /// The reader goes on with its tray: the number of the next.
    fn next(&mut self, tray: &Tray, reader: u32, n: usize) -> Option<usize> {
        self.now += Duration::from_secs(1);
        let next = tray.next(reader, self.ran(n, Ending::Ok));
        next.ok().map(|Started { task, .. }| self.number(task))
    }

    fn has_ended(&self, n: usize) -> bool {
        self.books.ending(self.task(n)).1.is_some()
    }

    /// The numbers of those that run and that wait, as the status has it.
    fn status(&mut self) -> (Vec<u64>, Vec<u64>) {
        let status = self.books.exact(&mut self.wakes).status(0);
        assert!(status.waiting.iter().all(|t| t.why == Why::Reader));
        let waiting = status.waiting.iter().map(|t| t.id.get());
        let running = status.running.iter().map(|t| t.id.get());
        (running.collect(), waiting.collect())
    }

    /// All that the reader takes from its tray, from task `n` on.
    fn rest(&mut self, tray: &Tray, reader: u32, mut n: usize) -> Vec<usize> {
        let mut all = vec![];
        while let Some(next) = self.next(tray, reader, n) {
            all.push(next);
            n = next;
        }
        all
    }
}

#[test]
fn a_reader_takes_its_share_in_order_and_at_most_what_it_may() {
    for (readers, claims, most, tasks, takes) in [
        (2, 8, 99, 20, 8),
        (2, 8, 5, 20, 5),
        (2, 8, 99, 8, 4),
        (2, 8, 99, 4, 2),
        (2, 8, 99, 3, 1),
        (2, 1, 99, 20, 1),
        (1, 8, 99, 3, 3),
        (1, 8, 1, 3, 1),
        (64, 8, 99, 127, 1),
    ] {
        let mut world = World::with_tasks(readers, claims, tasks);
        let (first, tray) = world.claim(1, most).unwrap();
        assert_eq!((first, tray.is_some()), (1, takes > 1), "{tasks} tasks");
        if let Some(tray) = tray {
            let rest: Vec<usize> = (2..=takes).collect();
            assert_eq!(world.rest(&tray, 1, 1), rest, "{tasks} tasks");
        }
    }
}

/// The rest calls for every other reader.
#[test]
fn who_takes_ahead_leaves_work_for_every_reader_that_is_free() {
    for readers in 1..10 {
        for tasks in 1..100 {
            let mut world = World::with_tasks(readers, 1_000, tasks);
            let (_, tray) = world.claim(1, 1_000).unwrap();
            let left = world.books.startable(u64::MAX);
            assert!(tray.is_none() || left + 1 >= u64::from(readers));
            assert!(world.books.settle(&mut world.wakes));
            let sent_for = world.books.to_start.len() as u64;
            assert_eq!(sent_for, left.min(u64::from(readers) - 1));
        }
    }
}

#[test]
fn what_has_not_started_waits_and_goes_back_to_its_place() {
    let mut world = World::with_tasks(2, 4, 10);
    let (first, tray) = world.claim(1, 4).unwrap();
    let tray = tray.unwrap();
    assert_eq!(world.next(&tray, 1, first), Some(2));
    // 1 has ended, 2 runs, 3 and 4 are the reader's, and all that is seen.
    assert_eq!(world.status(), (vec![2], (3..=10).collect()));
    assert!(world.has_ended(1));
    assert_eq!(world.next(&tray, 1, 2), None, "they went back");
    assert_eq!(world.finish(1, 2), None);
    let order: Vec<usize> = (0..8).map(|_| world.claim(1, 1).unwrap().0).collect();
    assert_eq!(order, (3..=10).collect::<Vec<_>>());
}

#[test]
fn the_times_of_what_ran_on_a_tray_are_its_own() {
    let mut world = World::with_tasks(1, 4, 4);
    let (first, tray) = world.claim(1, 4).unwrap();
    let tray = tray.unwrap();
    let begun = world.now + Duration::from_secs(1);
    world.next(&tray, 1, first);
    let status = world.books.exact(&mut world.wakes).status(0);
    assert_eq!(
        (status.running[0].id.get(), status.running[0].start),
        (2, begun)
    );
    let run = world.books.ending(world.task(1)).1.unwrap().1.unwrap();
    assert_eq!((run.reader, run.end), (1, begun));
}

#[test]
fn only_what_has_not_started_can_be_cancelled() {
    let mut world = World::with_tasks(2, 4, 10);
    let (first, tray) = world.claim(1, 4).unwrap();
    let tray = tray.unwrap();
    world.next(&tray, 1, first);
    for (n, cancels) in [(1, false), (2, false), (4, true), (4, false)] {
        let (task, now) = (world.task(n), world.now);
        let exact = world.books.exact_for(task, &mut world.wakes);
        assert_eq!(
            exact.cancel(task, now, &mut WakeBatch::new()),
            cancels,
            "{n}"
        );
    }
    assert_eq!(world.finish(1, 2), None);
    assert_eq!(world.claim(1, 1).unwrap().0, 3);
    assert_eq!(world.claim(2, 1).unwrap().0, 5);
}

/// The first that a reader takes is running for all that the books know.
#[test]
fn who_asks_for_one_that_has_run_is_told_so() {
    for n in [1, 2] {
        let mut world = World::with_tasks(1, 4, 4);
        let (first, tray) = world.claim(1, 4).unwrap();
        let tray = tray.unwrap();
        (1..=n).for_each(|n| _ = world.next(&tray, 1, first + n - 1));
        let task = world.task(n);
        let exact = world.books.exact_for(task, &mut world.wakes);
        assert!(exact.ending(task).1.is_some(), "{n} of 4");
        assert!(exact.bump(task, 1).is_err());
    }
}

#[test]
fn who_finds_nothing_takes_what_another_has_not_started() {
    let mut world = World::with_tasks(1, 4, 4);
    let (_, tray) = world.claim(1, 4).unwrap();
    assert!(tray.is_some() && world.books.startable(u64::MAX) == 0);
    world.books.set_readers(2).unwrap();
    let (second, _) = world.claim(2, 1).unwrap();
    assert_eq!(second, 2);
    assert!(world.books.are_exact());
    assert_eq!(world.next(&tray.unwrap(), 1, 1), None);
    assert_eq!(world.finish(1, 1), None);
    assert_eq!(world.claim(1, 1).unwrap().0, 3);
}

/// A reader's task takes for ever; meanwhile there is always something for the
/// other one.
#[test]
fn what_stands_behind_a_long_task_is_overtaken_by_so_many_and_no_more() {
    let mut world = World::with_tasks(2, 4, 100);
    world.claim(1, 4).unwrap();
    let mut overtook = 0;
    loop {
        let (n, tray) = world.claim(2, 4).unwrap();
        if n == 2 {
            break;
        }
        let last = match tray {
            Some(tray) => *world.rest(&tray, 2, n).last().unwrap(),
            None => n,
        };
        overtook += last - n + 1;
        assert_eq!(world.finish(2, last), None);
    }
    assert_eq!(overtook, 16, "twice what two readers may have");
}

#[test]
fn a_task_that_blocks_has_nothing_behind_it() {
    // With one reader nothing can go on, and that is seen.
    for readers in [1, 2] {
        let mut world = World::with_tasks(readers, 4, 8);
        let (_, tray) = world.claim(1, 4).unwrap();
        assert!(tray.is_some());
        let target = Target::Task(world.task(2));
        world.books.exact(&mut world.wakes).block(1, target);
        assert!(world.books.settle(&mut world.wakes));
        assert_eq!(world.books.is_stalled(1), readers == 1);
        if readers == 2 {
            assert_eq!(world.claim(2, 4).unwrap().0, 2);
        }
    }
}

#[test]
fn one_that_is_waited_for_is_the_last_that_a_reader_takes() {
    let mut world = World::with_tasks(1, 8, 8);
    let waited = world.task(3);
    *world.books.task_waker(waited) = Some(Waker::noop().clone());
    let (_, tray) = world.claim(1, 8).unwrap();
    assert_eq!(world.rest(&tray.unwrap(), 1, 1), [2, 3]);
    assert_eq!(world.finish(1, 3), None);
    assert_eq!(world.claim(1, 1).unwrap().0, 4);
}

#[test]
fn a_synchronize_does_not_wait_for_a_later_task() {
    let mut world = World::with_tasks(1, 8, 4);
    assert_eq!(world.books.synchronize(world.caller), Synced::NotYet);
    world.submit(10);
    let (_, tray) = world.claim(1, 8).unwrap();
    assert_eq!(world.rest(&tray.unwrap(), 1, 1), [2, 3, 4]);
    world.finish(1, 4);
    let synced = world.books.synchronized(world.caller);
    assert!(matches!(synced, Synced::Done(summary) if summary.ok == 4));
}

/// Reader 1 has run 1 and runs 2, which is not covered; who has taken the last
/// task that is, or cancelled it, clears the other's tray.
#[test]
fn who_takes_the_last_that_a_synchronize_covers_brings_in_the_others() {
    for cancels in [false, true] {
        let mut world = World::with_tasks(2, 8, 1);
        let other =
            world
                .books
                .add_caller(Arc::from("other"), 1, Limit::Unlimited, OnFailure::Continue);
        let main = std::mem::replace(&mut world.caller, other.unwrap());
        world.submit(1);
        world.caller = main;
        world.submit(1);
        world.books.synchronize(main);
        world.submit(9);
        let (first, tray) = world.claim(1, 2).unwrap();
        assert_eq!(world.next(&tray.unwrap(), 1, first), Some(2));
        assert!(!world.has_ended(1));
        if cancels {
            let (task, now) = (world.task(3), world.now);
            world.books.cancel(task, now, &mut world.wakes);
            assert!(world.books.settle(&mut world.wakes));
            let synced = world.books.synchronized(main);
            assert!(matches!(synced, Synced::Done(s) if (s.ok, s.cancelled) == (1, 1)));
        } else {
            assert_eq!(world.claim(2, 1).unwrap().0, 3);
        }
        assert!(world.has_ended(1));
    }
}

#[test]
fn a_failure_is_told_at_once_and_the_reader_goes_on_with_its_tray() {
    let mut world = World::with_tasks(1, 4, 4);
    let (_, tray) = world.claim(1, 4).unwrap();
    let tray = tray.unwrap();
    for ending in [Ending::Failed, Ending::Panicked] {
        let told = tray.next(1, world.ran(1, ending));
        assert_eq!(told.err().unwrap().ending, ending);
    }
    let ran = world.ran(1, Ending::Failed);
    let taken = world.books.finish(1, ran, world.now, &mut world.wakes);
    let Taken { first, tray } = taken.unwrap();
    assert_eq!(world.number(first.task), 2);
    assert!(world.has_ended(1) && world.books.readers().busy() == 1);
    assert_eq!(world.rest(&tray.unwrap(), 1, 2), [3, 4]);
}

#[test]
fn a_reader_that_is_lost_loses_nothing_that_it_had_not_started() {
    let mut world = World::with_tasks(1, 4, 4);
    let (first, tray) = world.claim(1, 4).unwrap();
    world.next(&tray.unwrap(), 1, first);
    world.books.leave(1, &mut world.wakes);
    assert!(world.has_ended(1));
    assert_eq!(world.books.readers().live(), 0);
    assert_eq!(world.claim(1, 1).unwrap().0, 3);
}

#[test]
fn caps_count_what_is_taken() {
    let mut world = World::with_tasks(2, 8, 20);
    world.books.set_cap(world.caller, Limit::AtMost(4)).unwrap();
    let (_, tray) = world.claim(1, 8).unwrap();
    assert_eq!(
        world.books.startable(u64::MAX),
        2,
        "a share of what the cap allows"
    );
    assert_eq!(world.rest(&tray.unwrap(), 1, 1), [2]);
}
