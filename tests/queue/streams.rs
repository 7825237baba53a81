//! A queue as a stream of turns, a conversation as a sink.

use std::task::{Context, Poll};

use conversant::limit::Limit;
use conversant::queue::{Queue, SendReason, Turn};
use futures_util::stream::FusedStream;
use futures_util::{SinkExt, StreamExt};

use super::queue_support::{WakeCounter, plain, poll};

/// The first message of a turn, completed.
fn first(turn: Poll<Option<Turn<'_, u8>>>) -> Option<u8> {
    let Poll::Ready(Some(mut turn)) = turn else {
        panic!("no turn")
    };
    turn.next().map(|delivery| delivery.complete())
}

#[test]
fn a_stream_gives_turns_until_nothing_can_come() {
    let (queue, lane) = plain();
    let [anna, bert] = [(); 2].map(|()| lane.conversation().unwrap());
    let (wakes, waker) = WakeCounter::new();
    let cx = &mut Context::from_waker(&waker);
    let mut turns = queue.turns();
    assert!(turns.poll_next_unpin(cx).is_pending());
    anna.send(1).unwrap();
    assert_eq!(wakes.count(), 1);
    bert.send(2).unwrap();
    queue.close();
    assert_eq!(first(turns.poll_next_unpin(cx)), Some(1));
    assert!(!turns.is_terminated());
    let last = turns.poll_next_unpin(cx);
    assert!(turns.poll_next_unpin(cx).is_pending(), "it may come back");
    assert_eq!(first(last), Some(2));
    assert!(matches!(turns.poll_next_unpin(cx), Poll::Ready(None)));
    assert!(turns.is_terminated());
    assert!(matches!(turns.poll_next_unpin(cx), Poll::Ready(None)));
}

#[test]
fn a_dropped_stream_passes_its_wake_up_on() {
    let (queue, lane) = plain();
    let anna = lane.conversation().unwrap();
    let ((first, one), (second, two)) = (WakeCounter::new(), WakeCounter::new());
    let mut turns = queue.turns();
    let cx = &mut Context::from_waker(&one);
    assert!(turns.poll_next_unpin(cx).is_pending());
    let mut receive = queue.receive();
    assert!(poll(&mut receive, &two).is_pending());
    anna.send(1).unwrap();
    assert_eq!((first.count(), second.count()), (1, 0));
    drop(turns);
    assert_eq!((first.count(), second.count()), (1, 1));
    assert!(poll(&mut receive, &two).is_ready());
}

#[test]
fn a_sink_is_ready_when_it_has_room() {
    let queue = Queue::builder().capacity(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let anna = lane.conversation().unwrap();
    let (wakes, waker) = WakeCounter::new();
    let cx = &mut Context::from_waker(&waker);
    let mut sink = anna.sink();
    assert_eq!(sink.poll_ready_unpin(cx), Poll::Ready(Ok(())));
    assert_eq!(sink.poll_ready_unpin(cx), Poll::Ready(Ok(())), "it has it");
    assert_eq!(anna.send(9).unwrap_err().reason, SendReason::Full);
    sink.start_send_unpin(1).unwrap();
    assert_eq!(sink.poll_flush_unpin(cx), Poll::Ready(Ok(())));
    assert!(sink.poll_ready_unpin(cx).is_pending());
    let refused = sink.start_send_unpin(2).unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        (Some(2), SendReason::Full)
    );
    assert!(sink.poll_ready_unpin(cx).is_pending(), "asked anew");
    assert_eq!(queue.try_receive().unwrap().next().unwrap().complete(), 1);
    assert_eq!(wakes.count(), 1);
    assert_eq!(sink.poll_ready_unpin(cx), Poll::Ready(Ok(())));
    drop(sink);
    anna.send(3).unwrap();
    assert_eq!(anna.sink().poll_close_unpin(cx), Poll::Ready(Ok(())));
}

#[test]
fn a_sink_of_a_closed_queue_gives_the_message_back() {
    let (queue, lane) = plain();
    let anna = lane.conversation().unwrap();
    let (_, waker) = WakeCounter::new();
    let cx = &mut Context::from_waker(&waker);
    let mut sink = anna.sink();
    assert_eq!(sink.poll_ready_unpin(cx), Poll::Ready(Ok(())));
    queue.close();
    let refused = sink.start_send_unpin(1).unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        (Some(1), SendReason::Closed)
    );
    let closed = anna.try_reserve().map(drop);
    assert_eq!(closed, Err(SendReason::Closed));
    let Poll::Ready(Err(refused)) = sink.poll_ready_unpin(cx) else {
        panic!("the queue is closed")
    };
    assert_eq!(
        (refused.message, refused.reason),
        (None, SendReason::Closed)
    );
}
