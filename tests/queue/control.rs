//! Groups and keys that are paused, raised, resumed and drained by name.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use conversant::error::{Closed, Stale};
use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Group, NoMore, NoTurn, Queue, Why};

use crate::queue_support::{WakeCounter, plain, poll, serve, take};

const TOO_MUCH: u32 = Limit::MAX + 1;

fn keyed(queue: &Queue<u32>) -> Keyed<&'static str, u32> {
    Keyed::new(queue.lane(1, Limit::Unlimited).unwrap())
}

#[test]
fn a_tag_stays_and_comes_with_each_turn() {
    let (queue, lane) = plain();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.set_tag(7);
    let limited = lane.group(2, 100).unwrap();
    limited.set_tag(u64::MAX);
    for _ in 0..2 {
        for conversation in [&one, &two, &limited.conversation().unwrap()] {
            conversation.send(1).unwrap();
        }
        let mut tags = [(); 3].map(|()| {
            let mut turn = queue.try_receive().unwrap();
            turn.next().unwrap().complete();
            turn.tag()
        });
        tags.sort_unstable();
        assert_eq!(tags, [0, 7, u64::MAX]);
        // A drained group gives up rare fields that it does not use.
        one.send(2).unwrap();
        assert_eq!(queue.drain(one.group_id()), Ok(vec![2]));
    }
    queue.group(one.group_id()).unwrap().set_tag(8);
    let told = queue.groups().map(|group| group.tag);
    assert_eq!(told.collect::<Vec<_>>(), [8, 0, u64::MAX]);
}

#[test]
fn a_group_is_paused_and_goes_on_by_name() {
    let (queue, lane) = plain();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send(1).unwrap();
    two.send(2).unwrap();
    queue.group(one.group_id()).unwrap().set_limit(0).unwrap();
    let why = |group| queue.try_receive_from(group).err();
    assert_eq!(why(one.group_id()), Some(NoTurn::Blocked(Why::Paused)));
    assert_eq!(serve(&queue), [2]);
    let (wakes, waker) = WakeCounter::new();
    let mut wait = queue.receive();
    assert!(poll(&mut wait, &waker).is_pending());
    queue.group(one.group_id()).unwrap().set_limit(2).unwrap();
    assert_eq!(wakes.count(), 1);
    drop(wait);
    assert_eq!(queue.snapshot().lanes[0].groups[0].limit, Limit::AtMost(2));
    let group = queue.group(one.group_id()).unwrap();
    assert_eq!(group.set_limit(TOO_MUCH).unwrap_err().asked, TOO_MUCH);
    drop(group);
    assert_eq!(serve(&queue), [1]);
    let gone = one.group_id();
    drop(one);
    assert_eq!(queue.group(gone).err(), Some(Stale));
    assert_eq!(queue.take_failed(gone), Err(Stale));
    let other = plain::<u32>();
    assert_eq!(other.0.group(two.group_id()).err(), Some(Stale));
}

#[test]
fn a_level_is_changed_by_name() {
    let (queue, lane) = plain();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send(1).unwrap();
    two.send(2).unwrap();
    queue.group(two.group_id()).unwrap().set_level(200);
    assert_eq!(serve(&queue), [2, 1]);
}

#[test]
fn take_failed_removes_the_failed_message_only() {
    let queue = Queue::builder().attempts(2).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send_all([1, 2, 3]).unwrap();
    assert_eq!(queue.take_failed(one.group_id()), Ok(None));
    take(&queue).unwrap().give_back();
    assert_eq!(queue.take_failed(one.group_id()), Ok(None));
    take(&queue).unwrap().give_back();
    // The reader that peeks at the message holds it.
    let look = queue.try_peek(one.group_id()).unwrap();
    assert_eq!(queue.take_failed(one.group_id()), Ok(None));
    assert_eq!(queue.poisoned().len(), 1);
    drop(look);
    let (wakes, waker) = WakeCounter::new();
    let mut wait = queue.receive();
    assert!(poll(&mut wait, &waker).is_pending());
    assert_eq!(queue.take_failed(one.group_id()), Ok(Some(1)));
    assert_eq!((wakes.count(), queue.poisoned()), (1, vec![]));
    drop(wait);
    assert_eq!(serve(&queue), [2, 3]);
    // The only message: the group is idle then.
    one.send(4).unwrap();
    take(&queue).unwrap().give_back();
    take(&queue).unwrap().give_back();
    queue.close();
    assert_eq!(
        queue.try_receive().err(),
        Some(NoTurn::Closed(NoMore::OnlyPoisoned))
    );
    assert_eq!(queue.take_failed(one.group_id()), Ok(Some(4)));
    assert_eq!(
        queue.try_receive().err(),
        Some(NoTurn::Closed(NoMore::Drained))
    );
}

