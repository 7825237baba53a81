//! The reference simulator against every figure of the specification that a task list can show.

use crate::oracle;

use oracle::check::{Entry, Limits, violations};
use oracle::{Bypass, Options, Run, Task, bound, sheet, simulate};

/// The replay of a trace takes too long for longer lists.
const REPLAYED: usize = 100;

/// Runs a list, and checks the schedule with the invariant checkers.
fn checked(tasks: &[Task], options: &Options) -> Run {
    let run = simulate(tasks, options);
    let log: Vec<Entry> = sheet::entries(&sheet::log_of(tasks, &run.rows));
    let limits = Limits {
        readers: options.readers,
        cap: options.cap,
        slack: 0,
    };
    assert_eq!(violations(&log, &limits), [""; 0]);
    if tasks.len() <= REPLAYED {
        let verdict = bound::verdict(tasks, options, &run.events);
        assert_eq!(verdict.broken, [""; 0]);
    }
    run
}

fn file(name: &str, options: &Options) -> Run {
    checked(&sheet::read_tasks(&sheet::data(name)), options)
}

fn spans(run: &Run) -> Vec<(u64, u64)> {
    let rows = run.rows.iter();
    rows.map(|row| (row.start_ms, row.end_ms)).collect()
}

/// Tasks of one caller without group, tier or bump, which all arrive at the start.
fn plain(durations_ms: &[u64]) -> Vec<Task> {
    let task = |&duration_ms: &u64| Task {
        caller: "main".to_owned(),
        tier: 0,
        group: None,
        bump: None,
        arrive_ms: 0,
        duration_ms,
    };
    durations_ms.iter().map(task).collect()
}

/// The numbers, from 1, of the rows that run at this time.
fn running(run: &Run, at_ms: u64) -> Vec<usize> {
    let rows = run.rows.iter().zip(1..);
    let running = rows.filter(|(row, _)| row.start_ms <= at_ms && at_ms < row.end_ms);
    running.map(|(_, id)| id).collect()
}

#[test]
fn a2_makespans_of_w10() {
    let makespans: Vec<u64> = (1..=5)
        .map(|readers| file("w10.csv", &Options::readers(readers)).makespan_ms())
        .collect();
    assert_eq!(makespans, [88_400, 51_600, 51_600, 41_500, 41_500]);
}

#[test]
fn a2_waves_with_four_and_more_readers() {
    let waves = [
        (0, 10_100),
        (0, 10_100),
        (0, 10_100),
        (0, 10_100),
        (10_100, 19_300),
        (10_100, 19_300),
        (19_300, 27_600),
        (27_600, 35_000),
        (27_600, 35_000),
        (35_000, 41_500),
    ];
    for readers in 4..=7 {
        assert_eq!(
            spans(&file("w10.csv", &Options::readers(readers))),
            waves,
            "{readers} readers"
        );
    }
}

#[test]
fn a3_a_serial_list_takes_the_sum() {
    let mut options = Options::readers(5);
    options.cap = Some(1);
    assert_eq!(file("w10.csv", &options).makespan_ms(), 88_400);
    let mut tasks = sheet::read_tasks(&sheet::data("w10.csv"));
    for task in &mut tasks {
        task.group = Some("serial".to_owned());
    }
    let run = checked(&tasks, &Options::readers(5));
    assert_eq!(run.makespan_ms(), 88_400);
}

#[test]
fn a_faults_six_callers_are_served_at_once() {
    let tasks = sheet::read_tasks(&sheet::data("six_callers.csv"));
    let run = checked(&tasks, &Options::readers(5));
    let first_start = |run: &Run, rows: std::ops::Range<usize>| {
        let starts = rows.map(|row| run.rows[row].start_ms);
        starts.min().expect("rows")
    };
    let first_starts: Vec<u64> = (0..6)
        .map(|c| first_start(&run, c * 100..(c + 1) * 100))
        .collect();
    assert_eq!(first_starts, [0, 0, 0, 0, 0, 1000]);
    assert!(first_starts.iter().all(|&start| start < 2000));
    assert_eq!(run.makespan_ms(), 120_000);

    let one_line = plain(&[1000; 600]);
    let fifo = checked(&one_line, &Options::readers(5));
    assert_eq!(first_start(&fifo, 500..600), 100_000);
    assert_eq!(fifo.makespan_ms(), 120_000);
}

#[test]
fn a_faults_a_thousand_tasks_at_most_three_at_once() {
    let mut options = Options::readers(5);
    options.cap = Some(3);
    let run = simulate(&plain(&[1000; 1000]), &options);
    assert_eq!(run.makespan_ms(), 334_000);
    for second in 0..333 {
        assert_eq!(running(&run, second * 1000).len(), 3);
    }
}

#[test]
fn b2_ten_tasks_on_two_readers() {
    let run = checked(&plain(&[10_000; 10]), &Options::readers(2));
    let starts: Vec<u64> = run.rows.iter().map(|row| row.start_ms).collect();
    let second = 1000;
    let expected = [0, 0, 10, 10, 20, 20, 30, 30, 40, 40].map(|start| start * second);
    assert_eq!(starts, expected);
    assert_eq!(run.makespan_ms(), 50 * second);
    assert_eq!(run.order_of_reader(1).len(), 5);
    assert_eq!(run.order_of_reader(2).len(), 5);
    for at in [30_000, 35_000, 39_999] {
        assert_eq!(running(&run, at), [7, 8]);
        let finished = run.rows.iter().filter(|row| row.end_ms <= at);
        assert_eq!(finished.count(), 6);
    }
}

