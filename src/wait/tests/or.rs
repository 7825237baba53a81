//! Waits for whichever of two comes first.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use super::super::gate::Gate;
use super::{Scripted, counting, entries};
use crate::error::TimedOut;

fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn silent(_: &Waker) {}

/// The second is cancelled when the first has come, not when the whole is dropped.
#[test]
fn the_first_to_come_cancels_the_other() {
    let slow = || Scripted::wait(vec![Box::new(silent), Box::new(silent)]);
    let fast = || Scripted::wait(vec![Box::new(silent)]).0;
    let (second, slow_log) = slow();
    let mut either = fast().or(second);
    assert!(poll_once(&mut either, Waker::noop()).is_pending());
    assert_eq!(
        poll_once(&mut either, Waker::noop()),
        Poll::Ready(Ok("done"))
    );
    assert_eq!(entries(&slow_log), ["poll", "cancel"]);

    let (first, slow_log) = slow();
    let mut either = first.or(fast());
    assert!(poll_once(&mut either, Waker::noop()).is_pending());
    assert_eq!(
        poll_once(&mut either, Waker::noop()),
        Poll::Ready(Err("done"))
    );
    assert_eq!(entries(&slow_log), ["poll", "poll", "cancel"]);
}

#[test]
fn of_two_that_are_ready_it_is_the_first() {
    let (wait, _) = Scripted::wait(vec![]);
    let (other, log) = Scripted::wait(vec![]);
    assert_eq!(wait.or(other).wait(), Ok("done"));
    assert!(entries(&log).is_empty());
}

#[test]
fn a_timeout_cancels_both() {
    let steps = || vec![Box::new(silent) as super::Step, Box::new(silent)];
    let ((wait, first), (other, second)) = (Scripted::wait(steps()), Scripted::wait(steps()));
    assert_eq!(wait.or(other).wait_deadline(Instant::now()), Err(TimedOut));
    for log in [first, second] {
        assert_eq!(entries(&log), ["poll", "poll", "cancel"]);
    }
}

/// What the second was granted meanwhile goes to the next in its line.
#[test]
fn a_notification_of_the_second_goes_on() {
    let (one, other) = (Gate::new(), Gate::new());
    let mut either = Gate::pass(&one).or(Gate::pass(&other));
    assert!(poll_once(&mut either, Waker::noop()).is_pending());
    let (mut next, woken) = (Gate::pass(&other), counting());
    assert!(poll_once(&mut next, &woken.clone().into()).is_pending());
    other.open(1);
    one.open(1);
    assert_eq!(woken.count(), 0);
    assert_eq!(poll_once(&mut either, Waker::noop()), Poll::Ready(Ok(())));
    assert_eq!(woken.count(), 1);
    assert!(poll_once(&mut next, Waker::noop()).is_ready());
}

/// Each wakes a thread that sleeps in both; a thread's wait does not tell that it blocks.
#[test]
fn either_wakes_a_thread() {
    for which in 0..2 {
        let gates = [Gate::new(), Gate::new()];
        let (wait, log) =
            Scripted::wait(Vec::from([(); 9].map(|()| Box::new(silent) as super::Step)));
        let both = Gate::pass(&gates[0]).or(Gate::pass(&gates[1]));
        let came = thread::scope(|scope| {
            let waits = scope.spawn(|| wait.or(both).wait());
            while gates[1].waiters() == 0 {
                thread::yield_now();
            }
            gates[which].open(1);
            waits.join().unwrap()
        });
        assert_eq!(came, Err(if which == 0 { Ok(()) } else { Err(()) }));
        assert!(!entries(&log).contains(&"block"));
    }
}

/// One that is passed by reference is not dropped, and still to be had.
#[test]
fn a_second_by_reference_goes_on() {
    let (one, other) = (Gate::new(), Gate::new());
    let mut second = Gate::pass(&other);
    let mut either = Gate::pass(&one).or(&mut second);
    assert!(poll_once(&mut either, Waker::noop()).is_pending());
    one.open(1);
    assert_eq!(poll_once(&mut either, Waker::noop()), Poll::Ready(Ok(())));
    drop(either);
    assert_eq!(other.waiters(), 1);
    other.open(1);
    second.wait();
}

struct BadDrop;

impl Future for BadDrop {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Drop for BadDrop {
    fn drop(&mut self) {
        panic!("a bad drop");
    }
}

#[test]
fn the_result_is_kept_if_the_drop_of_the_second_panics() {
    let (wait, _) = Scripted::wait(vec![Box::new(silent)]);
    let mut either = wait.or(BadDrop);
    assert!(poll_once(&mut either, Waker::noop()).is_pending());
    assert_eq!(
        poll_once(&mut either, Waker::noop()),
        Poll::Ready(Ok("done"))
    );
}
