//! Sending by key: order, one group a key, nothing left behind, bad keys.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{LaneError, NoTurn, Queue, SendReason};

fn keyed<K: Send + 'static, T: Send + 'static>(queue: &Queue<T>) -> Keyed<K, T> {
    let lane = queue.lane(1, Limit::Unlimited).expect("the queue is open");
    Keyed::new(lane)
}

fn served<T>(queue: &Queue<T>) -> Vec<T> {
    let mut served = Vec::new();
    while let Ok(mut turn) = queue.try_receive() {
        while let Some(delivery) = turn.next() {
            served.push(delivery.complete());
        }
    }
    served
}

#[test]
fn one_group_a_key_as_long_as_something_is_outstanding() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send("anna", 1).unwrap();
    let group = orders.group(&"anna").expect("it has one");
    let mut turn = queue.try_receive().unwrap();
    let delivery = turn.next().unwrap().detach();
    drop(turn);
    // Nothing waits, one message is in flight: the group stays.
    orders.send("anna", 2).unwrap();
    assert_eq!(orders.group(&"anna"), Some(group));
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    assert_eq!(delivery.complete(), 1);
    assert_eq!(served(&queue), [2]);
    assert_eq!((orders.group(&"anna"), orders.len()), (None, 0));
    orders.send("anna", 3).unwrap();
    assert_ne!(orders.group(&"anna"), Some(group));
}

#[test]
fn keys_are_served_side_by_side_and_in_order() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    for n in 0..3 {
        for key in ["a", "b"] {
            orders.send(key, (key, n)).unwrap();
        }
    }
    let waiting = |key| orders.handle(key).unwrap().waiting();
    assert_eq!((orders.len(), waiting("a"), waiting("c")), (2, 3, 0));
    let (mut first, mut second) = (queue.try_receive().unwrap(), queue.try_receive().unwrap());
    assert_eq!(*first.next().unwrap(), ("a", 0));
    assert_eq!(*second.next().unwrap(), ("b", 0));
    drop((first, second));
    let in_order = |key| (0..3).map(move |n| (key, n));
    assert!(
        served(&queue)
            .into_iter()
            .eq(in_order("a").chain(in_order("b")))
    );
    assert!(orders.is_empty());
}

#[test]
fn a_bump_is_for_a_key_that_is_there() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    for key in ["a", "b", "c"] {
        orders.send(key, key).unwrap();
    }
    let bump = |key| orders.group(&key).map(|group| queue.bump(group, 1));
    assert_eq!(bump("c"), Some(Ok(())));
    assert_eq!(bump("d"), None);
    assert_eq!(served(&queue), ["c", "a", "b"]);
    assert_eq!(bump("c"), None);
}

#[test]
fn a_closed_queue_takes_nothing_and_keeps_no_key() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send(1, "before").unwrap();
    queue.close();
    let refused = orders.send(2, "after").unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        ("after", SendReason::Closed)
    );
    assert_eq!(orders.len(), 1);
    assert_eq!(queue.shutdown(), ["before"]);
    assert_eq!(orders.len(), 0);
}

#[test]
fn the_shape_is_tried_first() {
    let queue = Queue::<()>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let hasher = std::hash::RandomState::new();
    let above = Keyed::<u8, _, _>::with(lane, Limit::AtMost(u32::MAX), 1, hasher);
    assert!(matches!(above.unwrap_err(), LaneError::OutOfRange(_)));
}

#[test]
fn a_tier_does_not_go_down_within_a_key() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send_in("a", 2, 'x').unwrap();
    let refused = orders.send_in("a", 1, 'y').unwrap_err();
    assert_eq!(refused.message, 'y');
    orders.send_in("b", 1, 'z').unwrap();
    // Nothing of tier 2 runs, so the lower one opens.
    assert_eq!(served(&queue), ['z', 'x']);
}

#[test]
fn what_is_in_flight_keeps_its_group() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send("a", 1).unwrap();
    let mut turn = queue.try_receive().unwrap();
    let group = turn.group();
    let delivery = turn.next().unwrap().detach();
    drop(turn);
    assert_eq!((orders.len(), orders.group(&"a")), (1, Some(group)));
    orders.send("a", 2).unwrap();
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    delivery.complete();
    assert_eq!(served(&queue), [2]);
    assert!(orders.is_empty());
}

