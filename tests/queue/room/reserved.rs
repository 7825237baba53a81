//! Room that is reserved before there is a message for it.

use super::*;

#[test]
fn it_is_kept_until_it_is_used_or_given_up() {
    let (queue, lane) = bounded(2);
    let conversation = lane.conversation().unwrap();
    assert_eq!(queue.capacity(), Limit::AtMost(2));
    let first = conversation.reserve().wait().unwrap();
    let second = conversation.try_reserve().unwrap();
    assert_eq!(queue.room(), Some(0));
    assert_eq!(conversation.try_reserve().unwrap_err(), SendReason::Full);
    assert_eq!(conversation.send(1).unwrap_err().reason, SendReason::Full);
    drop(second);
    assert_eq!(queue.room(), Some(1));
    first.send(2).unwrap();
    conversation.send(3).unwrap();
    assert_eq!(queue.room(), Some(0));
    assert_eq!(serve(&queue), [2, 3]);
    assert_eq!(queue.room(), Some(2));
}

#[test]
fn a_reserve_waits_in_line_with_sends() {
    let (queue, _lane, wide) = full::<u32>(1);
    let mut kept = Waiting::of(wide.reserve());
    let mut sent = one(&wide, 7);
    assert_eq!(sends(&queue), (2, 0, 2));
    complete_one(&queue);
    assert_eq!(wake_counts([&kept]), [1]);
    assert_eq!(wake_counts([&sent]), [0]);
    let Poll::Ready(Ok(reserved)) = kept.poll() else {
        panic!("it was told");
    };
    assert!(sent.poll().is_pending());
    drop(reserved);
    assert!(sent.is_sent());
    assert_eq!(complete_one(&queue), 7);
    // Dropped before it has looked, it passes its room on.
    let (queue, _lane, wide) = full::<u32>(1);
    let (kept, mut sent) = (Waiting::of(wide.reserve()), one(&wide, 8));
    complete_one(&queue);
    drop(kept);
    assert!(sent.is_sent());
}

#[test]
fn a_closed_queue_takes_no_message_and_has_the_room_back() {
    let (queue, lane) = bounded(1);
    let conversation = lane.conversation().unwrap();
    let reserved = conversation.reserve().wait().unwrap();
    queue.close();
    let refused = reserved.send(1).unwrap_err();
    assert_eq!((refused.message, refused.reason), (1, SendReason::Closed));
    assert_eq!(queue.room(), Some(1));
    let refused = conversation.reserve().wait().unwrap_err();
    assert_eq!(refused, SendReason::Closed);
}

#[test]
fn without_a_capacity_there_is_always_room() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    assert_eq!(queue.capacity(), Limit::Unlimited);
    assert_eq!(queue.room(), None);
    conversation.try_reserve().unwrap().send(1).unwrap();
    conversation.reserve().wait().unwrap().send(2).unwrap();
    drop(conversation.try_reserve());
    assert_eq!(serve(&queue), [1, 2]);
}

/// Threads cache permits of a large capacity: these count as free.
#[test]
fn what_threads_have_cached_is_counted() {
    let (queue, lane) = bounded(4096);
    let conversation = lane.conversation().unwrap();
    for sent in 1..=100 {
        conversation.send(sent).unwrap();
        assert_eq!(queue.room(), Some(4096 - i64::from(sent)));
    }
    for done in 1..=100 {
        complete_one(&queue);
        assert_eq!(queue.room(), Some(4096 - 100 + done));
    }
}
