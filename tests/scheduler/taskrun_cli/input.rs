//! Bad input: one exact line, exit 2, and nothing has run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::taskrun_cli::place::Place;

/// The first row of every list would make the file `ran`.
fn refused(list: impl AsRef<[u8]>, line: &str) {
    let shown = String::from_utf8_lossy(list.as_ref()).into_owned();
    let place = Place::with(&list);
    let seen = place.run(["list.csv", "--log", "log.csv", "--keep-going"]);
    assert_eq!(seen.stderr, format!("{line}\n"), "for {shown:?}");
    assert_eq!(seen.code, Some(2), "for {shown:?}");
    assert_eq!(seen.stdout, "");
    assert!(!place.has("ran"), "something ran for {shown:?}");
    assert!(!place.has("log.csv"), "a log was opened for {shown:?}");
}

fn accepted(list: impl AsRef<[u8]>, tasks: usize) {
    let shown = String::from_utf8_lossy(list.as_ref()).into_owned();
    let place = Place::with(&list);
    let seen = place.run(["list.csv", "--simulate", "--log", "log.csv"]);
    assert_eq!(seen.stderr, "", "for {shown:?}");
    assert_eq!(seen.code, Some(0), "for {shown:?}");
    assert_eq!(place.outcomes(), vec!["ok"; tasks], "for {shown:?}");
}

#[test]
fn files_without_a_header_are_refused() {
    for list in ["", "\n", "\r\n\r\n", "\u{feff}", "\u{feff}\r\n"] {
        refused(list, "list.csv:1: no header");
    }
}

#[test]
fn headers() {
    for (list, line) in [
        (
            "colour,command\n,touch ran\n",
            "list.csv:1: column colour: unknown",
        ),
        (
            "\n\nCommand\ntouch ran\n",
            "list.csv:3: column Command: unknown",
        ),
        (
            " command\ntouch ran\n",
            "list.csv:1: column  command: unknown",
        ),
        ("touch ran\n", "list.csv:1: column touch ran: unknown"),
        (
            "command,tier,command\ntouch ran,0,\n",
            "list.csv:1: column command: given twice",
        ),
        (
            "command,\ntouch ran,\n",
            "list.csv:1: column 2: without a name",
        ),
        (
            "\u{feff}\u{feff}command\ntouch ran\n",
            "list.csv:1: column \u{feff}command: unknown",
        ),
        (
            "a\u{1b}]0;x\u{7}\u{9b}\u{202e}\n",
            "list.csv:1: column a\\u{1b}]0;x\\u{7}\\u{9b}\\u{202e}: unknown",
        ),
        (
            "caller,tier\na,0\n",
            "list.csv:1: column command: missing, and so is duration_ms",
        ),
        (
            "\"command\ntouch ran\n",
            "list.csv:1: column 1: a quote that is never closed",
        ),
    ] {
        refused(list, line);
    }
    refused(
        b"command,\xff\ntouch ran,\n",
        "list.csv:1: column \\xff: unknown",
    );
    let long = format!("{}\n", "x".repeat(100_000));
    refused(
        long,
        &format!("list.csv:1: column {}…: unknown", "x".repeat(120)),
    );
}

#[test]
fn broken_quoting() {
    for (row, why) in [
        ("\"x\ny", "column command: a quote that is never closed"),
        ("\"x\"\"", "column command: a quote that is never closed"),
        ("\"x\"y", "column command: text after a closing quote"),
        ("\"x\" ", "column command: text after a closing quote"),
        (
            "x\"y\"",
            "column command: a quote in a field that is not quoted",
        ),
        (
            " \"y\"",
            "column command: a quote in a field that is not quoted",
        ),
        (
            "x\ry",
            "column command: a carriage return without a line feed",
        ),
        (
            "\"x\"\ry",
            "column command: a carriage return without a line feed",
        ),
        (
            "x\r",
            "column command: a carriage return without a line feed",
        ),
    ] {
        // The first record spans three lines, and an empty line follows.
        let list = format!("command\n\"touch ran\n\n\"\n\n{row}");
        refused(list, &format!("list.csv:6: {why}"));
    }
    refused(
        "command\ntouch ran\na,b,\"c",
        "list.csv:3: column 3: a quote that is never closed",
    );
}

#[test]
fn rows_of_the_wrong_length() {
    for (row, fields, column) in [
        ("touch x", 1, "tier"),
        ("touch x,1,", 3, "3"),
        ("touch x,1,2,3", 4, "3"),
    ] {
        let list = format!("command,tier\r\ntouch ran,0\r\n{row}\r\n");
        refused(
            list,
            &format!("list.csv:3: column {column}: the row has {fields} fields, the header 2"),
        );
    }
}

