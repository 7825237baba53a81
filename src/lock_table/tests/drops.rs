//! A name whose drop panics: the thread that drops it unwinds, and nothing is left of the owner.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::super::{Lock, LockError, LockTable, Owner, Resource};
use crate::modes::Mode::{Is, Ix, S, X};
use crate::wait::Wait;

thread_local! {
    static FUSE: Cell<u32> = const { Cell::new(u32::MAX) };
    static WATCHED: RefCell<Option<LockTable<Sticky>>> = const { RefCell::new(None) };
    /// Whether a name was dropped while the watched table was locked.
    static UNDER_A_LOCK: Cell<bool> = const { Cell::new(false) };
}

#[derive(Clone, Debug)]
struct Sticky(u32);

impl Drop for Sticky {
    fn drop(&mut self) {
        let is_locked = |locks: &LockTable<_>| locks.shared.wait_table.try_lock().is_none();
        let under_a_lock = WATCHED.with_borrow(|watched| watched.as_ref().is_some_and(is_locked));
        UNDER_A_LOCK.set(under_a_lock || UNDER_A_LOCK.get());
        let left = FUSE.get();
        FUSE.set(left.wrapping_sub(1));
        if left == 0 {
            std::panic::resume_unwind(Box::new("sticky"));
        }
    }
}

impl PartialEq for Sticky {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Sticky {}

impl Hash for Sticky {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Resource for Sticky {
    fn parent(&self) -> Option<Self> {
        // 0 is its own parent.
        (self.0 == 0 || self.0 > 9).then(|| Sticky(self.0 / 10))
    }
}

/// The drop panics at every name in turn, while a forgotten wait has taken a part.
#[test]
fn an_owner_that_is_dropped_leaves_nothing() {
    let mut panics = 0;
    for fuse in 0.. {
        let locks = LockTable::new();
        let [mut a, mut b] = [(); 2].map(|()| locks.owner(0));
        a.try_lock(&Sticky(21), X).unwrap();
        for name in [11, 12, 31] {
            b.try_lock(&Sticky(name), S).unwrap();
        }
        let many = [(Sticky(13), X), (Sticky(21), X), (Sticky(41), X)];
        let mut wait = b.lock_many(many);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
        std::mem::forget(wait);
        FUSE.set(fuse);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(b)));
        FUSE.set(u32::MAX);
        assert_eq!(locks.snapshot().owners, 1, "fuse {fuse}");
        assert_eq!(locks.len(), 2, "fuse {fuse}");
        drop(a);
        assert!(locks.is_empty());
        if dropped.is_ok() {
            break;
        }
        panics += 1;
    }
    assert!(panics > 5, "{panics}");
}

type Result = std::result::Result<(), LockError<Sticky>>;

fn poll(wait: &mut Wait<Lock<'_, Sticky>>) -> Poll<Result> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// None if it panics.
fn with_fuse<R>(fuse: u32, run: impl FnOnce() -> R) -> Option<R> {
    FUSE.set(fuse);
    let done = catch_unwind(AssertUnwindSafe(run));
    FUSE.set(u32::MAX);
    done.ok()
}

/// The poll drops a name of the victim, after it has joined the queue.
#[test]
fn a_wait_whose_first_poll_panicked_in_the_queue_waits_there() {
    let mut queued = 0;
    for fuse in 0..5 {
        let locks = LockTable::new();
        let (mut a, mut victim, mut b) = (locks.owner(1), locks.owner(0), locks.owner(0));
        a.try_lock(&Sticky(11), X).unwrap();
        victim.try_lock(&Sticky(2), X).unwrap();
        // It takes 3 first, which is less deep.
        let mut fails = victim.lock_many([(Sticky(3), X), (Sticky(11), X)]);
        assert!(poll(&mut fails).is_pending());
        let mut wait = a.lock(&Sticky(2), X);
        let panicked = with_fuse(fuse, || poll(&mut wait)).is_none();
        if panicked && poll(&mut fails).is_ready() {
            queued += 1;
            drop(fails);
            victim.release_all();
            wait.wait().unwrap();
            let beside = b.try_lock(&Sticky(2), X);
            assert_eq!(beside, Err(LockError::WouldBlock), "fuse {fuse}");
        }
    }
    assert!(queued > 0);
}

struct Call(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        let call = self.0.lock().unwrap().take();
        call.into_iter().for_each(|call| call());
    }
}

