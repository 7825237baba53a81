//! One program per path, for counting instructions. `.ci/budgets` runs each under
//! `valgrind --tool=callgrind` for two numbers of rounds, and divides the difference by the
//! operations, so that the start and the end of a run do not count. One thread; every run of one
//! build is the same.
//!
//! `budgets` alone lists the paths; `budgets PATH ROUNDS` runs one and prints how many operations a
//! round has. For `PATH@FUNCTION` only the instructions in that function count.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conversant::gate::TierGate;
use conversant::intent::IntentLock;
use conversant::job_queue::{self, Claim, JobQueue};
use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode;
use conversant::queue::{Conversation, Queue, Turn};
use conversant::scheduler::{Caller, CallerOptions, Place, Scheduler, Task};
use conversant::semaphore::Semaphore;

type Path = fn(rounds: usize) -> usize;

const PATHS: &[(&str, Path)] = &[
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
    ("job-claim-1", |n| jobs(n, 1)),
    ("job-claim-64", |n| jobs(n, 64)),
    ("job-claim-64-all-at-once", jobs_at_once),
    ("job-beside-1000-waits", jobs_beside_waits),
    ("semaphore-pair", semaphore),
    ("intent-pair", intent),
    ("gate-step", gate),
    ("lock-table-key", |n| lock_table(n, Name::Root, Mode::S)),
    ("lock-table-path", |n| lock_table(n, Name::Leaf(7), Mode::X)),
    ("lock-table-owner", |n| lock_table_owner(n, 0)),
    ("lock-table-beside-1000", |n| lock_table_owner(n, 1000)),
    ("lock-table-savepoint-of-1000", |n| savepoints(n, 1000)),
    ("lock-table-savepoints-of-one", savepoints_of_one),
    ("lock-table-crowd-leave", |n| crowd(n, Mode::S, true)),
    ("lock-table-crowd-grant", |n| crowd(n, Mode::X, false)),
    ("task-detached", |n| tasks(n, 64, 0)),
    ("task-detached-of-256", |n| tasks(n, 256, 0)),
    ("task-in-a-serial-group", |n| tasks(n, 64, 8)),
    ("task-in-64-groups", |n| tasks(n, 64, 64)),
    ("task-awaited", awaited),
    ("task-awaited@submit", awaited),
    ("task-awaited@run", awaited),
    ("task-awaited@take_outcomes", awaited),
    ("task-future", futures),
];

/// Groups, each with one message a round.
const GROUPS: usize = 64;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args
        .first()
        .and_then(|name| PATHS.iter().find(|p| p.0 == name));
    let rounds = args.get(1).and_then(|rounds| rounds.parse().ok());
    match (path, rounds) {
        (Some((_, run)), Some(rounds)) => println!("{}", run(rounds)),
        _ => PATHS.iter().for_each(|(name, _)| println!("{name}")),
    }
}

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
                queue.bump(conversation.group(), 200).expect("there");
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

/// Jobs of groups of limit 1. When a job is claimed, another of its group is pushed behind all
/// others, and the job is completed.
fn jobs(rounds: usize, n: usize) -> usize {
    let queue = JobQueue::new();
    let push = |key| {
        let place = job_queue::Place::new().group(key % GROUPS as u64);
        queue.push(key, key, place).expect("open");
    };
    let deep = 8 * GROUPS as u64;
    (0..deep).for_each(push);
    for _ in 0..rounds * GROUPS / n {
        for claim in queue.try_claim(n) {
            push(*claim + deep);
            let done = claim.complete();
            black_box(done.expect("it has no lease"));
        }
    }
    GROUPS
}

/// All jobs of a claim are pushed under one lock, and finished under one; groups by handle.
fn jobs_at_once(rounds: usize) -> usize {
    let queue = JobQueue::new();
    let tenant = queue.tenant(0);
    let groups: Vec<_> = (0..GROUPS as u64).map(|name| tenant.group(name)).collect();
    let push = |keys: &mut dyn Iterator<Item = u64>| {
        let place = |key| groups[key as usize % GROUPS].place();
        let pushed = queue.push_all(keys.map(|key| (key, key, place(key))));
        pushed.expect("open");
    };
    let deep = 8 * GROUPS as u64;
    push(&mut (0..deep));
    for _ in 0..rounds {
        let claims = queue.try_claim(GROUPS);
        push(&mut claims.iter().map(|claim| **claim + deep));
        black_box(Claim::complete_all(claims));
    }
    GROUPS
}

