//! Futures that tests open, and tasks that wait for them.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use conversant::scheduler::{Caller, OutcomeError, Place, Scheduler, Task, Verdict, Why};

use crate::threads::stage::{Job, until};

/// A door is opened once; from then on it is ready as a future.
#[derive(Clone, Default)]
pub(super) struct Door(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Door {
    pub(super) fn open(&self) {
        let wakers = {
            let mut door = self.0.lock().unwrap();
            door.0 = true;
            std::mem::take(&mut door.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Wakes all waiters without a reason, and keeps their wakers.
    pub(super) fn knock(&self) {
        let wakers = self.0.lock().unwrap().1.clone();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The waker of its first waiter.
    pub(super) fn waker(&self) -> Waker {
        self.0.lock().unwrap().1[0].clone()
    }

    pub(super) fn waiters(&self) -> usize {
        self.0.lock().unwrap().1.len()
    }
}

impl Future for Door {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut door = self.0.lock().unwrap();
        if door.0 {
            return Poll::Ready(());
        }
        if !door.1.iter().any(|w| w.will_wake(cx.waker())) {
            door.1.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Wakes itself this many times, then is ready.
pub(super) struct Yields(pub(super) u64);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A task that goes through a door and gives `n`.
pub(super) fn through(caller: &Caller, place: Place<'_>, door: &Door, n: u64) -> Job {
    let door = door.clone();
    let task = caller.spawn_with(place, async move {
        door.await;
        Ok::<_, String>(n)
    });
    task.unwrap()
}

/// The same; returns when the task awaits.
pub(super) fn at_the_door(
    scheduler: &Scheduler,
    caller: &Caller,
    place: Place<'_>,
    n: u64,
) -> (Door, Job) {
    let door = Door::default();
    let task = through(caller, place, &door, n);
    until(|| why(scheduler, &task) == Some(Why::Suspended));
    (door, task)
}

pub(super) fn gave(task: &mut Job) -> u64 {
    match task.outcome().wait().unwrap().verdict {
        Verdict::Ok(n) => n,
        verdict => panic!("{verdict:?}"),
    }
}

/// Says when it is dropped.
pub(super) struct Says(Sender<()>);

pub(super) fn says() -> (Says, Receiver<()>) {
    let (sender, receiver) = channel();
    (Says(sender), receiver)
}

impl Drop for Says {
    fn drop(&mut self) {
        self.0.send(()).ok();
    }
}

pub(super) fn why(scheduler: &Scheduler, task: &Job) -> Option<Why> {
    let status = scheduler.status();
    let mut waiting = status.waiting.iter();
    waiting.find(|w| w.id == task.id()).map(|w| w.why)
}

/// Polls a task that has ended.
pub(super) fn pollster<R, E>(task: &mut Task<R, E>) -> Result<(), OutcomeError> {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(task).poll(&mut cx) {
        Poll::Ready(outcome) => outcome.map(drop),
        Poll::Pending => panic!("it has ended"),
    }
}
