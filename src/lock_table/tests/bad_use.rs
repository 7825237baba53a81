//! Mistakes of a caller: each gives a typed error, or a failure that changed nothing.

use std::cell::Cell;
use std::future::Future;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Waker};

use super::super::{LockError, LockTable, MAX_DEPTH, ReleaseError, Resource};
use super::{Path, Polled, free, owners, path, take};
use crate::modes::Mode::{self, Ix, S, U, X};

#[test]
fn release_of_what_is_not_held() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    assert_eq!(a.release(&path([1])), Err(ReleaseError::NotHeld));
    assert_eq!(a.downgrade(&path([1]), S), Err(ReleaseError::NotHeld));
    take(&mut a, &path([1, 2]), X);
    // An intent is no grant.
    assert_eq!(a.release(&path([1])), Err(ReleaseError::NotHeld));
    assert_eq!(
        a.downgrade(&path([1]), Mode::Is),
        Err(ReleaseError::NotHeld)
    );
    assert_eq!(a.held(&path([1])), Some(Ix));
    a.release(&path([1, 2])).unwrap();
    assert_eq!(a.release(&path([1, 2])), Err(ReleaseError::NotHeld));
}

#[test]
fn a_downgrade_to_something_stronger() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    take(&mut a, &path([1]), S);
    for mode in [Ix, U, X] {
        assert_eq!(a.downgrade(&path([1]), mode), Err(ReleaseError::NotWeaker));
    }
    a.downgrade(&path([1]), S).unwrap();
    assert_eq!(a.held(&path([1])), Some(S));
}

#[test]
fn too_deep_and_just_not() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    let deepest = Path(vec![1; MAX_DEPTH + 1]);
    take(&mut a, &deepest, X);
    assert_eq!(locks.len(), MAX_DEPTH + 1);
    a.release_all();
    let deeper = Path(vec![1; MAX_DEPTH + 2]);
    assert_eq!(a.lock(&deeper, S).wait(), Err(LockError::TooDeep));
    assert_eq!(a.try_lock(&deeper, S), Err(LockError::TooDeep));
    assert_eq!(a.first_free([&deeper], S), Err(LockError::TooDeep));
    let some = [(path([1]), X), (deeper.clone(), X)];
    assert_eq!(a.lock_many(some).wait(), Err(LockError::TooDeep));
    // The depth of an ancestor that is held counts, too.
    take(&mut a, &deepest, Ix);
    assert_eq!(a.try_lock(&deeper, X), Err(LockError::TooDeep));
    a.release_all();
    assert!(locks.is_empty() && a.holdings().count() == 0);
}

/// A parent that is its own ancestor.
#[test]
fn a_hierarchy_without_a_root_is_refused() {
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Ring(u32);
    impl Resource for Ring {
        fn parent(&self) -> Option<Self> {
            Some(Ring((self.0 + 1) % 3))
        }
    }
    let locks = LockTable::new();
    assert_eq!(
        locks.owner(0).try_lock(&Ring(0), X),
        Err(LockError::OwnAncestor)
    );
}

#[test]
fn an_empty_path_is_a_root_of_its_own() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    take(&mut a, &Path(vec![]), X);
    assert_eq!(locks.len(), 1);
}

#[test]
fn a_wait_that_was_forgotten_is_cancelled_by_the_next_request() {
    let locks = LockTable::new();
    let r = path([1, 1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    std::mem::forget(Polled::waits(b.lock(&r, X)));
    drop(a);
    // Granted to a wait that nobody can poll any more.
    assert!(!free(&locks, &r, S));
    take(&mut b, &path([2]), S);
    assert!(free(&locks, &r, X));
    take(&mut c, &r, X);
    std::mem::forget(Polled::waits(b.lock(&r, X)));
    drop(b);
    drop(c);
    assert!(locks.is_empty());
}

thread_local! {
    pub(super) static FUSE: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Its `Eq` panics when the fuse has burnt down. All have one hash.
#[derive(Clone, Debug)]
struct Touchy(u32);

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        FUSE.with(|fuse| {
            assert!(fuse.get() > 0, "eq");
            fuse.set(fuse.get() - 1);
        });
        self.0 == other.0
    }
}

impl Eq for Touchy {}

impl Hash for Touchy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(0);
    }
}

