//! Random operations; at the end everything is dropped in any order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conversant::limit::Limit;
use conversant::queue::{Conversation, Detached, Group, Lane, Peek, Queue, Turn};

use crate::messages::{Build, alive, of_every_build};
use crate::queue_support::Random;

of_every_build! { comes_out_once }

const GROUPS: usize = 4;

/// What the test holds, to be dropped in any order.
#[allow(dead_code, reason = "some are there to be dropped")]
enum Thing<M: 'static> {
    Queue(Queue<M>),
    Lane(Lane<M>),
    Group(Group<M>),
    Conversation(usize, Conversation<M>),
    Turn(usize, Turn<'static, M>),
    Detached(usize, Detached<M>),
    Look(Peek<M>),
}

struct World<M: 'static> {
    random: Random,
    queue: Queue<M>,
    things: Vec<Thing<M>>,
    sent: usize,
    /// The number completed last in each group; all groups are serial.
    last: [usize; GROUPS],
}

fn comes_out_once<M: Build>() {
    for seed in 0..200 {
        let mut world = World::<M>::new(seed);
        for _ in 0..150 {
            world.step();
        }
        world.end();
        assert!(alive().is_empty(), "{seed}: {:?}", alive());
    }
}

impl<M: Build> World<M> {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let quantum = [1, 3, u32::MAX][random.below(3)];
        let builder = Queue::builder().quantum(quantum);
        let queue = builder.attempts(Limit::AtMost(3)).build().unwrap();
        let mut things = Vec::new();
        let caps = [Limit::Unlimited, Limit::AtMost(2)];
        let lanes = caps.map(|cap| queue.lane(1, cap).unwrap());
        for at in 0..GROUPS {
            let group = lanes[at % 2].group(Limit::SERIAL, 100).unwrap();
            for _ in 0..2 {
                things.push(Thing::Conversation(at, group.conversation().unwrap()));
            }
            things.push(Thing::Group(group));
        }
        things.extend(lanes.map(Thing::Lane));
        things.push(Thing::Queue(queue.clone()));
        Self {
            random,
            queue,
            things,
            sent: 0,
            last: [0; GROUPS],
        }
    }

    fn step(&mut self) {
        let at = self.random.below(self.things.len());
        match self.random.below(12) {
            0..=4 => self.send(at),
            5..=8 => self.receive(),
            _ => self.change(at),
        }
    }

    fn make(&mut self) -> M {
        self.sent += 1;
        M::make(self.sent)
    }

    fn send(&mut self, at: usize) {
        let first = self.sent + 1;
        let burst: Vec<M> = (0..1 + self.random.below(3)).map(|_| self.make()).collect();
        let Thing::Conversation(_, to) = &self.things[at] else {
            return;
        };
        match self.random.below(8) {
            0 => assert!(to.send_all(burst).is_ok()),
            1 => {
                // Refused, if a higher tier is outstanding.
                for message in burst {
                    let tier = (first / 30) as u32;
                    drop(to.send_in(tier, message));
                }
            }
            _ => burst.into_iter().for_each(|message| {
                assert!(to.send(message).is_ok());
            }),
        }
    }

    /// The group that a name stands for, by its conversations.
    fn group(&self, id: conversant::queue::GroupId) -> Option<usize> {
        self.things.iter().find_map(|thing| match thing {
            Thing::Conversation(at, one) if one.group_id() == id => Some(*at),
            _ => None,
        })
    }

    fn receive(&mut self) {
        let Ok(turn) = self.queue.try_receive() else {
            return;
        };
        let turn = turn.into_owned();
        let Some(group) = self.group(turn.group_id()) else {
            return;
        };
        self.work(group, turn);
    }

    fn completed(&mut self, group: usize, message: M) {
        if let Some(number) = message.number()
            && size_of::<M>() > 1
        {
            assert!(self.last[group] < number, "out of order");
            self.last[group] = number;
        }
    }

    fn work(&mut self, group: usize, mut turn: Turn<'static, M>) {
        for _ in 0..self.random.below(4) {
            match self.random.below(8) {
                0..=2 => {
                    if let Some(delivery) = turn.next() {
                        let message = delivery.complete();
                        self.completed(group, message);
                    }
                }
                3 => drop(turn.next()),
                4 => {
                    if let Some(delivery) = turn.next() {
                        let detached = delivery.detach();
                        self.things.push(Thing::Detached(group, detached));
                    }
                }
                5 => {
                    let panics = AssertUnwindSafe(|| {
                        let _delivery = turn.next();
                        std::panic::resume_unwind(Box::new(()));
                    });
                    assert!(catch_unwind(panics).is_err());
                }
                _ => {
                    let n = 1 + self.random.below(4);
                    let done = self.random.below(5);
                    if let Some(batch) = turn.next_batch(n) {
                        for message in batch.complete_up_to(done) {
                            self.completed(group, message);
                        }
                    }
                }
            }
        }
        if self.random.below(3) == 0 {
            self.things.push(Thing::Turn(group, turn));
        }
    }

    fn change(&mut self, at: usize) {
        match &self.things[at] {
            Thing::Group(group) => match self.random.below(6) {
                0 => drop(self.queue.drain(group.id())),
                1 => _ = self.queue.resume(group.id()),
                2 => group.bump(self.random.below(256) as u8),
                3 => {
                    if let Ok(look) = self.queue.try_peek(group.id()) {
                        self.things.push(Thing::Look(look));
                    }
                }
                4 => group.set_limit(Limit::AtMost(0)).unwrap(),
                _ => group.set_limit(Limit::SERIAL).unwrap(),
            },
            Thing::Turn(..) | Thing::Detached(..) | Thing::Look(_) => {
                match self.things.swap_remove(at) {
                    Thing::Turn(group, turn) => self.work(group, turn),
                    Thing::Detached(group, one) if self.random.below(2) == 0 => {
                        self.completed(group, one.complete());
                    }
                    // Given back, or over.
                    other => drop(other),
                }
            }
            _ => {}
        }
    }

    fn end(self) {
        let Self {
            mut random,
            queue,
            mut things,
            ..
        } = self;
        if random.below(3) == 0 {
            drop(queue.shutdown());
        }
        things.push(Thing::Queue(queue));
        while !things.is_empty() {
            let thing = things.swap_remove(random.below(things.len()));
            drop(thing);
        }
    }
}
