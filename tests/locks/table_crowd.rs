//! 50,000 wait for one resource: if each of them cost a step for each other waiter, the 2.5 * 10^9
//! steps would not end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use conversant::lock_table::{Lock, LockTable, Owner, Resource};
use conversant::modes::Mode::{self, Is, Ix, S, X};
use conversant::wait::Wait;

const CROWD: usize = 50_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Row;

impl Resource for Row {
    fn parent(&self) -> Option<Self> {
        None
    }
}

type Waits<'a> = Vec<Wait<Lock<'a, Row>>>;

/// Many owners, each of which holds this mode.
fn many(table: &LockTable<Row>, held: Option<Mode>) -> Vec<Owner<Row>> {
    let owner = |_| {
        let mut owner = table.owner(0);
        if let Some(held) = held {
            owner.try_lock(&Row, held).expect("it can be had");
        }
        owner
    };
    (0..CROWD).map(owner).collect()
}

fn poll(wait: &mut Wait<Lock<'_, Row>>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(wait).poll(&mut cx) {
        Poll::Ready(result) => result.map(|()| true).expect("no deadlock"),
        Poll::Pending => false,
    }
}

/// All of them queued.
fn queued(owners: &mut [Owner<Row>], ask: Mode) -> Waits<'_> {
    let mut waits: Waits<'_> = owners.iter_mut().map(|o| o.lock(&Row, ask)).collect();
    assert!(!waits.iter_mut().any(poll));
    waits
}

/// The first to come leave first, while another owner holds `held`.
fn leave(held: Mode, ask: Mode) {
    let table = LockTable::new();
    let mut holder = table.owner(0);
    holder.try_lock(&Row, held).expect("nobody has it");
    let mut owners = many(&table, None);
    queued(&mut owners, ask).into_iter().for_each(drop);
    assert_eq!(table.counts().contended, 0);
}

#[test]
fn readers_leave_from_the_first_on() {
    leave(Ix, S);
}

#[test]
fn writers_leave_from_the_first_on() {
    leave(S, X);
}

/// A scan from either end would take a step for half of the waiters.
#[test]
fn they_leave_from_the_middle() {
    let table = LockTable::new();
    let mut holder = table.owner(0);
    holder.try_lock(&Row, S).expect("nobody has it");
    let mut owners = many(&table, None);
    let mut waits = queued(&mut owners, Ix);
    let behind = waits.split_off(CROWD / 2);
    for (ahead, behind) in waits.into_iter().rev().zip(behind) {
        drop((ahead, behind));
    }
    assert_eq!(table.counts().contended, 0);
}

#[test]
fn writers_have_it_one_after_the_other() {
    let table = LockTable::new();
    let mut holder = table.owner(0);
    holder.try_lock(&Row, X).expect("nobody has it");
    let mut owners = many(&table, None);
    let waits = queued(&mut owners, X);
    drop(holder);
    // A wait that gives up a grant that it has not looked at passes it to the next.
    for wait in waits {
        assert_eq!(table.counts().locks.notified, 1);
        drop(wait);
    }
    assert!(table.is_empty());
}

#[test]
fn readers_have_it_together() {
    let table = LockTable::new();
    let mut holder = table.owner(0);
    holder.try_lock(&Row, Ix).expect("nobody has it");
    let mut owners = many(&table, None);
    let mut waits = queued(&mut owners, S);
    drop(holder);
    assert!(waits.iter_mut().all(poll));
}

#[test]
fn all_are_told_that_it_is_closed() {
    let table = LockTable::new();
    let mut holder = table.owner(0);
    holder.try_lock(&Row, Ix).expect("nobody has it");
    let mut owners = many(&table, None);
    let waits = queued(&mut owners, S);
    table.close();
    assert_eq!(table.counts().locks.notified, CROWD);
    drop(waits);
}

/// Conversions of holders go ahead of a writer, and stay in the order in which they came.
#[test]
fn conversions_go_ahead_one_behind_the_other() {
    let table = LockTable::new();
    let mut holder = table.owner(0);
    holder.try_lock(&Row, Ix).expect("nobody has it");
    let mut owners = many(&table, Some(Is));
    let mut writer = table.owner(0);
    let mut last = writer.lock(&Row, X);
    assert!(!poll(&mut last));
    let mut waits = queued(&mut owners, S);
    drop(holder);
    assert!(waits.iter_mut().all(poll) && !poll(&mut last));
    drop(waits);
    drop(owners);
    assert!(poll(&mut last));
}

/// Each wait lists a few of those in its way, and counts the others.
#[test]
fn a_snapshot_counts_who_is_ahead() {
    let table = LockTable::new();
    let mut holder = table.owner(0);
    holder.try_lock(&Row, X).expect("nobody has it");
    let mut owners = many(&table, None);
    let _waits = queued(&mut owners, X);
    let snapshot = table.snapshot();
    for (ahead, waiter) in snapshot.resources[0].waiters.iter().enumerate() {
        assert_eq!(waiter.blockers, ahead + 1);
        assert_eq!(waiter.blocked_by.len(), waiter.blockers.min(8));
        assert_eq!(waiter.blocked_by[0].0, holder.id());
    }
}
