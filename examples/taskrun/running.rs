//! What runs just now, so that a second Ctrl-C can end it.
//!
//! A process group may be killed only between its start and the reaping of its leader; after
//! that, its number may be another's. So a command enters after its start and leaves before it
//! is reaped, and a kill holds the lock that both take. A command that starts during the kill
//! enters later, and is killed as it enters.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::outcome::Verdict;

#[derive(Debug, Default)]
pub(crate) struct Running {
    /// From the first Ctrl-C on nothing starts.
    interrupted: AtomicBool,
    state: Mutex<State>,
    /// For tasks that sleep: signalled when everything is killed.
    killed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    killed: bool,
    groups: HashSet<Pid>,
}

/// The outcome of a task that is killed, whether it is a command or a sleep.
pub(crate) const KILLED: Verdict = Verdict::Signal(9);

fn kill(group: Pid) {
    // A process that is gone needs no signal. One that may not be signalled (another user's) is
    // waited for.
    let _ = kill_process_group(group, Signal::KILL);
}

impl Running {
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// `group` has been started and not been reaped.
    pub(crate) fn enter(&self, group: Pid) {
        let mut state = self.state.lock();
        state.groups.insert(group);
        if state.killed {
            kill(group);
        }
    }

    /// `group` is about to be reaped.
    pub(crate) fn leave(&self, group: Pid) {
        self.state.lock().groups.remove(&group);
    }

    /// Kills every group that runs, and every one that enters later.
    pub(crate) fn kill_all(&self) {
        let mut state = self.state.lock();
        state.killed = true;
        state.groups.iter().copied().for_each(kill);
        self.killed.notify_all();
    }

    /// A task without a command.
    pub(crate) fn sleep(&self, time: Duration) -> Verdict {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.killed {
            if Instant::now() >= until {
                return Verdict::Ok;
            }
            self.killed.wait_until(&mut state, until);
        }
        KILLED
    }
}