#[test]
fn numbers() {
    for (column, high) in [
        ("tier", u32::MAX),
        ("bump", 255),
        ("arrive_ms", u32::MAX),
        ("duration_ms", u32::MAX),
    ] {
        for bad in ["x", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "١"] {
            let list = format!("command,{column}\ntouch ran,0\n,{bad}\n");
            let why = format!("\"{bad}\" is not a whole number from 0 to {high}");
            refused(list, &format!("list.csv:3: column {column}: {why}"));
        }
        for bad in [u64::from(high) + 1, u64::MAX] {
            let list = format!("command,{column}\ntouch ran,0\n,{bad}\n");
            let why = format!("{bad} is not from 0 to {high}");
            refused(list, &format!("list.csv:3: column {column}: {why}"));
        }
        if !column.ends_with("_ms") {
            let list = format!("command,{column}\n,0\n,00\n,\n,{high}\n");
            accepted(list, 4);
        }
    }
    let huge = "9".repeat(200);
    let why = format!("{}… is not from 0 to 255", &huge[..120]);
    refused(
        format!("command,bump\ntouch ran,0\n,{huge}\n"),
        &format!("list.csv:3: column bump: {why}"),
    );
    accepted("duration_ms,arrive_ms\n4294967295,4294967295\n", 1);
}

#[test]
fn text_that_is_not_utf_8() {
    for column in ["caller", "group", "command", "tier"] {
        let mut list = format!("duration_ms,{column}\n0,\n0,").into_bytes();
        list.extend(b"\xc3\x28\n");
        refused(list, &format!("list.csv:3: column {column}: not UTF-8"));
    }
}

#[test]
fn a_group_must_not_go_down_in_tier() {
    refused(
        "command,tier,group\ntouch ran,3,g\n,2,\n,2,g\n",
        "list.csv:4: column tier: group \"g\" of caller \"main\" goes down from 3 (line 2) to 2",
    );
    // In order of arrival the second row is the earlier one.
    refused(
        "command,tier,group,arrive_ms,caller\ntouch ran,1,g,9,\u{85}\n,2,g,8,\u{85}\n",
        "list.csv:2: column tier: group \"g\" of caller \"\\u{85}\" goes down from 2 (line 3) to 1",
    );
    accepted(
        "duration_ms,tier,group,arrive_ms\n0,2,g,9\n0,1,g,8\n0,2,g,9\n",
        3,
    );
    accepted(
        "duration_ms,tier,group,caller\n0,2,g,a\n0,1,g,b\n0,1,,a\n",
        3,
    );
}

#[test]
fn commands_that_the_system_does_not_take() {
    refused(
        "command\ntouch ran\ntouch \0x\n",
        "list.csv:3: column command: a NUL byte, which no command can hold",
    );
    accepted("command\nx\0y\n", 1);
    if cfg!(target_os = "linux") && rustix::param::page_size() == 4096 {
        let longest = format!(": {}", "x".repeat(131_069));
        let place = Place::with(format!("command\n{longest}\n"));
        assert_eq!(place.run(["list.csv"]).code, Some(0));
        refused(
            format!("command\ntouch ran\n{longest}y\n"),
            "list.csv:3: column command: 131072 bytes, the system takes 131071",
        );
        accepted(format!("command\n{longest}y\n"), 1);
    }
}

#[test]
fn files_that_cannot_be_read() {
    let place = Place::new();
    let seen = place.run(["none.csv"]);
    assert_eq!(
        seen.stderr,
        "none.csv: No such file or directory (os error 2)\n"
    );
    assert_eq!(seen.code, Some(2));
    fs::create_dir(place.path("folder")).expect("a folder");
    let seen = place.run(["folder"]);
    assert_eq!(seen.stderr, "folder: Is a directory (os error 21)\n");
    assert_eq!(seen.code, Some(2));
    let seen = place.run([OsStr::from_bytes(b"a\x1b[2J\n\xff")]);
    let shown = "a\\u{1b}[2J\\n\\xff: No such file or directory (os error 2)\n";
    assert_eq!(seen.stderr, shown);
}

#[test]
fn what_is_accepted() {
    // No rows, with and without an end of line.
    accepted("command", 0);
    accepted("\u{feff}duration_ms,command\r\n", 0);
    // A byte-order mark before a quoted name, CRLF, quoted fields, empty
    // lines, no newline at the end.
    accepted(
        "\u{feff}\"command\",tier\r\n\"a,\"\"b\"\"\r\nc\",1\r\n\r\n\"\",\"\"\r\n,",
        3,
    );
    // In a list of one column an empty line is no row, an empty field is one.
    accepted("command\n\n\"\"\n\n", 1);
    accepted(
        "command,duration_ms,arrive_ms,bump,group,tier,caller\n,,,,,,\n",
        1,
    );
}
