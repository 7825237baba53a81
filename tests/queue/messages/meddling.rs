//! Messages whose drops use the queue that drops them.

use std::sync::{Arc, Mutex, Weak};

use conversant::limit::Limit;
use conversant::queue::{Conversation, Detached, Lane, Peek, Queue, Turn};

use crate::messages::{alive, born, gone};
use crate::queue_support::{plain, serve, take, turn};

/// What a message does when it is dropped.
#[allow(dead_code, reason = "what it holds is there to be dropped")]
enum Meddler {
    Plain(usize),
    /// Uses the whole queue.
    Meddles(usize, Weak<Stage>),
    /// Drops something of its own queue.
    Holds(usize, Box<Held>),
}

/// Something of the queue in which the message waits.
#[allow(dead_code, reason = "they are here to be dropped")]
enum Held {
    Turn(Turn<'static, Meddler>),
    Detached(Detached<Meddler>),
    Look(Peek<Meddler>),
    Lane(Lane<Meddler>),
    Conversation(Conversation<Meddler>),
    Queue(Queue<Meddler>),
    Another(Meddler),
}

struct Stage {
    /// `None` once its last handle is being dropped.
    queue: Mutex<Option<Queue<Meddler>>>,
    talks: Vec<Conversation<Meddler>>,
}

impl Meddler {
    fn plain(number: usize) -> Self {
        born(number);
        Self::Plain(number)
    }

    fn meddles(number: usize, stage: &Arc<Stage>) -> Self {
        born(number);
        Self::Meddles(number, Arc::downgrade(stage))
    }

    fn holds(number: usize, held: Held) -> Self {
        born(number);
        Self::Holds(number, Box::new(held))
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        match self {
            Self::Plain(number) | Self::Holds(number, _) => gone(*number),
            Self::Meddles(number, stage) => {
                gone(*number);
                if let Some(stage) = stage.upgrade() {
                    stage.meddle(*number);
                }
            }
        }
    }
}

impl Stage {
    /// A paused group, one in a capped lane, and one without limits.
    fn new() -> Arc<Self> {
        let (queue, lane) = plain();
        let capped = queue.lane(1, Limit::SERIAL).unwrap();
        let paused = lane.group(Limit::AtMost(0), 100).unwrap();
        Arc::new(Self {
            talks: vec![
                lane.conversation().unwrap(),
                capped.conversation().unwrap(),
                paused.conversation().unwrap(),
            ],
            queue: Mutex::new(Some(queue)),
        })
    }

    fn queue(&self) -> Queue<Meddler> {
        self.queue.lock().unwrap().clone().unwrap()
    }

    /// Fills every group with messages that meddle.
    fn fill(self: &Arc<Self>) {
        for number in 0..30 {
            let talk = &self.talks[number % 3];
            assert!(talk.send(Meddler::meddles(number, self)).is_ok());
        }
    }

    /// Sends one more meddler to each group.
    fn fill_again(self: &Arc<Self>) {
        for (number, talk) in self.talks.iter().enumerate() {
            drop(talk.send(Meddler::meddles(100 + number, self)));
        }
    }

    fn meddle(&self, number: usize) {
        for talk in &self.talks {
            drop(talk.send(Meddler::plain(number + 1_000)));
            drop(talk.send_all([Meddler::plain(number + 2_000)]));
            drop(talk.send_in(1, Meddler::plain(number + 3_000)));
        }
        // A clone that is dropped here may be the last handle.
        let queue = self.queue.lock().unwrap().clone();
        let Some(queue) = queue else { return };
        drop(queue.snapshot());
        for talk in &self.talks {
            _ = queue.bump(talk.group(), 7);
            drop(queue.try_peek(talk.group()));
            _ = queue.peek(talk.group());
        }
        if let Ok(mut turn) = queue.try_receive() {
            drop(turn.next());
            if let Some(delivery) = turn.next()
                && matches!(*delivery, Meddler::Plain(_))
            {
                drop(delivery.complete());
            }
        }
        drop(queue.lane(1, Limit::SERIAL));
    }
}

#[test]
fn those_that_are_completed() {
    let stage = Stage::new();
    stage.fill();
    let queue = stage.queue();
    for _ in 0..10 {
        let Some(mut turn) = turn(&queue) else { break };
        while let Some(delivery) = turn.next() {
            drop(delivery.complete());
        }
    }
    stage.queue.lock().unwrap().take();
    drop(queue);
    assert!(alive().is_empty(), "{:?}", alive());
}

#[test]
fn those_that_are_taken_out() {
    let stage = Stage::new();
    stage.fill();
    let queue = stage.queue();
    for talk in &stage.talks {
        drop(queue.drain(talk.group()).unwrap());
    }
    stage.fill_again();
    drop(queue.shutdown());
    stage.queue.lock().unwrap().take();
    drop(queue);
    assert!(alive().is_empty(), "{:?}", alive());
}

#[test]
fn those_that_go_with_the_queue() {
    let stage = Stage::new();
    stage.fill();
    let last = stage.queue.lock().unwrap().take();
    drop(last);
    assert!(alive().is_empty(), "{:?}", alive());
}

/// The same for a message that comes back to a queue that is gone.
#[test]
fn those_in_hand_when_it_goes() {
    let stage = Stage::new();
    stage.fill();
    let queue = stage.queue();
    let turn = queue.try_receive().unwrap().into_owned();
    let detached = take(&queue).unwrap();
    let look = queue.try_peek(stage.talks[2].group()).unwrap();
    drop(queue);
    let last = stage.queue.lock().unwrap().take();
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
        let talks: Vec<_> = (0..4).map(|_| lane.conversation().unwrap()).collect();
        let (first, rest) = talks.split_first().unwrap();
        for (at, talk) in rest.iter().enumerate() {
            for number in 0..3 {
                talk.send(Meddler::plain(10 * at + number)).unwrap();
            }
        }
        let by_name = |at: usize| queue.try_receive_from(rest[at].group()).unwrap();
        let turn = by_name(0).into_owned();
        let detached = by_name(1).next().unwrap().detach();
        let look = queue.try_peek(rest[2].group()).unwrap();
        let inner = Meddler::holds(49, Held::Lane(queue.lane(1, Limit::SERIAL).unwrap()));
        let own = lane.conversation().unwrap();
        own.send(Meddler::plain(48)).unwrap();
        let held = [
            Held::Turn(turn),
            Held::Detached(detached),
            Held::Look(look),
            Held::Another(inner),
            Held::Conversation(own),
        ];
        for (number, held) in held.into_iter().enumerate() {
            first.send(Meddler::holds(50 + number, held)).unwrap();
        }
        if keep {
            drop(queue);
            drop((talks, lane));
        } else {
            drop((talks, lane));
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
    one.send(Meddler::holds(1, Held::Queue(queue.clone())))
        .unwrap();
    one.send(Meddler::plain(2)).unwrap();
    let turn = queue.try_receive().unwrap().into_owned();
    drop(queue);
    // The last handle is in the message, and is dropped with it.
    let mut turn = turn;
    let message = turn.next().unwrap().complete();
    drop(message);
    assert!(alive().is_empty(), "{:?}", alive());
    drop(turn);
    assert!(one.send(Meddler::plain(3)).is_err());
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
        .send(Meddler::holds(1, Held::Conversation(held)))
        .unwrap();
    drop((through, group));
    assert_eq!(serve(&queue).len(), 1);
    assert!(queue.snapshot().lanes[0].groups.is_empty());
    drop(queue);
    assert!(alive().is_empty());
}
