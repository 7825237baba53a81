//! Loom models of the whole table, with two shards: at most two threads and the main one. `explore`
//! prints the preemption bound of each model and how many interleavings it ran. A lost wake-up
//! shows as a deadlock, which loom reports.
//!
//! Not modelled: the looks of a thread before it enqueues its request, which change nothing. A
//! deadline passes at once (`sync`).

use std::future::Future;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{LockError, LockTable, Owner, Resource};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::sync::{Arc, AtomicUsize, Ordering, explore, spawn};
use crate::wait::{Op, Wait};

/// A root, and what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Root,
    Leaf(u8),
}

use Name::{Leaf, Root};

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        matches!(self, Leaf(100..)).then_some(Root)
    }
}

/// The same hashes in every execution.
type Hasher = BuildHasherDefault<DefaultHasher>;
type Table = LockTable<Name, Hasher>;
type Somebody = Owner<Name, Hasher>;

/// Two resources without a parent.
const A: Name = Leaf(0);
const B: Name = Leaf(1);

/// An owner that holds X on this resource.
fn held(table: &Table, name: Name) -> Somebody {
    let mut owner = table.owner(0);
    owner.try_lock(&name, Mode::X).unwrap();
    owner
}

fn poll<O: Op>(wait: &mut Wait<O>) -> Poll<O::Output> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// Nothing is held or waited for.
fn is_idle(table: &Table) {
    let counts = table.counts();
    assert_eq!((counts.resources, counts.contended), (0, 0));
    assert_eq!((counts.locks.waiting, counts.locks.notified), (0, 0));
}

/// Adds one under a mode that excludes all others that add. Relaxed: only the lock orders it.
fn add(sum: &AtomicUsize) {
    let before = sum.load(Ordering::Relaxed);
    sum.store(before + 1, Ordering::Relaxed);
}

/// Each adds one under X, and all additions are seen; the second and third are handed the lock.
#[test]
fn excludes_and_publishes() {
    explore("table_excludes_and_publishes", Some(3), || {
        each_adds_one(Table::default());
    });
}

/// The same where a waiter is told to retry, may come too late, and is then handed the lock.
#[test]
fn overtaking_loses_nobody() {
    explore("table_overtaking_loses_nobody", Some(3), || {
        each_adds_one(Table::default().with_bypass(Bypass::AtMost(1)));
    });
}

fn each_adds_one(table: Table) {
    let sum = Arc::new(AtomicUsize::new(0));
    let run = |table: &Table, sum: &AtomicUsize| {
        let mut owner = table.owner(0);
        owner.lock(&A, Mode::X).wait().unwrap();
        add(sum);
        owner.release(&A).unwrap();
    };
    let others = [(), ()].map(|()| {
        let (table, sum) = (table.clone(), sum.clone());
        spawn(move || run(&table, &sum))
    });
    run(&table, &sum);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(sum.load(Ordering::Relaxed), 3);
    is_idle(&table);
}

/// One that was told to retry times out while another asks.
#[test]
fn one_that_is_to_retry_gives_up() {
    explore("table_one_that_is_to_retry_gives_up", Some(3), || {
        let table = Table::default().with_bypass(Bypass::AtMost(1));
        let first = held(&table, A);
        let mut fickle = table.owner(0);
        let mut wait = fickle.lock(&A, Mode::X);
        assert!(poll(&mut wait).is_pending());
        let steady = table.clone();
        let steady = spawn(move || steady.owner(0).lock(&A, Mode::X).wait().unwrap());
        drop(first);
        drop(wait);
        steady.join().unwrap();
        is_idle(&table);
    });
}

/// A wait that times out, against a release and a wait that goes on.
#[test]
fn timeout_races_grant() {
    explore("table_timeout_races_grant", Some(3), || {
        let table = Table::default();
        let first = held(&table, A);
        let hasty = table.clone();
        let hasty = spawn(move || {
            let mut owner = hasty.owner(0);
            let hour = Duration::from_secs(3600);
            let locked = owner.lock(&A, Mode::X).wait_timeout(hour);
            assert_eq!(locked.is_ok(), owner.holdings().count() == 1);
        });
        let steady = table.clone();
        let steady = spawn(move || steady.owner(0).lock(&A, Mode::X).wait().unwrap());
        drop(first);
        hasty.join().unwrap();
        steady.join().unwrap();
        is_idle(&table);
    });
}

