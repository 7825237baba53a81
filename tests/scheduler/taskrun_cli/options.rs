//! Options: `--NAME: why`, exit 2, and nothing has run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::taskrun_cli::place::Place;

const LIST: &str = "caller,command\na=b,touch ran\n,true\n";

fn refused(arguments: &[&str], line: &str) {
    let place = Place::with(LIST);
    let seen = place.run(arguments);
    assert_eq!(seen.stderr, format!("{line}\n"), "for {arguments:?}");
    assert_eq!(seen.code, Some(2), "for {arguments:?}");
    assert_eq!(seen.stdout, "");
    assert!(!place.has("ran"), "something ran for {arguments:?}");
}

#[test]
fn values_out_of_range() {
    for (option, low, high) in [
        ("--readers", 1, 1024),
        ("--cap", 1, u32::MAX),
        ("--bypass", 0, u32::MAX),
    ] {
        for bad in ["", "x", "-1", "1.5", "--quiet"] {
            let why = format!("{option}: \"{bad}\" is not a whole number from {low} to {high}");
            refused(&[option, bad, "list.csv"], &why);
        }
        let above = (u64::from(high) + 1).to_string();
        let why = format!("{option}: {above} is not from {low} to {high}");
        refused(&["list.csv", option, &above], &why);
        refused(&["list.csv", option], &format!("{option}: needs a value"));
        let twice = format!("{option}: given more than once");
        refused(&["list.csv", option, "1", option, "1"], &twice);
    }
    refused(
        &["list.csv", "--readers=0"],
        "--readers: 0 is not from 1 to 1024",
    );
    refused(
        &["list.csv", "--cap=0"],
        "--cap: 0 is not from 1 to 4294967295",
    );
}

#[test]
fn weights() {
    for (weight, why) in [
        ("a=b", "\"b\" is not a whole number from 1 to 1000000"),
        ("a=b=0", "0 is not from 1 to 1000000"),
        ("a=b=1000001", "1000001 is not from 1 to 1000000"),
        ("a=b=", "\"\" is not a whole number from 1 to 1000000"),
        ("main", "\"main\" is not CALLER=W"),
        ("b=1", "unknown caller \"b\""),
        ("=1", "unknown caller \"\""),
        ("\u{1b}=1", "unknown caller \"\\u{1b}\""),
    ] {
        refused(
            &["list.csv", "--weight", weight],
            &format!("--weight: {why}"),
        );
    }
    refused(
        &[
            "list.csv",
            "--weight",
            "a=b=1",
            "--weight",
            "main=2",
            "--weight=a=b=1",
        ],
        "--weight: caller \"a=b\" is given twice",
    );
    let place = Place::with(LIST);
    let seen = place.run(["list.csv", "--weight", "a=b=1000000", "--weight", "main=1"]);
    assert_eq!((seen.code, place.has("ran")), (Some(0), true));
}

#[test]
fn what_is_no_option() {
    for (arguments, line) in [
        (&["--fast", "list.csv"][..], "--fast: unknown option"),
        (&["-x", "list.csv"], "-x: unknown option"),
        (&["list.csv", "--simulate=1"], "--simulate: takes no value"),
        (&["list.csv", "--\u{7}"], "--\\u{7}: unknown option"),
        (&[], "FILE: missing, give a task list"),
        (&["--quiet"], "FILE: missing, give a task list"),
        (
            &["list.csv", "other.csv"],
            "FILE: only one can be given, \"other.csv\" is one too many",
        ),
        (&[""], "FILE: missing, give a task list"),
    ] {
        refused(arguments, line);
    }
    let place = Place::with(LIST);
    let seen = place.run([OsStr::from_bytes(b"--cap=\xff"), OsStr::new("list.csv")]);
    let line = "--cap: \"\\xff\" is not a whole number from 1 to 4294967295\n";
    assert_eq!((seen.stderr.as_str(), seen.code), (line, Some(2)));
    let seen = place.run([
        OsStr::from_bytes(b"--weight=\xff=1"),
        OsStr::new("list.csv"),
    ]);
    assert_eq!(seen.stderr, "--weight: \"\\xff=1\" is not UTF-8\n");
}

#[test]
fn output_files_that_cannot_be_opened() {
    let gone = "No such file or directory (os error 2)";
    for option in ["--log", "--trace"] {
        let line = format!("{option}: no/where: {gone}");
        refused(&["list.csv", option, "no/where"], &line);
        let line = format!("{option}: .: Is a directory (os error 21)");
        refused(&["list.csv", option, "."], &line);
        let line = format!("{option}: ./list.csv: is the task list too");
        refused(&["list.csv", option, "./list.csv"], &line);
    }
    refused(
        &["list.csv", "--log", "x", "--trace", "./x"],
        "--trace: ./x: is the log too",
    );
}

#[test]
fn a_mistake_empties_no_file() {
    let place = Place::with(LIST);
    std::fs::write(place.path("log.csv"), "kept").expect("a file");
    for arguments in [
        &["list.csv", "--log", "log.csv", "--trace", "no/where"][..],
        &["list.csv", "--log", "log.csv", "--trace", "log.csv"],
        &["list.csv", "--log", "log.csv", "--trace", "list.csv"],
        &["list.csv", "--log", "log.csv", "--weight", "nobody=1"],
        &["none.csv", "--log", "log.csv"],
    ] {
        assert_eq!(place.run(arguments).code, Some(2), "for {arguments:?}");
        assert_eq!(place.read("log.csv"), "kept", "for {arguments:?}");
        assert_eq!(place.read("list.csv"), LIST, "for {arguments:?}");
    }
    assert!(!place.has("ran"));
}

#[test]
fn help_and_version() {
    let place = Place::new();
    let help = place.run(["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    for option in [
        "--readers",
        "--simulate",
        "--bypass",
        "--cap",
        "--weight",
        "--keep-going",
        "--log",
        "--trace",
        "--quiet",
    ] {
        assert!(help.stdout.contains(option), "{option} is not in the help");
    }
    let version = place.run(["--version"]);
    let line = concat!("taskrun ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((version.code, version.stdout.as_str()), (Some(0), line));
}
