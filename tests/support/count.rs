//! A waker that counts how often it is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Wake, Waker};

#[derive(Default)]
pub(crate) struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Count {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        let waker = Waker::from(Arc::clone(&count));
        (count, waker)
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(SeqCst)
    }

    /// Whether only its owner has a clone of the waker.
    pub(crate) fn is_let_go(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 2
    }
}
