//! Senders, readers, bumps, limits that change and handlers that panic, all at once.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;

use conversant::limit::{Bypass, Limit};
use conversant::queue::{Conversation, Delivery, Detached, Queue};

use crate::queue_support::Random;

const SENDERS: usize = 3;
const READERS: usize = 3;
const GROUPS: usize = 12;
const MESSAGES: usize = 300;

#[derive(Clone, Copy, Debug)]
struct Message {
    group: usize,
    sender: usize,
    number: usize,
}

/// A delivery, borrowed from its turn or detached.
trait Hand: Deref<Target = Message> {
    fn complete(self);
    fn give_back(self);
}

impl Hand for Delivery<'_, Message> {
    fn complete(self) {
        Delivery::complete(self);
    }

    fn give_back(self) {
        Delivery::give_back(self);
    }
}

impl Hand for Detached<Message> {
    fn complete(self) {
        Detached::complete(self);
    }

    fn give_back(self) {
        Detached::give_back(self);
    }
}

/// What the handlers saw.
struct World {
    queue: Queue<Message>,
    limits: [u32; GROUPS],
    /// Deliveries in flight, by group.
    in_hand: [AtomicU32; GROUPS],
    lane_in_hand: AtomicU32,
    done: [Mutex<Vec<Message>>; GROUPS],
    failures: AtomicUsize,
}

const CAP: u32 = 4;

impl World {
    fn new(quantum: u32) -> Self {
        let queue = Queue::builder().quantum(quantum).bypass(Bypass::AtMost(3));
        // They fail at random, and no group is to be set aside.
        let queue = queue.attempts(Limit::Unlimited);
        Self {
            queue: queue.build().unwrap(),
            limits: std::array::from_fn(|n| [1, 1, 2, u32::MAX][n % 4]),
            in_hand: Default::default(),
            lane_in_hand: AtomicU32::new(0),
            done: Default::default(),
            failures: AtomicUsize::new(0),
        }
    }

    fn limit(&self, group: usize) -> Limit {
        match self.limits[group] {
            u32::MAX => Limit::Unlimited,
            n => Limit::AtMost(n),
        }
    }

    /// Handles one delivery: sometimes gives it back, sometimes panics.
    fn handle(&self, delivery: impl Hand, random: &mut Random) {
        let message = *delivery;
        let group = message.group;
        let others = self.in_hand[group].fetch_add(1, Ordering::SeqCst);
        assert!(others < self.limits[group], "the limit of group {group}");
        let others = self.lane_in_hand.fetch_add(1, Ordering::SeqCst);
        assert!(others < CAP, "the cap");
        if random.below(4) == 0 {
            thread::yield_now();
        }
        let fate = random.below(8);
        if fate >= 2 {
            self.done[group].lock().unwrap().push(message);
        }
        self.lane_in_hand.fetch_sub(1, Ordering::SeqCst);
        self.in_hand[group].fetch_sub(1, Ordering::SeqCst);
        match fate {
            0 => {
                self.failures.fetch_add(1, Ordering::SeqCst);
                let failing = AssertUnwindSafe(move || {
                    let _delivery = delivery;
                    std::panic::resume_unwind(Box::new("on purpose"));
                });
                assert!(catch_unwind(failing).is_err());
            }
            1 => {
                self.failures.fetch_add(1, Ordering::SeqCst);
                delivery.give_back();
            }
            _ => delivery.complete(),
        }
    }

    fn read(&self, reader: usize) {
        let mut random = Random(1000 + reader as u64);
        while let Ok(mut turn) = self.queue.receive().wait() {
            if random.below(10) == 0 {
                continue;
            }
            let group = turn.group_id();
            loop {
                let Some(delivery) = turn.next() else { break };
                assert_eq!(group, delivery.group_id());
                if random.below(3) == 0 {
                    let delivery = delivery.detach();
                    // Together with the turn, which may go on, or without it.
                    if random.below(2) == 0 {
                        self.handle(delivery, &mut random);
                        continue;
                    }
                    drop(turn);
                    self.handle(delivery, &mut random);
                    break;
                }
                self.handle(delivery, &mut random);
            }
        }
    }

