//! Messages whose drops use the queue that drops them.

use std::sync::{Arc, Mutex, Weak};

use conversant::limit::Limit;
use conversant::queue::{Conversation, Detached, Lane, Peek, Queue, Turn};

use crate::messages::{alive, born, gone};
use crate::queue_support::{plain, serve, take, turn};

/// What a message does when it is dropped.
#[allow(dead_code, reason = "what it holds is there to be dropped")]
enum Reentrant {
    Plain(usize),
    /// Uses the whole queue.
    UsesQueue(usize, Weak<Shared>),
    /// Drops something of its own queue.
    Holds(usize, Box<Held>),
}

/// Something of the queue in which the message waits.
#[allow(dead_code, reason = "they are here to be dropped")]
enum Held {
    Turn(Turn<'static, Reentrant>),
    Detached(Detached<Reentrant>),
    Peek(Peek<Reentrant>),
    Lane(Lane<Reentrant>),
    Conversation(Conversation<Reentrant>),
    Queue(Queue<Reentrant>),
    Another(Reentrant),
}

struct Shared {
    /// `None` once its last handle is being dropped.
    queue: Mutex<Option<Queue<Reentrant>>>,
    conversations: Vec<Conversation<Reentrant>>,
}

impl Reentrant {
    fn plain(number: usize) -> Self {
        born(number);
        Self::Plain(number)
    }

    fn reenters(number: usize, shared: &Arc<Shared>) -> Self {
        born(number);
        Self::UsesQueue(number, Arc::downgrade(shared))
    }

    fn holds(number: usize, held: Held) -> Self {
        born(number);
        Self::Holds(number, Box::new(held))
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        match self {
            Self::Plain(number) | Self::Holds(number, _) => gone(*number),
            Self::UsesQueue(number, shared) => {
                gone(*number);
                if let Some(shared) = shared.upgrade() {
                    shared.reenter(*number);
                }
            }
        }
    }
}

impl Shared {
    /// A paused group, one in a capped lane, and one without limits.
    fn new() -> Arc<Self> {
        let (queue, lane) = plain();
        let capped = queue.lane(1, Limit::SERIAL).unwrap();
        let paused = lane.group(Limit::AtMost(0), 100).unwrap();
        Arc::new(Self {
            conversations: vec![
                lane.conversation().unwrap(),
                capped.conversation().unwrap(),
                paused.conversation().unwrap(),
            ],
            queue: Mutex::new(Some(queue)),
        })
    }

    fn queue(&self) -> Queue<Reentrant> {
        self.queue.lock().unwrap().clone().unwrap()
    }

    /// Fills every group with messages that meddle.
    fn fill(self: &Arc<Self>) {
        for number in 0..30 {
            let conversation = &self.conversations[number % 3];
            assert!(conversation.send(Reentrant::reenters(number, self)).is_ok());
        }
    }

    /// Sends one more meddler to each group.
    fn fill_again(self: &Arc<Self>) {
        for (number, conversation) in self.conversations.iter().enumerate() {
            drop(conversation.send(Reentrant::reenters(100 + number, self)));
        }
    }

