//! What one thread does: random operations.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use conversant::limit::Limit;
use conversant::queue::{Batch, Queue, SendReason, Turn};

use super::THREADS;
use super::epoch::{CAPACITY, Epoch};
use super::held::{InFlight, send};
use super::ledger::Message;
use super::queue_support::Random;

/// How many waits a thread has at once.
const WAITS: usize = 3;

/// The open queue, and those that were closed.
pub(crate) struct World {
    now: RwLock<Arc<Epoch>>,
    past: Mutex<Vec<Arc<Epoch>>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let now = RwLock::new(Arc::new(Epoch::new(false)));
        let past = Mutex::default();
        Self { now, past }
    }

    /// When all threads have ended: the last queue is closed and served, and all queues are
    /// checked. Returns how many there were.
    pub(crate) fn finish(self) -> usize {
        Worker::new(&self, 0, u64::MAX).reopen();
        let past = self.past.into_inner().unwrap();
        let count = past.len();
        for epoch in past {
            let epoch = Arc::into_inner(epoch).expect("nobody uses it");
            epoch.check();
        }
        count
    }
}

/// Whether a wait was woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

struct Waiting {
    what: Pin<Box<dyn Future<Output = Vec<Turn<'static, Message>>>>>,
    woken: Arc<Woken>,
}

