//! A waker whose clone and drop run code: no clone is dropped under a lock, not even one that a
//! second poll did not need.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use conversant::intent::IntentLock;
use conversant::lock_table::{LockError, LockTable, Resource};
use conversant::modes::Mode;
use conversant::semaphore::Semaphore;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Clone,
    Drop,
}

type Hook = Rc<dyn Fn(Act)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

fn run(act: Act) {
    let hook = HOOK.with_borrow(Option::clone);
    if let Some(hook) = hook {
        hook(act);
    }
}

const VTABLE: RawWakerVTable = RawWakerVTable::new(
    |_| {
        run(Act::Clone);
        RawWaker::new(std::ptr::null(), &VTABLE)
    },
    |_| run(Act::Drop),
    |_| (),
    |_| run(Act::Drop),
);

/// A waker whose clones and drops run the hook of their thread.
fn hooked() -> Waker {
    // SAFETY: no function of the table looks at the pointer.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) }
}

/// Polls with such a waker and this hook; returns how often a waker was dropped.
fn poll<F: Future + Unpin>(wait: &mut F, hook: impl Fn(Act) + 'static) -> (Poll<F::Output>, usize) {
    let drops = Rc::new(std::cell::Cell::new(0));
    let counted = drops.clone();
    let waker = hooked();
    HOOK.set(Some(Rc::new(move |act| {
        hook(act);
        counted.set(counted.get() + usize::from(act == Act::Drop));
    })));
    let polled = Pin::new(wait).poll(&mut Context::from_waker(&waker));
    HOOK.set(None);
    (polled, drops.get())
}

#[test]
fn of_an_intent_lock() {
    // It belongs to this test alone and is never freed: a hook borrows nothing.
    let lock: &'static IntentLock = Box::leak(Box::new(IntentLock::new()));
    let held = lock.lock(Mode::X).wait();
    let mut wait = lock.lock(Mode::X);
    let look = |act| {
        if act == Act::Drop {
            let _ = lock.snapshot();
        }
    };
    assert!(poll(&mut wait, look).0.is_pending());
    // Not notified: it finds the lock free, and leaves a queued waker.
    let (again, drops) = poll(&mut wait, look);
    assert!(again.is_pending() && drops == 1);
    drop(held);
    let (taken, drops) = poll(&mut wait, look);
    assert!(taken.is_ready() && drops == 1);
}

#[test]
fn of_a_semaphore() {
    let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new(1).unwrap()));
    let held = semaphore.acquire(1).wait().unwrap();
    let mut wait = semaphore.acquire(1);
    let look = |act| {
        if act == Act::Drop {
            let _ = semaphore.snapshot();
        }
    };
    for drops in [0, 1] {
        assert!(matches!(poll(&mut wait, look), (Poll::Pending, n) if n == drops));
    }
    drop(held);
    let (taken, drops) = poll(&mut wait, look);
    assert!(taken.is_ready() && drops == 1);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name;

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        None
    }
}

/// The table is closed while the waker is cloned, so the wait has ended and needs no waker.
#[test]
fn of_a_lock_table() {
    let locks: &'static LockTable<Name> = Box::leak(Box::new(LockTable::new()));
    let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    a.lock(&Name, Mode::X).wait().unwrap();
    let mut wait = b.lock(&Name, Mode::X);
    assert!(poll(&mut wait, |_| ()).0.is_pending());
    let (closed, drops) = poll(&mut wait, |act| match act {
        Act::Clone => locks.close(),
        Act::Drop => drop(locks.snapshot()),
    });
    assert!(matches!(closed, Poll::Ready(Err(LockError::Closed))));
    // One waker was woken, the other was not needed.
    assert_eq!(drops, 2);
}