#[test]
fn a_dropped_keeper_leaves_its_messages() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send("a", 1).unwrap();
    drop(orders);
    assert_eq!(served(&queue), [1]);
    assert!(queue.snapshot().lanes.is_empty());
}

/// The same hash for every key.
#[derive(Default)]
struct Same;

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        7
    }
}

#[test]
fn keys_of_one_hash_are_told_apart() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let hasher = BuildHasherDefault::<Same>::default();
    let orders = Keyed::with(lane, Limit::SERIAL, 100, hasher).unwrap();
    for n in 0..4 {
        for key in 0..4 {
            orders.send(key, (key, n)).unwrap();
        }
    }
    assert_eq!(orders.len(), 4);
    let groups = (0..4).map(|key| orders.group(&key).unwrap());
    assert_eq!(groups.collect::<std::collections::HashSet<_>>().len(), 4);
    assert_eq!(served(&queue).len(), 16);
    assert!(orders.is_empty());
}

thread_local! {
    pub(crate) static PANICS: Cell<bool> = const { Cell::new(false) };
    /// Whether the next clone of a key sends by the same key.
    static SENDS: Cell<bool> = const { Cell::new(false) };
}

/// Its `Eq` panics when asked to.
#[derive(Debug)]
pub(crate) struct Fickle(pub(crate) u8);

impl Hash for Fickle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Fickle {
    fn eq(&self, other: &Self) -> bool {
        assert!(!PANICS.get(), "scripted");
        self.0 == other.0
    }
}

impl Eq for Fickle {}

#[test]
fn a_panicking_eq_sends_nothing_and_breaks_nothing() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send(Fickle(1), 1).unwrap();
    PANICS.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| orders.send(Fickle(1), 2))).is_err());
    PANICS.set(false);
    orders.send(Fickle(1), 3).unwrap();
    assert_eq!(orders.handle(Fickle(1)).unwrap().waiting(), 2);
    PANICS.set(true);
    // Forgetting keys calls no `Eq`.
    assert_eq!(served(&queue), [1, 3]);
    PANICS.set(false);
    assert!(orders.is_empty());
}

/// Where keys find the keyed sender that keeps them.
type Known = Arc<Mutex<Option<Arc<Keyed<Nosy, u8>>>>>;

/// Calls its keyed sender when it is dropped. Its `Eq` panics when asked to.
struct Nosy {
    name: u8,
    orders: Known,
    asked: Arc<AtomicUsize>,
}

impl Hash for Nosy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        assert!(!PANICS.get(), "scripted");
        self.name == other.name
    }
}

impl Eq for Nosy {}

impl Clone for Nosy {
    fn clone(&self) -> Self {
        self.ask();
        let copy = Self {
            name: self.name,
            orders: self.orders.clone(),
            asked: self.asked.clone(),
        };
        if SENDS.take() {
            let orders = self.orders.lock().unwrap().clone();
            _ = orders.map(|orders| orders.send(copy.clone(), 9));
        }
        copy
    }
}