/// S stays held. Only the cancel of X lets the second S go on, which may be queued behind X.
#[test]
fn cancel_serves() {
    explore("table_cancel_serves", Some(3), || {
        let table = Table::default();
        let mut first = table.owner(0);
        first.try_lock(&A, Mode::S).unwrap();
        let mut owner = table.owner(0);
        let mut fickle = owner.lock(&A, Mode::X);
        assert!(poll(&mut fickle).is_pending());
        let second = table.clone();
        let second = spawn(move || second.owner(0).lock(&A, Mode::S).wait().unwrap());
        drop(fickle);
        second.join().unwrap();
        drop((first, owner));
        is_idle(&table);
    });
}

/// Each owner holds what the other asks for. Whichever asks first, the one with the lower priority
/// gives up, and the other is granted what the victim gives back.
#[test]
fn one_of_two_gives_up() {
    explore("table_one_of_two_gives_up", Some(3), || {
        let table = Table::default();
        let ask = |mut owner: Somebody, name: Name| match owner.lock(&name, Mode::X).wait() {
            Ok(()) => owner.holdings().count(),
            Err(LockError::Deadlock(report)) => {
                assert_eq!((report.victim, report.cycle.len()), (owner.id(), 2));
                owner.release_all();
                0
            }
            Err(other) => panic!("{other}"),
        };
        let (lower, upper) = (held(&table, A), held(&table, B));
        upper.priority().set(1);
        let other = spawn(move || ask(upper, A));
        // The victim may have been in the queue, or have closed the cycle.
        assert_eq!(ask(lower, B), 0);
        assert_eq!(other.join().unwrap(), 2);
        assert_eq!(table.counts().deadlocks, 1);
        is_idle(&table);
    });
}

/// The wait of the likely victim is dropped: nothing stays behind, and the other goes on.
#[test]
fn victim_cancels() {
    explore("table_victim_cancels", Some(3), || {
        let table = Table::default();
        let (mut lower, mut upper) = (held(&table, A), held(&table, B));
        upper.priority().set(1);
        let other = spawn(move || upper.lock(&A, Mode::X).wait().unwrap());
        let mut wait = lower.lock(&B, Mode::X);
        let _ = poll(&mut wait);
        drop(wait);
        drop(lower);
        other.join().unwrap();
        is_idle(&table);
    });
}

/// A request that waits when the table is closed fails, or was granted before.
#[test]
fn close_against_wait() {
    explore("table_close_against_wait", Some(3), || {
        let table = Table::default();
        let first = held(&table, A);
        let waiter = table.clone();
        let waiter = spawn(move || {
            let mut owner = waiter.owner(0);
            let locked = owner.lock(&A, Mode::X).wait();
            assert!(matches!(locked, Ok(()) | Err(LockError::Closed)));
        });
        let releases = spawn(move || drop(first));
        table.close();
        waiter.join().unwrap();
        releases.join().unwrap();
        is_idle(&table);
    });
}

/// An owner that keeps its intent on the root works below it, while another asks for X on it.
#[test]
fn kept_root_against_strong() {
    explore("table_kept_root_against_strong", Some(3), || {
        let table = Table::default();
        let sum = Arc::new(AtomicUsize::new(0));
        let mut owner = table.owner(0);
        let leaf = Leaf(100);
        let change = |owner: &mut Somebody, sum: &AtomicUsize| {
            owner.lock(&leaf, Mode::X).wait().unwrap();
            add(sum);
            owner.release(&leaf).unwrap();
        };
        // From the second time on it keeps the intent.
        change(&mut owner, &sum);
        change(&mut owner, &sum);
        let (strong, its) = (table.clone(), sum.clone());
        let strong = spawn(move || {
            let mut owner = strong.owner(0);
            owner.lock(&Root, Mode::X).wait().unwrap();
            add(&its);
        });
        change(&mut owner, &sum);
        change(&mut owner, &sum);
        strong.join().unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 5);
        drop(owner);
        is_idle(&table);
    });
}
