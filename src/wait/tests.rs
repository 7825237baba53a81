//! Plain tests of waiting; the races are in `model`.

mod blocking;
pub(crate) mod heap;
mod list;
mod or;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Op, Wait, sealed};

/// A waker that runs a closure, and counts its wakes.
struct Calls<F> {
    count: AtomicUsize,
    run: F,
}

impl<F: Fn() + Send + Sync + 'static> Calls<F> {
    fn new(run: F) -> Arc<Self> {
        let count = AtomicUsize::new(0);
        Arc::new(Self { count, run })
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        (self.run)();
    }
}

fn counting() -> Arc<Calls<impl Fn() + Send + Sync + 'static>> {
    Calls::new(|| ())
}

/// The calls on an operation, in order.
type Log = Arc<crate::sync::Mutex<Vec<&'static str>>>;

type Step = Box<dyn FnMut(&Waker) + Send>;

/// An operation that plays a script: each poll runs one step; after the last it is ready.
struct Scripted {
    log: Log,
    steps: std::vec::IntoIter<Step>,
}

impl Scripted {
    fn wait(steps: Vec<Step>) -> (Wait<Self>, Log) {
        let log = Log::default();
        let op = Self {
            log: log.clone(),
            steps: steps.into_iter(),
        };
        (Wait::new(op), log)
    }
}

impl sealed::Sealed for Scripted {}

impl Op for Scripted {
    type Output = &'static str;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<&'static str> {
        self.log.lock().push("poll");
        let Some(mut step) = self.steps.next() else {
            return Poll::Ready("done");
        };
        step(cx.waker());
        Poll::Pending
    }

    fn cancel(&mut self) {
        self.log.lock().push("cancel");
    }

    fn block(&mut self, _: &Waker) {
        self.log.lock().push("block");
    }

    fn unblock(&mut self) {
        self.log.lock().push("unblock");
    }
}

fn entries(log: &Log) -> Vec<&'static str> {
    log.lock().clone()
}
