//! The example binary `taskrun --simulate` against the reference simulator, log row by log row.
//!
//! `cargo test` builds the examples first; `cargo test --test scheduler` alone does not: run
//! `cargo build --example taskrun` before it. With `ORACLE_SELF=1` the simulator replaces the
//! binary: this tests the generator and the comparison. `ORACLE_LISTS=N` compares that many
//! random lists; `ORACLE_SEED=N` is the seed of the first.

use crate::oracle;

use oracle::check::{Limits, violations};
use oracle::random::{self, Random};
use oracle::sheet::{self, Style};
use oracle::{Bypass, Options, Task, simulate};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

type Log = Vec<Vec<String>>;
type Mistake = fn(&mut Case);

/// One run of the binary.
struct Case {
    sheet: String,
    tasks: Vec<Task>,
    options: Options,
}

impl Case {
    fn random(seed: u64) -> Case {
        let mut random = Random::new(seed);
        let tasks = random::tasks(&mut random);
        let options = random::options(&mut random, &tasks);
        Case::new(tasks, options, style(seed))
    }

    fn new(tasks: Vec<Task>, options: Options, style: Style) -> Case {
        Case {
            sheet: sheet::write_tasks(&tasks, style),
            tasks,
            options,
        }
    }

    fn arguments(&self) -> Vec<String> {
        let options = &self.options;
        let bypass = match options.bypass {
            Bypass::AtMost(most) => most,
            Bypass::Unbounded => 0,
        };
        let mut arguments = vec![
            "--readers".to_owned(),
            options.readers.to_string(),
            "--bypass".to_owned(),
            bypass.to_string(),
        ];
        if let Some(cap) = options.cap {
            arguments.extend(["--cap".to_owned(), cap.to_string()]);
        }
        for (caller, weight) in &options.weights {
            arguments.extend(["--weight".to_owned(), format!("{caller}={weight}")]);
        }
        arguments
    }

    /// What the binary must write, header first.
    fn expected(&self) -> Log {
        let run = simulate(&self.tasks, &self.options);
        sheet::log_of(&self.tasks, &run.rows)
    }

    /// The first difference between what the runner logs and what it must log, in words.
    fn difference(&self, runner: &Runner) -> Option<String> {
        let expected = self.expected();
        match runner.log(self) {
            Err(why) => Some(why),
            Ok(log) => first_difference(&expected, &log),
        }
    }

    /// The same case without one of its rows.
    fn without(&self, row: usize, style: Style) -> Case {
        let mut tasks = self.tasks.clone();
        tasks.remove(row);
        let mut options = self.options.clone();
        let occurs = |caller: &str| tasks.iter().any(|task| task.caller == caller);
        options.weights.retain(|(caller, _)| occurs(caller));
        Case::new(tasks, options, style)
    }
}

fn style(seed: u64) -> Style {
    Style {
        rotate: usize::try_from(seed % 6).expect("small"),
        terse: seed.is_multiple_of(2),
        crlf: seed.is_multiple_of(5),
    }
}

fn first_difference(expected: &Log, log: &Log) -> Option<String> {
    let longest = expected.len().max(log.len());
    let differs = (0..longest).find(|&line| expected.get(line) != log.get(line))?;
    let line = |log: &Log| {
        log.get(differs)
            .map_or("nothing".to_owned(), |line| line.join(","))
    };
    Some(format!(
        "line {} of the log\n  expected {}\n  but it is {}",
        differs + 1,
        line(expected),
        line(log)
    ))
}

/// A way to get a log of a case.
enum Runner {
    Binary(PathBuf),
    Simulator,
    /// The simulator with a mistake, which the comparison must find.
    Wrong(Mistake),
}

impl Runner {
    fn chosen() -> Runner {
        if std::env::var_os("ORACLE_SELF").is_some() {
            return Runner::Simulator;
        }
        let test = std::env::current_exe().expect("the path of this test");
        let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
        let name = format!("taskrun{}", std::env::consts::EXE_SUFFIX);
        let binary = profile.join("examples").join(name);
        assert!(
            binary.is_file(),
            "{} is missing: run `cargo build --example taskrun` in the same profile first",
            binary.display()
        );
        Runner::Binary(binary)
    }

    fn log(&self, case: &Case) -> Result<Log, String> {
        match self {
            Runner::Binary(binary) => run_binary(binary, case),
            Runner::Simulator => Ok(case.expected()),
            Runner::Wrong(change) => {
                let mut wrong = Case::new(case.tasks.clone(), case.options.clone(), style(0));
                change(&mut wrong);
                let run = simulate(&wrong.tasks, &wrong.options);
                Ok(sheet::log_of(&case.tasks, &run.rows))
            }
        }
    }
}

