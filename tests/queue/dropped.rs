//! A delivery that is dropped where it should have been completed is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use conversant::limit::Limit;
use conversant::queue::{Conversation, GroupId, Queue, Turn};
use parking_lot::Mutex;

fn watched() -> (Queue<u32>, Arc<Mutex<Vec<GroupId>>>) {
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let seen = dropped.clone();
    let queue = Queue::builder()
        .attempts(Limit::Unlimited)
        .on_dropped(move |group| seen.lock().push(group));
    (queue.build().unwrap(), dropped)
}

fn filled(queue: &Queue<u32>) -> Conversation<u32> {
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    conversation.send_all(0..4).unwrap();
    conversation
}

fn turn(queue: &Queue<u32>) -> Turn<'_, u32> {
    queue.try_receive().unwrap()
}

#[test]
fn each_way_to_drop_a_delivery_is_reported_once() {
    let (queue, dropped) = watched();
    let group = filled(&queue).group_id();
    drop(turn(&queue).next());
    assert_eq!(*dropped.lock(), [group]);
    drop(turn(&queue).next_batch(3));
    assert_eq!(*dropped.lock(), [group; 2]);
    let detached = turn(&queue).next().unwrap().detach();
    drop(detached);
    assert_eq!(*dropped.lock(), [group; 3]);
    assert_eq!(queue.counts().dropped, 3);
    // All messages are still there.
    let batch: Vec<u32> = turn(&queue).next_batch(9).unwrap().complete().collect();
    assert_eq!(batch, [0, 1, 2, 3]);
}

#[test]
fn what_is_done_or_given_back_is_not() {
    let (queue, dropped) = watched();
    let _conversation = filled(&queue);
    turn(&queue).next().unwrap().give_back();
    turn(&queue).next().unwrap().detach().give_back();
    assert_eq!(
        turn(&queue).next_batch(3).unwrap().complete_up_to(1).len(),
        1
    );
    assert_eq!(
        turn(&queue).next_batch(3).unwrap().complete_up_to(0).len(),
        0
    );
    turn(&queue).next().unwrap().complete();
    turn(&queue).next().unwrap().detach().complete();
    // A turn from which no message was taken drops no delivery.
    drop(turn(&queue));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut turn = turn(&queue);
        let _delivery = turn.next();
        panic!("the handler panics");
    }));
    assert!(panicked.is_err());
    assert_eq!(turn(&queue).next().unwrap().attempt(), 2);
    // That delivery was dropped by this line.
    assert_eq!(dropped.lock().len(), 1);
    assert_eq!(queue.counts().dropped, 1);
}

/// The hook may panic: so a test finds the handler that drops, and the queue stays whole.
#[test]
fn it_may_panic() {
    let queue = Queue::builder()
        .on_dropped(|group| panic!("{group:?} was not completed"))
        .build()
        .unwrap();
    let _conversation = filled(&queue);
    let armed = catch_unwind(AssertUnwindSafe(|| drop(turn(&queue).next())));
    assert!(armed.is_err());
    assert_eq!(turn(&queue).next().unwrap().complete(), 0);
    let detached = turn(&queue).next().unwrap().detach();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(detached))).is_err());
    assert_eq!(turn(&queue).next().unwrap().complete(), 1);
}
