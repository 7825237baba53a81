//! Messages whose drops panic: the caller that drops them gets the panic, every other message is
//! dropped all the same, and the queue goes on.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use conversant::limit::Limit;
use conversant::queue::{Conversation, Queue};

use crate::messages::{alive, born, gone};
use crate::queue_support::{plain, serve, take, turn};

thread_local! {
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Panics when it is dropped, if its number is in the list.
struct Bomb(usize, &'static [usize]);

impl Bomb {
    fn new(number: usize, bad: &'static [usize]) -> Self {
        born(number);
        Self(number, bad)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        gone(self.0);
        if self.1.contains(&self.0) {
            PANICS.set(PANICS.get() + 1);
            std::panic::resume_unwind(Box::new(self.0));
        }
    }
}

/// The number of the message whose panic came out.
fn panic_of(run: impl FnOnce()) -> Option<usize> {
    let payload = catch_unwind(AssertUnwindSafe(run)).err()?;
    Some(*payload.downcast().expect("a number"))
}

fn sent(
    numbers: std::ops::Range<usize>,
    bad: &'static [usize],
) -> (Queue<Bomb>, Conversation<Bomb>) {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    for number in numbers {
        assert!(one.send(Bomb::new(number, bad)).is_ok());
    }
    (queue, one)
}

#[test]
fn completed() {
    let (queue, one) = sent(0..6, &[2]);
    let mut turn = turn(&queue).unwrap();
    for _ in 0..2 {
        drop(turn.next().unwrap().complete());
    }
    assert_eq!(panic_of(|| drop(turn.next().unwrap().complete())), Some(2));
    assert_eq!(turn.next().unwrap().complete().0, 3);
    drop(turn);
    assert!(one.send(Bomb::new(6, &[])).is_ok());
    let left: Vec<_> = serve(&queue).iter().map(|bomb| bomb.0).collect();
    assert_eq!(left, [4, 5, 6]);
    assert!(alive().is_empty());
}

/// While its turn and its batch are live; the unwinding drops both.
#[test]
fn in_a_handler() {
    let (queue, _one) = sent(0..6, &[1]);
    let handler = || {
        let mut turn = turn(&queue).unwrap();
        let batch = turn.next_batch(4).unwrap();
        drop(batch.complete_up_to(2));
        unreachable!("it panics");
    };
    assert_eq!(panic_of(handler), Some(1));
    // The third was in the batch, and has failed once.
    let again = take(&queue).unwrap();
    assert_eq!((again.0, again.attempt()), (2, 2));
    drop(again);
    let left: Vec<_> = serve(&queue).iter().map(|bomb| bomb.0).collect();
    assert_eq!(left, [2, 3, 4, 5]);
    assert!(alive().is_empty());
}

#[test]
fn taken_out() {
    let (queue, one) = sent(0..6, &[3]);
    let drained = queue.drain(one.group_id()).unwrap();
    assert_eq!(panic_of(|| drop(drained)), Some(3));
    assert!(alive().is_empty());
    for number in 0..6 {
        assert!(one.send(Bomb::new(number, &[3])).is_ok());
    }
    assert_eq!(panic_of(|| drop(queue.shutdown())), Some(3));
    assert!(alive().is_empty());
}

/// Wherever the bad message is: first, last, in another group.
#[test]
fn dropped_with_the_queue() {
    for bad in [&[0], &[5], &[7], &[23]] as [&[usize]; 4] {
        let (queue, lane) = plain();
        let conversations = [(); 4].map(|()| lane.conversation().unwrap());
        for number in 0..24 {
            let message = Bomb::new(number, bad);
            assert!(conversations[number % 4].send(message).is_ok());
        }
        drop(take(&queue).unwrap());
        assert_eq!(panic_of(|| drop(queue)), Some(bad[0]));
        assert!(alive().is_empty(), "{:?}", alive());
        assert!(conversations[0].send(Bomb::new(30, &[])).is_err());
        drop((conversations, lane));
        assert!(alive().is_empty());
    }
}

/// Whatever held the message has ended all the same.
#[test]
fn in_hand_when_the_queue_goes() {
    // Taken by a turn, dropped as a delivery, detached, peeked at.
    for at in 0..4 {
        let (queue, one) = sent(0..3, &[0]);
        let turn = || queue.try_receive().unwrap().into_owned();
        let panicked = match at {
            0 => {
                let turn = turn();
                drop(queue);
                panic_of(|| drop(turn))
            }
            1 => {
                let mut turn = turn();
                drop(queue);
                let panicked = panic_of(|| drop(turn.next()));
                assert!(turn.next().is_none());
                panicked
            }
            2 => {
                let detached = turn().next().unwrap().detach();
                drop(queue);
                panic_of(|| drop(detached))
            }
            _ => {
                let look = queue.try_peek(one.group_id()).unwrap();
                drop(queue);
                panic_of(|| drop(look))
            }
        };
        assert_eq!(panicked, Some(0), "{at}");
        assert!(alive().is_empty(), "{at}: {:?}", alive());
    }
}

/// In a batch: the first message, which has failed, or one that was not looked at.
#[test]
fn in_a_batch_when_the_queue_goes() {
    for bad in [&[0], &[1], &[3]] as [&[usize]; 3] {
        let (queue, _one) = sent(0..6, bad);
        let mut turn = queue.try_receive().unwrap().into_owned();
        let batch = turn.next_batch(4).unwrap();
        drop(queue);
        assert_eq!(panic_of(|| drop(batch)), Some(bad[0]));
        drop(turn);
        assert!(alive().is_empty(), "{:?}", alive());
    }
}

/// A send that is refused, and a send that waits for room.
#[test]
fn sent_in_vain() {
    let queue = Queue::builder().capacity(Limit::SERIAL).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    assert!(one.send(Bomb::new(0, &[])).is_ok());
    let bad = || Bomb::new(1, &[1]);
    assert_eq!(panic_of(|| drop(one.send(bad()))), Some(1));
    assert_eq!(panic_of(|| drop(one.send_all([bad()]))), Some(1));
    assert_eq!(panic_of(|| drop(one.send_wait(bad()))), Some(1));
    queue.close();
    assert_eq!(panic_of(|| drop(one.send(bad()))), Some(1));
    assert_eq!(serve(&queue).len(), 1);
    assert!(alive().is_empty());
}

/// Two messages panic: the first panic goes on when all are dropped.
#[test]
#[ignore = "aborts: what waits in a queue is dropped as one list"]
fn two_dropped_with_the_queue() {
    let (queue, _one) = sent(0..6, &[1, 3]);
    assert_eq!(panic_of(|| drop(queue)), Some(1));
    assert_eq!(PANICS.get(), 2);
    assert!(alive().is_empty(), "{:?}", alive());
}

/// One message panics in a queue that is dropped by unwinding.
#[test]
#[ignore = "aborts: what waits in a queue is dropped as one list"]
fn dropped_with_the_queue_by_a_panic() {
    let (queue, _one) = sent(0..6, &[1]);
    let handler = || {
        let _queue = queue;
        std::panic::resume_unwind(Box::new(99_usize));
    };
    assert_eq!(panic_of(handler), Some(99));
    assert!(alive().is_empty(), "{:?}", alive());
}

/// Two messages of a batch, which come back to a queue that is gone.
#[test]
#[ignore = "aborts: what nobody will receive is dropped as one list"]
fn two_in_a_batch_when_the_queue_goes() {
    let (queue, _one) = sent(0..6, &[0, 2, 3]);
    let mut turn = queue.try_receive().unwrap().into_owned();
    let batch = turn.next_batch(4).unwrap();
    drop(queue);
    assert!(panic_of(|| drop(batch)).is_some());
    assert_eq!(PANICS.get(), 3);
    drop(turn);
    assert!(alive().is_empty(), "{:?}", alive());
}
