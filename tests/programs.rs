//! The examples of one file each, from outside: the built program, all its output, and its exit
//! code.

use std::path::Path;
use std::process::{Command, Output};

fn run(example: &str, arguments: &[&str]) -> Output {
    let test = std::env::current_exe().expect("a test has a path");
    let built = test.parent().and_then(Path::parent);
    let examples = built.expect("it stands in deps").join("examples");
    let output = Command::new(examples.join(example))
        .args(arguments)
        .output();
    output.expect("the example is built before its test")
}

/// Its output, if it reports success.
fn printed(example: &str) -> String {
    let output = run(example, &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn web_hooks() {
    let expected = "29997 hooks delivered, each customer's in order\n\
                    1003 tries failed\n\
                    customer 7 is owed 3\n";
    assert_eq!(printed("web_hooks"), expected);
}

#[test]
fn build_tool_makes_each_file_of_what_it_needs() {
    let text = printed("build_tool");
    let library = "lib.a(net.o(config.h) disk.o(config.h))";
    let package = format!("package: package(app(main.o(config.h) {library}) manual)");
    assert!(text.contains(&package), "{text}");
    assert!(text.ends_with("8 of 8 made\n"), "{text}");
}

#[test]
fn build_tool_makes_what_does_not_need_a_file_that_fails() {
    let output = run("build_tool", &["net.o"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "config.h: config.h\n\
                    main.o: main.o(config.h)\n\
                    net.o: failed: the compiler crashed\n\
                    disk.o: disk.o(config.h)\n\
                    lib.a: failed: there is no net.o\n\
                    app: failed: there is no lib.a\n\
                    manual: manual\n\
                    package: failed: there is no app\n\
                    4 of 8 made\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn job_workers() {
    let lost = "bank 0.0, shop 0.0, shop 1.0, bank 1.0, shop 2.0, shop 3.0";
    let expected = format!(
        "a worker vanishes with {lost}\n\
         79 jobs are done, each once\n\
         shop 0.0 was tried again: true\n\
         shop 1.5 was tried again: true\n\
         bank 3.2 is dead after 3 attempts\n\
         6 claims of the worker that vanished are refused\n"
    );
    assert_eq!(printed("job_workers"), expected);
}

#[test]
fn small_database() {
    let expected = "of two that met 1 was tried again\n\
                    1602 transactions\n\
                    no money was made: true\n";
    assert_eq!(printed("small_database"), expected);
}

#[test]
fn actors() {
    let expected = "100000 actors: 100000 rumours, 99900 thanks\n";
    assert_eq!(printed("actors"), expected);
}

#[test]
fn on_tokio() {
    let expected = "fetch rates: ok\n\
                    book rent: ok\n\
                    book wages: ok\n\
                    fetch orders: failed: no network\n\
                    close the day: ok\n\
                    report: ok\n\
                    5 of 6 went well\n\
                    tier by tier: true\n\
                    the ledger: book rent, book wages, close the day\n";
    assert_eq!(printed("on_tokio"), expected);
}

#[test]
fn on_rayon() {
    let expected = "made main.o\n\
                    made net.o\n\
                    made disk.o\n\
                    made app\n\
                    made tests\n\
                    5 tasks: 5 ok\n\
                    upload: failed: no network\n\
                    again: ok\n";
    assert_eq!(printed("on_rayon"), expected);
}

#[test]
fn policy() {
    let order = "etl0.4 web0.11 web0.6 etl0.5 web0.7 web0.8 etl1.1 web0.9 web0.10 etl1.2 etl1.3";
    let expected =
        format!("in virtual time it takes 11s\nsimulated: {order}\nrun:       {order}\n");
    assert_eq!(printed("policy"), expected);
}
