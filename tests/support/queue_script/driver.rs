//! Runs a script over `form`, and asserts the rules of any queue.

mod checks;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use conversant::limit::Limit;

use super::form::{Conversation, Detached, Group, GroupId, Lane, Queue, Turn};
use crate::queue_script::script::{Kind, Op};
use crate::queue_script::{Script, Seen};

/// How many exist at once: few, so that operations often meet.
const LANES: usize = 3;
const GROUPS: usize = 8;
const CONVERSATIONS: usize = 12;
const TURNS: usize = 6;

/// What the driver knows of a group, for as long as the script runs.
struct Known {
    id: GroupId,
    lane: usize,
    limit: Limit,
    waiting: BTreeSet<u32>,
    /// Units: of its turn, and of detached deliveries.
    in_flight: usize,
}

/// A turn as the driver knows it.
struct Held<'q> {
    group: usize,
    turn: Turn<'q, u32>,
    own: Own,
}

/// What a turn has in hand.
struct Own {
    /// Its first message, while it has not been taken.
    first: Option<u32>,
    /// Whether it has a unit.
    unit: bool,
}

struct Driver<'q> {
    queue: &'q Queue<u32>,
    ops: &'q [Op],
    /// How many operations have run, and how deep the running one is nested.
    pos: usize,
    depth: usize,
    /// By lane number, as in the script.
    caps: Vec<Limit>,
    known: Vec<Known>,
    numbers: BTreeMap<GroupId, usize>,
    lanes: Vec<(usize, Lane<u32>)>,
    groups: Vec<(usize, Group<u32>)>,
    conversations: Vec<(usize, Conversation<u32>)>,
    turns: Vec<Held<'q>>,
    hands: Vec<(usize, Detached<u32>)>,
    /// The groups of all turns, also of borrowed turns.
    held: BTreeSet<usize>,
    /// Turns that were claimed and have not begun.
    claimed: usize,
    /// Messages sent so far; the next one's number.
    sent: u32,
    now: u64,
    looks: bool,
    log: Vec<Seen>,
}

/// The `a`-th element, modulo the length.
fn at<T>(all: &[T], a: usize) -> Option<&T> {
    all.get(a.checked_rem(all.len())?)
}

fn remove<T>(all: &mut Vec<T>, a: usize) -> Option<T> {
    let at = a.checked_rem(all.len())?;
    Some(all.remove(at))
}

fn has_room(limit: Limit, used: usize) -> bool {
    match limit {
        Limit::AtMost(most) => used < most as usize,
        Limit::Unlimited => true,
    }
}

/// What is seen, step by step.
pub(crate) fn run(script: &Script) -> Vec<Seen> {
    let (first, most) = script.back_off;
    let queue = Queue::builder()
        .quantum(script.quantum)
        .bypass(script.bypass)
        .capacity(script.capacity)
        .attempts(script.attempts)
        .back_off(first, most);
    let queue = queue.build().unwrap();
    let mut driver = Driver {
        queue: &queue,
        ops: &script.ops,
        pos: 0,
        depth: 0,
        caps: Vec::new(),
        known: Vec::new(),
        numbers: BTreeMap::new(),
        lanes: Vec::new(),
        groups: Vec::new(),
        conversations: Vec::new(),
        turns: Vec::new(),
        hands: Vec::new(),
        held: BTreeSet::new(),
        claimed: 0,
        sent: 0,
        now: 0,
        looks: script.looks,
        log: Vec::new(),
    };
    while driver.pos < script.ops.len() {
        driver.run_some(1);
    }
    driver.finish(script.last);
    driver.log
}

