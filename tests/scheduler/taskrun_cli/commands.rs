//! Commands: how they end, what they write, and what they leave behind.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;

use crate::taskrun_cli::place::{Place, program};

/// A list with one row for each command, which may hold any characters.
fn list<S: AsRef<str>>(commands: impl IntoIterator<Item = S>) -> Vec<u8> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(["command"]).expect("to memory");
    for command in commands {
        rows.write_record([command.as_ref()]).expect("to memory");
    }
    rows.into_inner().expect("to memory")
}

const LOGGED: [&str; 3] = ["list.csv", "--log", "log.csv"];

#[test]
fn how_a_command_ends() {
    let place = Place::with(list([
        "true",
        "exit 3",
        "kill -TERM $$",
        "nonexistent-command 2>/dev/null",
        "",
    ]));
    let seen = place.run(LOGGED);
    assert_eq!(seen.code, Some(1));
    let outcomes = ["ok", "failed(3)", "signal(15)", "failed(127)", "ok"];
    assert_eq!(place.outcomes(), outcomes);
    assert!(
        seen.stdout.contains("failures      3 (ids 2, 3, 4)\n"),
        "{}",
        seen.stdout
    );
}

#[test]
fn output_is_shown_on_failure_alone() {
    let place = Place::with(list([
        "echo unseen",
        "echo one; echo two >&2; printf '\\033[31m\\tred\\r\\233\\302\\233'; exit 4",
    ]));
    for quiet in [None, Some("--quiet")] {
        let seen = place.run(["list.csv", "--readers=1"].into_iter().chain(quiet));
        let shown = "task 2 (caller \"main\", line 3): failed(4)\n\
                     one\ntwo\n\\u{1b}[31m\tred\\r\\x9b\\u{9b}\n";
        assert_eq!(seen.stderr, shown);
        assert!(!seen.stdout.contains("unseen"));
        assert_eq!(seen.stdout.is_empty(), quiet.is_some());
    }
}

#[test]
fn a_hundred_megabytes_flow_through() {
    let place = Place::with(list([
        "head -c 100000000 /dev/zero",
        "head -c 100000000 /dev/zero | tr '\\0' x; exit 1",
    ]));
    let seen = place.run(LOGGED);
    assert_eq!(place.outcomes(), ["ok", "failed(1)"]);
    let kept = "x".repeat(65_536);
    let shown = format!(
        "task 2 (caller \"main\", line 3): failed(1)\n\
         (99934464 bytes of output before this are not kept)\n{kept}\n"
    );
    assert!(
        seen.stderr == shown,
        "{} bytes are shown",
        seen.stderr.len()
    );
}

#[test]
fn standard_input_is_empty() {
    let place = Place::with(list(["cat; test ! -t 0", "read line"]));
    place.run(LOGGED);
    assert_eq!(place.outcomes(), ["ok", "failed(1)"]);
}

#[test]
fn each_command_leads_a_process_group() {
    let place = Place::with(list(["kill -s 0 -- -$$"]));
    place.run(LOGGED);
    assert_eq!(place.outcomes(), ["ok"]);
}

#[test]
fn a_child_left_behind_holds_up_nothing() {
    let place = Place::with(list([
        "echo before; (read line < hold; echo late) & exit 7",
    ]));
    place.fifo("hold");
    let seen = place.run(LOGGED);
    assert_eq!(place.outcomes(), ["failed(7)"]);
    assert!(
        seen.stderr.ends_with("failed(7)\nbefore\n"),
        "{}",
        seen.stderr
    );
    // The child still runs; this lets it end.
    let hold = OpenOptions::new()
        .read(true)
        .write(true)
        .open(place.path("hold"));
    hold.and_then(|mut hold| hold.write_all(b"go\n"))
        .expect("the child is let go");
}

#[test]
fn what_a_child_left_behind_writes_is_discarded() {
    // The child's output is discarded, but the child must not die of that. The second
    // task starts when the first has ended. It lets the child go on, and keeps taskrun
    // running meanwhile.
    let child = "(read line < go; yes | head -c 1000000; echo more; echo alive > alive)";
    let tasks = [&format!("{child} & exit 1"), "echo > go; read line < last"];
    let place = Place::with(list(tasks));
    for fifo in ["go", "alive", "last"] {
        place.fifo(fifo);
    }
    let one = ["list.csv", "--log", "log.csv", "--readers=1"];
    let run = place.command(one).spawn().expect("taskrun starts");
    assert_eq!(place.read("alive"), "alive\n");
    fs::write(place.path("last"), "go\n").expect("the second task reads");
    let seen = run.wait_with_output().expect("taskrun ends");
    assert_eq!(place.outcomes(), ["failed(1)", "ok"]);
    let shown = String::from_utf8_lossy(&seen.stderr).into_owned();
    assert!(!shown.contains("more"), "{} bytes are shown", shown.len());
}

#[test]
fn a_flood_from_a_child_left_behind_ends_nothing_late() {
    let place = Place::with(list(["yes & exit 0"]));
    place.run(LOGGED);
    assert_eq!(place.outcomes(), ["ok"]);
}

#[test]
fn a_command_that_cannot_be_started() {
    let place = Place::with(list(["touch ran"]));
    let run = place.command(LOGGED).env("PATH", "/nonexistent").output();
    let seen = run.expect("taskrun starts");
    assert_eq!(seen.status.code(), Some(1));
    assert_eq!(place.outcomes(), ["failed(127)"]);
    assert!(!place.has("ran"));
}

#[test]
fn descriptors_are_given_back() {
    let commands = (0..300).map(|n| if n % 2 == 0 { "true" } else { "true & exit 0" });
    let place = Place::with(list(commands));
    let run = Command::new("sh")
        .args([
            "-c",
            "ulimit -n 48; exec \"$0\" list.csv --readers 2 --log log.csv",
        ])
        .arg(program())
        .current_dir(place.path(""))
        .output();
    assert_eq!(run.expect("sh starts").status.code(), Some(0));
    assert_eq!(place.outcomes(), vec!["ok"; 300]);
}

#[test]
fn a_task_without_a_command_sleeps() {
    let place = Place::with("duration_ms,arrive_ms\n20,5\n0,0\n");
    let seen = place.run(LOGGED);
    assert_eq!(seen.code, Some(0));
    let log = place.read("log.csv");
    let mut rows = csv::Reader::from_reader(log.as_bytes());
    let first = rows.records().next().expect("a row").expect("CSV");
    let time = |column: usize| first[column].parse::<f64>().expect("a number");
    assert!(time(6) >= 5.0 && time(7) >= time(6) && time(8) >= time(7) + 20.0);
}

#[test]
fn the_nightly_batch() {
    let batch = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/nightly.csv");
    let place = Place::new();
    let run = place
        .command([batch, "--readers=1", "--log=log.csv"])
        .env("TMPDIR", place.path(""))
        .output();
    let run = run.expect("taskrun starts");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    assert_eq!(run.status.code(), Some(0));
    let left = fs::read_dir(place.path(""))
        .expect("the place is there")
        .count();
    assert_eq!(left, 1, "only the log is left");
    assert_eq!(place.run([batch, "--simulate"]).code, Some(0));
}
