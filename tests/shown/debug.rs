//! `Debug` is short, however much there is, and what it writes to may use what it shows.

use std::fmt::{self, Debug, Write};
use std::pin::Pin;
use std::task::{Context, Waker};

use conversant::gate::TierGate;
use conversant::intent::IntentLock;
use conversant::job_queue::{self, JobQueue};
use conversant::lock_table::{LockTable, Resource};
use conversant::modes::Mode;
use conversant::queue::Queue;
use conversant::scheduler::{CallerOptions, How, Place, Scheduler};

use crate::finishes::finishes;

/// Does something at each write.
struct Writer<F>(F, usize);

impl<F: FnMut()> Write for Writer<F> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        (self.0)();
        self.1 += text.len();
        Ok(())
    }
}

/// Shows a value to a writer that does `and` at each write.
fn is_short(value: &impl Debug, and: impl FnMut()) {
    let mut writer = Writer(and, 0);
    write!(writer, "{value:?}").unwrap();
    assert!((1..600).contains(&writer.1), "{} bytes", writer.1);
}

const MANY: u32 = 1_000;

#[test]
fn a_lock_with_holders_and_waiters() {
    finishes(|| {
        for lock in [IntentLock::new(), IntentLock::striped(4)] {
            let _held = [Mode::Is, Mode::Ix, Mode::Ix].map(|mode| lock.try_lock(mode).unwrap());
            let mut waits = [Mode::S, Mode::X].map(|mode| lock.lock(mode));
            for wait in &mut waits {
                let mut cx = Context::from_waker(Waker::noop());
                assert!(Pin::new(wait).poll(&mut cx).is_pending());
            }
            let shown = "IntentLock { held: {IS: 1, IX: 2}, waiting: 2, bypass: AtMost(64), .. }";
            assert_eq!(format!("{lock:?}"), shown);
            is_short(&lock, || assert_eq!(lock.counts().locks.waiting, 2));
        }
    });
}

#[test]
fn a_gate_with_many_tiers() {
    finishes(|| {
        let gate = TierGate::new();
        let _tickets: Vec<_> = (0..MANY).map(|tier| gate.join(tier)).collect();
        is_short(&gate, || assert_eq!(gate.counts().outside, 1));
    });
}

#[test]
fn queues_with_many_groups() {
    finishes(|| {
        let queue = Queue::new();
        let lane = queue.lane(1, 1).unwrap();
        let groups: Vec<_> = (0..MANY).map(|_| lane.conversation().unwrap()).collect();
        is_short(&queue, || groups[0].send(()).unwrap());
        is_short(&lane, || _ = queue.counts());
        let jobs = JobQueue::new();
        let push = |n| jobs.push(n, n, job_queue::Place::new().group(n)).unwrap();
        (0..u64::from(MANY)).for_each(|n| _ = push(n));
        is_short(&jobs, || _ = jobs.counts());
    });
}

#[test]
fn a_scheduler_with_many_tasks() {
    finishes(|| {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let caller = scheduler.caller("", CallerOptions::default()).unwrap();
        caller.set_cap(0).unwrap();
        for tier in 0..MANY {
            let place = Place::new().tier(tier);
            caller.exec_detached(place, || ()).unwrap();
        }
        is_short(&scheduler, || _ = scheduler.counts());
        is_short(&caller, || caller.set_cap(0).unwrap());
        scheduler.shutdown(How::Cancel).wait().unwrap();
    });
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row(u32);

impl Resource for Row {
    fn parent(&self) -> Option<Self> {
        None
    }
}

#[test]
fn a_table_with_many_rows() {
    finishes(|| {
        let table = LockTable::new();
        let mut owner = table.owner(0);
        for row in 0..MANY {
            owner.try_lock(&Row(row), Mode::X).ok().unwrap();
        }
        is_short(&table, || _ = table.counts());
        is_short(&owner, || _ = table.counts());
    });
}
