//! A queue beside its model: each step is done by both.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Wake;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::queue::{
    Conversation, Detached, Group, GroupId, Lane, NoMore, NoTurn, Peek, Poisoned, Queue,
    SendReason, Turn,
};

use super::model::{self, Failure, Message, Model, Refused, Settings, UNLIMITED};
use super::script::{Kind, Shape, Step};

pub fn limit(n: u32) -> Limit {
    match n {
        UNLIMITED => Limit::Unlimited,
        n => Limit::AtMost(n),
    }
}

pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, queue: T, model: T) -> Result<(), String> {
    match queue == model {
        true => Ok(()),
        false => Err(format!(
            "{what}: the queue has {queue:?}, the model {model:?}"
        )),
    }
}

/// A waker that notes that it was called.
pub struct Woken(pub AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// A wait for a turn, by name or of any group.
pub struct Waiting<'q> {
    pub by_name: Option<usize>,
    pub future: Pin<Box<dyn Future<Output = Result<Turn<'q, u32>, NoTurn>> + 'q>>,
    pub woken: Arc<Woken>,
}

impl Waiting<'_> {
    pub fn is_woken(&self) -> bool {
        self.woken.0.load(Relaxed)
    }
}

/// A wait for a poisoned group.
pub struct Watching<'q> {
    pub future: Pin<Box<dyn Future<Output = Result<Poisoned, NoMore>> + 'q>>,
    pub woken: Arc<Woken>,
}

pub struct Handles {
    pub group: Option<Group<u32>>,
    pub conversation: Option<Conversation<u32>>,
    pub id: GroupId,
}

pub struct Pair<'q> {
    pub queue: &'q Queue<u32>,
    pub model: Model,
    pub lanes: Vec<Option<Lane<u32>>>,
    pub numbers: Vec<u32>,
    pub groups: Vec<Handles>,
    pub turns: Vec<(model::Turn, Turn<'q, u32>)>,
    pub detached: Vec<(usize, Message, Detached<u32>)>,
    pub peeks: Vec<(usize, Peek<u32>)>,
    pub waits: Vec<Waiting<'q>>,
    pub watches: Vec<Watching<'q>>,
    pub shape: &'q Shape,
    pub next_id: u32,
    pub now: u64,
}

impl<'q> Pair<'q> {
    pub fn queue(settings: &Settings) -> Queue<u32> {
        let builder = Queue::builder()
            .quantum(settings.quantum)
            .bypass(settings.bypass)
            .attempts(settings.attempts)
            .capacity(limit(settings.capacity))
            .back_off(settings.back_off.0, settings.back_off.1);
        builder.build().expect("all is in range")
    }

    pub fn new(queue: &'q Queue<u32>, shape: &'q Shape) -> Self {
        let mut pair = Self {
            queue,
            model: Model::new(shape.settings()),
            lanes: Vec::new(),
            numbers: Vec::new(),
            watches: Vec::new(),
            groups: Vec::new(),
            turns: Vec::new(),
            detached: Vec::new(),
            peeks: Vec::new(),
            waits: Vec::new(),
            shape,
            next_id: 0,
            now: 0,
        };
        (0..shape.lanes.len() as u32).for_each(|n| pair.new_lane(n));
        for n in 0..shape.groups as u32 {
            pair.new_group(n, n / shape.lanes.len() as u32, n);
        }
        pair
    }

    fn new_lane(&mut self, which: u32) {
        if !self.model.closed && self.lanes.len() < 30 {
            let (weight, cap) = of(self.shape.lanes, which);
            self.model.add_lane(weight, cap);
            let lane = self
                .queue
                .lane(weight, limit(cap))
                .expect("the queue is open");
            self.numbers.push(lane.number());
            self.lanes.push(Some(lane));
        }
    }

    pub fn new_group(&mut self, lane: u32, limit_: u32, level: u32) {
        let lane = lane as usize % self.lanes.len();
        let Some(handle) = self.lanes[lane].as_ref().filter(|_| !self.model.closed) else {
            return;
        };
        let most = of(self.shape.limits, limit_);
        let level = of(self.shape.levels, level);
        self.model.add_group(lane, most, level);
        let group = handle.group(limit(most), level).expect("the queue is open");
        let conversation = Some(group.conversation().expect("the queue is open"));
        let id = group.id();
        self.groups.push(Handles {
            group: Some(group),
            conversation,
            id,
        });
    }

