//! Web-hooks on tokio: 10,000 customers, each served in order, 200 of them at a time. A
//! failing end point is retried after a back-off that doubles; one that stays down blocks
//! nobody else. At most 1,000 hooks are held: a sender waits for room.
//!
//! `cargo run --example web_hooks`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use conversant::prelude::*;
use conversant::queue::Detached;
use conversant::ticker::keep_time;
use tokio::task::JoinSet;

const CUSTOMERS: u32 = 10_000;

struct Hook {
    customer: u32,
    number: u32,
}

/// Shared by all tasks.
struct Service {
    queue: Queue<Hook>,
    hooks: Keyed<u32, Hook>,
    failures: AtomicU32,
    /// How many hooks each customer has had.
    delivered: Vec<AtomicU32>,
}

/// Sends three hooks to each customer.
async fn send(service: Arc<Service>, customers: impl Iterator<Item = u32> + Clone) {
    for number in 0..3 {
        for customer in customers.clone() {
            let hook = Hook { customer, number };
            let sent = service.hooks.send_wait(customer, hook).await;
            sent.map_err(|refused| refused.reason).expect("it is open");
        }
    }
}

/// Starts a task for each hook. Runs until the queue is closed and nothing deliverable is left.
async fn deliver_all(service: Arc<Service>) {
    let mut tasks = JoinSet::new();
    while let Ok(mut turn) = service.queue.receive().await {
        // A detached hook outlives the turn, and keeps its place under the cap of the lane.
        while let Some(hook) = turn.next() {
            tasks.spawn(deliver(Arc::clone(&service), hook.detach()));
        }
        while tasks.try_join_next().is_some() {}
    }
    tasks.join_all().await;
}

async fn deliver(service: Arc<Service>, hook: Detached<Hook>) {
    if post(&hook, hook.attempt()).await {
        let delivered = &service.delivered[hook.customer as usize];
        assert_eq!(delivered.fetch_add(1, Relaxed), hook.number, "out of order");
        hook.complete();
    } else {
        service.failures.fetch_add(1, Relaxed);
        hook.give_back();
    }
}

/// Customer 7 is gone; a tenth of the others fail once, at their second hook.
async fn post(hook: &Hook, attempt: u32) -> bool {
    tokio::task::yield_now().await;
    hook.customer != 7 && (hook.customer % 10 != 3 || hook.number != 1 || attempt > 1)
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let pauses = (Duration::from_millis(1), Duration::from_secs(60));
    let queue = Queue::builder().capacity(1_000).attempts(3);
    let queue = queue.back_off(pauses.0, pauses.1).build()?;
    let service = Arc::new(Service {
        hooks: Keyed::new(queue.lane(1, 200)?),
        queue: queue.clone(),
        failures: AtomicU32::new(0),
        delivered: (0..CUSTOMERS).map(|_| AtomicU32::new(0)).collect(),
    });
    let mut senders = JoinSet::new();
    let ticker = keep_time(queue.clone(), Instant::now(), tokio::time::sleep);
    let ticker = tokio::spawn(ticker);
    for n in 0..4 {
        senders.spawn(send(Arc::clone(&service), (n..CUSTOMERS).step_by(4)));
    }
    let reader = tokio::spawn(deliver_all(Arc::clone(&service)));
    senders.join_all().await;
    // The end: nothing more comes in; waiting hooks still go out, also by a retry.
    queue.close();
    reader.await?;
    ticker.abort();

    let delivered: u32 = service.delivered.iter().map(|n| n.load(Relaxed)).sum();
    println!("{delivered} hooks delivered, each customer's in order");
    println!("{} tries failed", service.failures.load(Relaxed));
    for poisoned in queue.poisoned() {
        let kept = queue.drain(poisoned.group)?;
        println!("customer {} is owed {}", kept[0].customer, kept.len());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Runtime::new()?.block_on(serve())
}
