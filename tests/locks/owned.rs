//! Any wait in an `async` block that owns its handle: it is `'static` and `Send`, and it completes;
//! dropped on the way, it leaves nothing behind.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use conversant::gate::{Ticket, TierGate};
use conversant::intent::{Guard, IntentLock};
use conversant::limit::Limit;
use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode;
use conversant::queue::Queue;
use conversant::scheduler::{CallerOptions, How, Scheduler, Verdict};

type Owning<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn owning<T>(future: impl Future<Output = T> + Send + 'static) -> Owning<T> {
    Box::pin(future)
}

fn poll<T>(wait: &mut Owning<T>) -> Poll<T> {
    wait.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn waits<T>(mut wait: Owning<T>) -> Owning<T> {
    assert!(poll(&mut wait).is_pending());
    wait
}

fn done<T>(mut wait: Owning<T>) -> T {
    match poll(&mut wait) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits still"),
    }
}

async fn converted(mut guard: Guard<Arc<IntentLock>>) -> Guard<Arc<IntentLock>> {
    guard.convert(Mode::X).await.unwrap();
    guard
}

#[test]
fn a_conversion() {
    let lock = Arc::new(IntentLock::new());
    let shared = || IntentLock::lock_owned(lock.clone(), Mode::S).wait();
    let (first, second, third) = (shared(), shared(), shared());
    let given_up = waits(owning(converted(first)));
    drop(given_up);
    let waiting = waits(owning(converted(second)));
    drop(third);
    assert_eq!(done(waiting).mode(), Mode::X);
    assert_eq!(lock.snapshot().held, [0; 6]);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Row(u32);

impl Resource for Row {
    fn parent(&self) -> Option<Self> {
        None
    }
}

async fn locked(mut owner: Owner<Row>) -> Owner<Row> {
    owner.lock(&Row(1), Mode::X).await.unwrap();
    owner
}

#[test]
fn a_lock_of_an_owner() {
    let locks = LockTable::new();
    let holder = done(owning(locked(locks.owner(0))));
    let given_up = waits(owning(locked(locks.owner(0))));
    let waiting = waits(owning(locked(locks.owner(0))));
    drop((given_up, holder));
    assert_eq!(done(waiting).held(&Row(1)), Some(Mode::X));
    assert_eq!((locks.len(), locks.counts().owners), (0, 0));
}

async fn entered(mut ticket: Ticket) -> Ticket {
    ticket.enter().await;
    ticket
}

#[test]
fn a_ticket() {
    let gate = TierGate::new();
    let inside = done(owning(entered(gate.join(1))));
    let given_up = waits(owning(entered(gate.join(2))));
    let waiting = waits(owning(entered(gate.join(3))));
    drop((given_up, inside));
    assert!(done(waiting).entered());
    assert!(gate.snapshot().outstanding.is_empty());
}

#[test]
fn a_turn() {
    let queue = Queue::new();
    let conversation = queue
        .lane(1, Limit::Unlimited)
        .unwrap()
        .conversation()
        .unwrap();
    let clone = queue.clone();
    let received =
        async move { Ok::<_, conversant::queue::NoMore>(clone.receive().await?.into_owned()) };
    let waiting = waits(owning(received));
    conversation.send(7).unwrap();
    let mut turn = done(waiting).unwrap();
    assert_eq!(turn.next().map(|one| one.complete()), Some(7));
}

/// Wakes the blocked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block<T>(mut wait: Owning<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match wait.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn the_tasks_of_a_caller() {
    let scheduler = Arc::new(Scheduler::builder().workers(1).build().unwrap());
    let caller = Arc::new(scheduler.caller("one", CallerOptions::default()).unwrap());
    let (go, gate) = mpsc::channel();
    let run = move || gate.recv().map_err(drop);
    let mut task = caller.exec(run).map_err(|r| r.reason).unwrap();
    let outcome = waits(owning(async move { task.outcome().await }));
    let own = caller.clone();
    let synchronized = waits(owning(async move { own.synchronize().await }));
    go.send(3).unwrap();
    assert_eq!(block(synchronized).unwrap().ok, 1);
    assert!(matches!(block(outcome).unwrap().verdict, Verdict::Ok(3)));
    let released = async move { caller.release(How::Drain).await };
    block(owning(released)).unwrap();
    let down = async move { scheduler.shutdown(How::Drain).await };
    block(owning(down)).unwrap();
}
