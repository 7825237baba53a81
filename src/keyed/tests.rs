//! The map against a list, and the memory that it gives back.

use std::pin::Pin;
use std::task::{Context, Wake, Waker};

use proptest::collection::vec;
use proptest::prelude::*;

use super::map::{Entry, KeyMap, NewGroup, find, take_idle};
use super::{Keyed, Shards};
use crate::limit::Limit;
use crate::queue::{GroupId, GroupRef, Lane, Pinned, Queue, Shared};
use crate::sync::{Mutex, WakeArc as Arc, thread_number};
use crate::wait::tests::heap::held_by_this_thread;

const MADE: NewGroup = (Limit::SERIAL, 100, Limit::Unlimited);

fn queue() -> (Queue<u8>, Lane<u8>) {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

/// A group with a message.
fn busy(lane: &Lane<u8>) -> Pinned<u8> {
    let group = lane.add_group(Limit::SERIAL, 100).unwrap();
    send(lane, &group);
    group
}

fn send(lane: &Lane<u8>, group: &GroupRef<u8>) {
    let sent = Shared::send_at_once(group, || lane.shared(), 0);
    lane.shared().posted(sent.expect("nothing is special"));
}

fn id(lane: &Lane<u8>, group: &GroupRef<u8>) -> GroupId {
    lane.shared().id(group.key())
}

/// Serves all messages of a group.
fn serve(queue: &Queue<u8>, group: GroupId) {
    while let Ok(mut turn) = queue.try_receive_from(group) {
        while let Some(delivery) = turn.next() {
            delivery.complete();
        }
    }
}

/// Few hashes, so that many keys share one.
fn hash(key: u8) -> u64 {
    u64::from(key % 3)
}

#[derive(Clone, Debug)]
enum Step {
    /// A message is sent by a key.
    Send(u8),
    /// All messages of a key are served.
    Serve(u8),
    /// Idle groups are forgotten.
    Trim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..9u8).prop_map(Step::Send),
        3 => (0..9u8).prop_map(Step::Serve),
        1 => Just(Step::Trim),
    ];
    vec(step, 0..40)
}

proptest! {
    #[test]
    fn agrees_with_a_list(steps in steps()) {
        let (queue, lane) = queue();
        let mut map = KeyMap::new();
        // For each key: the group, and whether a message waits in it.
        let mut list: Vec<(u8, GroupId, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Send(key) => {
                    if let Some(entry) = list.iter_mut().find(|entry| entry.0 == key) {
                        send(&lane, find(&map, hash(key), &key).unwrap());
                        entry.2 = true;
                    } else {
                        let group = busy(&lane);
                        list.push((key, id(&lane, &group), true));
                        let hash = hash(key);
                        map.insert_unique(hash, Entry { hash, key, group }, |entry| entry.hash);
                    }
                }
                Step::Serve(key) => {
                    if let Some(entry) = list.iter_mut().find(|entry| entry.0 == key) {
                        serve(&queue, entry.1);
                        entry.2 = false;
                    }
                }
                Step::Trim => {
                    let idle = take_idle(&mut map, MADE);
                    let mut gone: Vec<_> = idle.iter().map(|e| id(&lane, &e.group)).collect();
                    let of_list = list.extract_if(.., |entry| !entry.2).map(|entry| entry.1);
                    let mut expected: Vec<_> = of_list.collect();
                    gone.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(gone, expected);
                }
            }
            prop_assert_eq!(map.len(), list.len());
            for key in 0..9 {
                let stands = list.iter().find(|entry| entry.0 == key);
                let found = find(&map, hash(key), &key).map(|group| id(&lane, group));
                prop_assert_eq!(found, stands.map(|entry| entry.1));
            }
        }
        prop_assert_eq!(map.len(), list.len());
    }
}

/// A new key forgets idle groups once twice as many are kept as were left, or a small number; no
/// more than that stay.
#[test]
fn a_new_key_forgets_what_is_idle() {
    let (queue, lane) = queue();
    let keyed = Keyed::new(lane).keep_idle(64);
    let (mut at_work, mut most) = (0, 0);
    for key in 0..10_000_u64 {
        keyed.send(key, 0).unwrap();
        match key % 100 {
            0 => at_work += 1,
            _ => serve(&queue, keyed.group_id(&key).unwrap()),
        }
        most = most.max(queue.counts().groups);
    }
    assert!(most <= 64 + 2 * at_work, "{most} for {at_work} at work");
    assert_eq!(keyed.len(), at_work);
    assert_eq!(queue.counts().groups, at_work);
}

