//! Ctrl-C. Named pipes and the output of taskrun synchronise everything; no test
//! depends on time.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr};

use rustix::process::{Pid, Signal, kill_process};

use crate::taskrun_cli::place::Place;

struct Run {
    child: Child,
    says: BufReader<ChildStderr>,
}

impl Run {
    fn start(place: &Place, readers: u32) -> Self {
        let readers = format!("--readers={readers}");
        let command = place
            .command(["list.csv", "--log=log.csv", &readers])
            .spawn();
        let mut child = command.expect("taskrun starts");
        let says = BufReader::new(child.stderr.take().expect("it is piped"));
        Self { child, says }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("taskrun is there");
    }

    /// Waits until taskrun has seen the first Ctrl-C.
    fn interrupt(&mut self, signal: Signal) {
        self.signal(signal);
        let mut line = String::new();
        self.says.read_line(&mut line).expect("it says so");
        assert!(line.starts_with("taskrun: interrupted, "), "{line}");
    }

    fn end(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.says.read_to_string(&mut rest).expect("text");
        self.child.wait().expect("taskrun ends").code()
    }
}

fn first_lets_the_running_task_end(signal: Signal) {
    let place = Place::with(
        "command,arrive_ms\n\
         echo > up; read line < go; touch done,0\n\
         touch ran,0\n\
         touch ran,4000000000\n",
    );
    place.fifo("up");
    place.fifo("go");
    let mut run = Run::start(&place, 1);
    place.read("up");
    run.interrupt(signal);
    fs::write(place.path("go"), "go\n").expect("the task reads");
    assert_eq!(run.end(), Some(130));
    assert!(place.has("done") && !place.has("ran"));
    assert_eq!(place.outcomes(), ["ok", "cancelled", "cancelled"]);
    let log = place.read("log.csv");
    let last = log.lines().last().expect("a row");
    assert_eq!(last, "3,main,0,,,,4000000000.000,,,cancelled");
}

#[test]
fn one_ctrl_c() {
    first_lets_the_running_task_end(Signal::INT);
}

#[test]
fn a_request_to_terminate_is_a_ctrl_c() {
    first_lets_the_running_task_end(Signal::TERM);
}

#[test]
fn two_ctrl_c_kill_the_whole_group() {
    // The task's child keeps `alive` open while it lives; the task and its child ignore
    // a Ctrl-C.
    let place = Place::with(
        "command\n\"trap '' INT TERM; exec 3> alive; echo up >&3; sleep 100000 & wait\"\ntouch ran\n",
    );
    place.fifo("alive");
    let mut run = Run::start(&place, 1);
    let alive = fs::File::open(place.path("alive")).expect("the task opens it too");
    let mut alive = BufReader::new(alive);
    let mut line = String::new();
    alive.read_line(&mut line).expect("the task writes");
    run.interrupt(Signal::INT);
    run.signal(Signal::INT);
    assert_eq!(run.end(), Some(130));
    let mut rest = String::new();
    alive.read_to_string(&mut rest).expect("nobody holds it");
    assert_eq!(place.outcomes(), ["signal(9)", "cancelled"]);
    assert!(!place.has("ran"));
}

#[test]
fn two_ctrl_c_end_a_sleep() {
    // Tasks start in the order of the file: when the second one writes, a worker
    // already runs the sleep.
    let place = Place::with("command,duration_ms\n,4294967295\necho > up; read line < never,0\n");
    place.fifo("up");
    place.fifo("never");
    let mut run = Run::start(&place, 2);
    place.read("up");
    run.interrupt(Signal::INT);
    run.signal(Signal::INT);
    assert_eq!(run.end(), Some(130));
    assert_eq!(place.outcomes(), ["signal(9)", "signal(9)"]);
}

#[test]
fn ctrl_c_while_only_arrivals_are_awaited() {
    let place = Place::with("command,arrive_ms\necho > up,0\ntouch ran,4000000000\n");
    place.fifo("up");
    let mut run = Run::start(&place, 1);
    place.read("up");
    run.interrupt(Signal::INT);
    assert_eq!(run.end(), Some(130));
    assert_eq!(place.outcomes(), ["ok", "cancelled"]);
}

/// A simulation that reads its list from a pipe: it gets these signals while it reads,
/// so before anything is simulated.
fn simulation_told(signals: &[Signal]) -> (Place, Option<i32>) {
    let place = Place::with("");
    place.fifo("list");
    let command = place
        .command(["list", "--simulate", "--log=log.csv"])
        .spawn();
    let mut child = command.expect("taskrun starts");
    // Returns when taskrun opens the list.
    let list = fs::OpenOptions::new().write(true).open(place.path("list"));
    let mut list = list.expect("taskrun reads it");
    for &signal in signals {
        kill_process(Pid::from_child(&child), signal).expect("taskrun is there");
    }
    // Fails if taskrun has ended already.
    let _ = list.write_all(b"duration_ms\n1\n2\n");
    drop(list);
    let code = child.wait().expect("taskrun ends").code();
    (place, code)
}

#[test]
fn a_simulation_is_interrupted_too() {
    for signal in [Signal::INT, Signal::TERM] {
        let (place, code) = simulation_told(&[signal]);
        assert_eq!(code, Some(130));
        assert_eq!(place.outcomes(), ["cancelled", "cancelled"]);
    }
}

#[test]
fn the_second_ends_a_simulation_at_once() {
    // Two signals of one kind might be merged into one.
    let (place, code) = simulation_told(&[Signal::INT, Signal::TERM]);
    assert_eq!(code, Some(130));
    assert!(!place.has("log.csv"));
}
