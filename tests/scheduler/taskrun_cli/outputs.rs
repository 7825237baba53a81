//! The log, the trace, the chart and the summary.

use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::taskrun_cli::place::Place;

const LIST: &str = "caller,tier,group,bump,arrive_ms,duration_ms\n\
                    \"a,\"\"b\"\"\",7,g,3,0,1500\n\
                    ,9,,,1000,500\n";

#[test]
fn the_log_of_a_simulation() {
    let place = Place::with(LIST);
    let seen = place.run(["list.csv", "--simulate", "--readers=1", "--log=log.csv"]);
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
    let log = "id,caller,tier,group,bump,reader,queued_ms,start_ms,end_ms,outcome\n\
               1,\"a,\"\"b\"\"\",7,g,3,1,0,0,1500,ok\n\
               2,main,9,,,1,1000,1500,2000,ok\n";
    assert_eq!(place.read("log.csv"), log);
}

#[test]
fn the_log_of_a_run_has_three_decimals() {
    let place = Place::with("command\ntrue\n");
    place.run(["list.csv", "--log=log.csv"]);
    let log = place.read("log.csv");
    let mut rows = csv::Reader::from_reader(log.as_bytes());
    let row = rows.records().next().expect("a row").expect("CSV");
    for column in 6..9 {
        let (_, decimals) = row[column].split_once('.').expect("a point");
        assert_eq!(decimals.len(), 3, "{log}");
    }
}

#[test]
fn the_trace() {
    let place = Place::with(LIST);
    place.run([
        "list.csv",
        "--simulate",
        "--readers=1",
        "--trace=trace.json",
    ]);
    let trace: Value = serde_json::from_str(&place.read("trace.json")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("an array");
    let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
    let names: Vec<&Value> = of("M")
        .filter(|event| event["name"] == "thread_name")
        .collect();
    assert_eq!(names.len(), 1);
    assert_eq!(
        (&names[0]["tid"], &names[0]["args"]["name"]),
        (&json!(1), &json!("reader 1"))
    );
    let slices: Vec<&Value> = of("X").collect();
    assert_eq!(slices.len(), 2);
    let expected = json!({
        "name": "1 a,\"b\"", "cat": "task", "ph": "X", "ts": 0, "dur": 1_500_000, "pid": 1, "tid": 1,
        "args": { "id": 1, "caller": "a,\"b\"", "tier": 7, "group": "g", "outcome": "ok" },
    });
    assert_eq!(slices[0], &expected);
    assert_eq!(
        (&slices[1]["ts"], &slices[1]["dur"]),
        (&json!(1_500_000), &json!(500_000))
    );
}

#[test]
fn chart_and_summary() {
    let place = Place::with(LIST);
    let seen = place.run(["list.csv", "--simulate", "--readers=1"]);
    let row = format!("1 |a1{}b2{}|\n", "-".repeat(55), "-".repeat(17));
    assert!(seen.stdout.starts_with(&row), "{}", seen.stdout);
    let rest = "a a,\"b\"   b main\n\n\
                tasks         2\nfailures      0\nmakespan      2.000 s\n\
                utilisation   100.0 % of 1 reader\n";
    assert!(seen.stdout.contains(rest), "{}", seen.stdout);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut list = String::from("caller,duration_ms\n");
    for caller in 0..100 {
        list += &format!("日本語のとても長い名前です、本当に{caller}\u{1b}[1m\u{202e},{caller}\n");
    }
    let place = Place::with(list);
    let seen = place.run(["list.csv", "--simulate", "--readers=40"]);
    assert_eq!(seen.code, Some(0));
    for line in seen.stdout.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line}");
        assert!(
            !line.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{line:?}"
        );
    }
    let rows = seen
        .stdout
        .lines()
        .filter(|line| line.ends_with('|'))
        .count();
    assert_eq!(rows, 32);
    for more in [
        "and 8 more readers\n",
        "and 90 more callers\n",
        "* 74 more callers\n",
    ] {
        assert!(seen.stdout.contains(more), "{more}: {}", seen.stdout);
    }
}

#[test]
fn no_tasks() {
    let place = Place::with("command\n");
    for arguments in [
        &["list.csv", "--log=log.csv"][..],
        &["list.csv", "--simulate"],
    ] {
        let seen = place.run(arguments);
        assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
        assert!(seen.stdout.contains("tasks         0\n"), "{}", seen.stdout);
    }
    assert_eq!(place.read("log.csv").lines().count(), 1);
}

#[test]
fn quiet() {
    let place = Place::with("command\ntrue\n");
    let seen = place.run(["list.csv", "--quiet"]);
    assert_eq!((seen.code, &*seen.stdout, &*seen.stderr), (Some(0), "", ""));
}

#[test]
fn a_full_disk_is_reported() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let place = Place::with("command\ntrue\n");
    for option in ["--log", "--trace"] {
        let seen = place.run(["list.csv", option, "/dev/full"]);
        assert_eq!(seen.code, Some(1));
        let line = "/dev/full: cannot be written: No space left on device (os error 28)\n";
        assert_eq!(seen.stderr, line);
    }
}

#[test]
fn nobody_reads_the_output() {
    let place = Place::with("command\ntrue\nexit 1\n");
    let mut command = place.command(["list.csv", "--log=log.csv"]);
    let (unread, output) = std::io::pipe().expect("a pipe");
    drop(unread);
    let mut child = command.stdout(output).spawn().expect("taskrun starts");
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("it is piped");
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(!said.contains("panicked"), "{said}");
    let (unread, errors) = std::io::pipe().expect("a pipe");
    drop(unread);
    command.stdout(Stdio::null()).stderr(errors);
    let code = command.status().expect("taskrun starts").code();
    assert_eq!(code, Some(1));
    assert_eq!(place.outcomes(), ["ok", "failed(1)"]);
}

#[test]
fn a_failure_skips_the_callers_higher_tiers() {
    let list = "caller,tier,command\na,0,exit 1\na,0,true\na,1,touch ran\nb,1,true\n";
    let place = Place::with(list);
    let seen = place.run(["list.csv", "--readers=1", "--log=log.csv"]);
    assert_eq!((seen.code, place.has("ran")), (Some(1), false));
    assert_eq!(place.outcomes(), ["failed(1)", "ok", "skipped", "ok"]);
    let seen = place.run(["list.csv", "--readers=1", "--log=log.csv", "--keep-going"]);
    assert_eq!((seen.code, place.has("ran")), (Some(1), true));
    assert_eq!(place.outcomes(), ["failed(1)", "ok", "ok", "ok"]);
}