impl Resource for Touchy {
    fn parent(&self) -> Option<Self> {
        (self.0 > 0).then_some(Touchy(self.0 / 10))
    }
}

#[derive(Default)]
struct Constant;

impl Hasher for Constant {
    fn finish(&self) -> u64 {
        7
    }
    fn write(&mut self, _: &[u8]) {}
}

type Few = LockTable<Touchy, BuildHasherDefault<Constant>>;

/// The fuse burns down at every comparison in turn: the call fails and nothing has changed.
#[test]
fn a_panicking_eq_leaves_nothing_changed() {
    let locks = Few::default();
    let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    a.lock(&Touchy(11), S).wait().unwrap();
    b.lock(&Touchy(12), S).wait().unwrap();
    let before = locks.snapshot();
    let mut panics = 0;
    for fuse in 0.. {
        FUSE.set(fuse);
        let locked = catch_unwind(AssertUnwindSafe(|| b.lock(&Touchy(21), X).wait()));
        FUSE.set(u32::MAX);
        match locked {
            Ok(granted) => {
                granted.unwrap();
                break;
            }
            Err(_) => panics += 1,
        }
        assert_eq!(locks.snapshot(), before, "fuse {fuse}");
        assert_eq!(b.held(&Touchy(21)), None);
    }
    assert!(panics > 5, "{panics}");
    for fuse in 0..3 {
        let before = locks.snapshot();
        FUSE.set(fuse);
        let release = catch_unwind(AssertUnwindSafe(|| b.release(&Touchy(21))));
        FUSE.set(u32::MAX);
        if release.is_err() {
            assert_eq!(locks.snapshot(), before);
        }
    }
    drop((a, b));
    assert!(locks.is_empty());
}

/// The same in the middle of a request: what the request had taken is put back.
#[test]
fn an_eq_that_panics_after_a_wait_gives_everything_back() {
    let locks = Few::default();
    let (mut a, mut b, mut other) = (locks.owner(0), locks.owner(0), locks.owner(0));
    other.lock(&Touchy(35), X).wait().unwrap();
    a.lock(&Touchy(1), S).wait().unwrap();
    let mut wait = b.lock(&Touchy(11), X);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
    drop(a);
    FUSE.set(0);
    let poll = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut wait).poll(&mut cx)));
    FUSE.set(u32::MAX);
    assert!(poll.is_err());
    drop(wait);
    assert_eq!(b.holdings().count(), 0);
    drop(other);
    assert!(locks.is_empty());
}

/// Its `Hash`, `Clone` and `parent` panic when the fuse has burnt down.
#[derive(Debug, PartialEq, Eq)]
struct Brittle(u32);

pub(super) fn burn() {
    FUSE.with(|fuse| {
        assert!(fuse.get() > 0, "burnt down");
        fuse.set(fuse.get() - 1);
    });
}

impl Hash for Brittle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        state.write_u32(self.0);
    }
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        burn();
        Brittle(self.0)
    }
}

impl Resource for Brittle {
    fn parent(&self) -> Option<Self> {
        burn();
        (self.0 > 0).then_some(Brittle(self.0 / 10))
    }
}

