//! Waits for room, whose first poll may look twice.

use conversant::limit::Limit;
use conversant::queue::Queue;

use crate::poll;
use crate::waker::{Act, Rudeness, take_panics, while_rude};

/// All that is free is cached by this thread, and comes back by the first look.
#[test]
fn a_send_whose_waker_is_cloned_once_only_stays_in_line() {
    let queue = Queue::builder().capacity(2048).build().unwrap();
    let one = queue.lane(1, Limit::Unlimited).unwrap().conversation();
    let one = one.unwrap();
    (0..2048).for_each(|n| one.send(n).unwrap());
    let mut turn = queue.try_receive().unwrap();
    (0..5).for_each(|_| _ = turn.next().unwrap().complete());
    drop(turn);
    let mut sent = one.send_wait(1);
    let mut second = Rudeness::default();
    second.0[Act::Clone as usize] = 0b10;
    take_panics();
    assert!(while_rude(second, || poll(&mut sent)).is_pending());
    assert_eq!((take_panics(), queue.counts().sends.notified), (1, 1));
    assert!(poll(&mut sent).is_ready());
    let mut next = one.send_wait(2);
    assert!(poll(&mut next).is_ready());
    assert_eq!(queue.room(), Some(3));
}
