//! The queue of one resource: its order, conversions, and what a cancel lets others have.

use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::super::{Cause, LockError, LockTable, Resource};
use super::{Path, Polled, free, owners, path, take};
use crate::error::TimedOut;
use crate::modes::Mode::{self, Is, Ix, S, Six, U, X};

#[test]
fn every_pair_of_modes() {
    let r = path([1]);
    for held in Mode::ALL {
        for asked in Mode::ALL {
            let locks = LockTable::new();
            let [mut a, mut b] = owners(&locks);
            take(&mut a, &r, held);
            let compatible = held.compatible(asked);
            let expected = if compatible {
                Ok(())
            } else {
                Err(LockError::WouldBlock)
            };
            assert_eq!(b.try_lock(&r, asked), expected, "{asked} beside {held}");
            drop(a);
            if !compatible {
                take(&mut b, &r, asked);
            }
            assert_eq!(b.held(&r), Some(asked));
            drop(b);
            assert!(locks.is_empty());
        }
    }
}

#[test]
fn a_new_request_waits_behind_an_earlier_one_it_conflicts_with() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut c, mut d] = owners(&locks);
    take(&mut a, &r, S);
    let x = Polled::waits(b.lock(&r, X));
    assert!(!free(&locks, &r, S));
    let s = Polled::waits(c.lock(&r, S));
    let is = Polled::waits(d.lock(&r, Is));
    let view = &locks.snapshot().resources[0];
    let modes: Vec<Mode> = view.waiters.iter().map(|w| w.asks).collect();
    assert_eq!(modes, [X, S, Is]);
    assert_eq!(view.waiters[1].blocked_by.len(), 1);
    assert_eq!(view.waiters[1].blocked_by[0].2, Cause::WaitsAhead);
    drop(a);
    x.granted();
    assert_eq!((s.woken(), is.woken()), (0, 0));
    drop(b);
    s.granted();
    is.granted();
}

/// PITFALLS: waiting upgradable against plain readers.
#[test]
fn readers_are_not_held_up_by_an_update_that_waits() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, U);
    let u = Polled::waits(b.lock(&r, U));
    take(&mut c, &r, S);
    drop(a);
    u.granted();
}

/// PITFALLS: a holder upgrades with a conflicting request queued.
#[test]
fn a_holder_that_upgrades_goes_ahead_of_who_waits_for_it() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut w, mut later] = owners(&locks);
    take(&mut a, &r, S);
    take(&mut b, &r, S);
    let mut first = Polled::waits(w.lock(&r, X));
    let mut last = Polled::waits(later.lock(&r, X));
    let upgrade = Polled::waits(a.lock(&r, U.join(X)));
    let asks: Vec<_> = locks.snapshot().resources[0].waiters.clone();
    assert_eq!(asks[0].holds, Some(S));
    drop(b);
    upgrade.granted();
    assert!(first.poll().is_pending() && last.poll().is_pending());
    drop(a);
    first.granted();
}

/// PITFALLS: the same owner asks for shared again behind a queued X.
#[test]
fn a_second_grant_to_a_holder_does_not_wait() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, S);
    let w = Polled::waits(b.lock(&r, X));
    take(&mut a, &r, S);
    take(&mut a, &r, Is);
    // Also more than it holds: it is ahead of the waiter for it, and nobody else holds it.
    take(&mut a, &r, U);
    assert_eq!((a.held(&r), a.grants(&r)), (Some(U), 4));
    for _ in 0..3 {
        a.release(&r).unwrap();
        assert_eq!(a.held(&r), Some(U));
    }
    assert_eq!(w.woken(), 0);
    a.release(&r).unwrap();
    w.granted();
}

/// T1 holds IX, W waits for S; T2 takes IS and converts to IX, T1 leaves, and so on in turn.
#[test]
fn conversions_in_turn_do_not_starve_a_waiter() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut t1, mut t2, mut w] = owners(&locks);
    take(&mut t1, &r, Ix);
    let waiter = Polled::waits(w.lock(&r, S));
    // IS is compatible with S, so it passes; the conversion to IX waits behind W.
    take(&mut t2, &r, Is);
    let conversion = Polled::waits(t2.lock(&r, Ix));
    assert_eq!(conversion.woken(), 0);
    drop(t1);
    waiter.granted();
    assert_eq!(conversion.woken(), 0);
    drop(w);
    conversion.granted();
}

