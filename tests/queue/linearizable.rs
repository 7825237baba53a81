//! Histories of a queue under real threads, checked against its rules in their plainest form:
//! groups in the order in which they became ready, messages in order within each, one turn and one
//! message in flight per group.

use crate::histories;

use std::collections::VecDeque;
use std::sync::Arc;

use conversant::limit::Limit;
use conversant::queue::{Conversation, GroupId, Queue, Turn};
use histories::{Log, in_turn, is_linearizable, run};
use todc_utils::specifications::Specification;

const GROUPS: usize = 2;

/// A message: its group, and its number there.
type Message = (usize, u32);

#[derive(Clone, Debug)]
enum Operation {
    Send(Message),
    /// A turn and its first message, or nothing.
    Receive(Option<Message>),
    Complete(usize),
    GiveBack(Message),
    EndTurn(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Plain {
    waiting: [VecDeque<u32>; GROUPS],
    held: [bool; GROUPS],
    in_flight: [bool; GROUPS],
    /// The ready groups, in the order in which they became so.
    line: Vec<usize>,
}

impl Plain {
    fn settle(&mut self, group: usize) {
        let blocked = self.held[group] || self.in_flight[group];
        if !blocked && !self.waiting[group].is_empty() && !self.line.contains(&group) {
            self.line.push(group);
        }
    }
}

struct InOrder;

impl Specification for InOrder {
    type State = Plain;
    type Operation = Operation;

    fn init() -> Plain {
        Plain::default()
    }

    fn apply(operation: &Operation, state: &Plain) -> (bool, Plain) {
        let mut next = state.clone();
        let group = match *operation {
            Operation::Receive(None) => return (state.line.is_empty(), next),
            Operation::Receive(Some((group, message))) => {
                if state.line.first() != Some(&group)
                    || state.waiting[group].front() != Some(&message)
                {
                    return (false, next);
                }
                next.line.remove(0);
                next.waiting[group].pop_front();
                (next.held[group], next.in_flight[group]) = (true, true);
                group
            }
            Operation::Send((group, message)) => {
                next.waiting[group].push_back(message);
                group
            }
            Operation::Complete(group) => {
                next.in_flight[group] = false;
                group
            }
            Operation::GiveBack((group, message)) => {
                next.waiting[group].push_front(message);
                next.in_flight[group] = false;
                group
            }
            Operation::EndTurn(group) => {
                next.held[group] = false;
                group
            }
        };
        next.settle(group);
        (true, next)
    }
}

fn send(conversation: &Conversation<Message>, group: usize, log: &mut Log<Operation>) {
    for number in 0..8 {
        let message = (group, number);
        let sent = log.record(|| conversation.send(message), |_| Operation::Send(message));
        sent.expect("the queue is open");
    }
}

/// Receives until nothing more can come; gives some messages back.
fn read(queue: &Queue<Message>, log: &mut Log<Operation>) {
    for round in 0..12 {
        if round % 2 == 0 {
            read_detached(queue, log, round % 4 == 0);
        } else {
            read_borrowed(queue, log, round % 4 == 3);
        }
    }
}

/// The delivery outlives its turn, or is completed while the turn is live.
fn read_detached(queue: &Queue<Message>, log: &mut Log<Operation>, outlives: bool) {
    let received = log.record(
        || {
            let mut turn = queue.try_receive().ok()?;
            let delivery = turn.next().expect("a turn has a first message").detach();
            Some((turn, delivery))
        },
        |received| Operation::Receive(received.as_ref().map(|(_, delivery)| **delivery)),
    );
    let Some((turn, delivery)) = received else {
        return;
    };
    let group = delivery.0;
    if outlives {
        log.record(|| drop(turn), |()| Operation::EndTurn(group));
        log.record(|| delivery.complete(), |_| Operation::Complete(group));
    } else {
        log.record(|| delivery.complete(), |_| Operation::Complete(group));
        log.record(|| drop(turn), |()| Operation::EndTurn(group));
    }
}

/// The delivery is completed, or given back, and then its turn ends.
fn read_borrowed(queue: &Queue<Message>, log: &mut Log<Operation>, fails: bool) {
    let mut turn = None;
    if let Some(group) = receive(queue, &mut turn, log, fails) {
        log.record(|| drop(turn), |()| Operation::EndTurn(group));
    }
}

fn receive<'q>(
    queue: &'q Queue<Message>,
    turn: &mut Option<Turn<'q, Message>>,
    log: &mut Log<Operation>,
    fails: bool,
) -> Option<usize> {
    let received = log.record(
        move || {
            *turn = queue.try_receive().ok();
            let turn = turn.as_mut()?;
            Some(turn.next().expect("a turn has a first message"))
        },
        |received| Operation::Receive(received.as_ref().map(|delivery| **delivery)),
    );
    let delivery = received?;
    let message = *delivery;
    let group = message.0;
    if fails {
        log.record(|| delivery.give_back(), |()| Operation::GiveBack(message));
    } else {
        log.record(|| delivery.complete(), |_| Operation::Complete(group));
    }
    Some(group)
}

type Script = Box<dyn FnOnce(&mut Log<Operation>) + Send>;

#[test]
fn histories_of_two_senders_and_two_readers() {
    for _ in 0..1_000 {
        let queue = Arc::new(Queue::<Message>::new());
        let lane = queue.lane(1, Limit::Unlimited).expect("in range");
        let mut scripts: Vec<Script> = Vec::new();
        let mut groups: Vec<GroupId> = Vec::new();
        for group in 0..GROUPS {
            let conversation = lane.conversation().expect("the queue is open");
            groups.push(conversation.group_id());
            scripts.push(Box::new(move |log| send(&conversation, group, log)));
        }
        for _ in 0..2 {
            let queue = queue.clone();
            scripts.push(Box::new(move |log| read(&queue, log)));
        }
        let history = run(scripts);
        assert!(is_linearizable::<InOrder>(history.clone()), "{history:?}");
    }
}

/// The check rejects wrong histories.
#[test]
fn wrong_histories_are_rejected() {
    use Operation::{Complete, EndTurn, GiveBack, Receive, Send};
    let wrong: [&[(usize, Operation)]; 6] = [
        // Out of order within a group.
        &[
            (0, Send((0, 0))),
            (0, Send((0, 1))),
            (1, Receive(Some((0, 1)))),
        ],
        // The younger group first.
        &[
            (0, Send((0, 0))),
            (1, Send((1, 0))),
            (2, Receive(Some((1, 0)))),
        ],
        // Two holders of a group.
        &[
            (0, Send((0, 0))),
            (0, Send((0, 1))),
            (1, Receive(Some((0, 0)))),
            (1, Complete(0)),
            (2, Receive(Some((0, 1)))),
        ],
        // A message is received twice.
        &[
            (0, Send((0, 0))),
            (1, Receive(Some((0, 0)))),
            (1, Complete(0)),
            (1, EndTurn(0)),
            (2, Receive(Some((0, 0)))),
        ],
        // A message that was given back is lost.
        &[
            (0, Send((0, 0))),
            (1, Receive(Some((0, 0)))),
            (1, GiveBack((0, 0))),
            (1, EndTurn(0)),
            (2, Receive(None)),
        ],
        // A receive finds nothing, although a message waits.
        &[(0, Send((0, 0))), (1, Receive(None))],
    ];
    for operations in wrong {
        assert!(
            !is_linearizable::<InOrder>(in_turn(operations)),
            "{operations:?}"
        );
    }
}