#[test]
fn a_panicking_name_leaves_nothing_changed() {
    let locks = LockTable::new();
    let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    a.lock(&Brittle(12), S).wait().unwrap();
    let before = locks.snapshot();
    let mut panics = 0;
    for fuse in 0.. {
        FUSE.set(fuse);
        let locked = catch_unwind(AssertUnwindSafe(|| b.lock(&Brittle(13), X).wait()));
        FUSE.set(u32::MAX);
        if let Ok(granted) = locked {
            granted.unwrap();
            break;
        }
        panics += 1;
        assert_eq!(locks.snapshot(), before, "fuse {fuse}");
        assert_eq!(b.holdings().count(), 0);
    }
    assert!(panics > 8, "{panics}");
    // The hold made last would be found without its hash.
    b.lock(&Brittle(14), S).wait().unwrap();
    let before = locks.snapshot();
    FUSE.set(0);
    assert!(catch_unwind(AssertUnwindSafe(|| b.release(&Brittle(13)))).is_err());
    FUSE.set(u32::MAX);
    assert_eq!(locks.snapshot(), before);
    drop((a, b));
    assert!(locks.is_empty());
}

/// Equal hashes make no deadlock, and confuse nothing.
#[test]
fn one_hash_for_all() {
    let locks = Few::default();
    let mut a = locks.owner(0);
    // Leaves first, so that none is covered.
    for n in (1..200).rev() {
        a.try_lock(&Touchy(n), X).unwrap();
    }
    for n in (1..200).filter(|n| n % 3 > 0) {
        a.release(&Touchy(n)).unwrap();
    }
    let mut b = locks.owner(0);
    for n in 1..200 {
        let above = std::iter::successors(Touchy(n).parent(), Resource::parent);
        let mut above = above.filter_map(|key| a.held(&key));
        let expected = a.held(&Touchy(n)).is_none() && above.all(|mode| mode.compatible(Ix));
        assert_eq!(b.try_lock(&Touchy(n), X).is_ok(), expected, "{n}");
        b.release_all();
    }
    a.release_all();
    assert!(locks.is_empty());
}

#[test]
fn a_panicking_waker_keeps_nobody_waiting() {
    struct Bad;
    impl std::task::Wake for Bad {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("bad waker");
        }
    }
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    let bad = Waker::from(std::sync::Arc::new(Bad));
    let mut first = b.lock(&r, S);
    assert!(
        Pin::new(&mut first)
            .poll(&mut Context::from_waker(&bad))
            .is_pending()
    );
    let mut rest: Vec<_> = (0..100).map(|_| locks.owner(0)).collect();
    let waits: Vec<_> = rest
        .iter_mut()
        .map(|o| Polled::waits(o.lock(&r, S)))
        .collect();
    a.release(&r).unwrap();
    assert_eq!(a.held(&r), None);
    // All were woken before any of them polls, which could make the table do more.
    assert!(waits.iter().all(|wait| wait.woken() == 1));
    waits.into_iter().for_each(Polled::granted);
    assert!(
        Pin::new(&mut first)
            .poll(&mut Context::from_waker(&bad))
            .is_ready()
    );
}

/// The drop of a key may use the table: it never runs under the table's lock.
#[test]
fn keys_are_dropped_unlocked() {
    #[derive(Clone, Debug)]
    struct Nosy(u32, LockTable<Nosy>);
    impl PartialEq for Nosy {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Nosy {}
    impl Hash for Nosy {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    impl Resource for Nosy {
        fn parent(&self) -> Option<Self> {
            (self.0 > 0).then(|| Nosy(0, self.1.clone()))
        }
    }
    impl Drop for Nosy {
        fn drop(&mut self) {
            assert!(self.1.len() < 100);
        }
    }
    let locks = LockTable::new();
    let key = |n| Nosy(n, locks.clone());
    let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    a.try_lock(&key(1), X).unwrap();
    assert!(b.try_lock(&key(1), X).is_err());
    let many = [(key(2), S), (key(3), S), (key(2), X)];
    assert!(b.lock_many(many).wait().is_ok());
    a.release(&key(1)).unwrap();
    drop((a, b));
    assert!(locks.is_empty());
}

#[test]
fn handles_cross_threads() {
    fn sendable<T: Send + Sync + 'static>() {}
    sendable::<LockTable<Path>>();
    sendable::<super::super::Owner<Path>>();
    sendable::<LockError<Path>>();
    sendable::<crate::wait::Wait<super::super::Lock<'static, Path>>>();
}