pub(crate) struct Worker<'a> {
    world: &'a World,
    number: usize,
    random: Random,
    waiting: Vec<Waiting>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(world: &'a World, number: usize, seed: u64) -> Self {
        Self {
            world,
            number,
            random: Random(seed),
            waiting: Vec::new(),
        }
    }

    pub(crate) fn run(mut self, operations: usize) {
        for _ in 0..operations {
            self.poll();
            self.step();
        }
    }

    fn step(&mut self) {
        let epoch = self.world.now.read().unwrap().clone();
        match self.random.below(100) {
            0..27 => self.send(&epoch),
            27..35 => {
                let tracked = epoch.tracked(&mut self.random);
                let message = Message::new(&tracked.ledger, &tracked.units, THREADS + self.number);
                self.wait(send(tracked, message));
            }
            35..40 => self.send_all(&epoch),
            40..45 => {
                let tracked = epoch.tracked(&mut self.random);
                let level = self.random.below(256) as u8;
                // The group is stale if it has just ended.
                _ = epoch.queue.bump(tracked.conversation.group_id(), level);
            }
            45..57 => {
                if let Ok(turn) = epoch.queue.try_receive() {
                    self.serve(turn);
                }
            }
            57..65 => {
                if let Ok(turns) = epoch.queue.try_receive_many(self.random.below(6)) {
                    self.serve_all(turns);
                }
            }
            65..69 => {
                self.wait(async move {
                    let turn = epoch.queue.receive().await;
                    turn.into_iter().map(Turn::into_owned).collect()
                });
            }
            69..73 => {
                let n = self.random.below(6);
                self.wait(async move {
                    let turns = epoch.queue.receive_many(n).await;
                    turns.into_iter().flatten().map(Turn::into_owned).collect()
                });
            }
            73..79 => {
                let group = epoch.tracked(&mut self.random).conversation.group_id();
                self.wait(async move {
                    let turn = epoch.queue.receive_from(group).await;
                    turn.into_iter().map(Turn::into_owned).collect()
                });
            }
            79..83 => {
                let group = epoch.tracked(&mut self.random).conversation.group_id();
                if let Ok(turn) = epoch.queue.try_receive_from(group) {
                    self.serve(turn);
                }
            }
            83..88 => self.change_setting(&epoch),
            88..92 => epoch.replace(&mut self.random),
            92..94 => self.resume_or_drain(&epoch.queue),
            94..96 => {
                let at = self.random.below(WAITS);
                if at < self.waiting.len() {
                    drop(self.waiting.swap_remove(at));
                }
            }
            96 => {
                let snapshot = epoch.queue.snapshot();
                // In flight counts units: SEMANTICS 2, "A turn is the exclusive right". A turn may
                // have a unit and no message.
                assert!(!epoch.bounded || snapshot.waiting <= u64::from(CAPACITY));
                let group = epoch.tracked(&mut self.random).conversation.group_id();
                if let Ok(first) = epoch.queue.try_peek(group) {
                    first.check_open();
                }
            }
            97 => {
                drop(epoch);
                if self.random.below(20) == 0 {
                    self.reopen();
                }
            }
            _ => thread::yield_now(),
        }
    }

    fn send(&mut self, epoch: &Epoch) {
        let tracked = epoch.tracked(&mut self.random);
        let message = Message::new(&tracked.ledger, &tracked.units, self.number);
        if let Err(refused) = tracked.conversation.send(message) {
            assert!(!matches!(refused.reason, SendReason::TierGoesDown(_)));
            refused.message.finished();
        }
    }

    fn send_all(&mut self, epoch: &Epoch) {
        let tracked = epoch.tracked(&mut self.random);
        let messages = [(); 3].map(|()| Message::new(&tracked.ledger, &tracked.units, self.number));
        if let Err(refused) = tracked.conversation.send_all(messages) {
            assert_eq!(refused.message.len(), 3);
            refused.message.iter().for_each(Message::finished);
        }
    }

    /// Begins to wait; the result is served when the wait is woken.
    fn wait(&mut self, what: impl Future<Output = Vec<Turn<'static, Message>>> + 'static) {
        if self.waiting.len() < WAITS {
            let woken = Arc::new(Woken(AtomicBool::new(true)));
            let what = Box::pin(what);
            self.waiting.push(Waiting { what, woken });
        }
    }

    fn poll(&mut self) {
        let mut at = 0;
        while at < self.waiting.len() {
            let Waiting { what, woken } = &mut self.waiting[at];
            if !woken.0.swap(false, SeqCst) {
                at += 1;
                continue;
            }
            let waker = Waker::from(woken.clone());
            match what.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => at += 1,
                Poll::Ready(turns) => {
                    drop(self.waiting.swap_remove(at));
                    self.serve_all(turns.into_iter());
                }
            }
        }
    }

    /// Sometimes gives the rest back.
    fn serve_all<'q>(&mut self, turns: impl Iterator<Item = Turn<'q, Message>>) {
        for turn in turns {
            self.serve(turn);
            if self.random.below(16) == 0 {
                return;
            }
        }
    }

    fn serve(&mut self, mut turn: Turn<'_, Message>) {
        if self.random.below(16) == 0 {
            return;
        }
        let mut units = None;
        loop {
            let Some(delivery) = turn.next() else {
                break;
            };
            if units.is_none() {
                delivery.units.hold();
                units = Some(delivery.units.clone());
            }
            delivery.received();
            match self.random.below(8) {
                0 | 1 => {
                    let detached = delivery.detach();
                    units.iter().for_each(|units| units.release());
                    drop(turn);
                    return self.handle(detached);
                }
                2 | 3 => {
                    let detached = delivery.detach();
                    self.handle(detached);
                }
                _ => self.handle(delivery),
            }
            if self.random.below(4) == 0
                && let Some(batch) = turn.next_batch(3)
            {
                self.handle_batch(batch);
            }
        }
        units.iter().for_each(|units| units.release());
    }

    fn handle(&mut self, delivery: impl InFlight) {
        if self.random.below(4) == 0 {
            thread::yield_now();
        }
        delivery.leaves();
        match self.random.below(16) {
            0 => delivery.give_back(),
            1 => drop(delivery),
            2 => {
                let handler = AssertUnwindSafe(move || {
                    let _delivery = delivery;
                    resume_unwind(Box::new("on purpose"));
                });
                assert!(catch_unwind(handler).is_err());
            }
            _ => {
                delivery.finished();
                delivery.complete();
            }
        }
    }

    /// One unit for several messages.
    fn handle_batch(&mut self, batch: Batch<'_, Message>) {
        let mut messages = batch.iter();
        let first = messages.next().expect("it is never empty");
        first.received();
        messages.for_each(Message::comes_in_order);
        first.leaves();
        let done = self.random.below(4);
        batch.iter().take(done).for_each(Message::finished);
        assert!(batch.complete_up_to(done).len() <= done);
    }

    /// Changes a setting, and undoes changes that would keep work waiting.
    fn change_setting(&mut self, epoch: &Epoch) {
        let (limit, group, _) = &epoch.groups[self.random.below(epoch.groups.len())];
        match self.random.below(4) {
            0 => group.set_level(self.random.below(256) as u8),
            1 => group.bump(self.random.below(256) as u8),
            2 => {
                group.set_limit(Limit::AtMost(0)).unwrap();
                thread::yield_now();
                group.set_limit(*limit).unwrap();
            }
            _ => {
                let (cap, lane) = &epoch.lanes[self.random.below(epoch.lanes.len())];
                lane.set_cap(Limit::AtMost(0)).unwrap();
                thread::yield_now();
                lane.set_cap(*cap).unwrap();
            }
        }
    }

    /// Resumes a poisoned group, or drains it.
    fn resume_or_drain(&mut self, queue: &Queue<Message>) {
        if let Some(poisoned) = queue.poisoned().first() {
            if self.random.below(3) > 0 {
                _ = queue.resume(poisoned.group);
            } else if let Ok(messages) = queue.drain(poisoned.group) {
                messages.iter().for_each(Message::finished);
            }
        }
    }

    /// Closes the queue, opens another, and serves what is left in the old one.
    fn reopen(&mut self) {
        // They are not polled while this thread blocks.
        self.waiting.clear();
        let bounded = self.random.below(2) == 0;
        let new = Arc::new(Epoch::new(bounded));
        let old = std::mem::replace(&mut *self.world.now.write().unwrap(), new);
        match self.random.below(2) {
            0 => old.queue.close(),
            _ => old.queue.shutdown().iter().for_each(Message::finished),
        }
        loop {
            while let Ok(turn) = old.queue.receive().wait() {
                self.serve(turn);
            }
            // The messages that wait in poisoned groups.
            old.queue.shutdown().iter().for_each(Message::finished);
            let left = old.queue.snapshot();
            if (left.waiting, left.in_flight) == (0, 0) {
                break;
            }
        }
        self.world.past.lock().unwrap().push(old);
    }
}