impl Nosy {
    fn ask(&self) {
        let orders = self.orders.lock().unwrap().clone();
        if let Some(orders) = orders {
            let _asks = orders.len();
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        self.ask();
    }
}

/// Keys are never dropped under a lock.
#[test]
fn a_key_may_call_its_keeper_when_it_is_dropped() {
    let queue = Queue::new();
    let (cell, asked) = (Known::default(), Arc::new(AtomicUsize::new(0)));
    let orders: Arc<Keyed<Nosy, u8>> = Arc::new(keyed(&queue));
    *cell.lock().unwrap() = Some(orders.clone());
    let key = || Nosy {
        name: 1,
        orders: cell.clone(),
        asked: asked.clone(),
    };
    orders.send(key(), 1).unwrap();
    // The key is known already: this one is dropped at once.
    orders.send(key(), 2).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    orders.send_in(key(), 0, 3).unwrap();
    drop(orders.handle(key()).unwrap());
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert_eq!(served(&queue), [1, 2, 3]);
    // An idle group is kept with its key until `len()` is called.
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert!(orders.is_empty());
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    orders.send(key(), 4).unwrap();
    PANICS.set(true);
    for change in [
        &(|| orders.handle(key()).is_ok()) as &dyn Fn() -> bool,
        &|| orders.send_in(key(), 0, 5).is_ok(),
        &|| orders.send(key(), 5).is_ok(),
    ] {
        assert!(catch_unwind(AssertUnwindSafe(change)).is_err());
    }
    PANICS.set(false);
    assert_eq!((served(&queue), orders.len()), (vec![4], 0));
    assert_eq!(asked.load(Ordering::Relaxed), 8);
    queue.close();
    assert!(orders.send(key(), 6).is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 9);
    *cell.lock().unwrap() = None;
}

/// Keys that are kept are cloned under no lock, and their clones are dropped under none.
#[test]
fn a_key_may_call_its_keeper_when_it_is_copied() {
    let queue = Queue::new();
    let (cell, asked) = (Known::default(), Arc::new(AtomicUsize::new(0)));
    let orders: Arc<Keyed<Nosy, u8>> = Arc::new(keyed(&queue).keep_keys());
    *cell.lock().unwrap() = Some(orders.clone());
    let key = |name| Nosy {
        name,
        orders: cell.clone(),
        asked: asked.clone(),
    };
    let asked = || asked.swap(0, Ordering::Relaxed);
    orders.send(key(1), 1).unwrap();
    // The key that is kept.
    assert_eq!(asked(), 1);
    let turn = queue.try_receive().unwrap();
    let told = orders.key_of(turn.group()).unwrap();
    assert_eq!((told.name, asked()), (1, 1));
    drop((told, turn));
    assert_eq!(asked(), 1);
    assert_eq!(served(&queue), [1]);
    assert_eq!((orders.len(), asked()), (0, 2));
    // While its key is cloned, another send makes its group: this clone is not needed.
    SENDS.set(true);
    orders.send(key(2), 2).unwrap();
    assert_eq!(served(&queue), [9, 2]);
    let known = asked();
    assert_eq!((orders.len(), asked() + known), (0, 7));
    *cell.lock().unwrap() = None;
}

/// "10^6 keys used once leave nothing behind", here from several threads, with
/// readers that end groups while others send to them.
#[test]
fn senders_and_readers_race_over_few_keys() {
    const EACH: u32 = 20_000;
    let queue = Queue::<(u8, usize, u32)>::new();
    let orders = keyed::<u8, _>(&queue);
    let busy: Vec<AtomicBool> = (0..4).map(|_| AtomicBool::new(false)).collect();
    let seen = Mutex::new(HashMap::<(u8, usize), Vec<u32>>::new());
    let read = || {
        while let Ok(mut turn) = queue.receive().wait() {
            while let Some(delivery) = turn.next() {
                let (key, sender, n) = *delivery;
                assert!(!busy[usize::from(key)].swap(true, Ordering::SeqCst));
                seen.lock()
                    .unwrap()
                    .entry((key, sender))
                    .or_default()
                    .push(n);
                busy[usize::from(key)].store(false, Ordering::SeqCst);
                delivery.complete();
            }
        }
    };
    thread::scope(|scope| {
        let readers = [(), ()].map(|()| scope.spawn(read));
        let senders = [0, 1].map(|sender| {
            let orders = &orders;
            scope.spawn(move || {
                for n in 0..EACH {
                    let key = (n % 4) as u8;
                    orders.send(key, (key, sender, n)).unwrap();
                }
            })
        });
        for sender in senders {
            sender.join().unwrap();
        }
        queue.close();
        for reader in readers {
            reader.join().unwrap();
        }
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(
        seen.values().map(Vec::len).sum::<usize>(),
        2 * EACH as usize
    );
    assert!(seen.values().all(|served| served.is_sorted()));
    assert!(orders.is_empty());
}
