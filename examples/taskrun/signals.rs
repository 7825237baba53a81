//! Ctrl-C: the first is an event for the main loop, every later one kills what runs. SIGTERM
//! counts as a Ctrl-C.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::running::Running;

/// From here on Ctrl-C no longer ends this process. The channel gives one
/// event, at the first Ctrl-C.
pub(crate) fn watch(running: Arc<Running>) -> io::Result<Receiver<()>> {
    // The parent process may ignore SIGCHLD; then children would be reaped unseen and their
    // exit codes lost. Any handler undoes that.
    signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (first, interrupts) = bounded(1);
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut arrived = signals.forever();
            if arrived.next().is_some() {
                running.interrupt();
                let _ = first.send(());
            }
            for _ in arrived {
                running.kill_all();
            }
        })?;
    Ok(interrupts)
}

/// From here on the first Ctrl-C only sets the flag that this returns; the second ends this process
/// with `code`. For code that never waits.
pub(crate) fn tell(code: u8) -> io::Result<impl Fn() -> bool> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second finds the flag that the first has set.
        signal_hook::flag::register_conditional_shutdown(signal, code.into(), told.clone())?;
        signal_hook::flag::register(signal, told.clone())?;
    }
    // Relaxed: only the flag itself is communicated.
    Ok(move || told.load(Ordering::Relaxed))
}
