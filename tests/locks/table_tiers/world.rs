//! Readers that take tasks in order and gate them by tier, in virtual time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use conversant::gate::TierGate;
use conversant::lock_table::{LockError, LockTable, Resource};
use conversant::modes::Mode::{self, Ix, S};

#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Tier(pub(super) u32);

impl Resource for Tier {
    fn parent(&self) -> Option<Self> {
        None
    }
}

/// Set while the task must be polled.
pub(super) struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tasks of one thread, and a clock that advances when none of them can go on.
#[derive(Default)]
pub(super) struct Clock {
    now: Cell<u64>,
    timers: RefCell<Vec<(u64, Waker)>>,
}

impl Clock {
    pub(super) async fn sleep(&self, ms: u64) {
        let until = self.now.get() + ms;
        poll_fn(|cx| {
            if self.now.get() >= until {
                return Poll::Ready(());
            }
            self.timers.borrow_mut().push((until, cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Runs all to their end, and calls `look` at each of these times; false if some are stuck.
    pub(super) fn run<'a>(
        &self,
        mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>,
        looks: &[u64],
        mut look: impl FnMut(u64),
    ) -> bool {
        let flags: Vec<_> = tasks.iter().map(|_| Arc::new(Flag(true.into()))).collect();
        let mut open: Vec<bool> = tasks.iter().map(|_| true).collect();
        let mut looks = looks.iter().copied().peekable();
        loop {
            let mut moved = false;
            for ((task, flag), open) in tasks.iter_mut().zip(&flags).zip(&mut open) {
                if *open && flag.0.swap(false, Ordering::Relaxed) {
                    let waker = Waker::from(flag.clone());
                    let poll = task.as_mut().poll(&mut Context::from_waker(&waker));
                    *open = poll.is_pending();
                    moved = true;
                }
            }
            if moved {
                continue;
            }
            let next = self.timers.borrow().iter().map(|timer| timer.0).min();
            while let Some(at) = looks.next_if(|at| next.is_none_or(|next| *at < next)) {
                look(at);
            }
            let Some(next) = next else {
                return !open.contains(&true);
            };
            self.now.set(next);
            self.timers.borrow_mut().retain(|(until, waker)| {
                if *until <= next {
                    waker.wake_by_ref();
                }
                *until > next
            });
        }
    }
}

/// One receiver at a time, in turn.
#[derive(Default)]
pub(super) struct Turn {
    taken: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

pub(super) struct Taken<'a>(&'a Turn);

impl Turn {
    async fn take(&self) -> Taken<'_> {
        poll_fn(|cx| {
            if !self.taken.replace(true) {
                return Poll::Ready(Taken(self));
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.taken.set(false);
        self.0.waiting.take().into_iter().for_each(Waker::wake);
    }
}

#[derive(Clone, Copy)]
pub(super) struct Task {
    id: usize,
    tier: u32,
    ms: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Protocol {
    /// S, then the receive is released, then IX.
    Locks,
    /// The receive is released, then S, then IX.
    ReleaseTooEarly,
    Gate,
}

pub(super) struct World {
    clock: Clock,
    turn: Turn,
    pub(super) locks: LockTable<Tier>,
    pub(super) gate: TierGate,
    pub(super) queue: RefCell<VecDeque<Task>>,
    running: RefCell<Vec<usize>>,
    busy: Cell<usize>,
    /// Id, tier, start and end.
    pub(super) rows: RefCell<Vec<(usize, u32, u64, u64)>>,
    failed: RefCell<Vec<usize>>,
}

impl World {
    pub(super) fn new(tasks: &[(u32, u64)]) -> Self {
        let tasks = (1..)
            .zip(tasks)
            .map(|(id, &(tier, ms))| Task { id, tier, ms });
        Self {
            clock: Clock::default(),
            turn: Turn::default(),
            locks: LockTable::new(),
            gate: TierGate::new(),
            queue: RefCell::new(tasks.collect()),
            running: RefCell::default(),
            busy: Cell::new(0),
            rows: RefCell::default(),
            failed: RefCell::default(),
        }
    }

    /// A reader: `delay` ms pass between receiving a task and doing anything with it.
    async fn read(&self, protocol: Protocol, delay: u64) {
        loop {
            let turn = self.turn.take().await;
            let Some(task) = self.queue.borrow_mut().pop_front() else {
                return;
            };
            self.busy.set(self.busy.get() + 1);
            if protocol == Protocol::Gate {
                let mut ticket = self.gate.join(task.tier);
                drop(turn);
                self.clock.sleep(delay).await;
                ticket.enter().await;
                self.work(task).await;
            } else if let Err(error) = self.by_locks(task, turn, protocol, delay).await {
                assert!(matches!(error, LockError::Deadlock(_)));
                self.failed.borrow_mut().push(task.id);
            }
            self.busy.set(self.busy.get() - 1);
        }
    }

    async fn by_locks(
        &self,
        task: Task,
        turn: Taken<'_>,
        protocol: Protocol,
        delay: u64,
    ) -> Result<(), LockError<Tier>> {
        let mut owner = self.locks.owner(0);
        let mut turn = Some(turn);
        if protocol == Protocol::ReleaseTooEarly {
            turn = None;
        }
        self.clock.sleep(delay).await;
        owner.lock(&Tier(task.tier), S).await?;
        drop(turn);
        owner.lock(&Tier(task.tier - 100), Ix).await?;
        self.work(task).await;
        Ok(())
    }

    async fn work(&self, task: Task) {
        let start = self.clock.now.get();
        self.running.borrow_mut().push(task.id);
        self.clock.sleep(task.ms).await;
        self.running.borrow_mut().retain(|id| *id != task.id);
        let end = self.clock.now.get();
        self.rows
            .borrow_mut()
            .push((task.id, task.tier, start, end));
    }

    pub(super) fn run(
        &self,
        protocol: Protocol,
        delays: &[u64],
        looks: &[u64],
        look: impl FnMut(u64),
    ) -> bool {
        let readers = delays.iter();
        let readers =
            readers.map(|&d| Box::pin(self.read(protocol, d)) as Pin<Box<dyn Future<Output = ()>>>);
        self.clock.run(readers.collect(), looks, look)
    }

    /// As the specification writes it.
    pub(super) fn snapshot(&self) -> String {
        let mut resources = self.locks.snapshot().resources;
        resources.sort_by(|a, b| a.resource.cmp(&b.resource));
        let (mut granted, mut waiting) = (Vec::new(), Vec::new());
        for r in &resources {
            for mode in [S, Ix] {
                let holders = r.holders.iter().filter(|(_, held)| *held == mode).count();
                let waiters = r.waiters.iter().filter(|w| w.asks == mode).count();
                granted.extend(count_in_mode(mode, &r.resource, holders));
                waiting.extend(count_in_mode(mode, &r.resource, waiters));
            }
        }
        let mut running = self.running.borrow().clone();
        running.sort_unstable();
        let queued: Vec<usize> = self.queue.borrow().iter().map(|task| task.id).collect();
        let (granted, waiting) = (granted.join(" "), waiting.join(" "));
        let busy = self.busy.get();
        format!("{running:?} | {granted} | {waiting} | {queued:?} | {busy}")
    }

    /// No task of a tier starts before the tasks of every earlier tier have ended: all had arrived.
    pub(super) fn in_order(&self) -> bool {
        let rows = self.rows.borrow();
        let early = |&(_, tier, start, _): &(usize, u32, u64, u64)| {
            rows.iter()
                .any(|&(_, lower, _, end)| lower < tier && end > start)
        };
        !rows.iter().any(early)
    }

    pub(super) fn makespan(&self) -> u64 {
        self.rows
            .borrow()
            .iter()
            .map(|row| row.3)
            .max()
            .unwrap_or(0)
    }
}

fn count_in_mode(mode: Mode, tier: &Tier, n: usize) -> Option<String> {
    (n > 0).then(|| format!("{mode}{}x{n}", tier.0))
}