/// A release that wakes a crowd has a name to drop, and a request that is granted meanwhile finds
/// it.
#[test]
fn what_is_granted_beside_a_name_of_others_is_released() {
    for fuse in 0..3 {
        let locks = LockTable::new();
        let [mut a, mut crowded, mut b, mut c] = [(); 4].map(|()| locks.owner(0));
        let both = crowded.lock_many([(Sticky(1), X), (Sticky(2), X)]);
        both.wait().unwrap();
        // 3 has a waiter, and IS of it can be had.
        b.try_lock(&Sticky(3), S).unwrap();
        let mut waits = c.lock(&Sticky(3), Ix);
        assert!(poll(&mut waits).is_pending());
        let call = Call(Mutex::new(Some(Box::new(move || {
            let tried = with_fuse(fuse, || a.try_lock(&Sticky(3), Is));
            assert_eq!(tried, None, "fuse {fuse}");
            drop(a);
        }))));
        let waker = Waker::from(Arc::new(call));
        let mut crowd: Vec<_> = (0..40).map(|_| locks.owner(0)).collect();
        let crowd_waits = crowd.iter_mut().map(|owner| {
            let mut wait = owner.lock(&Sticky(1), S);
            let mut cx = Context::from_waker(&waker);
            assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
            wait
        });
        let crowd_waits: Vec<_> = crowd_waits.collect();
        crowded.release_all();
        drop((crowd_waits, waits));
        drop((crowd, crowded, b, c));
        assert!(locks.is_empty(), "fuse {fuse}");
    }
}

/// The drop panics at every name in turn, and then the wait is polled again.
#[test]
fn a_wait_that_is_polled_again_is_granted_once() {
    let mut panics = 0;
    for blocked in [false, true] {
        for fuse in 0..9 {
            let locks = LockTable::new();
            let [mut a, mut b] = [(); 2].map(|()| locks.owner(0));
            // B keeps its intent on 1.
            for _ in 0..2 {
                b.try_lock(&Sticky(12), X).unwrap();
                b.release(&Sticky(12)).unwrap();
            }
            if blocked {
                a.try_lock(&Sticky(11), S).unwrap();
                b.try_lock(&Sticky(12), X).unwrap();
            }
            let mut wait = a.lock_many([(Sticky(1), X), (Sticky(3), X)]);
            if blocked {
                assert!(poll(&mut wait).is_pending());
                b.release_all();
            }
            let polled = with_fuse(fuse, || poll(&mut wait));
            panics += u32::from(polled.is_none());
            assert_eq!(
                polled.unwrap_or_else(|| poll(&mut wait)),
                Poll::Ready(Ok(()))
            );
            drop(wait);
            let grants = [1, 3].map(|name| a.grants(&Sticky(name)));
            assert_eq!(grants, [1, 1], "fuse {fuse}");
            a.release_all();
            assert!(locks.is_empty(), "fuse {fuse}");
        }
    }
    assert!(panics > 1, "{panics}");
}

/// The table is closed between a poll that granted and panicked, and the next one.
#[test]
fn what_was_granted_before_a_close_is_told() {
    fn is_told<T, W>(locks: &LockTable<Sticky>, fuse: u32, mut wait: W) -> (bool, bool)
    where
        W: Future<Output = std::result::Result<T, LockError<Sticky>>> + Unpin,
    {
        let mut poll = || Pin::new(&mut wait).poll(&mut Context::from_waker(Waker::noop()));
        let polled = with_fuse(fuse, &mut poll);
        let panicked = polled.is_none();
        locks.close();
        let Poll::Ready(told) = polled.unwrap_or_else(poll) else {
            panic!("fuse {fuse}: pending");
        };
        assert!(matches!(told, Ok(_) | Err(LockError::Closed)));
        (told.is_ok(), panicked)
    }
    let mut panics = [0; 3];
    for (fuse, way) in (0..9).flat_map(|fuse| [(fuse, 0), (fuse, 1), (fuse, 2)]) {
        let locks = LockTable::new();
        let [mut a, mut b] = [(); 2].map(|()| locks.owner(0));
        // The name of the entry is another one's, so that of `a` is dropped.
        b.try_lock(&Sticky(2), S).unwrap();
        b.try_lock(&Sticky(3), X).unwrap();
        let (told, panicked) = match way {
            0 => is_told(&locks, fuse, a.lock(&Sticky(2), S)),
            1 => is_told(&locks, fuse, a.lock_many([(Sticky(2), S), (Sticky(41), X)])),
            _ => is_told(&locks, fuse, a.first_free_or_wait([3, 2].map(Sticky), S)),
        };
        let is_held = a.held(&Sticky(2)).is_some();
        assert_eq!(told, is_held, "fuse {fuse}, way {way}");
        panics[way] += u32::from(panicked && is_held);
    }
    assert!(panics.iter().all(|&panics| panics > 0), "{panics:?}");
}

/// Its path is left, or its error, when the next request is granted and its poll panics.
#[test]
fn a_forgotten_wait_is_not_told_by_the_next() {
    let mut panics = [0; 2];
    for (fuse, forgotten) in (0..5).flat_map(|fuse| [(fuse, 3), (fuse, 0)]) {
        let locks = LockTable::new();
        let [mut a, mut b] = [(); 2].map(|()| locks.owner(0));
        b.try_lock(&Sticky(2), S).unwrap();
        // 0 is refused.
        std::mem::forget(a.lock_many([(Sticky(forgotten), X)]));
        let mut wait = a.lock(&Sticky(2), S);
        let polled = with_fuse(fuse, || poll(&mut wait));
        panics[usize::from(forgotten > 0)] += u32::from(polled.is_none());
        let told = polled.unwrap_or_else(|| poll(&mut wait));
        assert_eq!(told, Poll::Ready(Ok(())), "fuse {fuse}");
        drop(wait);
        assert_eq!(a.holdings().count(), 1, "fuse {fuse}");
    }
    assert!(panics.iter().all(|&panics| panics > 0), "{panics:?}");
}