fn run_binary(binary: &Path, case: &Case) -> Result<Log, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("tasks.csv");
    let log = folder.path().join("log.csv");
    std::fs::write(&input, &case.sheet).expect("written");
    let output = Command::new(binary)
        .args(["--simulate", "--quiet", "--log"])
        .arg(&log)
        .args(case.arguments())
        .arg(&input)
        .output()
        .expect("started");
    if !output.status.success() {
        return Err(format!(
            "{}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    sheet::read_lines(&log).map_err(|error| format!("the log cannot be read: {error}"))
}

/// Removes rows while the case still differs.
fn shrink(case: Case, runner: &Runner, style: Style) -> Case {
    let mut smallest = case;
    let mut row = 0;
    while row < smallest.tasks.len() {
        let smaller = smallest.without(row, style);
        if smaller.tasks.is_empty() || smaller.difference(runner).is_none() {
            row += 1;
        } else {
            smallest = smaller;
            row = 0;
        }
    }
    smallest
}

/// Everything that is needed to reproduce a difference by hand.
fn report(case: &Case, runner: &Runner) -> Option<String> {
    let difference = case.difference(runner)?;
    let mut text = String::new();
    let arguments: Vec<String> = case
        .arguments()
        .iter()
        .map(|argument| format!("{argument:?}"))
        .collect();
    writeln!(text, "--simulate {}", arguments.join(" ")).expect("a string");
    writeln!(text, "{}", case.sheet).expect("a string");
    writeln!(text, "{difference}\n\nthe whole log it must be:").expect("a string");
    for line in case.expected() {
        writeln!(text, "{}", line.join(",")).expect("a string");
    }
    Some(text)
}

fn number_from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The report on the first case that differs, shrunk.
fn compare(runner: &Runner, seeds: std::ops::Range<u64>) -> Option<String> {
    for seed in seeds {
        let case = Case::random(seed);
        if let Some(whole) = report(&case, runner) {
            let small = shrink(case, runner, style(seed));
            let small = report(&small, runner).unwrap_or(whole);
            return Some(format!("seed {seed}, made small:\n{small}"));
        }
    }
    None
}

#[test]
fn random_lists() {
    let first = number_from_environment("ORACLE_SEED", 0);
    let lists = number_from_environment("ORACLE_LISTS", 1000);
    let runner = Runner::chosen();
    if let Some(report) = compare(&runner, first..first + lists) {
        panic!("{report}");
    }
}

/// The lists of the specification's figures.
#[test]
fn the_lists_of_tests_data() {
    let runner = Runner::chosen();
    for name in ["w10.csv", "six_callers.csv", "e1.csv", "e2.csv"] {
        for readers in 1..=5 {
            let path = sheet::data(name);
            let case = Case {
                sheet: std::fs::read_to_string(&path).expect("a readable file"),
                tasks: sheet::read_tasks(&path),
                options: Options::readers(readers),
            };
            if let Some(difference) = case.difference(&runner) {
                panic!("{name} with {readers} readers: {difference}");
            }
        }
    }
}

/// The binary's own log is checked against the invariants, not against the simulator.
#[test]
fn logs_keep_the_invariants() {
    let runner = Runner::chosen();
    for seed in 1_000_000..1_000_050 {
        let case = Case::random(seed);
        let log = runner.log(&case).unwrap_or_else(|why| panic!("{why}"));
        let limits = Limits {
            readers: case.options.readers,
            cap: case.options.cap,
            slack: 0,
        };
        let found = violations(&sheet::entries(&log), &limits);
        assert_eq!(found, [""; 0], "seed {seed}");
    }
}

/// The comparison is able to find differences: each of these mistakes shows in the lists that
/// `random_lists` compares, and its report is small.
#[test]
fn the_comparison_finds_mistakes() {
    let mistakes: [(&str, Mistake); 6] = [
        ("weights", |case| case.options.weights.clear()),
        ("cap", |case| case.options.cap = None),
        ("bypass", |case| case.options.bypass = Bypass::AtMost(0)),
        ("bumps", |case| {
            case.tasks.iter_mut().for_each(|task| task.bump = None);
        }),
        ("tiers", |case| {
            case.tasks.iter_mut().for_each(|task| task.tier = 0);
        }),
        ("groups", |case| {
            case.tasks.iter_mut().for_each(|task| task.group = None);
        }),
    ];
    for (name, mistake) in mistakes {
        let runner = Runner::Wrong(mistake);
        let report = compare(&runner, 0..400);
        let report = report.unwrap_or_else(|| panic!("nothing found: {name}"));
        assert!(report.lines().count() < 30, "{name}: {report}");
    }
    assert_eq!(compare(&Runner::Simulator, 0..100), None);
}

#[test]
fn every_difference_is_seen() {
    let expected = Case::random(1).expected();
    for line in 0..expected.len() {
        for cell in 0..sheet::LOG.len() {
            let mut other = expected.clone();
            other[line][cell].push('0');
            assert!(first_difference(&expected, &other).is_some());
        }
    }
    let shorter = expected[..expected.len() - 1].to_vec();
    assert!(first_difference(&expected, &shorter).is_some());
    assert!(first_difference(&shorter, &expected).is_some());
    assert_eq!(first_difference(&expected, &expected), None);
}