#[test]
fn a_cancel_rescans_the_queue() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut c, mut d] = owners(&locks);
    take(&mut a, &r, S);
    let x = Polled::waits(b.lock(&r, X));
    let s = Polled::waits(c.lock(&r, S));
    let ix = Polled::waits(d.lock(&r, Ix));
    drop(x);
    s.granted();
    assert_eq!(ix.woken(), 0);
    assert_eq!(b.held(&r), None);
}

#[test]
fn a_time_out_rescans_the_queue() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, S);
    // X is in the queue when S comes, and times out later, as its waker shows.
    let mut x = Polled::waits(b.lock(&r, X));
    let s = Polled::waits(c.lock(&r, S));
    assert!(x.poll().is_pending());
    let Polled { wait, .. } = x;
    assert_eq!(wait.wait_timeout(Duration::ZERO), Err(TimedOut));
    s.granted();
}

#[test]
fn a_grant_that_is_not_looked_at_is_given_back() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    let granted = Polled::waits(b.lock(&r, X));
    let next = Polled::waits(c.lock(&r, X));
    drop(a);
    assert_eq!((granted.woken(), next.woken()), (1, 0));
    drop(granted);
    assert_eq!(b.held(&r), None);
    next.granted();
}

#[test]
fn a_cancelled_conversion_keeps_what_was_held() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, S);
    take(&mut b, &r, S);
    drop(Polled::waits(a.lock(&r, X)));
    assert_eq!((a.held(&r), a.grants(&r)), (Some(S), 1));
    assert!(free(&locks, &r, S) && !free(&locks, &r, Ix));
    // Granted, but not polled since.
    let upgrade = Polled::waits(a.lock(&r, X));
    drop(b);
    assert_eq!(upgrade.woken(), 1);
    drop(upgrade);
    assert!(free(&locks, &r, S));
    a.release(&r).unwrap();
    assert!(locks.is_empty());
}

#[test]
fn a_release_of_one_of_several_modes_scans_the_whole_queue() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut c, mut d] = owners(&locks);
    take(&mut a, &r, Six);
    let u = Polled::waits(b.lock(&r, U));
    let ix = Polled::waits(c.lock(&r, Ix));
    let s = Polled::waits(d.lock(&r, S));
    a.downgrade(&r, S).unwrap();
    // IX stays, and holds up only requests that conflict with it: S does.
    u.granted();
    assert_eq!((ix.woken(), s.woken()), (0, 0));
    drop(ix);
    s.granted();
}

#[test]
fn a_scan_goes_past_those_who_stay() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    let ix = Polled::waits(b.lock(&r, Ix));
    let is = Polled::waits(c.lock(&r, Is));
    a.downgrade(&r, U).unwrap();
    assert_eq!(ix.woken(), 0);
    is.granted();
    drop(a);
    ix.granted();
}

#[test]
fn many_readers_are_let_in_together() {
    let locks = LockTable::new();
    let r = path([1]);
    let mut writer = locks.owner(0);
    take(&mut writer, &r, X);
    // More than one batch of wake-ups.
    let mut readers: Vec<_> = (0..100).map(|_| locks.owner(0)).collect();
    let waits: Vec<_> = readers
        .iter_mut()
        .map(|o| Polled::waits(o.lock(&r, S)))
        .collect();
    drop(writer);
    waits.into_iter().for_each(Polled::granted);
}

#[test]
fn skip_locked() {
    let locks = LockTable::new();
    let all: [Path; 3] = [1, 2, 3].map(|n| path([9, n]));
    let [mut a, mut b, mut c, mut d] = owners(&locks);
    assert_eq!(a.first_free(&all, X), Ok(Some(0)));
    assert_eq!(b.first_free(&all, X), Ok(Some(1)));
    assert_eq!(c.first_free(&all, X), Ok(Some(2)));
    assert_eq!(d.first_free(&all, S), Ok(None));
    assert_eq!(d.holdings().count(), 0);
    assert_eq!(d.first_free([], S), Ok(None));
    // What an owner holds itself is free to it.
    assert_eq!(b.first_free(&all[1..], X), Ok(Some(0)));
    drop(a);
    assert_eq!(d.first_free(&all, S), Ok(Some(0)));
}

