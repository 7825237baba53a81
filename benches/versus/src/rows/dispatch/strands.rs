//! Strands: a mailbox for each key, served by jobs on another crate's pool.

use std::sync::Arc;

use parking_lot::Mutex;

use super::harness::{Log, Message, READERS, Transport};
use super::peers::{CLAIM, Mailbox, serve};
use crate::race::{pin, worker};

/// Something that runs jobs on two pinned threads.
pub trait Pool: Clone + Send + Sync + 'static {
    fn spawn(&self, job: impl FnOnce() + Send + 'static);
}

#[derive(Clone)]
pub struct Rayon(Arc<rayon::ThreadPool>);

impl Rayon {
    pub fn new() -> Self {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(READERS);
        let pool = builder.start_handler(pin).build();
        Self(Arc::new(pool.expect("threads")))
    }
}

impl Pool for Rayon {
    fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        match rayon::current_thread_index() {
            Some(_) => rayon::spawn_fifo(job),
            None => self.0.spawn_fifo(job),
        }
    }
}

#[derive(Clone)]
pub struct Tokio(tokio::runtime::Handle);

impl Tokio {
    /// The pool, and the runtime that keeps it.
    pub fn new() -> (tokio::runtime::Runtime, Self) {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let order = std::sync::atomic::Ordering::Relaxed;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(READERS)
            .on_thread_start(move || pin(next.fetch_add(1, order) % READERS))
            .build()
            .expect("threads");
        let handle = runtime.handle().clone();
        (runtime, Self(handle))
    }
}

impl Pool for Tokio {
    fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        drop(self.0.spawn(async { job() }));
    }
}

pub struct Strands<P> {
    shared: Arc<Shared>,
    pool: P,
    /// Keeps the pool's threads.
    _runtime: Option<tokio::runtime::Runtime>,
}

struct Shared {
    boxes: Vec<Mutex<Mailbox>>,
    log: Arc<Log>,
}

impl<P: Pool> Strands<P> {
    pub fn new(
        conversations: u32,
        log: &Arc<Log>,
        pool: P,
        runtime: Option<tokio::runtime::Runtime>,
    ) -> Self {
        let boxes = (0..conversations).map(|_| Mutex::default()).collect();
        let log = log.clone();
        Self {
            shared: Arc::new(Shared { boxes, log }),
            pool,
            _runtime: runtime,
        }
    }
}

/// Serves a few messages of one key on the pool, and again while there are more.
fn schedule<P: Pool>(shared: Arc<Shared>, pool: P, conversation: u32) {
    let next = pool.clone();
    pool.spawn(move || {
        let mailbox = &shared.boxes[conversation as usize];
        let mut some = Vec::with_capacity(CLAIM);
        if serve(mailbox, worker(), &shared.log, &mut some) {
            schedule(shared, next, conversation);
        }
    });
}

impl<P: Pool> Transport for Strands<P> {
    fn send(&self, message: Message) {
        self.send_all(&[message]);
    }

    fn send_all(&self, messages: &[Message]) {
        let conversation = messages[0].conversation;
        let mailbox = &self.shared.boxes[conversation as usize];
        if mailbox.lock().put(messages) {
            schedule(self.shared.clone(), self.pool.clone(), conversation);
        }
    }

    fn read(&self, _: usize, _: &Log) {}

    fn stop(&self, _: usize) {}
}
