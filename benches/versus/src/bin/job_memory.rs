//! J: bytes per job, counted by the allocator: while all jobs wait, at the peak, and when all
//! are done.
//!
//!     cargo run --release -p conversant-versus --bin job_memory -- [jobs..]
//!
//! The default is 10^6 jobs; 10^7 take 2 GB.

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
fn held() -> i64 {
    let stats = ALLOCATOR.stats();
    // A reallocation counts by its difference.
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// How the jobs arrive: key and place of the n-th job.
#[derive(Clone, Copy)]
enum Come {
    InOrder,
    InGroups,
    LatestFirst,
    DueLater,
}

fn job(come: Come, n: u64, groups: &[Part<u64, u64>]) -> (u64, Place) {
    match come {
        Come::InOrder => (n, Place::new()),
        Come::InGroups => (n, groups[(n % GROUPS) as usize].place()),
        Come::LatestFirst => (u64::MAX - n, Place::new()),
        Come::DueLater => (n, Place::new().due(std::time::Duration::from_secs(1))),
    }
}

fn measure(name: &str, come: Come, count: u64, grid: &mut Table) {
    let start = held();
    let queue = JobQueue::new();
    let tenant = queue.tenant(0);
    let groups = match come {
        Come::InGroups => (0..GROUPS).map(|name| tenant.group(name)).collect(),
        _ => Vec::new(),
    };
    for n in 0..count {
        let (key, place) = job(come, n, &groups);
        queue.push(key, n, place).expect("it is open");
    }
    let waiting = held() - start;
    queue.advance(std::time::Duration::from_secs(1));
    let (mut done, mut most) = (0, waiting);
    loop {
        let claims = queue.try_claim(CLAIM);
        if claims.is_empty() {
            break;
        }
        most = most.max(held() - start);
        let completed = Claim::complete_all(claims);
        done += completed.iter().filter(|done| done.is_ok()).count() as u64;
    }
    assert_eq!(done, count, "{name}");
    let per = |bytes: i64| format!("{:.1}", bytes as f64 / count as f64);
    let left = per(held() - start);
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
    measure("in order of their keys", Come::InOrder, count, &mut grid);
    measure("in a thousand groups", Come::InGroups, count, &mut grid);
    measure("the latest first", Come::LatestFirst, count, &mut grid);
    measure("due later", Come::DueLater, count, &mut grid);
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