#[test]
fn a_key_is_paused_before_and_after_it_has_messages() {
    let queue = Queue::new();
    let orders = keyed(&queue).keep_idle(0);
    orders.group("anna").unwrap().set_limit(0).unwrap();
    assert_eq!((orders.len(), orders.group_id(&"anna")), (0, None));
    for n in 0..200 {
        // Idle groups are forgotten for these, but not the changed one.
        orders
            .send(Box::leak(n.to_string().into_boxed_str()), n)
            .unwrap();
        assert_eq!(serve(&queue), [n]);
    }
    orders.send("anna", 1).unwrap();
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    orders.group("anna").unwrap().set_limit(1).unwrap();
    assert_eq!(serve(&queue), [1]);
    assert_eq!((orders.len(), queue.counts().groups), (0, 0));
    orders.group("anna").unwrap().set_level(200);
    orders.send("bert", 2).unwrap();
    orders.send("anna", 3).unwrap();
    assert_eq!(serve(&queue), [3, 2]);
    assert_eq!((orders.len(), queue.counts().groups), (0, 1));
    orders.group("anna").unwrap().set_level(100);
    assert_eq!((orders.len(), queue.counts().groups), (0, 0));
    assert!(orders.group("anna").unwrap().set_limit(TOO_MUCH).is_err());
    queue.close();
    assert_eq!(orders.group("carl").err(), Some(Closed));
}

#[test]
fn a_delivery_tells_its_key() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let [orders, bills] = [(); 2].map(|()| keyed(&queue).keep_keys());
    orders.send("anna", 1).unwrap();
    let first = queue.try_receive().unwrap();
    assert_eq!(orders.key_of(first.group_id()), Some("anna"));
    assert_eq!(bills.key_of(first.group_id()), None);
    let delivery = { first }.next().unwrap().detach();
    // Groups that come later are known as well, and groups that end are not.
    orders.send("bert", 2).unwrap();
    let mut turn = queue.try_receive().unwrap();
    let bert = turn.group_id();
    assert_eq!(orders.key_of(bert), Some("bert"));
    assert_eq!(orders.key_of(delivery.group_id()), Some("anna"));
    turn.next().unwrap().give_back();
    drop(turn);
    let poisoned = queue.poisoned();
    assert_eq!(orders.key_of(poisoned[0].group), Some("bert"));
    assert_eq!(orders.group_id(&"bert"), Some(bert));
    assert_eq!(queue.drain(bert), Ok(vec![2]));
    assert_eq!((orders.len(), orders.key_of(bert)), (1, None));
    delivery.complete();
}

#[test]
fn a_key_that_was_not_kept_is_not_told() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send("anna", 1).unwrap();
    assert_eq!(orders.key_of(queue.try_receive().unwrap().group_id()), None);
}

#[test]
fn keys_are_told_while_they_come_and_go() {
    let queue = Queue::new();
    let orders = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap());
    let orders = orders.keep_idle(0).keep_keys();
    std::thread::scope(|scope| {
        for first in [0u32, 1000] {
            let orders = &orders;
            scope.spawn(move || (first..first + 1000).for_each(|n| orders.send(n, n).unwrap()));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while let Ok(mut turn) = queue.receive().wait() {
                    let key = orders.key_of(turn.group_id());
                    while let Some(delivery) = turn.next() {
                        assert_eq!(Some(delivery.complete()), key);
                        SERVED.fetch_add(1, Ordering::Relaxed);
                    }
                    if SERVED.load(Ordering::Relaxed) == 2000 {
                        queue.close();
                    }
                }
            });
        }
    });
    assert!(orders.is_empty());
}

static SERVED: AtomicUsize = AtomicUsize::new(0);

/// Calls the keyed sender when it is woken.
struct Caller(Mutex<Option<Arc<Keyed<&'static str, u32>>>>);

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        let orders = self.0.lock().unwrap().take();
        if let Some(orders) = orders {
            assert_eq!(orders.group("anna").unwrap().waiting(), 1);
        }
    }
}

#[test]
fn who_is_woken_by_a_change_may_call() {
    let queue = Queue::new();
    let orders = Arc::new(keyed(&queue));
    orders.group("anna").unwrap().set_limit(0).unwrap();
    orders.send("anna", 9).unwrap();
    let caller = Arc::new(Caller(Mutex::new(Some(orders.clone()))));
    let waker = Waker::from(caller.clone());
    let mut wait = queue.receive();
    assert!(poll(&mut wait, &waker).is_pending());
    orders.group("anna").unwrap().set_limit(1).unwrap();
    assert!(caller.0.lock().unwrap().is_none(), "it was woken");
    drop(wait);
    assert_eq!(serve(&queue), [9]);
}

