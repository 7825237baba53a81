//! A queue sends events for rare things: bumps, pauses and failures that suspend a group.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use conversant::error::OutOfRange;
use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Builder, Conversation, GroupId, Lane, Queue};

use super::recorder::Recorder;

const PAUSE: Duration = Duration::from_secs(1);

/// A queue, its lane, and a conversation with tag 7.
fn queue_of(builder: Builder<u32>) -> (Queue<u32>, Lane<u32>, Conversation<u32>) {
    let queue = builder.build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    conversation.set_tag(7);
    (queue, lane, conversation)
}

fn bumped(group: GroupId, tag: u64, level: u8) -> String {
    format!("DEBUG queue bumped group={group} tag={tag} level={level}")
}

#[test]
fn a_bump_is_told_if_it_changes_something() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (queue, lane, conversation) = queue_of(Queue::builder());
    let group = conversation.group_id();
    conversation.send(1).unwrap();
    queue.bump(group, 200).unwrap();
    queue.bump(group, 200).unwrap();
    queue.bump(group, 100).unwrap();
    assert_eq!(
        recorder.events(),
        [bumped(group, 7, 200), bumped(group, 7, 100)]
    );

    // A group that is peeked at is bumped under the queue's lock.
    let look = queue.try_peek(group).unwrap();
    queue.bump(group, 9).unwrap();
    queue.bump(group, 9).unwrap();
    drop(look);
    assert_eq!(recorder.events(), [bumped(group, 7, 9)]);

    let keyed = Keyed::new(lane);
    keyed.send("anna", 2).unwrap();
    let anna = keyed.group_id(&"anna").unwrap();
    queue.bump(anna, 8).unwrap();
    assert_eq!(recorder.events(), [bumped(anna, 0, 8)]);
}

#[test]
fn a_pause_is_told_once() -> Result<(), OutOfRange> {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (queue, _lane, conversation) = queue_of(Queue::builder());
    let group = queue.group(conversation.group_id()).unwrap();
    group.set_limit(2)?;
    group.set_level(0);
    assert!(recorder.events().is_empty());
    group.set_limit(0)?;
    group.set_limit(0)?;
    let told = format!("DEBUG queue blocked group={} tag=7 why=paused", group.id());
    assert_eq!(recorder.events(), [told]);
    Ok(())
}

/// Fails as often as is allowed; with or without a turn around it.
fn failures_are_told(fail: impl Fn(&Queue<u32>)) {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let builder = Queue::builder().attempts(2).back_off(PAUSE, PAUSE);
    let (queue, _lane, conversation) = queue_of(builder);
    let group = conversation.group_id();
    conversation.send(1).unwrap();
    let (number, _) = queue.peek(group).unwrap().unwrap();
    fail(&queue);
    let what = format!("group={group} tag=7 number={number}");
    let told = format!("DEBUG queue blocked {what} attempts=1 why=backing off");
    assert_eq!(recorder.events(), [told]);
    queue.advance(PAUSE);
    fail(&queue);
    let told = format!("WARN queue poisoned {what} attempts=2");
    assert_eq!(recorder.events(), [told]);
    assert_eq!(queue.poisoned().len(), 1);
}

#[test]
fn a_back_off_and_a_poisoned_group_are_told() {
    failures_are_told(|queue| {
        let mut turn = queue.try_receive().unwrap();
        turn.next().unwrap().give_back();
    });
    failures_are_told(|queue| {
        let mut turn = queue.try_receive().unwrap();
        let detached = turn.next().unwrap().detach();
        drop(turn);
        detached.give_back();
    });
}

#[test]
fn nothing_is_told_message_by_message() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (queue, lane, conversation) = queue_of(Queue::builder());
    let pair = lane.group(2, 100).unwrap().conversation().unwrap();
    for message in 0..4 {
        conversation.send(message).unwrap();
        pair.send(message).unwrap();
    }
    let mut turn = queue.try_receive().unwrap();
    turn.next().unwrap().give_back();
    turn.next().unwrap().complete();
    drop(turn);
    let detached = queue.try_receive().unwrap().next().unwrap().detach();
    detached.give_back();
    queue.shutdown();
    assert!(recorder.events().is_empty());
}

/// A bump by each way, a pause, and a message that fails for the last time.
fn all(queue: &Queue<u32>, conversation: &Conversation<u32>) {
    let group = queue.group(conversation.group_id()).unwrap();
    conversation.send(1).unwrap();
    group.bump(1);
    group.set_limit(0).unwrap();
    group.bump(2);
    group.set_limit(1).unwrap();
    queue.try_receive().unwrap().next().unwrap().give_back();
}

#[test]
fn no_lock_is_held() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (queue, lane, conversation) = queue_of(Queue::builder().attempts(1));
    let (same, group) = (queue.clone(), conversation.group_id());
    let keyed = Arc::new(Keyed::new(lane));
    let by_key = keyed.clone();
    let free = Arc::new(AtomicU32::new(0));
    let times = free.clone();
    recorder.then(move |_| {
        if format!("{same:?}").contains("locked") {
            return;
        }
        times.fetch_add(1, Relaxed);
        // Each of these takes a lock of the group, or of the key's shard, too.
        _ = same.group(group).unwrap().waiting();
        _ = by_key.group_id(&"anna");
    });
    all(&queue, &conversation);
    keyed.group("anna").unwrap().set_limit(0).unwrap();
    assert_eq!(recorder.events().len(), 5);
    assert_eq!(free.load(Relaxed), 5);
}

#[test]
fn a_panic_of_the_subscriber_stops_nobody() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    recorder.then(|_| panic!("a subscriber's"));
    let (queue, _lane, conversation) = queue_of(Queue::builder().attempts(1));
    all(&queue, &conversation);
    assert_eq!(recorder.events().len(), 4);
    let group = conversation.group_id();
    assert_eq!(queue.take_failed(group).unwrap(), Some(1));

    // Also if the event is sent during another panic.
    conversation.send(2).unwrap();
    let handler = catch_unwind(AssertUnwindSafe(|| {
        let mut turn = queue.try_receive().unwrap();
        let _delivery = turn.next();
        panic!("the handler's");
    }));
    let payload = handler.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"the handler's"));
    assert_eq!(recorder.events().len(), 1);
    assert_eq!(queue.poisoned().len(), 1);
}