/// One tenant's jobs, while a thousand other tenants are waited for. The jobs have a type of their
/// own: otherwise the other paths would be compiled differently.
fn jobs_beside_waits(rounds: usize) -> usize {
    let queue = JobQueue::<u64, [u64; 1]>::new();
    let tenants: Vec<_> = (1..=1_000).map(|name| queue.tenant(name)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    let mut waits: Vec<_> = tenants.iter().map(|tenant| tenant.claim(1)).collect();
    for wait in &mut waits {
        assert!(Pin::new(wait).poll(&mut cx).is_pending());
    }
    let own = queue.tenant(0);
    for key in 0..(rounds * GROUPS) as u64 {
        own.push(key, [key]).expect("open");
        let claim = own.try_claim(1).pop().expect("it is due");
        black_box(claim.complete().expect("it has no lease"));
    }
    drop(waits);
    GROUPS
}

fn semaphore(rounds: usize) -> usize {
    let semaphore = Semaphore::new(2).expect("in range");
    for _ in 0..rounds {
        drop(black_box(semaphore.acquire(1).wait()));
    }
    1
}

fn intent(rounds: usize) -> usize {
    let lock = IntentLock::new();
    for _ in 0..rounds {
        drop(black_box(lock.lock(Mode::Ix).wait()));
    }
    1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Root,
    Leaf(u32),
}

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        matches!(self, Name::Leaf(_)).then_some(Name::Root)
    }
}

/// The cheapest hasher, so that the table itself is counted.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0 + u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u32(n as u32);
    }
}

/// A lock on a name, and on its parent if it has one, by an owner that holds nothing else.
fn lock_table(rounds: usize, name: Name, mode: Mode) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut owner = locks.owner(0);
    for _ in 0..rounds {
        let name = black_box(name);
        owner.lock(&name, mode).wait().expect("no deadlock");
        owner.release(&name).expect("it was granted");
    }
    1
}

/// Like `lock_table` of a leaf, with a new owner each time, while others keep the parent's intent.
fn lock_table_owner(rounds: usize, beside: usize) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut sessions: Vec<_> = (0..beside).map(|_| locks.owner(0)).collect();
    for session in &mut sessions {
        for _ in 0..2 {
            let savepoint = session.savepoint();
            let leaf = session.try_lock(&Name::Leaf(8), Mode::X);
            leaf.expect("nobody else is there");
            session.release_to(savepoint).expect("its own");
        }
    }
    for _ in 0..rounds {
        let mut owner = locks.owner(0);
        let leaf = black_box(Name::Leaf(7));
        owner.lock(&leaf, Mode::X).wait().expect("no deadlock");
    }
    1
}

/// 10,000 waits behind IX. In turn, the first of them leaves or gets its lock, and begins to wait
/// again behind all others.
fn crowd(rounds: usize, mode: Mode, leave: bool) -> usize {
    const CROWD: usize = 10_000;
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut holder = locks.owner(0);
    holder.try_lock(&Row(0), Mode::Ix).expect("nobody has it");
    let leaves = Cell::new(false);
    let one = |mut owner: Owner<Row, _>| {
        let leaves = &leaves;
        async move {
            while black_box(true) {
                let mut wait = owner.lock(&Row(0), mode);
                poll_fn(|cx| match leaves.take() {
                    true => Poll::Ready(()),
                    false => Pin::new(&mut wait).poll(cx).map(drop),
                })
                .await;
                drop(wait);
                owner.release_all();
            }
        }
    };
    let mut crowd: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    crowd.extend((0..CROWD).map(|_| Box::pin(one(locks.owner(0))) as Pin<Box<_>>));
    let mut cx = Context::from_waker(Waker::noop());
    for one in &mut crowd {
        assert!(one.as_mut().poll(&mut cx).is_pending());
    }
    let _holder = leave.then_some(holder);
    for round in 0..rounds {
        leaves.set(leave);
        assert!(crowd[round % CROWD].as_mut().poll(&mut cx).is_pending());
    }
    leaves.set(false);
    1
}

/// Another type than `Name`, so that the code for `Name` is the same as without these paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row(u32);

impl Resource for Row {
    fn parent(&self) -> Option<Self> {
        (self.0 > 0).then_some(Self(0))
    }
}