#[test]
fn c1_who_runs_with_five_readers() {
    let run = file("w10.csv", &Options::readers(5));
    assert_eq!(running(&run, 5_000), [1, 2, 3, 4]);
    assert_eq!(running(&run, 15_000), [5, 6]);
    assert_eq!(running(&run, 22_000), [7]);
    assert_eq!(running(&run, 30_000), [8, 9]);
    assert_eq!(running(&run, 38_000), [10]);
}

#[test]
fn c1_three_readers_in_detail() {
    let run = file("w10.csv", &Options::readers(3));
    assert_eq!(spans(&run)[..3], [(0, 10_100); 3]);
    assert_eq!(spans(&run)[3], (10_100, 20_200));
    assert_eq!(spans(&run)[4..6], [(20_200, 29_400); 2]);
    assert_eq!(run.makespan_ms(), 51_600);
}

/// The fault that C removes: a tier above an empty one ran together with the tier below that.
#[test]
fn c_faults_an_empty_tier_is_passed_over() {
    let mut tasks = plain(&[10, 10, 5]);
    tasks[0].tier = 100;
    tasks[1].tier = 100;
    tasks[2].tier = 300;
    let run = checked(&tasks, &Options::readers(5));
    assert_eq!(spans(&run), [(0, 10), (0, 10), (10, 15)]);
}

/// The part of D2 that a task list can show: both agents' claims, then what each completion frees.
#[test]
fn d2_groups_with_limit_one() {
    let mut tasks = plain(&[100_000; 12]);
    for (group, ids) in [("g1", [1, 5, 9]), ("g3", [3, 7, 11])] {
        for id in ids {
            tasks[id - 1].group = Some(group.to_owned());
        }
    }
    tasks[0].duration_ms = 1000;
    tasks[2].duration_ms = 2000;
    let run = checked(&tasks, &Options::readers(12));
    let ids: Vec<usize> = run.order().iter().map(|task| task + 1).collect();
    assert_eq!(ids[..6], [1, 2, 3, 4, 6, 8], "agent 1");
    assert_eq!(ids[6..8], [10, 12], "agent 2");
    assert_eq!(run.rows[4].start_ms, 1000, "5 when 1 completes");
    assert_eq!(run.rows[6].start_ms, 2000, "7 when 3 completes");
    assert_eq!(ids[8..10], [5, 7]);
}

const E1: [usize; 10] = [0, 80, 90, 70, 60, 50, 40, 30, 20, 10];
const E2: [usize; 10] = [0, 90, 80, 70, 60, 50, 40, 30, 20, 10];

/// The order of service: these first, then the requests that were not bumped.
fn then_the_rest(first: &[usize]) -> Vec<usize> {
    let rest = (0..100).filter(|request| !first.contains(request));
    first.iter().copied().chain(rest).collect()
}

#[test]
fn e1_order_and_readers() {
    let run = file("e1.csv", &Options::readers(2));
    assert_eq!(run.order(), then_the_rest(&E1));
    let odd: Vec<usize> = (1..100).filter(|request| request % 10 != 0).collect();
    let every_second = |from: usize| odd.iter().copied().skip(from).step_by(2);
    let of_a: Vec<usize> = [0, 90, 60, 40, 20]
        .into_iter()
        .chain(every_second(0))
        .collect();
    let of_b: Vec<usize> = [80, 70, 50, 30, 10]
        .into_iter()
        .chain(every_second(1))
        .collect();
    assert_eq!(run.order_of_reader(1), of_a);
    assert_eq!(run.order_of_reader(2), of_b);
    assert_eq!(of_a[..9], [0, 90, 60, 40, 20, 1, 3, 5, 7]);
    assert_eq!(of_b[..9], [80, 70, 50, 30, 10, 2, 4, 6, 8]);
}

#[test]
fn e2_order() {
    let run = file("e2.csv", &Options::readers(2));
    assert_eq!(run.order(), then_the_rest(&E2));
}

#[test]
fn e6_the_order_of_e1_needs_a_bypass_of_nine() {
    let with = |bypass| {
        let mut options = Options::readers(2);
        options.bypass = bypass;
        file("e1.csv", &options).order()
    };
    assert_eq!(with(Bypass::AtMost(9)), then_the_rest(&E1));
    assert_eq!(with(Bypass::Unbounded), then_the_rest(&E1));
    let with_eight = with(Bypass::AtMost(8));
    assert_eq!(with_eight[..11], [0, 80, 90, 70, 60, 50, 40, 30, 20, 1, 10]);
}

/// SEMANTICS 3: at most 0 is strict age order.
#[test]
fn bypass_of_none_is_the_order_of_arrival() {
    let mut options = Options::readers(2);
    options.bypass = Bypass::AtMost(0);
    let expected: Vec<usize> = (0..100).collect();
    assert_eq!(file("e1.csv", &options).order(), expected);
    assert_eq!(file("e2.csv", &options).order(), expected);
}
