//! Real threads: senders, readers, bumps, limits that change, handlers that panic. No sleeps and no
//! times: what must hold, holds in every interleaving.

mod queue_support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use conversant::error::Closed;
use conversant::limit::{Bypass, Limit};
use conversant::queue::{Conversation, Delivery, Queue, SendReason, Turn};

use queue_support::Random;

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

/// What handlers saw.
struct World {
    queue: Queue<Message>,
    limits: [u32; GROUPS],
    /// Deliveries in hand, by group.
    in_hand: [AtomicU32; GROUPS],
    lane_in_hand: AtomicU32,
    done: [Mutex<Vec<Message>>; GROUPS],
    failures: AtomicUsize,
}

const CAP: u32 = 4;

impl World {
    fn new(quantum: u32) -> Self {
        let queue = Queue::builder().quantum(quantum).bypass(Bypass::AtMost(3));
        // They fail at random, and none is to be set aside.
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
    fn handle(&self, delivery: Delivery<Message>, random: &mut Random) {
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
            _ => _ = delivery.complete(),
        }
    }

    fn read(&self, reader: usize) {
        let mut random = Random(1000 + reader as u64);
        while let Ok(mut turn) = self.queue.receive().wait() {
            if random.below(10) == 0 {
                continue;
            }
            while let Some(delivery) = turn.next() {
                assert_eq!(turn.group(), delivery.group());
                if random.below(3) == 0 {
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
                    let id = conversations[random.below(GROUPS)].group();
                    self.queue.bump(id, random.below(256) as u8).unwrap();
                }
                1 => limits.disturb(&mut random),
                _ => {}
            }
        }
        for conversation in conversations {
            conversation.end();
        }
    }
}

/// What is paused and resumed meanwhile.
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
    let receives = snapshot.receives;
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
                // Concurrent work and redeliveries: all of them once, in some order.
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

/// C.3 with real readers: what each does while it holds the turn is done in the order of receipt,
/// and the work overlaps.
#[test]
fn ordered_receipt_and_concurrent_work() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = queue_support::conversation(&lane, Limit::Unlimited, 100);
    one.send_all(0..600).unwrap();
    queue.close();
    let (log, overlap) = (Mutex::new(Vec::new()), Barrier::new(2));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut met = false;
                while let Ok(mut turn) = queue.receive().wait() {
                    let delivery = turn.next().unwrap();
                    if log.try_lock().is_err() {
                        panic!("two at once");
                    }
                    log.lock().unwrap().push(*delivery);
                    drop(turn);
                    // Both must be in their work at once for either to go on.
                    if !std::mem::replace(&mut met, true) {
                        overlap.wait();
                    }
                    delivery.complete();
                }
            });
        }
    });
    assert!(log.into_inner().unwrap().into_iter().eq(0..600));
}

/// Two claimers and a limit: check and increment are one.
#[test]
fn racing_claims_never_exceed_the_limit() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = queue_support::conversation(&lane, Limit::AtMost(2), 100);
    let start = Barrier::new(4);
    for _ in 0..200 {
        one.send_all([(); 12]).unwrap();
        let held: Vec<Delivery<()>> = thread::scope(|scope| {
            let claim = || {
                start.wait();
                // A turn of another reader may be live for a moment: all try often enough.
                let claim = |_| queue.try_receive().ok().and_then(|mut turn| turn.next());
                (0..4).filter_map(claim).collect::<Vec<_>>()
            };
            let claimers: Vec<_> = (0..3).map(|_| scope.spawn(claim)).collect();
            start.wait();
            claimers
                .into_iter()
                .flat_map(|c| c.join().unwrap())
                .collect()
        });
        assert!((1..=2).contains(&held.len()));
        held.into_iter().for_each(|delivery| delivery.complete());
        while let Some(delivery) = queue_support::take(&queue) {
            delivery.complete();
        }
    }
}

/// A close that races sends: each is refused with its message or delivered, and every blocked reader
/// comes home.
#[test]
fn a_close_that_races_senders_and_readers() {
    for round in 0..100 {
        let queue = Queue::<u32>::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let conversations: Vec<_> = (0..3).map(|_| lane.conversation().unwrap()).collect();
        let start = Barrier::new(6);
        let (taken, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    while let Ok(mut turn) = queue.receive().wait() {
                        let done = std::iter::from_fn(|| turn.next().map(|d| _ = d.complete()));
                        taken.fetch_add(done.count(), Ordering::SeqCst);
                    }
                });
            }
            for conversation in &conversations {
                let (start, refused) = (&start, &refused);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..20 {
                        if let Err(error) = conversation.send(n) {
                            assert_eq!((error.message, error.reason), (n, SendReason::Closed));
                            refused.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
            }
            start.wait();
            (0..round).for_each(|_| thread::yield_now());
            queue.close();
        });
        assert_eq!(taken.into_inner() + refused.into_inner(), 60);
    }
}

/// A first wait that races the send, and a last completion that races an arrival: nothing sleeps on
/// work. A lost wake-up hangs here.
#[test]
fn ping_pong_loses_no_wake() {
    let (there, back) = (Queue::new(), Queue::new());
    let lanes = [&there, &back].map(|queue| queue.lane(1, Limit::Unlimited).unwrap());
    let [ping, pong] = lanes.each_ref().map(|lane| lane.conversation().unwrap());
    let one = |queue: &Queue<u32>| -> Result<u32, Closed> {
        let mut turn: Turn<u32> = queue.receive().wait()?;
        Ok(turn.next().unwrap().complete())
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(n) = one(&there) {
                pong.send(n).unwrap();
            }
        });
        for n in 0..5_000 {
            ping.send(n).unwrap();
            assert_eq!(one(&back), Ok(n));
        }
        there.close();
    });
}

/// Receives that are cancelled while they are being woken pass the wake-up on.
#[test]
fn cancelled_waits_lose_no_work() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let stop = AtomicBool::new(false);
    let received = Mutex::new(BTreeMap::new());
    let note = |mut turn: Turn<u32>| {
        let n = turn.next().unwrap().complete();
        assert_eq!(received.lock().unwrap().insert(n, ()), None);
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let timeout = std::time::Duration::from_nanos(1);
                    if let Ok(Ok(turn)) = queue.receive().wait_timeout(timeout) {
                        note(turn);
                    }
                }
            });
        }
        scope.spawn(|| {
            while let Ok(turn) = queue.receive().wait() {
                note(turn);
            }
        });
        for n in 0..3_000 {
            lane.conversation().unwrap().send(n).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        queue.close();
    });
    let received = received.into_inner().unwrap();
    assert!(received.into_keys().eq(0..3_000));
    let receives = queue.snapshot().receives;
    assert_eq!((receives.waiting, receives.notified), (0, 0));
}
