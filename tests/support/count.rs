//! A waker that counts how often it is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::Wake;

#[derive(Default)]
pub(crate) struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Count {
    pub(crate) fn get(&self) -> u32 {
        self.0.load(SeqCst)
    }
}