    fn send(&self, sender: usize, conversations: &[Conversation<Message>], limits: &Limits) {
        let mut random = Random(sender as u64);
        let mut numbers = [0; GROUPS];
        for _ in 0..MESSAGES {
            let group = random.below(GROUPS);
            let number = numbers[group];
            numbers[group] += 1;
            let message = Message {
                group,
                sender,
                number,
            };
            conversations[group].send(message).unwrap();
            match random.below(6) {
                0 => {
                    let id = conversations[random.below(GROUPS)].group_id();
                    self.queue.bump(id, random.below(256) as u8).unwrap();
                }
                1 => limits.disturb(&mut random),
                _ => {}
            }
        }
    }
}

/// The limits that are set to 0 and back meanwhile.
struct Limits<'a> {
    world: &'a World,
    lane: conversant::queue::Lane<Message>,
    groups: Vec<conversant::queue::Group<Message>>,
}

impl Limits<'_> {
    fn disturb(&self, random: &mut Random) {
        let group = random.below(GROUPS);
        match random.below(3) {
            0 => {
                self.groups[group].set_limit(Limit::AtMost(0)).unwrap();
                self.groups[group]
                    .set_limit(self.world.limit(group))
                    .unwrap();
            }
            1 => {
                self.lane
                    .set_cap(Limit::AtMost(random.below(2) as u32))
                    .unwrap();
                self.lane.set_cap(Limit::AtMost(CAP)).unwrap();
            }
            _ => self.groups[group].set_level(random.below(256) as u8),
        }
    }
}

#[test]
fn order_exclusion_completion_and_conservation() {
    for quantum in [1, 4] {
        let world = World::new(quantum);
        let lane = world.queue.lane(1, Limit::AtMost(CAP)).unwrap();
        let groups: Vec<_> = (0..GROUPS)
            .map(|n| lane.group(world.limit(n), 100).unwrap())
            .collect();
        let conversations = || -> Vec<_> {
            let open = groups.iter().map(|group| group.conversation().unwrap());
            open.collect()
        };
        let per_sender: Vec<_> = (0..SENDERS).map(|_| conversations()).collect();
        let limits = Limits {
            world: &world,
            lane,
            groups,
        };
        thread::scope(|scope| {
            for reader in 0..READERS {
                let world = &world;
                scope.spawn(move || world.read(reader));
            }
            let (world, limits) = (&world, &limits);
            let senders = per_sender.iter().enumerate();
            let senders: Vec<_> = senders
                .map(|(n, conversations)| scope.spawn(move || world.send(n, conversations, limits)))
                .collect();
            senders
                .into_iter()
                .for_each(|sender| sender.join().unwrap());
            world.queue.close();
        });
        check(&world);
        drop((per_sender, limits));
        assert!(world.queue.snapshot().lanes.is_empty());
    }
}

fn check(world: &World) {
    let snapshot = world.queue.snapshot();
    assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
    let receives = snapshot.counts.receives;
    assert_eq!((receives.waiting, receives.notified), (0, 0));
    assert!(world.failures.load(Ordering::SeqCst) > 0, "some failed");
    let mut total = 0;
    for (group, done) in world.done.iter().enumerate() {
        let done = done.lock().unwrap();
        total += done.len();
        for sender in 0..SENDERS {
            let of_sender = done.iter().filter(|message| message.sender == sender);
            let mut numbers: Vec<_> = of_sender.map(|message| message.number).collect();
            if world.limits[group] > 1 {
                // Concurrent work and redeliveries: all messages once, in some order.
                numbers.sort_unstable();
            }
            assert!(
                numbers.iter().copied().eq(0..numbers.len()),
                "group {group}: {numbers:?}"
            );
        }
    }
    assert_eq!(total, SENDERS * MESSAGES);
}