    fn reenter(&self, number: usize) {
        for conversation in &self.conversations {
            drop(conversation.send(Reentrant::plain(number + 1_000)));
            drop(conversation.send_all([Reentrant::plain(number + 2_000)]));
            drop(conversation.send_in(1, Reentrant::plain(number + 3_000)));
        }
        // A clone that is dropped here may be the last handle.
        let queue = self.queue.lock().unwrap().clone();
        let Some(queue) = queue else { return };
        drop(queue.snapshot());
        for conversation in &self.conversations {
            _ = queue.bump(conversation.group_id(), 7);
            drop(queue.try_peek(conversation.group_id()));
            _ = queue.peek(conversation.group_id());
        }
        if let Ok(mut turn) = queue.try_receive() {
            drop(turn.next());
            if let Some(delivery) = turn.next()
                && matches!(*delivery, Reentrant::Plain(_))
            {
                drop(delivery.complete());
            }
        }
        drop(queue.lane(1, Limit::SERIAL));
    }
}

#[test]
fn those_that_are_completed() {
    let shared = Shared::new();
    shared.fill();
    let queue = shared.queue();
    for _ in 0..10 {
        let Some(mut turn) = turn(&queue) else { break };
        while let Some(delivery) = turn.next() {
            drop(delivery.complete());
        }
    }
    shared.queue.lock().unwrap().take();
    drop(queue);
    assert!(alive().is_empty(), "{:?}", alive());
}

#[test]
fn those_that_are_taken_out() {
    let shared = Shared::new();
    shared.fill();
    let queue = shared.queue();
    for conversation in &shared.conversations {
        drop(queue.drain(conversation.group_id()).unwrap());
    }
    shared.fill_again();
    drop(queue.shutdown());
    shared.queue.lock().unwrap().take();
    drop(queue);
    assert!(alive().is_empty(), "{:?}", alive());
}

#[test]
fn those_that_go_with_the_queue() {
    let shared = Shared::new();
    shared.fill();
    let last = shared.queue.lock().unwrap().take();
    drop(last);
    assert!(alive().is_empty(), "{:?}", alive());
}

/// The same for a message that comes back to a queue that is gone.
#[test]
fn those_in_hand_when_it_goes() {
    let shared = Shared::new();
    shared.fill();
    let queue = shared.queue();
    let turn = queue.try_receive().unwrap().into_owned();
    let detached = take(&queue).unwrap();
    let look = queue.try_peek(shared.conversations[2].group_id()).unwrap();
    drop(queue);
    let last = shared.queue.lock().unwrap().take();
    drop(last);
    assert_eq!(alive().len(), 3);
    drop(detached);
    drop(look);
    drop(turn);
    assert!(alive().is_empty(), "{:?}", alive());
}

/// Messages that hold handles of their own queue.
#[test]
fn those_that_hold_what_is_the_queues() {
    for keep in [false, true] {
        let (queue, lane) = plain();
        let conversations: Vec<_> = (0..4).map(|_| lane.conversation().unwrap()).collect();
        let (first, rest) = conversations.split_first().unwrap();
        for (at, conversation) in rest.iter().enumerate() {
            for number in 0..3 {
                conversation
                    .send(Reentrant::plain(10 * at + number))
                    .unwrap();
            }
        }
        let by_name = |at: usize| queue.try_receive_from(rest[at].group_id()).unwrap();
        let turn = by_name(0).into_owned();
        let detached = by_name(1).next().unwrap().detach();
        let look = queue.try_peek(rest[2].group_id()).unwrap();
        let inner = Reentrant::holds(49, Held::Lane(queue.lane(1, Limit::SERIAL).unwrap()));
        let own = lane.conversation().unwrap();
        own.send(Reentrant::plain(48)).unwrap();
        let held = [
            Held::Turn(turn),
            Held::Detached(detached),
            Held::Peek(look),
            Held::Another(inner),
            Held::Conversation(own),
        ];
        for (number, held) in held.into_iter().enumerate() {
            first.send(Reentrant::holds(50 + number, held)).unwrap();
        }
        if keep {
            drop(queue);
            drop((conversations, lane));
        } else {
            drop((conversations, lane));
            drop(queue);
        }
        assert!(alive().is_empty(), "{:?}", alive());
    }
}

/// A message with a handle of its own queue keeps the queue alive until the message is received.
#[test]
fn one_that_holds_its_queue() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(Reentrant::holds(1, Held::Queue(queue.clone())))
        .unwrap();
    one.send(Reentrant::plain(2)).unwrap();
    let turn = queue.try_receive().unwrap().into_owned();
    drop(queue);
    // The last handle is in the message, and is dropped with it.
    let mut turn = turn;
    let message = turn.next().unwrap().complete();
    drop(message);
    assert!(alive().is_empty(), "{:?}", alive());
    drop(turn);
    assert!(one.send(Reentrant::plain(3)).is_err());
    assert!(alive().is_empty());
}

/// The end of a group that only its own messages still name.
#[test]
fn one_that_holds_its_own_conversation() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let through = group.conversation().unwrap();
    let held = group.conversation().unwrap();
    through
        .send(Reentrant::holds(1, Held::Conversation(held)))
        .unwrap();
    drop((through, group));
    assert_eq!(serve(&queue).len(), 1);
    assert!(queue.snapshot().lanes[0].groups.is_empty());
    drop(queue);
    assert!(alive().is_empty());
}
