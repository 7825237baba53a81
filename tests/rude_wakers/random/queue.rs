//! The queue: receives of all kinds, sends that wait for room, peeks, and all changes of what is
//! eligible. A message is a number.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Conversation, Group, Lane, Queue, SendError, Turn};

use super::seeds;
use crate::actors::{Stage, pause, run, wait};

struct World {
    queue: Queue<u32>,
    lanes: [Lane<u32>; 2],
    groups: Vec<Group<u32>>,
    conversations: Vec<Conversation<u32>>,
    keyed: Keyed<usize, u32>,
    now: Cell<u64>,
    ended: Cell<bool>,
    last: Cell<u32>,
    sent: RefCell<BTreeSet<u32>>,
    done: RefCell<BTreeSet<u32>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let builder = Queue::builder().attempts(Limit::AtMost(3)).quantum(3);
        let builder = match seed % 3 {
            0 => builder,
            _ => builder.capacity(Limit::AtMost(4)),
        };
        let pause = Duration::from_millis(seed / 3 % 2);
        let queue = builder.back_off(pause, pause).build().unwrap();
        let lane = |weight| queue.lane(weight, Limit::Unlimited).unwrap();
        let lanes = [lane(1), lane(2)];
        let limits = [Limit::SERIAL, Limit::AtMost(2), Limit::Unlimited];
        let group = |n: usize| lanes[n % 2].group(limits[n % 3], n as u8).unwrap();
        let groups: Vec<_> = (0..4).map(group).collect();
        let conversations = groups.iter().map(|group| group.conversation().unwrap());
        World {
            conversations: conversations.collect(),
            keyed: Keyed::new(lane(1)).keep_idle(0),
            queue,
            lanes,
            groups,
            now: Cell::new(0),
            ended: Cell::new(false),
            last: Cell::new(0),
            sent: RefCell::default(),
            done: RefCell::default(),
        }
    }

    fn message(&self) -> u32 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn has_sent<M>(&self, messages: impl IntoIterator<Item = u32>, sent: Result<(), SendError<M>>) {
        if sent.is_ok() {
            self.sent.borrow_mut().extend(messages);
        }
    }

    fn is_done(&self, messages: impl IntoIterator<Item = u32>) {
        let mut done = self.done.borrow_mut();
        for message in messages {
            assert!(done.insert(message), "{message} is done twice");
        }
    }

    fn advance(&self, by: u64) -> Option<Duration> {
        self.now.set(self.now.get() + by);
        self.queue.advance(Duration::from_millis(self.now.get()))
    }

    /// Lifts whatever blocks messages; returns whether that changed anything.
    fn go_on(&self) -> bool {
        let poisoned = self.queue.poisoned();
        for poisoned in &poisoned {
            self.queue.resume(poisoned.group).unwrap();
        }
        let due = self.advance(1).is_some();
        let turn = self.queue.try_receive();
        let served = turn.map(|mut turn| {
            while let Some(delivery) = turn.next() {
                self.is_done([delivery.complete()]);
            }
        });
        due || !poisoned.is_empty() || served.is_ok()
    }

    fn end(&self) -> bool {
        if self.ended.replace(true) {
            return self.go_on();
        }
        for group in &self.groups {
            group.set_limit(Limit::SERIAL).unwrap();
        }
        for lane in &self.lanes {
            lane.set_cap(Limit::Unlimited).unwrap();
        }
        self.queue.close();
        assert_eq!(self.queue.counts().sends.waiting, 0);
        true
    }

    /// Every message that was sent is completed, once.
    fn check(self) {
        while self.end() {}
        assert_eq!(self.sent, self.done);
        let left = self.queue.snapshot();
        let waits = left.counts.receives.waiting + left.counts.sends.waiting;
        assert_eq!(waits, 0);
        // Its own lanes, and none of those that were made and dropped.
        assert_eq!(left.lanes.len(), 3);
        let groups = left.lanes[..2].iter().map(|lane| lane.groups.len());
        assert_eq!(groups.sum::<usize>(), 4);
    }
}

/// A random element.
fn any<'a, X>(stage: &Stage, all: &'a [X]) -> &'a X {
    &all[stage.below(all.len())]
}

