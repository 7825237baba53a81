//! 100,000 wait for one lock: if each of them cost a step for each other waiter, the 10^10 steps
//! would not end.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use conversant::intent::IntentLock;
use conversant::modes::Mode;

const CROWD: usize = 100_000;

/// They come, every second one leaves, and the others are granted the lock, one after the other or
/// all at once.
fn come_and_go(ask: Mode) {
    let lock = IntentLock::new();
    let mut cx = Context::from_waker(Waker::noop());
    let held = lock.lock(Mode::X).wait();
    let mut waits: Vec<_> = (0..CROWD).map(|_| Some(Box::pin(lock.lock(ask)))).collect();
    for wait in waits.iter_mut().flatten() {
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    }
    for wait in waits.iter_mut().step_by(2) {
        *wait = None;
    }
    drop(held);
    let mut granted = 0;
    for mut wait in waits.into_iter().flatten() {
        match pin!(&mut wait).poll(&mut cx) {
            Poll::Ready(guard) => drop(guard),
            Poll::Pending => panic!("number {granted} is next"),
        }
        granted += 1;
    }
    assert_eq!(granted, CROWD / 2);
    assert!(lock.try_lock(Mode::X).is_ok());
}

#[test]
fn for_x() {
    come_and_go(Mode::X);
}

#[test]
fn for_s() {
    come_and_go(Mode::S);
}

/// Each polls again and again while the held mode blocks all of them, also before one X.
#[test]
fn for_s_polled_in_vain() {
    let lock = IntentLock::new();
    let mut cx = Context::from_waker(Waker::noop());
    let _held = lock.lock(Mode::Ix).wait();
    let mut readers: Vec<_> = (0..CROWD).map(|_| Box::pin(lock.lock(Mode::S))).collect();
    let mut last = pin!(lock.lock(Mode::X));
    for _ in 0..2 {
        for wait in &mut readers {
            assert!(wait.as_mut().poll(&mut cx).is_pending());
        }
        assert!(last.as_mut().poll(&mut cx).is_pending());
    }
}

/// Only the last asks for X, which all others block; these poll in this order.
fn before_one_x(first_to_last: bool) {
    let lock = IntentLock::new();
    let mut cx = Context::from_waker(Waker::noop());
    let held = lock.lock(Mode::Ix).wait();
    let mut readers: Vec<_> = (0..CROWD).map(|_| Box::pin(lock.lock(Mode::S))).collect();
    let mut last = pin!(lock.lock(Mode::X));
    for wait in &mut readers {
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    }
    assert!(last.as_mut().poll(&mut cx).is_pending());
    drop(held);
    if !first_to_last {
        readers.reverse();
    }
    let guards: Vec<_> = readers
        .iter_mut()
        .map(|wait| wait.as_mut().poll(&mut cx))
        .collect();
    assert!(guards.iter().all(Poll::is_ready));
    assert!(last.as_mut().poll(&mut cx).is_pending());
    drop(guards);
    assert!(last.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn for_s_before_one_x() {
    before_one_x(true);
}

#[test]
fn for_s_before_one_x_from_the_last_on() {
    before_one_x(false);
}

/// They leave, from the middle on, once a conversion has moved ahead of them.
#[test]
fn behind_a_conversion() {
    let lock = IntentLock::new();
    let mut cx = Context::from_waker(Waker::noop());
    let (mut first, second) = (lock.lock(Mode::S).wait(), lock.lock(Mode::S).wait());
    let mut waits: Vec<_> = (0..CROWD).map(|_| Box::pin(lock.lock(Mode::X))).collect();
    for wait in &mut waits {
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    }
    let mut conversion = Box::pin(first.convert(Mode::X));
    assert!(conversion.as_mut().poll(&mut cx).is_pending());
    waits.drain(CROWD / 2..).for_each(drop);
    waits.drain(1..).rev().for_each(drop);
    drop(second);
    let converted = conversion.as_mut().poll(&mut cx);
    assert!(matches!(converted, Poll::Ready(Ok(()))));
    drop(conversion);
    assert!(waits[0].as_mut().poll(&mut cx).is_pending());
    drop(first);
    assert!(waits[0].as_mut().poll(&mut cx).is_ready());
}

/// They come behind one that was notified and does not poll, while as many others release.
fn behind_one_that_is_late(late: Mode) {
    let lock = IntentLock::new();
    let mut cx = Context::from_waker(Waker::noop());
    let held = lock.lock(Mode::X).wait();
    let mut late = Box::pin(lock.lock(late));
    assert!(late.as_mut().poll(&mut cx).is_pending());
    let mut changing: Vec<_> = (0..CROWD).map(|_| Box::pin(lock.lock(Mode::Ix))).collect();
    for wait in &mut changing {
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    }
    drop(held);
    let guards = changing.iter_mut().map(|wait| wait.as_mut().poll(&mut cx));
    let guards: Vec<_> = guards.collect();
    assert!(guards.iter().all(Poll::is_ready));
    let mut readers = Vec::new();
    for guard in guards {
        let mut reader = Box::pin(lock.lock(Mode::S));
        assert!(reader.as_mut().poll(&mut cx).is_pending());
        readers.push(reader);
        drop(guard);
    }
    let late = late.as_mut().poll(&mut cx);
    assert!(late.is_ready());
    drop(late);
    for reader in &mut readers {
        assert!(reader.as_mut().poll(&mut cx).is_ready());
    }
}

#[test]
fn behind_a_late_ix() {
    behind_one_that_is_late(Mode::Ix);
}

#[test]
fn behind_a_late_is() {
    behind_one_that_is_late(Mode::Is);
}
