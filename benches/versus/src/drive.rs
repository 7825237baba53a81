//! What a future costs its caller.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_lite::future::block_on;

/// Runs a future on this thread. A future that never waits is only polled: an uncontended task
/// pays no more.
#[inline]
pub fn drive<F: Future>(future: F, waits: bool) -> F::Output {
    if waits {
        return block_on(future);
    }
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it was to be ready at once"),
    }
}
