//! Guards that convert.

use std::task::Poll;

use super::super::Deadlock;
use super::{forms, is_idle, poll};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::modes::Mode::{Is, Ix, S, U, X};

/// Each pair of a holder's modes, together with each mode of another holder.
#[test]
fn every_conversion() {
    for (held, asked) in Mode::ALL
        .map(|held| Mode::ALL.map(|asked| (held, asked)))
        .concat()
    {
        for beside in Mode::ALL.into_iter().filter(|mode| mode.compatible(held)) {
            for lock in forms() {
                let mut guard = lock.lock(held).wait();
                let other = lock.lock(beside).wait();
                let fits = beside.compatible(held.join(asked));
                assert_eq!(guard.try_convert(asked).is_ok(), fits);
                assert_eq!(guard.mode(), if fits { held.join(asked) } else { held });
                if !fits {
                    let mut wait = guard.convert(asked);
                    assert!(poll(&mut wait).is_pending());
                    drop(other);
                    assert!(matches!(poll(&mut wait), Poll::Ready(Ok(()))));
                    drop(wait);
                    assert_eq!(guard.mode(), held.join(asked));
                }
                assert_eq!(lock.snapshot().held(guard.mode()), {
                    let beside_too = fits && beside == guard.mode();
                    1 + u64::from(beside_too)
                });
                drop(guard);
            }
        }
    }
}

/// Two readers both convert to change.
/// One is refused at once, and the other goes on when that one releases.
#[test]
fn two_upgrades() {
    for asked in [X, Ix] {
        for lock in forms() {
            let mut first = lock.lock(S).wait();
            let mut second = lock.lock(S).wait();
            let mut wait = first.convert(asked);
            assert!(poll(&mut wait).is_pending());
            let refused = second.convert(asked).wait().unwrap_err();
            let join = S.join(asked);
            let expected = Deadlock {
                held: S,
                asked: join,
                other_held: S,
                other_asked: join,
            };
            assert_eq!(refused, expected);
            assert_eq!(second.mode(), S);
            assert!(poll(&mut wait).is_pending());
            drop(second);
            assert!(poll(&mut wait).is_ready());
            drop(wait);
            assert_eq!(first.mode(), join);
            drop(first);
            is_idle(&lock);
        }
    }
}

/// "holder upgrades with conflicting request queued": the upgrade goes first.
#[test]
fn an_upgrade_goes_ahead_of_who_waits_for_it() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let mut upgrades = lock.lock(U).wait();
        let reader = lock.lock(S).wait();
        let mut writer = lock.lock(X);
        assert!(poll(&mut writer).is_pending());
        let mut wait = upgrades.convert(X);
        assert!(poll(&mut wait).is_pending());
        drop(reader);
        assert!(poll(&mut wait).is_ready());
        drop(wait);
        assert!(poll(&mut writer).is_pending());
        drop(upgrades);
        assert!(poll(&mut writer).is_ready());
    }
}

/// A conversion to IX waits behind a reader that waits for another holder, which then asks for X.
/// All three go on, one after the other.
#[test]
fn a_conversion_comes_along() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let mut big = lock.lock(Ix).wait();
        let mut small = lock.lock(Is).wait();
        let mut reader = lock.lock(S);
        assert!(poll(&mut reader).is_pending());
        let mut small_wait = small.convert(Ix);
        assert!(poll(&mut small_wait).is_pending());
        let mut big_wait = big.convert(X);
        assert!(poll(&mut big_wait).is_pending());
        assert!(poll(&mut small_wait).is_ready());
        drop(small_wait);
        drop(small);
        assert!(poll(&mut big_wait).is_ready());
        drop(big_wait);
        drop(big);
        assert!(poll(&mut reader).is_ready());
    }
}

/// T1 holds IX, W waits for S, T2 takes IS and converts to IX, T1 releases, and so on in turn.
/// W is served within the bound.
#[test]
fn conversions_do_not_starve() {
    for lock in forms() {
        let bound = 5;
        let lock = lock.with_bypass(Bypass::AtMost(bound));
        let mut holder = Some(lock.lock(Ix).wait());
        let mut waits = lock.lock(S);
        assert!(poll(&mut waits).is_pending());
        let mut rounds = 0;
        loop {
            let mut next = lock.try_lock(Is).unwrap();
            let converted = next.try_convert(Ix);
            drop(holder.take());
            if converted.is_err() {
                break;
            }
            holder = Some(next);
            rounds += 1;
            assert!(rounds <= bound);
        }
        assert!(poll(&mut waits).is_ready());
        assert!(rounds > 0);
    }
}

/// Each holder overtakes the waiter, and converts ahead of it when the one before has left.
#[test]
fn conversions_that_wait_restart_no_count() {
    for lock in forms() {
        let bound = 5;
        let lock = lock.with_bypass(Bypass::AtMost(bound));
        let mut holder = lock.lock(Ix).wait();
        let mut waits = lock.lock(S);
        assert!(poll(&mut waits).is_pending());
        let mut overtaken = 0;
        while let Ok(mut next) = lock.try_lock(Ix) {
            overtaken += 1;
            assert!(overtaken <= bound);
            let mut converts = next.convert(S);
            assert!(poll(&mut converts).is_pending());
            drop(holder);
            let Poll::Ready(Ok(())) = poll(&mut converts) else {
                panic!("nobody is ahead of it");
            };
            drop(converts);
            next.downgrade(Ix).unwrap();
            holder = next;
        }
        assert_eq!(overtaken, bound);
        drop(holder);
        assert!(poll(&mut waits).is_ready());
        is_idle(&lock);
    }
}

/// Nobody who waits for the guard is in its way.
#[test]
fn a_conversion_at_once_goes_ahead_at_the_bound() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let mut guard = lock.lock(Is).wait();
        let mut waits = lock.lock(X);
        assert!(poll(&mut waits).is_pending());
        assert!(lock.try_lock(Ix).is_err());
        guard.try_convert(Ix).unwrap();
        drop(guard);
        assert!(poll(&mut waits).is_ready());
    }
}

/// A conversion that was handed its mode is dropped instead of polled.
#[test]
fn a_conversion_given_up_after_the_grant() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let mut guard = lock.lock(S).wait();
        let other = lock.lock(S).wait();
        let mut wait = guard.convert(X);
        assert!(poll(&mut wait).is_pending());
        let mut behind = lock.lock(S);
        assert!(poll(&mut behind).is_pending());
        drop(other);
        assert_eq!(lock.snapshot().held(X), 1);
        drop(wait);
        assert_eq!((guard.mode(), lock.snapshot().held(X)), (S, 0));
        assert!(poll(&mut behind).is_ready());
        drop((guard, behind));
        is_idle(&lock);
    }
}

/// A conversion that is forgotten in the queue leaves it when its guard is dropped.
#[test]
fn a_forgotten_conversion() {
    for lock in forms() {
        let mut guard = lock.lock(S).wait();
        let other = lock.lock(S).wait();
        let mut wait = guard.convert(X);
        assert!(poll(&mut wait).is_pending());
        std::mem::forget(wait);
        drop(other);
        drop(guard);
        is_idle(&lock);
    }
}