/// Records whether a shard was locked when it was woken.
struct Looks(Arc<Shards<u8, u8>>, Mutex<Vec<bool>>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let locked = self.0.maps.iter().any(|map| map.0.try_lock().is_none());
        self.1.lock().push(locked);
    }
}

/// Permits that threads have cached come back to a waiter.
#[test]
fn a_send_serves_others_under_no_lock() {
    let queue = Queue::builder().capacity(4_096).build().unwrap();
    let keyed = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap());
    let conversation = keyed.lane().conversation().unwrap();
    // A thread with another word of the cache than this one's.
    let fills = || {
        let fills = thread_number() % 8;
        (0..2).for_each(|_| conversation.send(0).unwrap());
        fills
    };
    while std::thread::scope(|scope| scope.spawn(fills).join().unwrap()) == thread_number() % 8 {}
    let permits = keyed.queue().capacity.permits().unwrap();
    let left = u32::try_from(permits.available()).unwrap();
    let others = permits.try_acquire(left).unwrap();
    let looks = Arc::new(Looks(keyed.shards.clone(), Mutex::new(Vec::new())));
    let waker = Waker::from(looks.clone());
    let mut wait = permits.acquire(1);
    assert!(
        Pin::new(&mut wait)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    _ = keyed.send(1, 1);
    assert_eq!(
        *looks.1.lock(),
        [false],
        "it is woken, and no shard is locked"
    );
    drop((wait, others));
}

#[test]
fn a_burst_is_given_back() {
    let (queue, lane) = queue();
    let all: Vec<_> = (0..10_000).map(|_| busy(&lane)).collect();
    // The places of the groups stay.
    let refs: Vec<_> = all.iter().map(|pin| GroupRef::clone(pin)).collect();
    let before = held_by_this_thread();
    let mut map = KeyMap::new();
    for (key, group) in all.into_iter().enumerate() {
        let hash = key as u64;
        map.insert_unique(hash, Entry { hash, key, group }, |entry| entry.hash);
    }
    let burst = held_by_this_thread() - before;
    for group in &refs[10..] {
        serve(&queue, id(&lane, group));
    }
    assert_eq!(take_idle(&mut map, MADE).len(), 9_990);
    assert!(held_by_this_thread() - before < burst / 50);
    assert_eq!(map.len(), 10);
}

/// Its drop panics, unless its thread is already panicking.
#[derive(PartialEq, Eq, Hash)]
struct Breaks(u8);

impl Drop for Breaks {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "scripted");
    }
}

/// Nothing is left of a `Keyed` whose key panics when it is dropped: no group, and no bound.
#[test]
fn a_panicking_key_keeps_nothing_back() {
    let (queue, lane) = queue();
    let (keyed, other) = (Keyed::new(lane), queue.lane(1, Limit::Unlimited).unwrap());
    for key in 0..100 {
        keyed.send(Breaks(key), 0).unwrap();
    }
    while let Ok(mut turn) = queue.try_receive() {
        turn.next().unwrap().complete();
    }
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(keyed)));
    assert!(dropped.is_err());
    assert_eq!(queue.counts().groups, 0);
    let keyed = Keyed::new(other).keep_idle(4);
    for key in 0..1_000_u64 {
        keyed.send(key, 0).unwrap();
        serve(&queue, keyed.group_id(&key).unwrap());
        assert!(queue.counts().groups <= 9, "{}", queue.counts().groups);
    }
}

/// Neither the bound of its own sender is raised, nor do the groups of another stay.
#[test]
fn a_key_that_panics_when_it_is_forgotten_keeps_nothing_back() {
    let (queue, lane) = queue();
    let bad = Keyed::new(lane).keep_idle(4);
    let good = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap()).keep_idle(4);
    for key in 0..100 {
        bad.send(Breaks(key), 0).unwrap();
        good.send(u64::from(key), 0).unwrap();
    }
    let serve = || {
        while let Ok(mut turn) = queue.try_receive() {
            turn.next().unwrap().complete();
        }
    };
    let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(serve));
    assert!(served.is_err());
    assert_eq!(queue.counts().groups, 0);
    for key in 0..1_000 {
        good.send(key, 0).unwrap();
        serve();
        assert!(queue.counts().groups <= 9, "{}", queue.counts().groups);
    }
}
