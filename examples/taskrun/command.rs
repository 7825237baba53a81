//! Runs one command and captures the end of its output.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{ioctl_fionread, retry_on_intr};
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions, getrlimit, setrlimit, waitid};

use crate::outcome::Verdict;
use crate::running::Running;
use crate::sink::Sink;

/// How much of a command's output is kept.
const KEPT: usize = 64 << 10;

/// How many file descriptors one running command needs at most, its start included; and how
/// many everything else needs.
const PER_COMMAND: u64 = 8;
const BESIDES: u64 = 400;

/// The end of a command's output.
#[derive(Debug, Default)]
pub(crate) struct Output {
    kept: Vec<u8>,
    seen: u64,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        // Cut at twice the size, to keep the cost of copying in proportion.
        if self.kept.len() + bytes.len() > 2 * KEPT {
            self.kept.drain(..self.kept.len().saturating_sub(KEPT));
        }
        self.kept.extend_from_slice(bytes);
    }

    /// The last 64 KiB.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.kept[self.kept.len().saturating_sub(KEPT)..]
    }

    /// How many bytes came before them.
    pub(crate) fn lost(&self) -> u64 {
        self.seen - self.tail().len() as u64
    }
}

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    pub(crate) output: Output,
}

/// Runs `command` by `sh -c` until its `sh` ends.
pub(crate) fn run(command: &str, running: &Running, sink: &Sink) -> Ended {
    let mut output = Output::default();
    let verdict = match attend(command, running, sink, &mut output) {
        Ok(status) => verdict_of(status),
        Err(error) => {
            output.push(format!("cannot be started: {error}\n").as_bytes());
            Verdict::Failed(127)
        }
    };
    Ended { verdict, output }
}

fn verdict_of(status: ExitStatus) -> Verdict {
    match (status.code(), status.signal()) {
        (Some(0), _) => Verdict::Ok,
        (Some(code), _) => Verdict::Failed(code),
        (None, Some(signal)) => Verdict::Signal(signal),
        (None, None) => Verdict::Failed(-1),
    }
}

/// Waits for the end of the command and for its output together. The end of the pipe says nothing,
/// since a child left behind may hold it. So a helper thread waits for the process, and closes a
/// pipe of its own when the process ends. The helper starts first: if it cannot be started, nothing
/// else has been.
fn attend(
    command: &str,
    running: &Running,
    sink: &Sink,
    output: &mut Output,
) -> io::Result<ExitStatus> {
    let (ended, ending) = io::pipe()?;
    thread::scope(|scope| {
        let (started, start) = bounded(1);
        thread::Builder::new()
            .stack_size(64 << 10)
            .spawn_scoped(scope, move || await_end(&start, ending))?;
        let (pipe, mut child) = spawn(command)?;
        let group = Pid::from_child(&child);
        running.enter(group);
        let _ = started.send(group);
        let rest = capture(pipe, &ended, output);
        running.leave(group);
        let status = child.wait();
        if let Some(pipe) = rest {
            sink.take(pipe);
        }
        status
    })
}

/// Closes `ending` when the process has ended, without reaping it. Nothing comes through
/// `start` if the process could not be started.
fn await_end(start: &Receiver<Pid>, ending: PipeWriter) {
    if let Ok(process) = start.recv() {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(process), options));
    }
    drop(ending);
}

/// One pipe takes standard output and standard error, so that their order stays. This process
/// keeps no writing end: `Command` closes its ends.
fn spawn(command: &str) -> io::Result<(PipeReader, Child)> {
    let (pipe, writer) = io::pipe()?;
    let child = Command::new("sh")
        .args(["-c", "--"])
        .arg(command)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    Ok((pipe, child))
}

/// Reads `pipe` until the command has ended, then what is in it at that moment. Returns the pipe if
/// another process still holds its other end.
fn capture(mut pipe: PipeReader, ended: &PipeReader, output: &mut Output) -> Option<PipeReader> {
    let mut chunk = vec![0; KEPT];
    let mut open = true;
    loop {
        let mut both = [
            PollFd::new(ended, PollFlags::IN),
            PollFd::new(&pipe, PollFlags::IN),
        ];
        // A closed pipe would be ready at once, again and again.
        let watched = if open { &mut both[..] } else { &mut both[..1] };
        if retry_on_intr(|| poll(watched, None)).is_err() {
            // Nothing more is captured, but the command is waited for.
            drop(pipe);
            let _ = { ended }.read(&mut chunk);
            return None;
        }
        if !both[0].revents().is_empty() {
            break;
        }
        open = match pipe.read(&mut chunk) {
            Ok(read @ 1..) => {
                output.push(&chunk[..read]);
                true
            }
            _ => false,
        };
    }
    if !open {
        return None;
    }
    // Not until the pipe is empty: a child left behind may fill it for ever.
    let mut left = ioctl_fionread(&pipe).unwrap_or(0) as usize;
    while left > 0 {
        let most = left.min(chunk.len());
        let Ok(read @ 1..) = pipe.read(&mut chunk[..most]) else {
            return None;
        };
        output.push(&chunk[..read]);
        left -= read;
    }
    still_held(&pipe).then_some(pipe)
}

/// With no writer left, a pipe that has been read empty reports nothing but
/// that it was hung up.
fn still_held(pipe: &PipeReader) -> bool {
    let mut watched = [PollFd::new(pipe, PollFlags::IN)];
    let at_once = Timespec::default();
    let _ = retry_on_intr(|| poll(&mut watched, Some(&at_once)));
    watched[0].revents() != PollFlags::HUP
}

/// Raises the limit of file descriptors for `readers` commands. Children inherit it, so it is
/// left alone if it suffices. If there are too few, a command cannot be started, and its
/// outcome says so.
pub(crate) fn allow_descriptors(readers: u32) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::from(readers) * PER_COMMAND + BESIDES;
    let allowed = maximum.map_or(wanted, |maximum| wanted.min(maximum));
    if current.is_some_and(|current| current < allowed) {
        let raised = Rlimit {
            current: Some(allowed),
            maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// The longest command that the system takes, in bytes: Linux bounds one
/// argument (32 pages), and all arguments together with the environment (a
/// quarter of the stack's limit, at least 128 KiB, at most 6 MiB).
pub(crate) fn longest() -> usize {
    const STRINGS: usize = "/usr/local/sbin/sh\0sh\0-c\0--\0".len();
    let one = 32 * rustix::param::page_size();
    let stack = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    let all = (stack / 4).clamp(128 << 10, 6 << 20) as usize;
    let pointer = size_of::<usize>();
    let environment: usize = std::env::vars_os()
        .map(|(name, value)| name.len() + value.len() + 2 + pointer)
        .sum();
    let besides = environment + STRINGS + 4 * pointer;
    // The NUL at the end counts.
    one.min(all.saturating_sub(besides)).saturating_sub(1)
}
