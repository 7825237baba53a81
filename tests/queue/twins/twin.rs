//! One of the two: a queue, everything that is held of it, and what was seen.

use std::fmt::Debug;
use std::pin::Pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use conversant::limit::Limit;
use conversant::queue::{
    Conversation, Detached, Group, GroupId, Lane, Peek, Queue, Snapshot, Turn, Turns,
};

use crate::queue_support::poll;
use crate::twins::script::{GROUPS, Kind, Op, Script, Settings};

/// Waits at once.
const WAITS: usize = 4;

/// Turns, or why there are none.
type Received = Result<Vec<Turn<'static, u32>>, String>;

pub(crate) struct Twin {
    queue: Queue<u32>,
    lanes: [Lane<u32>; 2],
    groups: [Group<u32>; GROUPS],
    conversations: [Conversation<u32>; GROUPS],
    turns: Vec<Turn<'static, u32>>,
    deliveries: Vec<Detached<u32>>,
    peeks: Vec<Peek<u32>>,
    waits: Vec<Pin<Box<dyn Future<Output = Received>>>>,
    /// Messages tried so far; the last one's number.
    tried: u32,
    now: u64,
}

/// Removes the `a`-th element.
fn remove<T>(all: &mut Vec<T>, a: usize) -> Option<T> {
    let at = a.checked_rem(all.len())?;
    Some(all.remove(at))
}

fn words(seen: impl Debug) -> String {
    format!("{seen:?}")
}