impl Driver<'_> {
    /// Runs the next operations. An operation that borrows a turn runs the operations within it by
    /// this.
    fn run_some(&mut self, n: usize) {
        self.depth += 1;
        for _ in 0..n {
            let Some(op) = self.ops.get(self.pos) else {
                break;
            };
            self.pos += 1;
            self.step(op);
            if self.looks || op.kind == Kind::Look {
                self.look();
            }
        }
        self.depth -= 1;
    }

    fn step(&mut self, op: &Op) {
        match op.kind {
            Kind::Lane | Kind::Group | Kind::Conversation => self.make(op),
            Kind::Send | Kind::SendIn | Kind::SendAll => self.send(op),
            Kind::Bump | Kind::SetLevel | Kind::SetLimit | Kind::SetCap => self.set(op),
            Kind::DropConversation => _ = remove(&mut self.conversations, op.a),
            Kind::DropGroup => _ = remove(&mut self.groups, op.a),
            Kind::DropLane => _ = remove(&mut self.lanes, op.a),
            Kind::Receive | Kind::ReceiveFrom => self.receive(op),
            Kind::ReceiveMany => self.receive_many(op),
            Kind::Next => self.next(op),
            Kind::Batch => self.next_batch(op),
            Kind::Own => self.own(op.a),
            Kind::DropTurn => self.drop_turn(op.a),
            Kind::Complete | Kind::GiveBack => self.end(op),
            Kind::BumpByName | Kind::Resume | Kind::Drain | Kind::Look => self.by_name(op),
            Kind::Advance => {
                self.now += u64::from(op.b % 4);
                let next = self.queue.advance(Duration::from_secs(self.now));
                self.log.push(Seen::Advanced(next));
            }
            // Rarely: most scripts are about what precedes the close.
            Kind::Close if op.b < 64 => self.queue.close(),
            Kind::Shutdown if op.b < 64 => self.shut(),
            Kind::Close | Kind::Shutdown => {}
        }
    }

    fn make(&mut self, op: &Op) {
        let made = match op.kind {
            Kind::Lane if self.lanes.len() < LANES => {
                let (weight, cap) = (u32::from(op.c % 4), op.cap());
                self.queue.lane(weight, cap).map(|lane| {
                    self.lanes.push((self.caps.len(), lane));
                    self.caps.push(cap);
                    self.caps.len() - 1
                })
            }
            Kind::Group if self.groups.len() < GROUPS => {
                let Some((lane, handle)) = at(&self.lanes, op.a) else {
                    return;
                };
                let (lane, limit) = (*lane, op.limit());
                handle.group(limit, op.level()).map(|group| {
                    let number = self.know(group.id(), lane, limit);
                    self.groups.push((number, group));
                    number
                })
            }
            Kind::Conversation if self.conversations.len() < CONVERSATIONS => {
                if op.b < 100 {
                    let Some((lane, handle)) = at(&self.lanes, op.a) else {
                        return;
                    };
                    let lane = *lane;
                    handle.conversation().map_err(Into::into).map(|made| {
                        let number = self.know(made.group_id(), lane, Limit::SERIAL);
                        self.conversations.push((number, made));
                        number
                    })
                } else {
                    let Some((number, group)) = at(&self.groups, op.a) else {
                        return;
                    };
                    group.conversation().map_err(Into::into).map(|made| {
                        self.conversations.push((*number, made));
                        *number
                    })
                }
            }
            _ => return,
        };
        self.log.push(Seen::Made(made));
    }

    fn know(&mut self, id: GroupId, lane: usize, limit: Limit) -> usize {
        let number = self.known.len();
        assert_eq!(self.numbers.insert(id, number), None, "a name given twice");
        self.known.push(Known {
            id,
            lane,
            limit,
            waiting: BTreeSet::new(),
            in_flight: 0,
        });
        number
    }

    fn send(&mut self, op: &Op) {
        let Some((group, conversation)) = at(&self.conversations, op.a) else {
            return;
        };
        let first = self.sent;
        let count = match op.kind {
            Kind::SendAll => u32::from(op.b % 4),
            _ => 1,
        };
        let one = |message: u32| vec![message];
        let sent = match op.kind {
            Kind::Send => conversation
                .send(first)
                .map_err(|e| (one(e.message), e.reason)),
            Kind::SendIn => {
                let sent = conversation.send_in(u32::from(op.b % 4), first);
                sent.map_err(|e| (one(e.message), e.reason))
            }
            _ => {
                let sent = conversation.send_all(first..first + count);
                sent.map_err(|e| (e.message, e.reason))
            }
        };
        match &sent {
            Ok(()) => {
                self.sent += count;
                self.known[*group].waiting.extend(first..first + count);
            }
            Err((back, _)) => assert!(back.iter().copied().eq(first..first + count)),
        }
        self.log.push(Seen::Sent(sent));
    }

    fn set(&mut self, op: &Op) {
        if op.kind == Kind::SetCap {
            let Some((lane, handle)) = at(&self.lanes, op.a) else {
                return;
            };
            let set = handle.set_cap(op.cap());
            if set.is_ok() {
                self.caps[*lane] = op.cap();
            }
            return self.log.push(Seen::Set(set));
        }
        let Some((number, group)) = at(&self.groups, op.a) else {
            return;
        };
        match op.kind {
            Kind::Bump => group.bump(op.level()),
            Kind::SetLevel => group.set_level(op.level()),
            _ => {
                let set = group.set_limit(op.limit());
                if set.is_ok() {
                    self.known[*number].limit = op.limit();
                }
                self.log.push(Seen::Set(set));
            }
        }
    }

    fn by_name(&mut self, op: &Op) {
        let Some(number) = op.a.checked_rem(self.known.len()) else {
            return;
        };
        let Known { id, .. } = self.known[number];
        let seen = match op.kind {
            Kind::BumpByName => Seen::Named(self.queue.bump(id, op.level())),
            Kind::Resume => Seen::Resumed(self.queue.resume(id)),
            Kind::Drain => {
                let drained = self.queue.drain(id);
                if let Ok(items) = &drained {
                    let waiting = std::mem::take(&mut self.known[number].waiting);
                    assert!(items.iter().copied().eq(waiting));
                }
                Seen::Drained(drained)
            }
            _ => {
                self.log.push(self.poisoned());
                let waiting = self.queue.waiting_in(id);
                Seen::Waiting(waiting.and_then(|n| Ok((n, self.queue.peek(id)?))))
            }
        };
        self.log.push(seen);
    }
}
