//! Messages: sent, received and completed.

use std::hint::black_box;

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Conversation, Queue, Turn};

use super::{GROUPS, Path};

pub(super) const PATHS: &[Path] = &[
    ("message-alone-claim-1", |n| alone(n, &Plain, 1)),
    ("message-alone-claim-32", |n| alone(n, &Plain, 32)),
    ("four-in-a-turn-claim-1", |n| four(n, 1)),
    ("four-in-a-turn-claim-32", |n| four(n, 32)),
    ("levels-16-claim-1", |n| alone(n, &Levels, 1)),
    ("levels-16-claim-32", |n| alone(n, &Levels, 32)),
    ("lanes-4-claim-1", |n| alone(n, &Lanes, 1)),
    ("lanes-4-claim-32", |n| alone(n, &Lanes, 32)),
    ("cap-claim-1", |n| alone(n, &Capped, 1)),
    ("cap-claim-32", |n| alone(n, &Capped, 32)),
    ("capacity-claim-1", |n| alone(n, &Bounded, 1)),
    ("capacity-claim-32", |n| alone(n, &Bounded, 32)),
    ("group-capacity-claim-1", |n| alone(n, &GroupBounded, 1)),
    ("group-capacity-claim-32", |n| alone(n, &GroupBounded, 32)),
    ("bumps-1-percent-claim-32", |n| alone(n, &Bumps, 32)),
    ("give-backs-1-percent-claim-32", |n| {
        alone(n, &GiveBacks, 32)
    }),
    ("by-key-claim-32", by_key),
    ("send-many-32", send_many),
    ("send-all-32-in-batches", |n| in_batches(n, 32)),
    ("one-in-a-batch", |n| in_batches(n, 1)),
    ("detached", detached),
    ("send-into-a-busy-group", busy_send),
    ("one-a-turn-claim-1", |n| one_a_turn(n, 1)),
    ("one-a-turn-claim-32", |n| one_a_turn(n, 32)),
    ("deep-100", |n| deep(n, 100, 1)),
    ("deep-100-quantum-max", |n| deep(n, 100, u32::MAX)),
    ("deep-1000000", |n| deep(n, 1_000_000, 1)),
    ("deep-1000000-quantum-max", |n| deep(n, 1_000_000, u32::MAX)),
];

/// How the groups of a run differ.
trait Kind {
    fn lane(&self, _group: usize) -> usize {
        0
    }

    fn lanes(&self) -> usize {
        1
    }

    fn cap(&self) -> Limit {
        Limit::Unlimited
    }

    fn capacity(&self) -> Limit {
        Limit::Unlimited
    }

    /// The capacity of each group.
    fn group_capacity(&self) -> Limit {
        Limit::Unlimited
    }

    /// Messages in a turn.
    fn quantum(&self) -> u32 {
        16
    }

    fn level(&self, _group: usize) -> u8 {
        100
    }

    fn bumps(&self, _message: usize) -> bool {
        false
    }

    fn gives_back(&self, _message: usize) -> bool {
        false
    }
}

struct Plain;
struct Levels;
struct Lanes;
struct Capped;
struct Bounded;
struct GroupBounded;
struct Bumps;
struct GiveBacks;
struct Short;

impl Kind for Plain {}

impl Kind for Levels {
    fn level(&self, group: usize) -> u8 {
        (group % 16) as u8
    }
}

impl Kind for Lanes {
    fn lane(&self, group: usize) -> usize {
        group % 4
    }

    fn lanes(&self) -> usize {
        4
    }
}

impl Kind for Capped {
    fn cap(&self) -> Limit {
        Limit::AtMost(48)
    }
}

impl Kind for Bounded {
    fn capacity(&self) -> Limit {
        Limit::AtMost(1 << 20)
    }
}

impl Kind for GroupBounded {
    fn group_capacity(&self) -> Limit {
        Limit::AtMost(4)
    }
}

impl Kind for Bumps {
    fn bumps(&self, message: usize) -> bool {
        message.is_multiple_of(100)
    }
}

impl Kind for GiveBacks {
    fn gives_back(&self, message: usize) -> bool {
        message.is_multiple_of(100)
    }
}

impl Kind for Short {
    fn quantum(&self) -> u32 {
        1
    }
}

fn queue(kind: &impl Kind) -> (Queue<u64>, Vec<Conversation<u64>>) {
    let queue = Queue::builder().capacity(kind.capacity());
    let queue = queue.quantum(kind.quantum()).build().expect("above 0");
    let lane = |_| queue.lane(1, kind.cap()).expect("open");
    let lanes: Vec<_> = (0..kind.lanes()).map(lane).collect();
    let conversation = |group| {
        let lane = &lanes[kind.lane(group)];
        let group = lane.group(Limit::SERIAL, kind.level(group)).expect("open");
        let capacity = kind.group_capacity();
        if capacity != Limit::Unlimited {
            group.set_capacity(capacity).expect("in range");
        }
        group.conversation().expect("open")
    };
    let conversations = (0..GROUPS).map(conversation).collect();
    (queue, conversations)
}

/// Serves what waits, with `claim` turns at once.
fn serve(queue: &Queue<u64>, claim: usize, kind: &impl Kind, served: &mut usize) {
    let mut deliver = |mut turn: Turn<'_, u64>| {
        while let Some(delivery) = turn.next() {
            *served += 1;
            if kind.gives_back(*served) && delivery.attempt() == 1 {
                delivery.give_back();
            } else {
                black_box(delivery.complete());
            }
        }
    };
    if claim == 1 {
        while let Ok(turn) = queue.try_receive() {
            deliver(turn);
        }
    } else {
        while let Ok(turns) = queue.try_receive_many(claim) {
            turns.for_each(&mut deliver);
        }
    }
}