#[test]
fn handles_of_a_lane_are_one_lane() {
    let queue = Queue::<u32>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let (number, other) = (lane.number(), lane.clone());
    drop(lane);
    assert!(!queue.snapshot().lanes[0].ending);
    other.set_cap(0).unwrap();
    let one = other.conversation().unwrap();
    one.send(1).unwrap();
    assert!(queue.try_receive().is_err());
    other.clone().set_cap(1).unwrap();
    let ending = |queue: &Queue<u32>| queue.snapshot().lanes.first().map(|lane| lane.ending);
    assert_eq!((other.number(), ending(&queue)), (number, Some(false)));
    assert_eq!(
        format!("{other:?}"),
        format!("Lane {{ number: {number}, .. }}")
    );
    drop(other);
    assert_eq!(ending(&queue), Some(true));
    assert_eq!(serve(&queue), [1]);
    drop(one);
    assert_eq!(ending(&queue), None);
}

#[test]
fn handles_of_a_group_are_one_group() {
    let (queue, lane) = plain();
    let group = lane.group(0, 100).unwrap();
    let (name, other) = (group.id(), group.clone());
    drop(group);
    let one = other.conversation().unwrap();
    one.send(1).unwrap();
    drop(one);
    assert!(queue.try_receive().is_err());
    other.clone().set_limit(1).unwrap();
    assert_eq!(serve(&queue), [1]);
    assert!(queue.group(name).is_ok());
    drop(other);
    assert_eq!(queue.group(name).err(), Some(Stale));
}

#[test]
fn each_handle_tells_its_capacity() {
    let (queue, lane) = plain();
    let group: Group<u32> = lane.group(1, 100).unwrap();
    let one = group.conversation().unwrap();
    let told = || (lane.capacity(), group.capacity(), one.capacity());
    let (none, at_most) = (Limit::Unlimited, Limit::AtMost);
    assert_eq!(told(), (none, none, none));
    lane.set_capacity(3).unwrap();
    assert_eq!(told(), (at_most(3), none, none));
    one.set_capacity(0).unwrap();
    assert_eq!(told(), (at_most(3), at_most(0), at_most(0)));
    queue.close();
    assert_eq!(told(), (at_most(3), at_most(0), at_most(0)));
    lane.set_capacity(none).unwrap();
    group.set_capacity(none).unwrap();
    assert_eq!(told(), (none, none, none));
}

#[test]
fn a_key_tells_its_capacity() {
    let queue = Queue::new();
    let keyed = keyed(&queue).capacity_each(5).unwrap();
    let told = || ["anna", "bert"].map(|key| keyed.group(key).unwrap().capacity());
    assert_eq!(told(), [5, 5].map(Limit::AtMost));
    keyed.group("anna").unwrap().set_capacity(0).unwrap();
    // An idle group with changed settings is kept.
    assert_eq!(keyed.len(), 0);
    assert_eq!(told(), [0, 5].map(Limit::AtMost));
    keyed.send("bert", 1).unwrap();
    assert_eq!(told(), [0, 5].map(Limit::AtMost));
}

#[test]
fn a_poisoned_key_goes_on_by_key() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let keyed = keyed(&queue);
    let fail = || drop(queue.try_receive().unwrap().next().unwrap());
    let group = |key| keyed.group_id(&key);
    let resume = |key| group(key).map(|group| queue.resume(group).unwrap());
    let take_failed = |key| group(key).map(|group| queue.take_failed(group).unwrap());
    // The key has no group.
    assert_eq!(group("anna"), None);
    for n in 1..=3 {
        keyed.send("anna", n).unwrap();
    }
    keyed.send("bert", 4).unwrap();
    assert_eq!(
        (resume("anna"), take_failed("anna")),
        (Some(false), Some(None))
    );
    fail();
    assert_eq!(take_failed("bert"), Some(None));
    assert_eq!(serve(&queue), [4]);
    assert_eq!(resume("anna"), Some(true));
    fail();
    assert_eq!(take_failed("anna"), Some(Some(1)));
    fail();
    assert_eq!(queue.drain(group("anna").unwrap()), Ok(vec![2, 3]));
    assert!(queue.poisoned().is_empty());
    // Idle, but kept.
    assert_eq!(group("anna"), None);
    keyed.send("anna", 5).unwrap();
    assert_eq!(serve(&queue), [5]);
}
