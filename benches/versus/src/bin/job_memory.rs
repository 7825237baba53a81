//! J: bytes that a job takes, counted by the allocator: while all jobs wait, at the maximum, and
//! when they are done.
//!
//!     cargo run --release -p conversant-versus --bin job_memory -- [jobs..]
//!
//! 10^6 jobs by default; 10^7 take 2 GB.

use std::alloc::System;

use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use conversant::job_queue::{Claim, JobQueue, Part, Place};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const GROUPS: u64 = 1_000;
/// Jobs that are claimed and completed at once.
const CLAIM: usize = 64;

/// Bytes allocated and not freed.
fn allocated() -> i64 {
    let stats = ALLOCATOR.stats();
    // A reallocation counts by its difference.
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// The order in which jobs arrive: key and place of the n-th.
#[derive(Clone, Copy)]
enum Arrival {
    InOrder,
    InGroups,
    LatestFirst,
    DueLater,
}

fn job(arrival: Arrival, n: u64, groups: &[Part<u64, u64>]) -> (u64, Place) {
    match arrival {
        Arrival::InOrder => (n, Place::new()),
        Arrival::InGroups => (n, groups[(n % GROUPS) as usize].place()),
        Arrival::LatestFirst => (u64::MAX - n, Place::new()),
        Arrival::DueLater => (n, Place::new().due(std::time::Duration::from_secs(1))),
    }
}

fn measure(name: &str, arrival: Arrival, count: u64, grid: &mut Table) {
    let start = allocated();
    let queue = JobQueue::new();
    let tenant = queue.tenant(0);
    let groups = match arrival {
        Arrival::InGroups => (0..GROUPS).map(|name| tenant.group(name)).collect(),
        _ => Vec::new(),
    };
    for n in 0..count {
        let (key, place) = job(arrival, n, &groups);
        queue.push(key, n, place).expect("it is open");
    }
    let waiting = allocated() - start;
    queue.advance(std::time::Duration::from_secs(1));
    let (mut done, mut most) = (0, waiting);
    loop {
        let claims = queue.try_claim(CLAIM);
        if claims.is_empty() {
            break;
        }
        most = most.max(allocated() - start);
        let completed = Claim::complete_all(claims);
        done += completed.iter().filter(|done| done.is_ok()).count() as u64;
    }
    assert_eq!(done, count, "{name}");
    let per = |bytes: i64| format!("{:.1}", bytes as f64 / count as f64);
    let left = per(allocated() - start);
    grid.add_row([name.to_owned(), per(waiting), per(most), left]);
}

fn table(count: u64) {
    let mut grid = Table::new();
    grid.load_preset(ASCII_MARKDOWN);
    grid.set_header([
        "bytes a job",
        "all wait",
        "at the most",
        "when all are done",
    ]);
    for column in grid.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    measure("in order of their keys", Arrival::InOrder, count, &mut grid);
    measure("in a thousand groups", Arrival::InGroups, count, &mut grid);
    measure("the latest first", Arrival::LatestFirst, count, &mut grid);
    measure("due later", Arrival::DueLater, count, &mut grid);
    println!("{count} jobs, key and job of 8 bytes each, pushed and then drained.\n");
    println!("{grid}\n");
}

fn main() {
    let asked = std::env::args().skip(1);
    let mut counts: Vec<u64> = asked.map(|n| n.parse().expect("a number")).collect();
    if counts.is_empty() {
        counts.push(1_000_000);
    }
    counts.into_iter().for_each(table);
}