/// One message in each group, each alone in its turn.
fn alone(rounds: usize, kind: &impl Kind, claim: usize) -> usize {
    let (queue, conversations) = queue(kind);
    let (mut sent, mut served) = (0, 0);
    for round in 0..rounds {
        for conversation in &conversations {
            sent += 1;
            if kind.bumps(sent) {
                queue.bump(conversation.group_id(), 200).expect("there");
            }
            conversation.send(round as u64).expect("open");
        }
        serve(&queue, claim, kind, &mut served);
    }
    GROUPS
}

fn four(rounds: usize, claim: usize) -> usize {
    let (queue, conversations) = queue(&Plain);
    let mut served = 0;
    for round in 0..rounds {
        for conversation in &conversations {
            for _ in 0..4 {
                conversation.send(round as u64).expect("open");
            }
        }
        serve(&queue, claim, &Plain, &mut served);
    }
    4 * GROUPS
}

/// Four messages wait in each group, and a turn takes one of them.
fn one_a_turn(rounds: usize, claim: usize) -> usize {
    let (queue, conversations) = queue(&Short);
    for conversation in &conversations {
        conversation.send_all([0, 1, 2, 3]).expect("open");
    }
    for round in 0..rounds {
        for conversation in &conversations {
            conversation.send(round as u64).expect("open");
        }
        let mut served = 0;
        let mut deliver = |mut turn: Turn<'_, u64>| {
            black_box(turn.next().expect("its first").complete());
            served += 1;
        };
        for _ in 0..GROUPS / claim {
            if claim == 1 {
                deliver(queue.try_receive().expect("some"));
            } else {
                let turns = queue.try_receive_many(claim).expect("some");
                turns.for_each(&mut deliver);
            }
        }
        assert_eq!(served, GROUPS);
    }
    std::mem::forget((queue, conversations));
    GROUPS
}

/// `together` messages to each group by one call, served up to 16 at a time.
fn in_batches(rounds: usize, together: usize) -> usize {
    let (queue, conversations) = queue(&Plain);
    for round in 0..rounds as u64 {
        for conversation in &conversations {
            let messages = (0..together as u64).map(|n| round + n);
            conversation.send_all(messages).expect("open");
        }
        while let Ok(turns) = queue.try_receive_many(32) {
            for mut turn in turns {
                while let Some(batch) = turn.next_batch(16) {
                    batch.iter().for_each(|message| _ = black_box(*message));
                    batch.complete();
                }
            }
        }
    }
    GROUPS * together
}

fn by_key(rounds: usize) -> usize {
    let queue = Queue::new();
    let keyed = Keyed::new(queue.lane(1, Limit::Unlimited).expect("open"));
    let mut served = 0;
    for round in 0..rounds {
        for key in 0..GROUPS as u64 {
            keyed.send(key, round as u64).expect("open");
        }
        serve(&queue, 32, &Plain, &mut served);
    }
    GROUPS
}

/// Like a message alone, but each half of the groups gets its messages by one call.
fn send_many(rounds: usize) -> usize {
    let (queue, conversations) = queue(&Plain);
    let mut served = 0;
    for round in 0..rounds {
        for some in conversations.chunks(GROUPS / 2) {
            let messages = some.iter().map(|one| (one, round as u64));
            queue.send_many(messages).expect("open");
        }
        serve(&queue, 32, &Plain, &mut served);
    }
    GROUPS
}

fn detached(rounds: usize) -> usize {
    let (queue, conversations) = queue(&Plain);
    for round in 0..rounds {
        for conversation in &conversations {
            conversation.send(round as u64).expect("open");
        }
        while let Ok(mut turn) = queue.try_receive() {
            let delivery = turn.next().expect("its first").detach();
            drop(turn);
            black_box(delivery.complete());
        }
    }
    GROUPS
}

/// The messages stay: the growth of the array counts.
fn busy_send(rounds: usize) -> usize {
    let (queue, conversations) = queue(&Plain);
    conversations[0].send(0).expect("open");
    let turn = queue.try_receive().expect("one");
    for round in 0..rounds {
        for _ in 0..GROUPS {
            conversations[0].send(round as u64).expect("open");
        }
    }
    // What is left must not be counted.
    std::mem::forget((turn.into_owned(), queue, conversations));
    GROUPS
}

/// A turn takes one message of a group in which `waiting` wait, and one is sent in its place.
/// Neither the number that waits nor the quantum must matter.
fn deep(rounds: usize, waiting: u64, quantum: u32) -> usize {
    let queue = Queue::builder().quantum(quantum).build().expect("in range");
    let lane = queue.lane(1, Limit::Unlimited).expect("open");
    let conversation = lane.conversation().expect("open");
    conversation.send_all(0..waiting).expect("open");
    for round in 0..rounds {
        for _ in 0..GROUPS {
            let mut turn = queue.try_receive().expect("it has work");
            black_box(turn.next().expect("its first").complete());
            drop(turn);
            conversation.send(round as u64).expect("open");
        }
    }
    // What is left must not be counted.
    std::mem::forget((queue, lane, conversation));
    GROUPS
}