#[test]
fn skip_locked_or_wait_for_the_first() {
    let locks = LockTable::new();
    let all: [Path; 2] = [1, 2].map(|n| path([9, n]));
    let [mut a, mut b, mut c] = owners(&locks);
    let mut context = Context::from_waker(Waker::noop());
    let mut wait = a.first_free_or_wait(all.clone(), X);
    assert_eq!(locks.len(), 0, "nothing before the first poll");
    assert_eq!(
        Pin::new(&mut wait).poll(&mut context),
        Poll::Ready(Ok(Some(0)))
    );
    drop(wait);
    let mut wait = b.first_free_or_wait(all.clone(), X);
    assert_eq!(
        Pin::new(&mut wait).poll(&mut context),
        Poll::Ready(Ok(Some(1)))
    );
    drop(wait);
    let mut wait = c.first_free_or_wait(all.clone(), X);
    assert!(Pin::new(&mut wait).poll(&mut context).is_pending());
    // It waits in the queue of the first, whatever becomes of the other.
    drop(b);
    assert!(Pin::new(&mut wait).poll(&mut context).is_pending());
    drop(a);
    assert_eq!(
        Pin::new(&mut wait).poll(&mut context),
        Poll::Ready(Ok(Some(0)))
    );
    drop(wait);
    assert_eq!(c.held(&all[0]), Some(X));
    assert_eq!(c.first_free_or_wait([], X).wait(), Ok(None));

    // A wait that gives up leaves nothing.
    let mut d = locks.owner(0);
    take(&mut d, &all[1], X);
    let mut e = locks.owner(0);
    let mut wait = e.first_free_or_wait(all.clone(), X);
    assert!(Pin::new(&mut wait).poll(&mut context).is_pending());
    drop(wait);
    assert_eq!(e.holdings().count(), 0);
    locks.close();
    assert_eq!(e.first_free_or_wait(all, X).wait(), Err(LockError::Closed));
}

/// A name that counts how often it is compared.
#[derive(Clone, Debug)]
struct Compared;

static COMPARED: AtomicUsize = AtomicUsize::new(0);

impl PartialEq for Compared {
    fn eq(&self, _: &Self) -> bool {
        COMPARED.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl Eq for Compared {}

impl Hash for Compared {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Resource for Compared {
    fn parent(&self) -> Option<Self> {
        None
    }
}

/// Like `lock`, a thread looks eight times or more for what it will wait for, before it begins to
/// wait.
#[test]
fn skip_locked_looks_again_before_it_waits() {
    let locks = LockTable::new();
    let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    a.lock(&Compared, X).wait().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(b.first_free_or_wait([Compared], X).wait(), Ok(Some(0))));
        while locks.counts().locks.waiting == 0 {
            std::thread::yield_now();
        }
        assert!(COMPARED.load(Ordering::Relaxed) > 8);
        drop(a);
    });
}

#[test]
fn close_tells_everybody() {
    let locks = LockTable::new();
    let (r, q) = (path([1, 1]), path([1, 2]));
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    let mut waits = Polled::waits(b.lock(&r, X));
    let mut fresh = Polled::new(c.lock(&q, S));
    locks.close();
    assert!(locks.is_closed());
    assert_eq!(waits.woken(), 1);
    let closed = std::task::Poll::Ready(Err(super::super::LockError::Closed));
    assert_eq!(waits.poll(), closed);
    assert_eq!(fresh.poll(), closed);
    drop((waits, fresh));
    assert_eq!(b.holdings().count(), 0);
    // Closed also for what it has, and for what that would cover.
    assert_eq!(a.try_lock(&r, X), Err(LockError::Closed));
    assert_eq!(a.first_free([&r], X), Err(LockError::Closed));
    assert_eq!(a.held(&r), Some(X));
    a.downgrade(&r, S).unwrap();
    a.release(&r).unwrap();
    assert!(locks.is_empty());
    locks.close();
}

/// So many waiters that the test would not end if each took a step for each of them when it begins
/// to wait.
#[test]
fn a_crowd_waits() {
    const CROWD: usize = 100_000;
    let (table, r) = (LockTable::new(), path([1]));
    let mut first = table.owner(0);
    take(&mut first, &r, X);
    let mut owners: Vec<_> = (0..CROWD).map(|_| table.owner(0)).collect();
    let mut waits: Vec<_> = owners.iter_mut().map(|owner| owner.lock(&r, X)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for wait in &mut waits {
        assert!(Pin::new(wait).poll(&mut cx).is_pending());
    }
    drop(first);
    assert!(Pin::new(&mut waits[0]).poll(&mut cx).is_ready());
    assert!(Pin::new(&mut waits[1]).poll(&mut cx).is_pending());
    // From the last to the first, so each leaves the end of the queue.
    waits.into_iter().rev().for_each(drop);
}
