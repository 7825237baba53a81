//! What a run, as opposed to a simulation, needs from the system.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::command::{self, Ended, Output};
use crate::input::Row;
use crate::options::Options;
use crate::outcome::Verdict;
use crate::running::Running;
use crate::signals;
use crate::sink::Sink;

#[derive(Debug)]
pub(crate) struct Session {
    running: Arc<Running>,
    sink: Sink,
    /// One event, at the first Ctrl-C. From then on no task may start; the second Ctrl-C is
    /// handled elsewhere and kills what runs.
    pub(crate) interrupts: Receiver<()>,
}

impl Session {
    pub(crate) fn begin(options: &Options) -> io::Result<Self> {
        command::allow_descriptors(options.readers);
        let running = Arc::new(Running::default());
        let interrupts = signals::watch(Arc::clone(&running))?;
        Ok(Self {
            running,
            sink: Sink::default(),
            interrupts,
        })
    }

    /// Does one task, a command or a sleep, on the calling thread. A task that a reader took at
    /// the moment of Ctrl-C is not begun.
    pub(crate) fn work(&self, row: &Row) -> Ended {
        if self.running.is_interrupted() {
            return Ended {
                verdict: Verdict::Cancelled,
                output: Output::default(),
            };
        }
        match &row.command {
            Some(command) => command::run(command, &self.running, &self.sink),
            None => Ended {
                verdict: self
                    .running
                    .sleep(Duration::from_millis(row.duration_ms.into())),
                output: Output::default(),
            },
        }
    }
}
