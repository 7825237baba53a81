//! The example `agents` from outside: the built program and its exit code. It checks itself that
//! each job is done exactly once and that no limit is exceeded; here it runs with its crash.

use std::path::Path;
use std::process::{Command, Output};

fn agents(arguments: &[&str]) -> Output {
    let test = std::env::current_exe().expect("a test has a path");
    let built = test.parent().and_then(Path::parent);
    let program = built.expect("it stands in deps").join("examples/agents");
    let output = Command::new(program).args(arguments).output();
    output.expect("the example is built before its test")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn all_jobs_are_done_once_though_one_agent_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.csv");
    let file = file.to_str().unwrap();
    let small = ["--jobs", "5000", "--lease-ms", "200"];
    let crash = ["--agents", "1,64", "--crash", "2", "--save", file];
    let output = agents(&[&small[..], &crash[..]].concat());
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("5000 jobs in"), "{text}");
    assert!(text.contains("each job done exactly once"), "{text}");
    assert!(!text.contains("WRONG"), "{text}");

    // The file that it saved can be run again, without a crash.
    let again = ["--crash", "0", "--group-limit", "2", "--tenant-limit", "3"];
    let output = agents(&[&[file], &again[..]].concat());
    let text = printed(&output);
    assert!(
        output.status.success() && text.contains("5000 jobs in"),
        "{text}"
    );
    assert_eq!(text.matches("drained").count(), 4, "{text}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let output = agents(&["no/such/file.csv"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no/such/file.csv"), "{error}");
}
