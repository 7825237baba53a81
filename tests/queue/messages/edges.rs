//! Numbers at the ends of their ranges.

use conversant::error::OutOfRange;
use conversant::limit::{Bypass, Limit};
use conversant::queue::Queue;

use crate::messages::{Build, Nothing, alive};
use crate::queue_support::serve;

const MOST: Limit = Limit::AtMost(Limit::MAX);

/// The largest value everywhere: the same as no limit.
#[test]
fn the_largest_of_everything() {
    let builder = Queue::builder()
        .quantum(u32::MAX)
        .bypass(Bypass::AtMost(u32::MAX))
        .attempts(Limit::AtMost(u32::MAX))
        .capacity(Limit::AtMost(Limit::MAX));
    let queue = builder.build().unwrap();
    let lane = queue.lane(1_000_000, MOST).unwrap();
    let group = lane.group(MOST, 255).unwrap();
    let one = group.conversation().unwrap();
    one.send_all(0..100).unwrap();
    one.send_in(u32::MAX, 100).unwrap();
    assert!(one.send_in(u32::MAX - 1, 101).is_err());
    queue.bump(one.group_id(), 255).unwrap();
    let mut turns: Vec<_> = queue.try_receive_many(usize::MAX).unwrap().collect();
    assert_eq!(turns.len(), 1);
    let batch = turns[0].next_batch(usize::MAX).unwrap();
    let done = batch.complete_up_to(usize::MAX);
    drop(turns);
    let left = 101 - done.len();
    assert_eq!(serve(&queue).len(), left);
}

#[test]
fn beyond_the_largest() {
    let queue = Queue::<u8>::new();
    let lane = queue.lane(1, MOST).unwrap();
    for beyond in [Limit::MAX + 1, u32::MAX] {
        let beyond = Limit::AtMost(beyond);
        assert!(queue.lane(1, beyond).is_err());
        assert!(lane.group(beyond, 0).is_err());
        assert!(matches!(lane.set_cap(beyond), Err(OutOfRange { .. })));
        let group = lane.group(MOST, 0).unwrap();
        assert!(group.set_limit(beyond).is_err());
    }
    for weight in [0, 1_000_001, u32::MAX] {
        assert!(queue.lane(weight, MOST).is_err());
    }
    assert!(Queue::<u8>::builder().quantum(0).build().is_err());
}

/// A limit that falls far below the units in use leaves a debt, which is paid one by one.
#[test]
fn from_the_largest_to_the_smallest() {
    let queue = Queue::new();
    let lane = queue.lane(1, MOST).unwrap();
    let group = lane.group(MOST, 100).unwrap();
    let one = group.conversation().unwrap();
    one.send_all(0..40).unwrap();
    let mut out = Vec::new();
    while out.len() < 30 {
        out.push(queue.try_receive().unwrap().next().unwrap().detach());
    }
    for limit in [Limit::AtMost(0), Limit::SERIAL] {
        group.set_limit(limit).unwrap();
        lane.set_cap(limit).unwrap();
        assert!(queue.try_receive().is_err());
    }
    while let Some(detached) = out.pop() {
        assert!(queue.try_receive().is_err());
        detached.complete();
    }
    assert_eq!(serve(&queue).len(), 10);
}

/// More than 2^32 messages of no size are sent and counted. Seconds in release, minutes without.
#[test]
#[ignore = "fails: a group counts what waits in 32 bits"]
fn more_messages_than_32_bits_count() {
    const MANY: usize = (1 << 32) + 2;
    let queue = Queue::builder().quantum(u32::MAX).build().unwrap();
    let one = queue.lane(1, Limit::Unlimited).unwrap();
    let one = one.conversation().unwrap();
    one.send_all((0..MANY).map(|_| ())).unwrap();
    let waiting = queue.waiting_in(one.group_id());
    // Taking them out would make a list of them.
    std::mem::forget((queue, one));
    assert_eq!(waiting, Ok(MANY));
}

/// Messages of no size, in one group, more than fit into any memory if they had one.
#[test]
fn a_burst_of_no_size() {
    let queue = Queue::builder().quantum(u32::MAX).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    let burst = 100_000;
    assert!(one.send_all((0..burst).map(Nothing::make)).is_ok());
    assert_eq!(queue.waiting_in(one.group_id()), Ok(burst));
    assert_eq!(serve(&queue).len(), burst);
    assert!(alive().is_empty());
}
