//! The simulator and the invariant checkers against each other on random task lists, and the
//! checkers against schedules that are wrong.

use crate::oracle;

use oracle::check::{Entry, Limits, Span, violations};
use oracle::random::{self, Random};
use oracle::{Bypass, Event, Happening, Options, Task, bound, sheet, simulate};

const LISTS: u64 = 1000;

fn limits(options: &Options) -> Limits {
    Limits {
        readers: options.readers,
        cap: options.cap,
        slack: 0,
    }
}

#[test]
fn every_random_schedule_keeps_every_rule() {
    let mut total = bound::Verdict::default();
    for seed in 0..LISTS {
        let mut random = Random::new(seed);
        let tasks = random::tasks(&mut random);
        let options = random::options(&mut random, &tasks);
        let run = simulate(&tasks, &options);
        let log = sheet::entries(&sheet::log_of(&tasks, &run.rows));
        assert_eq!(violations(&log, &limits(&options)), [""; 0], "seed {seed}");
        let verdict = bound::verdict(&tasks, &options, &run.events);
        assert_eq!(verdict.broken, [""; 0], "seed {seed}: {options:?}");
        total.waits += verdict.waits;
        total.tight += verdict.tight;
        total.need_l += verdict.need_l;
    }
    println!("{total:?}");
    assert!(
        total.tight > 0,
        "some wait takes as long as the bound allows"
    );
    assert!(total.need_l > 0, "without L the bound would be false");
}

#[test]
fn lists_survive_being_written_and_read() {
    for seed in 0..50 {
        let tasks = random::tasks(&mut Random::new(seed));
        let style = sheet::Style {
            rotate: usize::try_from(seed).expect("small"),
            terse: seed.is_multiple_of(2),
            crlf: seed.is_multiple_of(3),
        };
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), sheet::write_tasks(&tasks, style)).expect("written");
        assert_eq!(sheet::read_tasks(file.path()), tasks);
    }
}

/// `caller tier group queued reader start end`
fn log(text: &str) -> Vec<Entry> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let entry = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let number = |cell: usize| cells[cell].parse().expect("a number");
        Entry {
            caller: cells[0].to_owned(),
            tier: cells[1].parse().expect("a tier"),
            group: (cells[2] != "-").then(|| cells[2].to_owned()),
            queued: number(3),
            span: Some(Span {
                reader: cells[4].parse().expect("a reader"),
                start: number(5),
                end: number(6),
            }),
        }
    };
    lines.map(entry).collect()
}

#[track_caller]
fn finds(text: &str, readers: usize, cap: Option<usize>, expected: &str) {
    let limits = Limits {
        readers,
        cap,
        slack: 0,
    };
    let found = violations(&log(text), &limits);
    assert!(
        found.iter().any(|line| line.contains(expected)),
        "{expected} not in {found:?}"
    );
}

#[test]
fn broken_schedules_are_found() {
    finds("a 0 - 0 3 0 1", 2, None, "no reader 3");
    finds("a 0 - 5 1 4 6", 1, None, "out of order");
    finds(
        "a 0 - 0 1 0 5\n a 0 - 0 1 4 6",
        1,
        None,
        "overlap on one reader",
    );
    finds("a 0 g 0 1 0 5\n a 0 g 0 2 4 6", 2, None, "but they overlap");
    finds("a 0 g 0 1 5 9\n a 0 g 0 1 0 5", 1, None, "order of arrival");
    finds("a 1 - 0 1 0 5\n a 2 - 0 2 4 6", 2, None, "two tiers");
    finds(
        "a 1 - 0 1 5 9\n a 2 - 0 1 0 5",
        1,
        None,
        "higher tier started",
    );
    finds(
        "a 1 - 0 1 5 5\n a 2 - 0 1 0 5",
        1,
        None,
        "higher tier started",
    );
    finds("a 0 - 0 1 0 5\n a 0 - 0 2 0 5", 2, Some(1), "in flight");
    finds("a 0 - 0 1 0 5\n a 0 - 0 2 3 3", 2, Some(1), "in flight");
    finds("a 0 - 0 1 0 5\n a 0 - 0 2 3 9", 2, None, "eligible beside");
    finds("a 0 - 0 1 0 5\n b 0 - 2 1 6 9", 1, None, "eligible beside");
}

#[test]
fn correct_schedules_are_not_blamed() {
    let limits = |readers, cap| Limits {
        readers,
        cap,
        slack: 0,
    };
    let zero = log("a 0 g 0 1 0 0\n a 0 g 0 1 0 5\n a 1 - 0 1 5 5\n a 2 - 0 2 5 5");
    assert_eq!(violations(&zero, &limits(2, Some(1))), [""; 0]);
    let waits = log("a 2 - 0 1 0 5\n a 1 - 3 2 5 9\n a 2 - 3 1 9 12");
    assert_eq!(violations(&waits, &limits(2, None)), [""; 0]);
    let mut skipped = log("a 0 - 0 1 0 5\n a 0 - 0 2 0 5");
    skipped[1].span = None;
    assert_eq!(violations(&skipped, &limits(2, None)), [""; 0]);
}

/// One reader, unit tasks, dispatched in this order of rows, from 1.
fn trace(tasks: &[Task], order: &[usize]) -> Vec<Event> {
    let event = |at_ms: usize, what, task| Event {
        at_ms: at_ms as u64,
        what,
        task,
    };
    let arrivals = (0..tasks.len()).map(|task| event(0, Happening::Arrival, task));
    let turns = order.iter().enumerate().flat_map(|(at, row)| {
        let start = event(at, Happening::Dispatch(1), row - 1);
        [start, event(at + 1, Happening::Completion(1), row - 1)]
    });
    arrivals.chain(turns).collect()
}

fn unit(caller: &str, tier: u32) -> Task {
    Task {
        caller: caller.to_owned(),
        tier,
        group: None,
        bump: None,
        arrive_ms: 0,
        duration_ms: 1,
    }
}

#[track_caller]
fn trace_is_blamed(tasks: &[Task], order: &[usize], most: u32, expected: &str) {
    let mut options = Options::readers(1);
    options.bypass = Bypass::AtMost(most);
    let found = bound::verdict(tasks, &options, &trace(tasks, order)).broken;
    assert!(
        found.iter().any(|line| line.contains(expected)),
        "{expected} not in {found:?}"
    );
}

#[test]
fn broken_traces_are_found() {
    let one = [unit("a", 0), unit("a", 0), unit("a", 0), unit("a", 0)];
    trace_is_blamed(&one, &[2, 3, 1, 4], 1, "once too often");
    trace_is_blamed(&one, &[2, 3, 4, 1], 1, "the bound is 2");
    let tiers = [unit("a", 1), unit("a", 2)];
    trace_is_blamed(&tiers, &[2, 1], 9, "not eligible");
    let two = [unit("a", 0), unit("a", 0), unit("a", 0), unit("b", 0)];
    trace_is_blamed(&two, &[1, 2, 3, 4], 0, "the bound is 2");
    let options = Options::readers(1);
    let fair = bound::verdict(&two, &options, &trace(&two, &[1, 4, 2, 3]));
    assert_eq!(fair.broken, [""; 0]);
}