/// The drop of a name panics at every name in turn, and all is free by the next poll.
#[test]
fn the_first_that_is_free_is_granted_once() {
    let mut panics = 0;
    for fuse in 0..12 {
        let locks = LockTable::new();
        let [mut a, mut b, mut c] = [(); 3].map(|()| locks.owner(0));
        b.try_lock(&Sticky(1), X).unwrap();
        b.try_lock(&Sticky(31), X).unwrap();
        c.try_lock(&Sticky(2), S).unwrap();
        let names = [1, 31, 2].map(Sticky);
        let mut wait = a.first_free_or_wait(names, S);
        let mut poll = || Pin::new(&mut wait).poll(&mut Context::from_waker(Waker::noop()));
        let polled = with_fuse(fuse, &mut poll);
        panics += u32::from(polled.is_none());
        b.release_all();
        let told = polled.unwrap_or_else(poll);
        drop(wait);
        let Poll::Ready(Ok(Some(at))) = told else {
            panic!("fuse {fuse}: {told:?}");
        };
        let mut grants = [0; 3];
        grants[at] = 1;
        assert_eq!(
            [1, 31, 2].map(|name| a.grants(&Sticky(name))),
            grants,
            "fuse {fuse}"
        );
        a.release_all();
        assert_eq!(locks.len(), 1, "fuse {fuse}");
    }
    assert!(panics > 3, "{panics}");
}

#[test]
fn a_victim_that_is_polled_again_has_its_error() {
    let mut panics = 0;
    for fuse in 0..5 {
        let locks = LockTable::new();
        let (mut a, mut b) = (locks.owner(0), locks.owner(1));
        a.try_lock(&Sticky(2), X).unwrap();
        b.try_lock(&Sticky(11), X).unwrap();
        let mut waits = b.lock(&Sticky(2), X);
        assert!(poll(&mut waits).is_pending());
        let mut wait = a.lock_many([(Sticky(3), X), (Sticky(11), X)]);
        let polled = with_fuse(fuse, || poll(&mut wait));
        panics += u32::from(polled.is_none());
        drop(waits);
        b.release_all();
        let error = polled.unwrap_or_else(|| poll(&mut wait));
        assert!(matches!(error, Poll::Ready(Err(LockError::Deadlock(_)))));
        drop(wait);
        assert_eq!(a.holdings().count(), 1, "fuse {fuse}");
    }
    assert!(panics > 0);
}

/// The table has forgotten the report by then: the victim's error has the last names.
#[test]
fn an_error_that_nobody_took_is_dropped_without_a_lock() {
    fn fails<'a>(
        locks: &LockTable<Sticky>,
        victim: &'a mut Owner<Sticky>,
        [own, wanted]: [u32; 2],
    ) -> Wait<Lock<'a, Sticky>> {
        let mut other = locks.owner(1);
        victim.try_lock(&Sticky(own), X).unwrap();
        other.try_lock(&Sticky(wanted), X).unwrap();
        let mut fails = victim.lock(&Sticky(wanted), X);
        assert!(poll(&mut fails).is_pending());
        assert!(poll(&mut other.lock(&Sticky(own), X)).is_pending());
        fails
    }
    for forgotten in [false, true] {
        let locks = LockTable::new();
        let [mut victim, mut later] = [(); 2].map(|()| locks.owner(0));
        let fails_first = fails(&locks, &mut victim, [1, 2]);
        let first = locks.deadlocks().pop();
        while locks.deadlocks().first() == first.as_ref() {
            drop(fails(&locks, &mut later, [3, 4]));
            later.release_all();
        }
        drop(first);
        WATCHED.set(Some(locks.clone()));
        match forgotten {
            true => std::mem::forget(fails_first),
            false => drop(fails_first),
        }
        drop((victim, later));
        WATCHED.take();
        assert!(!UNDER_A_LOCK.get());
        assert!(locks.is_empty());
    }
}

#[test]
fn its_own_parent_is_refused_after_a_panic_too() {
    let mut panics = 0;
    for fuse in 0..5 {
        let locks = LockTable::new();
        let mut a = locks.owner(0);
        let mut wait = a.lock(&Sticky(0), X);
        let polled = with_fuse(fuse, || poll(&mut wait));
        panics += u32::from(polled.is_none());
        let refused = polled.unwrap_or_else(|| poll(&mut wait));
        assert_eq!(
            refused,
            Poll::Ready(Err(LockError::OwnAncestor)),
            "fuse {fuse}"
        );
    }
    assert!(panics > 1, "{panics}");
}