async fn serve(stage: &Stage, world: &World, mut turn: Turn<'_, u32>) {
    let mut detached = Vec::new();
    loop {
        if stage.one_in(8) {
            let Some(batch) = turn.next_batch(3) else {
                break;
            };
            pause().await;
            world.is_done(batch.complete_up_to(stage.below(4)));
            continue;
        }
        let Some(delivery) = turn.next() else { break };
        match stage.below(8) {
            0 => delivery.give_back(),
            1 => detached.push(delivery.detach()),
            2 => {
                pause().await;
                world.is_done([delivery.complete()]);
            }
            3 => {
                world.is_done([delivery.complete()]);
                break;
            }
            _ => world.is_done([delivery.complete()]),
        }
    }
    drop(turn);
    for delivery in detached {
        pause().await;
        match stage.one_in(4) {
            true => delivery.give_back(),
            false => world.is_done([delivery.complete()]),
        }
    }
}

async fn receive(stage: &Stage, world: &World) {
    let queue = &world.queue;
    let group = any(stage, &world.groups).id();
    match stage.below(6) {
        0 | 1 => {
            if let Ok(turn) = wait(queue.receive()).await {
                serve(stage, world, turn).await;
            }
        }
        2 => {
            for turn in wait(queue.receive_many(3)).await.into_iter().flatten() {
                serve(stage, world, turn).await;
            }
        }
        3 => {
            if let Ok(turn) = wait(queue.receive_from(group)).await {
                serve(stage, world, turn).await;
            }
        }
        4 => {
            if let Ok(turn) = queue.try_receive_from(group) {
                serve(stage, world, turn).await;
            }
        }
        _ => {
            let look = queue.try_peek(group);
            pause().await;
            drop(look);
        }
    }
}

async fn send(stage: &Stage, world: &World) {
    let conversation = any(stage, &world.conversations);
    let message = world.message();
    let sent = match stage.below(6) {
        0 => conversation.send(message),
        1 => conversation.send_in(stage.below(3) as u32, message),
        2 => wait(conversation.send_wait(message).in_tier(1)).await,
        3 => {
            let several = [message, world.message()];
            let sent = wait(conversation.send_all_wait(several)).await;
            return world.has_sent(several, sent);
        }
        4 => wait(world.keyed.send_wait(stage.below(3), message)).await,
        _ => wait(conversation.send_wait(message)).await,
    };
    world.has_sent([message], sent);
}

async fn change(stage: &Stage, world: &World) {
    let group = any(stage, &world.groups);
    let few = [Limit::AtMost(0), Limit::SERIAL, Limit::Unlimited];
    match stage.below(10) {
        0 => group.set_limit(*any(stage, &few)).unwrap(),
        1 => any(stage, &world.lanes).set_cap(*any(stage, &few)).unwrap(),
        2 => group.bump(stage.below(256) as u8),
        3 => group.set_level(stage.below(256) as u8),
        4 => _ = world.advance(1),
        5 => _ = world.queue.resume(group.id()),
        6 => {
            let conversation = any(stage, &world.lanes).conversation();
            let Ok(conversation) = conversation else {
                return;
            };
            let message = world.message();
            world.has_sent([message], conversation.send(message));
        }
        7 => {
            let Ok(lane) = world.queue.lane(1, Limit::Unlimited) else {
                return;
            };
            let Ok(group) = lane.group(Limit::SERIAL, 100) else {
                return;
            };
            pause().await;
            let Ok(conversation) = group.conversation() else {
                return;
            };
            let message = world.message();
            world.has_sent([message], conversation.send(message));
        }
        8 if stage.one_in(4) => {
            let out = world.queue.drain(group.id());
            world.is_done(out.unwrap());
        }
        _ if stage.one_in(60) => world.queue.close(),
        _ => pause().await,
    }
}

async fn act(stage: &Stage, world: &World) {
    while stage.goes_on() {
        match stage.below(5) {
            0 | 1 => receive(stage, world).await,
            2 | 3 => send(stage, world).await,
            _ => change(stage, world).await,
        }
    }
}

#[test]
fn queues() {
    seeds(|seed| {
        let world = World::new(seed);
        let actor = |stage| Box::pin(act(stage, &world)) as _;
        run(seed, actor, |_| world.end(), &mut None);
        world.check();
    });
}