    /// One of the groups, also of those that have ended.
    pub fn pick(&self, arg: u32) -> usize {
        arg as usize % self.groups.len()
    }

    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        let [a, b, c] = step.args;
        let group = self.pick(a);
        match step.kind {
            Kind::Send => self.send(group, 1)?,
            Kind::SendAll => self.send(group, b % 5)?,
            Kind::SendIn => self.send_in(group, b % 4)?,
            Kind::SendMany => self.send_many(step.args)?,
            Kind::Receive => self.receive()?,
            Kind::ReceiveMany => self.receive_many(step.args)?,
            Kind::ByName => self.by_name(group)?,
            Kind::Serve => self.serve(a)?,
            Kind::Next => self.next(step.args)?,
            Kind::Batch => self.batch(step.args)?,
            Kind::EndTurn => self.end_turn(a)?,
            Kind::EndDetached => self.end_detached(a, b)?,
            Kind::Bump | Kind::Level | Kind::Limit => self.set_group(group, step.kind, b),
            Kind::Cap => {
                let lane = a as usize % self.lanes.len();
                let cap = of(&[0, 1, 2, self.shape.lanes[0].1], b);
                if let Some(handle) = &self.lanes[lane] {
                    self.model.lanes[lane].cap = cap;
                    self.model.settle();
                    handle.set_cap(limit(cap)).map_err(|e| e.to_string())?;
                }
            }
            Kind::Capacity => self.set_capacity(group, b, c)?,
            Kind::Advance => self.advance(a)?,
            Kind::Resume => {
                let resumed = self.queue.resume(self.groups[group].id);
                same(
                    "resume",
                    resumed.ok(),
                    self.alive(group).then(|| self.model.resume(group)),
                )?;
            }
            Kind::TakeFailed => {
                let failed = self.queue.take_failed(self.groups[group].id).ok().flatten();
                same("take failed", failed, self.model.take_failed(group))?;
            }
            Kind::Drain => {
                let all = self.queue.drain(self.groups[group].id).ok();
                same(
                    "drain",
                    all,
                    self.alive(group).then(|| self.model.drain(group)),
                )?;
            }
            Kind::Peek => self.peek(group)?,
            Kind::EndPeek => {
                if !self.peeks.is_empty() {
                    let (group, _) = self.peeks.swap_remove(a as usize % self.peeks.len());
                    self.model.end_peek(group);
                }
            }
            Kind::Wait => self.wait(None)?,
            Kind::WaitByName => self.wait(Some(group))?,
            Kind::Poll => {
                if !self.waits.is_empty() {
                    let wait = self.waits.remove(a as usize % self.waits.len());
                    self.poll(wait)?;
                }
            }
            Kind::DropWait => {
                if !self.waits.is_empty() {
                    let wait = self.waits.swap_remove(a as usize % self.waits.len());
                    self.left(&wait);
                }
            }
            Kind::Watch => {
                if self.watches.len() < 3 {
                    let woken = Arc::new(Woken(AtomicBool::new(false)));
                    let future = Box::pin(self.queue.next_poisoned());
                    self.watch(Watching { future, woken })?;
                }
            }
            Kind::PollWatch => {
                if !self.watches.is_empty() {
                    let watch = self.watches.remove(a as usize % self.watches.len());
                    self.watch(watch)?;
                }
            }
            Kind::DropWatch => {
                if !self.watches.is_empty() {
                    self.watches.swap_remove(a as usize % self.watches.len());
                }
            }
            Kind::NewLane => self.new_lane(a),
            Kind::LeaveLane => {
                let lane = a as usize % self.lanes.len();
                self.lanes[lane] = None;
                self.model.lanes[lane].handle = false;
            }
            Kind::NewGroup => self.new_group(a, b, c),
            Kind::LeaveGroup => self.leave(group, b),
            Kind::Look => super::look::look(self)?,
            Kind::Close => {
                self.model.closed = true;
                self.queue.close();
            }
            Kind::Shutdown => {
                let mut order: Vec<_> = (0..self.groups.len()).collect();
                order.sort_by_key(|&g| self.groups[g].id);
                same(
                    "shutdown",
                    self.queue.shutdown(),
                    self.model.shutdown(&order),
                )?;
            }
        }
        super::look::woken(self)
    }

    /// All that is left is served, and nothing remains.
    pub fn finish(&mut self) -> Result<(), String> {
        super::look::look(self)
    }

    pub fn alive(&self, group: usize) -> bool {
        !self.model.has_ended(group)
    }
}

/// One of the values.
pub fn of<T: Copy>(values: &[T], arg: u32) -> T {
    values[arg as usize % values.len()]
}

pub fn of_reason(reason: &SendReason) -> Refused {
    match reason {
        SendReason::Closed => Refused::Closed,
        SendReason::TierGoesDown(_) => Refused::TierGoesDown,
        _ => Refused::NoRoom,
    }
}

/// How a delivery may end.
pub fn failure(arg: u32) -> Failure {
    match arg {
        0 => Failure::ForGood,
        1 => Failure::Pause(Duration::from_secs(3)),
        2 => Failure::Pause(Duration::ZERO),
        _ => Failure::ByRule,
    }
}
