//! Keys whose hash, comparison, clone or drop is bad.

use super::*;

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
    let groups = (0..4).map(|key| orders.group_id(&key).unwrap());
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
    assert_eq!(orders.group(Fickle(1)).unwrap().waiting(), 2);
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
    drop(orders.group(key()).unwrap());
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert_eq!(served(&queue), [1, 2, 3]);
    // An idle group is kept with its key until `len()` is called.
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert!(orders.is_empty());
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    orders.send(key(), 4).unwrap();
    PANICS.set(true);
    for change in [
        &(|| orders.group(key()).is_ok()) as &dyn Fn() -> bool,
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
    let told = orders.key_of(turn.group_id()).unwrap();
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

/// Its drop panics when asked to.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Clumsy(pub(crate) u8);

impl Drop for Clumsy {
    fn drop(&mut self) {
        assert!(!PANICS.take(), "scripted");
    }
}

#[test]
fn a_key_whose_drop_panics_does_not_keep_its_group() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send(Clumsy(1), 1).unwrap();
    PANICS.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| orders.group(Clumsy(1)))).is_err());
    assert_eq!(served(&queue), [1]);
    assert!(orders.is_empty());
    assert_eq!(queue.counts().groups, 0);
}

/// What is returned is dropped too, when the caller unwinds.
#[test]
fn a_key_whose_drop_panics_keeps_no_refused_message() {
    for closes in [false, true] {
        let queue = Queue::builder().capacity(1).build().unwrap();
        let orders = keyed(&queue);
        let message = Arc::new(());
        orders.send(Clumsy(1), message.clone()).unwrap();
        if closes {
            queue.close();
        }
        // Known, and then unknown to a closed queue.
        for key in [Clumsy(1), Clumsy(2)]
            .into_iter()
            .take(1 + usize::from(closes))
        {
            PANICS.set(true);
            let refused = AssertUnwindSafe(|| drop(orders.send(key, message.clone())));
            assert!(catch_unwind(refused).is_err());
            assert_eq!(Arc::strong_count(&message), 2);
        }
        assert_eq!(served(&queue).len(), 1);
    }
}
