//! The example `priority_service` from outside: the built program, all its output, and its exit
//! code. It checks itself that each request has one fate and that nothing is left behind.

use std::path::Path;
use std::process::{Command, Output};

fn service(arguments: &[&str]) -> Output {
    let test = std::env::current_exe().expect("a test has a path");
    let built = test.parent().and_then(Path::parent);
    let built = built.expect("it stands in deps");
    let program = built.join("examples/priority_service");
    let output = Command::new(program).args(arguments).output();
    output.expect("the example is built before its test")
}

/// What it printed, if it says that all is well.
fn printed(arguments: &[&str]) -> String {
    let output = service(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("WRONG"), "{text}");
    text
}

/// The numbers of a line.
fn numbers<'t>(text: &'t str, line: &str) -> Vec<u32> {
    let found = text.lines().find_map(|l| l.strip_prefix(line));
    let numbers = found.unwrap_or_else(|| panic!("no {line} in {text}"));
    let number = |word: &'t str| word.parse().expect("a number");
    numbers.split_whitespace().map(number).collect()
}

/// After the urgent ones: all others, in order of arrival.
fn then_the_others(mut urgent: Vec<u32>) -> Vec<u32> {
    urgent.extend((1..100).filter(|n| n % 10 != 0));
    urgent
}

fn every_other(order: &[u32], from: usize) -> Vec<u32> {
    order.iter().skip(from).step_by(2).copied().collect()
}

const NOTHING_LEFT: &str = "left behind: 0 dialogs, 0 pairings, 0 messages, 0 groups\n";

/// SEMANTICS 1E.1.
#[test]
fn e1_the_script() {
    let text = printed(&[]);
    let expected = then_the_others(vec![0, 80, 90, 70, 60, 50, 40, 30, 20, 10]);
    let order = numbers(&text, "order of service:");
    assert_eq!(order.len(), 100);
    assert_eq!(order, expected);
    assert_eq!(order[10..20], [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
    let (a, b) = (numbers(&text, "reader A:"), numbers(&text, "reader B:"));
    assert_eq!(a[..9], [0, 90, 60, 40, 20, 1, 3, 5, 7]);
    assert_eq!(b[..9], [80, 70, 50, 30, 10, 2, 4, 6, 8]);
    assert_eq!((a, b), (every_other(&order, 0), every_other(&order, 1)));
    let rest = text.lines().skip(3).collect::<Vec<_>>();
    let expected = [
        "answered: 100",
        "the last work ended at 100 s",
        NOTHING_LEFT.trim_end(),
    ];
    assert_eq!(rest, expected);
}

/// SEMANTICS 1E.2: all bumps before the second dispatch.
#[test]
fn e2_all_bumps_first() {
    let text = printed(&["--second-after", "99"]);
    let expected = then_the_others(vec![0, 90, 80, 70, 60, 50, 40, 30, 20, 10]);
    assert_eq!(numbers(&text, "order of service:"), expected);
    assert!(text.ends_with(NOTHING_LEFT), "{text}");
}

/// SEMANTICS 1E.6: the order of 1 needs K >= 9; with 8 the oldest is served before the last bump.
#[test]
fn e6_the_bypass() {
    let order = |bypass| numbers(&printed(&["--bypass", bypass]), "order of service:");
    assert_eq!(order("9"), order("64"));
    assert_eq!(order("8")[..11], [0, 80, 90, 70, 60, 50, 40, 30, 20, 1, 10]);
    assert_eq!(order("0"), Vec::from_iter(0..100));
}

/// SEMANTICS 1E.5: errors and ends cross, and the pairing is gone.
#[test]
fn e5_errors_cross_both_ways() {
    // 50 fails in the back end; 7 and 90 hang up while they wait, 0 while it is served.
    let text = printed(&["--fail", "50", "--cancel", "0,7,90"]);
    let order = numbers(&text, "order of service:");
    let spared = |n: &u32| *n != 7 && *n != 90;
    let expected = then_the_others(vec![0, 80, 70, 60, 50, 40, 30, 20, 10]);
    assert_eq!(
        order,
        expected.into_iter().filter(spared).collect::<Vec<_>>()
    );
    let fates = "answered: 96\nfailed: 1 (50)\ncancelled: 3 (0 7 90)\n";
    assert!(text.contains(fates), "{text}");
    assert!(text.ends_with(NOTHING_LEFT), "{text}");
}

/// Clients hang up by the timers of their dialogs. An answer in that very second comes too late.
#[test]
fn patience_runs_out() {
    let text = printed(&["--requests", "6", "--patience", "4", "--second-after", "0"]);
    assert_eq!(numbers(&text, "order of service:"), [0, 1, 2, 3, 4, 5]);
    assert!(
        text.contains("answered: 4 (0 1 2 3)\ngave up: 2 (4 5)\n"),
        "{text}"
    );
    let text = printed(&["--requests", "6", "--patience", "3", "--readers", "1"]);
    // 1 was begun, and is finished for no client.
    assert_eq!(numbers(&text, "order of service:"), [0, 1]);
    assert!(
        text.contains("answered: 1 (0)\ngave up: 5 (1 2 3 4 5)\n"),
        "{text}"
    );
    assert!(text.ends_with(NOTHING_LEFT), "{text}");
}

#[test]
fn real_threads_leave_nothing_behind() {
    for (work, readers) in [("0", "1"), ("0", "4"), ("1", "2")] {
        let threads = ["--threads", "--work", work, "--readers", readers];
        let text = printed(&[&threads[..], &["--fail", "30,31", "--cancel", "5,98,99"]].concat());
        let fates = |fate: &str| text.lines().any(|line| line.starts_with(fate));
        assert!(fates("cancelled: ") || fates("answered: "), "{text}");
        assert!(text.ends_with(NOTHING_LEFT), "{text}");
    }
}

#[test]
fn bad_input_is_told() {
    let told = |arguments: &[&str]| {
        let output = service(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(told(&["--fail", "100"]).contains("no request 100, only 0 to 99"));
    assert!(told(&["--cancel", "x"]).contains("invalid value 'x' for '--cancel"));
    assert!(told(&["--readers", "0"]).contains("0 is not in 1..=26"));
    assert!(told(&["--requests", "0"]).contains("0 is not in 1..=100000"));
    assert!(told(&["--threads", "--patience", "1"]).contains("cannot be used with"));
}
