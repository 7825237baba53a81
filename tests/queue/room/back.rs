//! A wait that ends without having sent returns its message and its room.

use std::time::{Duration, Instant};

use super::*;

/// Before its first poll, while it waits, notified, done: only the message is dropped.
#[test]
fn dropped_at_every_stage() {
    let (queue, _lane, wide) = full::<Arc<()>>(2);
    let message = Arc::new(());
    let alive = || Arc::strong_count(&message) - 1;
    drop(wide.send_wait(message.clone()));
    assert_eq!((alive(), sends(&queue)), (0, (0, 0, 0)));
    // It waits, and asks for much: the next waiter goes on at once.
    let large = all(&wide, [message.clone(), message.clone()]);
    let mut small = one(&wide, message.clone());
    complete_one(&queue);
    assert_eq!((wake_counts([&large]), wake_counts([&small])), ([0], [0]));
    drop(large);
    assert_eq!((alive(), wake_counts([&small])), (1, [1]));
    // Notified: the next is notified.
    let next = one(&wide, message.clone());
    assert_eq!(wake_counts([&next]), [0]);
    assert_eq!(sends(&queue), (1, 1, 2));
    assert!(small.poll().is_ready());
    complete_one(&queue);
    assert_eq!(wake_counts([&next]), [1]);
    let mut last = one(&wide, message.clone());
    assert_eq!(wake_counts([&last]), [0]);
    drop(next);
    assert_eq!((alive(), wake_counts([&last])), (2, [1]));
    assert!(last.is_sent());
    // Done: it has nothing to give back.
    drop((small, last));
    assert_eq!((alive(), held(&queue), sends(&queue)), (2, 2, (0, 0, 0)));
    drop(serve(&queue));
    assert_eq!(alive(), 0);
}

#[test]
fn the_message_can_be_had_back_at_every_stage() {
    let (queue, _lane, wide) = full::<u32>(1);
    assert_eq!(wide.send_wait(1).into_message(), Some(1));
    let waiting = one(&wide, 2);
    assert_eq!(waiting.wait.into_message(), Some(2));
    let (told, mut next) = (all(&wide, [3]), one(&wide, 4));
    complete_one(&queue);
    assert_eq!(told.wait.into_message(), Some(vec![3]));
    assert_eq!(next.wakes.count(), 1);
    assert!(next.is_sent());
    assert_eq!(next.wait.into_message(), None, "it is in the queue");
    let mut refused = one(&wide, 5);
    queue.close();
    assert_eq!(refused.refused(), (5, SendReason::Closed));
    assert_eq!(refused.wait.into_message(), None, "it came with the error");
}

#[test]
fn a_time_out_gives_the_message_back_and_the_place_up() {
    let (queue, _lane, wide) = full::<u32>(1);
    let late = wide.send_wait(1).or_return_after(Duration::ZERO);
    let late = late.unwrap_err();
    assert_eq!((late.message, late.reason), (1, SendReason::TimedOut));
    let late = wide.send_all_wait([2]).or_return_at(Instant::now());
    assert_eq!(late.unwrap_err().message, [2]);
    assert!(wide.send_wait(3).wait_timeout(Duration::ZERO).is_err());
    assert_eq!(sends(&queue), (0, 0, 0));
    complete_one(&queue);
    wide.send_wait(4).or_return_after(Duration::ZERO).unwrap();
    let closed = {
        queue.close();
        wide.send_wait(5).or_return_after(Duration::MAX)
    };
    assert_eq!(closed.unwrap_err().reason, SendReason::Closed);
}

/// More waiters than a batch of wakers holds.
#[test]
fn close_gives_all_their_messages_back() {
    let (queue, lane, wide) = full::<usize>(3);
    let other = lane.conversation().unwrap();
    let mut told = one(&wide, 100);
    complete_one(&queue);
    let mut several = all(&other, [200, 201, 202]);
    let mut sends: Vec<_> = (0..80).map(|n| one(&wide, n)).collect();
    queue.close();
    for (n, waiting) in sends.iter_mut().enumerate() {
        assert_eq!(waiting.wakes.count(), 1);
        assert_eq!(waiting.refused(), (n, SendReason::Closed));
    }
    assert_eq!(told.wakes.count(), 1, "told only once");
    assert_eq!(told.refused(), (100, SendReason::Closed));
    assert_eq!(several.refused(), (vec![200, 201, 202], SendReason::Closed));
    assert_eq!(self::sends(&queue), (0, 0, 0));
    assert_eq!(serve(&queue).len(), 2);
}

#[test]
fn to_drop_the_queue_gives_them_back_too() {
    let (queue, _lane, wide) = full::<u32>(1);
    let mut waiting = one(&wide, 1);
    drop(queue);
    assert_eq!(waiting.wakes.count(), 1);
    assert_eq!(waiting.refused(), (1, SendReason::Closed));
}
