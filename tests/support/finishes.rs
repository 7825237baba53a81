//! A guard against tests that hang.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Runs a test that would hang if a wake-up were lost; the limit only turns a
/// hang into a failure.
pub(crate) fn finishes(test: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel::<()>();
    let runs = thread::spawn(move || {
        let _done = done;
        test();
    });
    let hung = finished.recv_timeout(Duration::from_secs(120));
    assert_ne!(hung, Err(RecvTimeoutError::Timeout), "hung");
    if let Err(panic) = runs.join() {
        std::panic::resume_unwind(panic);
    }
}
