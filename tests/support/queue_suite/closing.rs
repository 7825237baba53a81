//! Close, shutdown, and handles that outlive their queue.

use conversant::error::Closed;
use conversant::limit::Limit;

use super::super::form::{LaneError, NoMore, NoTurn, SendReason, Why};
use super::{PAUSED, TWO, conversation, plain, serve, take, turn, why};

#[test]
fn senders_get_their_message_back_and_readers_finish() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let one = group.conversation().unwrap();
    one.send_all([1, 2]).unwrap();
    assert!(!queue.is_closed());
    queue.close();
    queue.close();
    assert!(queue.is_closed());
    let refused = one.send(3).unwrap_err();
    assert_eq!((refused.message, refused.reason), (3, SendReason::Closed));
    let refused = one.send_all([4, 5]).unwrap_err();
    assert_eq!(refused.message, [4, 5]);
    assert_eq!(refused.reason, SendReason::Closed);
    assert_eq!(one.send_in(9, 6).unwrap_err().message, 6);
    assert_eq!(queue.lane(1, Limit::SERIAL).unwrap_err(), LaneError::Closed);
    assert_eq!(lane.group(Limit::SERIAL, 0).unwrap_err(), LaneError::Closed);
    assert_eq!(lane.conversation().unwrap_err(), Closed);
    assert_eq!(group.conversation().unwrap_err(), Closed);

    let first = take(&queue).unwrap();
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    drop(first);
    let first = take(&queue).unwrap();
    assert_eq!((*first, first.attempt()), (1, 2));
    first.complete();
    let last = take(&queue).unwrap();
    assert_eq!(
        queue.try_receive().unwrap_err(),
        NoTurn::Empty,
        "it may come back"
    );
    last.complete();
    assert_eq!(
        queue.try_receive().unwrap_err(),
        NoTurn::Closed(NoMore::Drained)
    );
}

#[test]
fn shutdown_gives_all_that_waits_group_by_group() {
    let (queue, lane) = plain();
    let other = queue.lane(3, Limit::Unlimited).unwrap();
    let a = lane.conversation().unwrap();
    let b = conversation(&other, PAUSED, 0);
    let c = lane.conversation().unwrap();
    let groups = [a.group_id(), b.group_id(), c.group_id()];
    assert!(groups.is_sorted());
    for n in 1..=2 {
        c.send(30 + n).unwrap();
        b.send_in(n, 20 + n).unwrap();
        a.send(10 + n).unwrap();
    }
    queue.bump(c.group_id(), 255).unwrap();
    let held = take(&queue).unwrap();
    assert_eq!(queue.shutdown(), [11, 12, 21, 22, 32]);
    assert!(queue.is_closed());
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    drop(held);
    assert_eq!(queue.shutdown(), [31]);
    assert_eq!(queue.shutdown(), []);
    assert_eq!(
        queue.try_receive().unwrap_err(),
        NoTurn::Closed(NoMore::Drained)
    );
}

#[test]
fn what_comes_back_after_a_shutdown_can_be_received() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all([1, 2]).unwrap();
    let mut turn = turn(&queue).unwrap();
    assert_eq!(queue.shutdown(), [2]);
    let first = turn.next().unwrap().detach();
    assert!(turn.next().is_none());
    drop((turn, first));
    assert_eq!(serve(&queue), [1]);
}

/// Receives wait for a paused group after the close, until it is resumed or shut down.
#[test]
fn a_paused_group_outlives_the_close() {
    let (queue, lane) = plain();
    let group = lane.group(PAUSED, 100).unwrap();
    group.conversation().unwrap().send(1).unwrap();
    queue.close();
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    assert_eq!(why(&queue), Why::Paused);
    group.set_limit(Limit::SERIAL).unwrap();
    assert_eq!(serve(&queue), [1]);
    assert_eq!(
        queue.try_receive().unwrap_err(),
        NoTurn::Closed(NoMore::Drained)
    );
}

#[test]
fn handles_outlive_the_queue() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::Unlimited, 100).unwrap();
    let one = group.conversation().unwrap();
    let message = |n: u8| std::rc::Rc::new(n);
    let waits = message(9);
    one.send_all([message(1), message(2), message(3), waits.clone()])
        .unwrap();
    let mut turn = turn(&queue).unwrap().into_owned();
    let [first, second, third] = [(); 3].map(|()| turn.next().unwrap().detach());
    drop(queue);
    assert_eq!(
        std::rc::Rc::strong_count(&waits),
        1,
        "what waited was dropped"
    );
    assert_eq!(*first.complete(), 1);
    let watch = std::rc::Rc::downgrade(&second);
    drop(second);
    assert!(watch.upgrade().is_none(), "what is given back is dropped");
    assert!(turn.next().is_none());
    assert_eq!(one.send(message(5)).unwrap_err().reason, SendReason::Closed);
    assert_eq!(lane.conversation().unwrap_err(), Closed);
    group.bump(3);
    group.set_level(3);
    group.set_limit(TWO).unwrap();
    assert_eq!(group.waiting(), 0);
    drop((one, group, lane));
    assert_eq!(*third.complete(), 3);
    drop(turn);
}

/// Nothing else pins its group: the conversation ended while the delivery was in flight.
#[test]
fn a_detached_delivery_keeps_its_queue() {
    for completes in [true, false] {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        let group = one.group_id();
        one.send(1).unwrap();
        let mut turn = turn(&queue).unwrap();
        let delivery = turn.next().unwrap();
        drop(one);
        let delivery = delivery.detach();
        drop(turn);
        drop((queue, lane));
        assert_eq!(delivery.group_id(), group);
        if completes {
            assert_eq!(delivery.complete(), 1);
        } else {
            delivery.give_back();
        }
    }
}

/// A message that holds a handle of its own queue forms no cycle once the queue is dropped.
#[test]
fn a_turn_left_when_the_queue_is_dropped_drops_its_message() {
    struct Reply {
        _to: super::super::form::Conversation<Reply>,
        _alive: std::sync::Arc<()>,
    }
    let alive = std::sync::Arc::new(());
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    for _ in 0..2 {
        let reply = Reply {
            _to: lane.conversation().unwrap(),
            _alive: alive.clone(),
        };
        assert!(one.send(reply).is_ok());
    }
    let turn = turn(&queue).unwrap().into_owned();
    drop(queue);
    assert_eq!(std::sync::Arc::strong_count(&alive), 2);
    drop(turn);
    assert_eq!(std::sync::Arc::strong_count(&alive), 1);
}
