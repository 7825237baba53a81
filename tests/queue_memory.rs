//! What a queue leaves behind: only a bounded number of bytes, after many conversations and
//! after a burst of as many messages. A binary of its own, with an allocator that counts.

#[path = "support/counting_heap/mod.rs"]
mod counting_heap;

use std::pin::Pin;
use std::task::{Context, Waker};

use conversant::limit::Limit;
use conversant::queue::{Conversation, Lane, Queue};

use counting_heap::live;

const MANY: usize = 250_000;

/// The most that may stay: a page of groups, the two submission lists, the queues of a lane at
/// their smallest, and eight magazines of each size of blocks in the depot and two of this
/// thread's.
const LEFT_OVER: isize = 16 * 1024 + (8 + 2) * (32 * (32 + 64 + 208 + 3 * 8) + 4 * (1552 + 8));

/// One test, so that nothing else allocates meanwhile.
#[test]
fn memory_is_given_back() {
    // One turn takes the whole burst: the test is about memory, and long enough.
    let queue = Queue::<u64>::builder().quantum(u32::MAX).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let baseline = live();
    for count in [MANY, MANY / 20] {
        conversations_used_once(&queue, &lane, count);
        let left = live() - baseline;
        assert!(left <= LEFT_OVER, "after {count}: {left} bytes");
    }
    let conversation = lane.conversation().unwrap();
    one_burst(&queue, &conversation);
    // Given back while the conversation is still alive.
    let left = live() - baseline;
    assert!(left <= LEFT_OVER, "after the burst: {left} bytes");
    drop(conversation);
    waits_by_name_come_and_go(&queue, &lane);
}

/// One wait stays. Others come, of groups that the lane's cap keeps from a turn, and leave with
/// their groups.
fn waits_by_name_come_and_go(queue: &Queue<u64>, lane: &Lane<u64>) {
    let mut cx = Context::from_waker(Waker::noop());
    lane.set_cap(0).unwrap();
    let mut before = None;
    let stays = lane.conversation().unwrap();
    let mut stays = queue.receive_from(stays.group_id());
    assert!(Pin::new(&mut stays).poll(&mut cx).is_pending());
    for _ in 0..1_000 {
        let conversation = lane.conversation().unwrap();
        conversation.send(1).unwrap();
        let mut wait = queue.receive_from(conversation.group_id());
        assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
        drop(wait);
        assert_eq!(queue.drain(conversation.group_id()), Ok(vec![1]));
        drop(conversation);
        before.get_or_insert(live());
    }
    // Their keys alone would take more.
    let grown = live() - before.unwrap();
    assert!(grown < 4 * 1024, "{grown} bytes");
}

/// All are alive at once; each is used for one message, and ended before or after it.
fn conversations_used_once(queue: &Queue<u64>, lane: &Lane<u64>, count: usize) {
    let mut conversations: Vec<Conversation<u64>> = Vec::with_capacity(count);
    for n in 0..count {
        let conversation = lane.conversation().unwrap();
        conversation.send(n as u64).unwrap();
        conversations.push(conversation);
    }
    conversations.truncate(count / 2);
    for n in 0..count {
        let mut turn = queue.try_receive().unwrap();
        assert_eq!(turn.next().unwrap().complete(), n as u64);
    }
    drop(conversations);
    assert!(queue.snapshot().lanes[0].groups.is_empty());
}

fn one_burst(queue: &Queue<u64>, conversation: &Conversation<u64>) {
    conversation.send_all(0..MANY as u64).unwrap();
    let mut expected = 0;
    while let Ok(mut turn) = queue.try_receive() {
        while let Some(delivery) = turn.next() {
            assert_eq!(delivery.complete(), expected);
            expected += 1;
        }
    }
    assert_eq!(expected, MANY as u64);
}