fn one(turn: Turn<'_, u32>) -> Vec<Turn<'static, u32>> {
    vec![turn.into_owned()]
}

fn all(turns: Turns<'_, u32>) -> Vec<Turn<'static, u32>> {
    turns.map(Turn::into_owned).collect()
}

impl Twin {
    /// The result of each step, and what is left at the end.
    pub(crate) fn run(script: &Script, looks: bool) -> Vec<String> {
        let mut twin = Self::new(&script.settings);
        let mut log = Vec::new();
        for op in &script.ops {
            let seen = twin.step(op);
            log.push(seen + &twin.poll());
            if looks {
                drop(twin.snapshot());
            }
        }
        log.push(twin.finish());
        log
    }

    fn new(settings: &Settings) -> Self {
        let queue = Queue::builder()
            .quantum(settings.quantum)
            .attempts(settings.attempts)
            .back_off(
                Duration::from_secs(settings.back_off),
                Duration::from_secs(3),
            )
            .capacity(settings.capacity)
            .build()
            .unwrap();
        let lanes = [1, 2].map(|weight| queue.lane(weight, Limit::Unlimited).unwrap());
        let groups: [_; GROUPS] = std::array::from_fn(|i| {
            let group = lanes[i % 2].group(settings.limits[i], 100);
            group.unwrap()
        });
        let conversations = groups.each_ref().map(|group| group.conversation().unwrap());
        Self {
            queue,
            lanes,
            groups,
            conversations,
            turns: Vec::new(),
            deliveries: Vec::new(),
            peeks: Vec::new(),
            waits: Vec::new(),
            tried: 0,
            now: 0,
        }
    }

    fn step(&mut self, op: &Op) -> String {
        match op.kind {
            Kind::Send | Kind::SendAll | Kind::SendIn => self.send(op),
            Kind::Receive | Kind::ReceiveMany | Kind::ReceiveFrom => self.receive(op),
            Kind::WaitForMany | Kind::WaitFrom | Kind::DropWait => self.wait(op),
            Kind::Next | Kind::Batch | Kind::DropTurn | Kind::DropTurns => self.turn(op),
            Kind::Complete | Kind::GiveBack => self.end(op),
            Kind::Bump | Kind::SetLimit | Kind::SetCap => self.set(op),
            Kind::Peek | Kind::DropPeek => self.peek(op),
            Kind::Resume => words(self.queue.resume(self.id(op))),
            Kind::Drain => words(self.queue.drain(self.id(op))),
            Kind::Advance => {
                self.now += u64::from(op.few());
                words(self.queue.advance(Duration::from_secs(self.now)))
            }
            Kind::Close => {
                self.queue.close();
                String::new()
            }
            Kind::Shutdown => words(self.queue.shutdown()),
            Kind::Look => self.look(),
        }
    }

    fn id(&self, op: &Op) -> GroupId {
        self.groups[op.group_id()].id()
    }

    /// The group's number in the script.
    fn number(&self, id: GroupId) -> usize {
        let found = self.groups.iter().position(|group| group.id() == id);
        found.expect("a group of the script")
    }

    fn send(&mut self, op: &Op) -> String {
        let conversation = &self.conversations[op.group_id()];
        let first = self.tried + 1;
        let count = match op.kind {
            Kind::SendAll => op.few(),
            _ => 1,
        };
        self.tried += count;
        let sent = match op.kind {
            Kind::Send => conversation.send(first).map_err(words),
            Kind::SendIn => conversation.send_in(op.few(), first).map_err(words),
            _ => conversation.send_all(first..first + count).map_err(words),
        };
        words(sent)
    }

    fn receive(&mut self, op: &Op) -> String {
        let received = match op.kind {
            Kind::Receive => self.queue.try_receive().map(one).map_err(words),
            Kind::ReceiveMany => {
                let received = self.queue.try_receive_many(op.many());
                received.map(all).map_err(words)
            }
            _ => {
                let received = self.queue.try_receive_from(self.id(op));
                received.map(one).map_err(words)
            }
        };
        self.hold(received)
    }

    fn hold(&mut self, received: Received) -> String {
        let turns = match received {
            Ok(turns) => turns,
            Err(why) => return why,
        };
        let numbers: Vec<_> = turns
            .iter()
            .map(|turn| self.number(turn.group_id()))
            .collect();
        self.turns.extend(turns);
        words(numbers)
    }

    fn wait(&mut self, op: &Op) -> String {
        match op.kind {
            Kind::DropWait => drop(remove(&mut self.waits, op.a)),
            _ if self.waits.len() == WAITS => {}
            Kind::WaitForMany => {
                let (queue, n) = (self.queue.clone(), op.b % 4);
                self.waits.push(Box::pin(async move {
                    let received = queue.receive_many(n).await;
                    received.map(all).map_err(words)
                }));
            }
            _ => {
                let (queue, group) = (self.queue.clone(), self.id(op));
                self.waits.push(Box::pin(async move {
                    let received = queue.receive_from(group).await;
                    received.map(one).map_err(words)
                }));
            }
        }
        words(self.waits.len())
    }

    /// Polls each wait once, from the oldest; returns the results.
    fn poll(&mut self) -> String {
        let mut came = String::new();
        let mut at = 0;
        while let Some(wait) = self.waits.get_mut(at) {
            match poll(wait, Waker::noop()) {
                Poll::Pending => at += 1,
                Poll::Ready(received) => {
                    drop(self.waits.remove(at));
                    came += &format!(", waited {}", self.hold(received));
                }
            }
        }
        came
    }

    fn turn(&mut self, op: &Op) -> String {
        match op.kind {
            Kind::Next => self.next(op),
            Kind::Batch => {
                let Some(at) = op.a.checked_rem(self.turns.len()) else {
                    return String::new();
                };
                let batch = self.turns[at].next_batch(1 + op.b % 4);
                let seen = batch.as_ref().map(|batch| batch.iter().copied().collect());
                let seen: Option<Vec<_>> = seen;
                words((seen, batch.map(|batch| batch.complete_up_to(op.b / 4 % 4))))
            }
            Kind::DropTurn => {
                let turn = remove(&mut self.turns, op.a);
                words(turn.map(|turn| self.number(turn.group_id())))
            }
            _ => {
                self.turns.clear();
                "all".into()
            }
        }
    }

    /// The next delivery is detached, or else completed or given back at once.
    fn next(&mut self, op: &Op) -> String {
        let Some(at) = op.a.checked_rem(self.turns.len()) else {
            return String::new();
        };
        let Some(delivery) = self.turns[at].next() else {
            return "nothing".into();
        };
        let seen = words((*delivery, delivery.attempt(), delivery.tier()));
        match op.b % 8 {
            0..4 => self.deliveries.push(delivery.detach()),
            4..7 => _ = delivery.complete(),
            _ => delivery.give_back(),
        }
        seen
    }

    fn end(&mut self, op: &Op) -> String {
        let delivery = remove(&mut self.deliveries, op.a);
        match op.kind {
            Kind::Complete => words(delivery.map(Detached::complete)),
            _ => words(delivery.map(|delivery| *delivery)),
        }
    }

    fn set(&mut self, op: &Op) -> String {
        let group = &self.groups[op.group_id()];
        match op.kind {
            Kind::Bump => {
                group.bump([0, 50, 99, 150][op.b % 4]);
                String::new()
            }
            Kind::SetLimit => words(group.set_limit(op.limit())),
            _ => words(self.lanes[op.a % 2].set_cap(op.cap())),
        }
    }

    fn peek(&mut self, op: &Op) -> String {
        if op.kind == Kind::DropPeek {
            return words(remove(&mut self.peeks, op.a).map(|peek| *peek));
        }
        let peek = self.queue.try_peek(self.id(op));
        let shown = |peek: &Peek<u32>| (**peek, peek.number(), peek.attempts());
        let seen = words(peek.as_ref().map(shown));
        self.peeks.extend(peek);
        seen
    }

    fn snapshot(&self) -> Snapshot {
        let snapshot = self.queue.snapshot();
        let in_lanes: u64 = snapshot.lanes.iter().map(|l| u64::from(l.in_flight)).sum();
        assert_eq!(snapshot.in_flight, in_lanes);
        snapshot
    }

    /// What a snapshot shows, with the script's numbers.
    fn look(&self) -> String {
        let snapshot = self.snapshot();
        let counts = (
            snapshot.waiting,
            snapshot.in_flight,
            snapshot.counts.eligible,
        );
        let mut seen = words((snapshot.closed, counts));
        for lane in &snapshot.lanes {
            seen += &words((lane.in_flight, lane.open_tier));
            for g in &lane.groups {
                let number = self.number(g.id);
                seen += &words((number, g.waiting, g.in_flight, g.why, g.bump));
            }
        }
        seen
    }

    /// Everything is dropped; returns what is left then.
    fn finish(mut self) -> String {
        self.turns.clear();
        self.deliveries.clear();
        self.peeks.clear();
        self.waits.clear();
        self.look() + &words(self.queue.shutdown())
    }
}
