//! A delivery that is dropped where it should have been completed is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use conversant::dialog::{Dialogs, Received};
use conversant::limit::Limit;
use conversant::queue::{Conversation, Delivery, GroupId, Queue, Turn};
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

#[test]
fn it_comes_when_the_message_is_back() {
    let there = Arc::new(Mutex::new(None::<Queue<u32>>));
    let asks = there.clone();
    let is_back = move |_| {
        let queue = asks.lock().take().unwrap();
        assert_eq!(queue.counts().failed, 1);
    };
    let queue = Queue::builder().on_dropped(is_back).build().unwrap();
    *there.lock() = Some(queue.clone());
    let _conversation = filled(&queue);
    drop(turn(&queue).next());
    assert_eq!(queue.counts().dropped, 1);
}

/// The side of the dialog has ended, so what comes back is dropped. The report comes all the same,
/// and then the panic.
#[test]
fn it_comes_also_if_the_drop_of_the_message_panics() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a message's");
        }
    }
    type Held<'q> = Turn<'q, Received<Bomb>>;
    let ways: [fn(Held<'_>); 3] = [
        |mut turn| drop(turn.next()),
        |mut turn| drop(turn.next_batch(1)),
        |mut turn| {
            let detached = turn.next().map(Delivery::detach);
            drop(turn);
            drop(detached);
        },
    ];
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let builder = Queue::builder().on_dropped(move |group| sees.lock().push(group));
    let queue = builder.build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let mut groups = Vec::new();
    for drops in ways {
        let (near, far) = Dialogs::new().pair(&lane, &lane).unwrap();
        assert!(near.send(Bomb).is_ok());
        let turn = queue.try_receive().unwrap();
        groups.push(turn.group_id());
        far.end().unwrap();
        let dropped = catch_unwind(AssertUnwindSafe(|| drops(turn)));
        let panic = dropped.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a message's"));
        drop(queue.try_receive().unwrap().next().unwrap().complete());
    }
    assert_eq!(*seen.lock(), groups);
    assert_eq!(queue.counts().dropped, 3);
}
