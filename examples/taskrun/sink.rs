//! Reads the output of children that outlive their command.
//!
//! Closing their pipe would kill them at their next line; leaving it unread would stop them. So
//! one thread reads all these pipes and discards the data. It starts with the first such child,
//! and lasts as long as the process.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

/// Above this the oldest pipe is closed: a list whose every command leaves a
/// child behind must not use up the file descriptors.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Sink {
    thread: Mutex<Option<Handle>>,
}

#[derive(Debug)]
struct Handle {
    pipes: Sender<PipeReader>,
    /// One byte for each pipe sent, since the thread waits on descriptors.
    wake: PipeWriter,
}

impl Sink {
    /// Discards the data of `pipe`. If that is not possible, closes the pipe.
    pub(crate) fn take(&self, pipe: PipeReader) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            *thread = start().ok();
        }
        if let Some(handle) = &mut *thread
            && handle.pipes.send(pipe).is_ok()
        {
            let _ = handle.wake.write_all(&[0]);
        }
    }
}

fn start() -> io::Result<Handle> {
    let (woken, wake) = io::pipe()?;
    let (pipes, incoming) = unbounded();
    thread::Builder::new()
        .name("sink".to_owned())
        .spawn(move || discard(woken, &incoming))?;
    Ok(Handle { pipes, wake })
}

fn discard(mut woken: PipeReader, incoming: &Receiver<PipeReader>) {
    let mut pipes: Vec<PipeReader> = Vec::new();
    let mut scratch = vec![0; 1 << 16];
    loop {
        let mut watched: Vec<PollFd<'_>> = pipes
            .iter()
            .chain([&woken])
            .map(|pipe| PollFd::new(pipe, PollFlags::IN))
            .collect();
        if retry_on_intr(|| poll(&mut watched, None)).is_err() {
            return;
        }
        let mut ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.pop() == Some(true) && !matches!(woken.read(&mut scratch), Ok(1..)) {
            return;
        }
        let mut ready = ready.into_iter();
        pipes.retain_mut(|pipe| {
            ready.next() != Some(true) || matches!(pipe.read(&mut scratch), Ok(1..))
        });
        pipes.extend(incoming.try_iter());
        pipes.drain(..pipes.len().saturating_sub(MOST));
    }
}
