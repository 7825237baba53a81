//! A lock table sends events for waits, and for the victim of a deadlock.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use conversant::lock_table::{LockError, LockTable, Owner, Resource};
use conversant::modes::Mode;
use conversant::wait::{Op, Wait};

use super::recorder::Recorder;

/// A row of table 0, or the table itself. It has no `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Name(u32);

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        (self.0 > 0).then_some(Name(0))
    }
}

fn poll<O: Op>(wait: &mut Wait<O>) -> Poll<O::Output> {
    pin!(wait).poll(&mut Context::from_waker(Waker::noop()))
}

fn blocked(owner: &Owner<Name>, mode: Mode) -> String {
    format!("DEBUG lock_table blocked owner={} mode={mode}", owner.id())
}

/// Two owners, each with a row of its own.
fn two() -> (LockTable<Name>, [Owner<Name>; 2]) {
    let locks = LockTable::new();
    let mut owners = [locks.owner(1), locks.owner(0)];
    for (row, owner) in (1..).zip(&mut owners) {
        assert!(owner.try_lock(&Name(row), Mode::X).is_ok());
    }
    (locks, owners)
}

#[test]
fn waits_and_deadlocks_are_told() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (_locks, [mut strong, mut weak]) = two();
    let first = blocked(&strong, Mode::X);
    let cycle = format!("{0} -> {1} -> {0}", weak.id(), strong.id());
    let told = format!(
        "WARN lock_table deadlock victim={} cycle={cycle}",
        weak.id()
    );
    assert!(strong.try_lock(&Name(0), Mode::S).is_err());
    assert!(strong.try_lock(&Name(3), Mode::S).is_ok());
    assert!(recorder.events().is_empty());

    let mut waits = strong.lock(&Name(2), Mode::X);
    assert!(poll(&mut waits).is_pending());
    assert!(poll(&mut waits).is_pending());
    assert_eq!(recorder.events(), [first]);

    let mut fails = weak.lock(&Name(1), Mode::S);
    let error = poll(&mut fails);
    assert!(matches!(error, Poll::Ready(Err(LockError::Deadlock(_)))));
    assert_eq!(recorder.events(), [told]);
    drop(fails);
    drop(weak);
    assert!(poll(&mut waits).is_ready());
    assert!(recorder.events().is_empty());
}

#[test]
fn a_victim_that_waits_is_told_when_it_looks() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (_locks, [mut strong, mut weak]) = two();
    let told = [blocked(&weak, Mode::S), blocked(&strong, Mode::X)];
    let mut fails = weak.lock(&Name(1), Mode::S);
    assert!(poll(&mut fails).is_pending());
    let mut waits = strong.lock(&Name(2), Mode::X);
    assert!(poll(&mut waits).is_pending());
    assert_eq!(recorder.events(), told);
    assert!(poll(&mut fails).is_ready());
    let events = recorder.events();
    assert!(events.len() == 1 && events[0].starts_with("WARN lock_table deadlock"));
}

/// One waits, and the other gives up.
fn all([mut strong, mut weak]: [Owner<Name>; 2]) {
    let mut waits = strong.lock(&Name(2), Mode::X);
    assert!(poll(&mut waits).is_pending());
    assert!(matches!(
        poll(&mut weak.lock(&Name(1), Mode::S)),
        Poll::Ready(Err(_))
    ));
    weak.release_all();
    assert!(poll(&mut waits).is_ready());
}

#[test]
fn no_lock_is_held() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (locks, owners) = two();
    let free = Arc::new(AtomicU32::new(0));
    let times = free.clone();
    recorder.then(move |_| {
        // It leaves the count of resources out while a shard is locked.
        if format!("{locks:?}").contains("resources") && locks.counts().resources > 0 {
            times.fetch_add(1, Relaxed);
        }
    });
    all(owners);
    assert_eq!(free.load(Relaxed), 2);
}

#[test]
fn a_panic_of_the_subscriber_stops_nobody() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    recorder.then(|_| panic!("a subscriber's"));
    let (locks, owners) = two();
    all(owners);
    assert_eq!(recorder.events().len(), 2);
    assert!(locks.is_empty());
}