/// A statement with a savepoint, which fails, by an owner that holds `held` rows; and one that
/// locks nothing.
fn savepoints(rounds: usize, held: u32) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut owner = locks.owner(0);
    for row in (1..=held).map(Row) {
        owner.try_lock(&row, Mode::X).expect("nobody else is there");
    }
    for _ in 0..rounds {
        for row in [Some(Row(held + 1)), None] {
            let savepoint = owner.savepoint();
            if let Some(row) = black_box(row) {
                owner.try_lock(&row, Mode::X).expect("nobody else is there");
            }
            owner.release_to(savepoint).expect("its own");
        }
    }
    2
}

/// One row, locked and counted after each of `rounds` savepoints, and released as often.
fn savepoints_of_one(rounds: usize) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut owner = locks.owner(0);
    let row = Row(7);
    for _ in 0..rounds {
        owner.savepoint();
        owner.try_lock(black_box(&row), Mode::X).expect("its own");
        black_box(owner.grants(&row));
    }
    for _ in 0..rounds {
        owner.release(black_box(&row)).expect("it was granted");
    }
    1
}

fn gate(rounds: usize) -> usize {
    let gate = TierGate::new();
    for round in 0..rounds {
        let mut ticket = gate.join_ref(round as u32);
        ticket.enter().wait();
        black_box(&ticket);
    }
    1
}

type Workers = Receiver<Box<dyn FnOnce() + Send>>;

/// A scheduler whose workers wait for this thread to run them.
fn scheduler() -> (Scheduler, Workers) {
    let (to_run, workers) = channel();
    let pool = move |worker| to_run.send(worker).map_err(|_| "gone".into());
    // A worker is slow here; it still claims as many tasks as elsewhere.
    let builder = Scheduler::builder().claim_time(Duration::MAX);
    let scheduler = builder.workers(1).pool(pool).build();
    (scheduler.expect("in range"), workers)
}

/// `many` tasks a round that nobody waits for, in serial groups if there are any.
fn tasks(rounds: usize, many: usize, groups: usize) -> usize {
    let (scheduler, workers) = scheduler();
    let caller = scheduler
        .caller("all", CallerOptions::default())
        .expect("open");
    let group = |_| caller.group(Limit::SERIAL, 100).expect("in range");
    let groups: Vec<_> = (0..groups).map(group).collect();
    for round in 0..rounds {
        for n in 0..many {
            let place = match groups.get(n % groups.len().max(1)) {
                Some(group) => Place::new().group(group),
                None => Place::new(),
            };
            let task = caller.exec_detached(place, move || Ok::<_, ()>(black_box(round)));
            task.expect("open");
        }
        workers.try_iter().for_each(|worker| worker());
    }
    many
}

fn awaited(rounds: usize) -> usize {
    let (scheduler, workers) = scheduler();
    let caller = scheduler
        .caller("all", CallerOptions::default())
        .expect("open");
    let mut tasks = Vec::new();
    for round in 0..rounds {
        submit(&caller, &mut tasks, round);
        run(&workers);
        take_outcomes(&mut tasks);
    }
    GROUPS
}

#[inline(never)]
fn submit(caller: &Caller, tasks: &mut Vec<Task<usize, ()>>, round: usize) {
    for _ in 0..GROUPS {
        let task = caller.exec(move || Ok::<_, ()>(black_box(round)));
        tasks.push(task.expect("open"));
    }
}

/// Includes the endings.
#[inline(never)]
fn run(workers: &Workers) {
    workers.try_iter().for_each(|worker| worker());
}

#[inline(never)]
fn take_outcomes(tasks: &mut Vec<Task<usize, ()>>) {
    for mut task in tasks.drain(..) {
        black_box(task.outcome().wait().expect("it has run"));
    }
}

/// Futures that await once, and wake themselves.
fn futures(rounds: usize) -> usize {
    let (scheduler, workers) = scheduler();
    let caller = scheduler
        .caller("all", CallerOptions::default())
        .expect("open");
    for round in 0..rounds {
        for _ in 0..GROUPS {
            let mut awaited = false;
            let once = poll_fn(move |cx| {
                if std::mem::replace(&mut awaited, true) {
                    return Poll::Ready(Ok::<_, ()>(black_box(round)));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            });
            caller.spawn_detached(Place::new(), once).expect("open");
        }
        workers.try_iter().for_each(|worker| worker());
    }
    GROUPS
}
