//! The figures at the end.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};

use crate::chart::{NAME_WIDTH, fit, makespan_us, seconds};
use crate::input::TaskList;
use crate::outcome::{Finished, Verdict};

/// How many callers, and how many failed tasks, are named.
const NAMED: usize = 10;

pub(crate) fn describe(
    list: &TaskList,
    finished: &[Finished],
    readers: u32,
    width: usize,
) -> String {
    let mut out = String::new();
    let count = |what: fn(Verdict) -> bool| finished.iter().filter(|f| what(f.verdict)).count();
    let _ = writeln!(out, "tasks         {}", finished.len());
    let _ = writeln!(out, "failures      {}", failures(finished));
    for (name, number) in [
        ("skipped       ", count(|v| v == Verdict::Skipped)),
        ("cancelled     ", count(|v| v == Verdict::Cancelled)),
    ] {
        if number > 0 {
            let _ = writeln!(out, "{name}{number}");
        }
    }
    let makespan = makespan_us(finished);
    let _ = writeln!(out, "makespan      {}", seconds(makespan));
    let busy: u128 = (finished.iter())
        .filter_map(|done| done.ran)
        .map(|ran| u128::from(ran.end_us - ran.start_us))
        .sum();
    let whole = u128::from(makespan) * u128::from(readers);
    // In tenths of a percent.
    let used = (busy * 1000).checked_div(whole).unwrap_or(0);
    let _ = writeln!(
        out,
        "utilisation   {}.{} % of {readers} reader{}",
        used / 10,
        used % 10,
        if readers == 1 { "" } else { "s" },
    );
    let out: String = out.lines().map(|line| fit(line, width) + "\n").collect();
    out + &waits(list, finished, width)
}

/// How many failed, and which.
fn failures(finished: &[Finished]) -> String {
    let mut ids = (1u64..)
        .zip(finished)
        .filter(|(_, done)| done.verdict.is_failure())
        .map(|(id, _)| id);
    let named: Vec<String> = ids.by_ref().take(NAMED).map(|id| id.to_string()).collect();
    let more = ids.count();
    let and_more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    match named.len() + more {
        0 => "0".to_owned(),
        1 => format!("1 (id {})", named[0]),
        all => format!("{all} (ids {}{and_more})", named.join(", ")),
    }
}

struct Wait {
    caller: usize,
    tasks: u64,
    longest_us: u64,
    total_us: u128,
}

/// The callers that waited longest from submission to start.
fn waits(list: &TaskList, finished: &[Finished], width: usize) -> String {
    let mut all: Vec<Wait> = (0..list.callers.len())
        .map(|caller| Wait {
            caller,
            tasks: 0,
            longest_us: 0,
            total_us: 0,
        })
        .collect();
    for (row, done) in list.rows.iter().zip(finished) {
        if let Some(ran) = done.ran {
            let waited = ran.start_us.saturating_sub(done.queued_us);
            let wait = &mut all[row.caller as usize];
            wait.tasks += 1;
            wait.longest_us = wait.longest_us.max(waited);
            wait.total_us += u128::from(waited);
        }
    }
    all.retain(|wait| wait.tasks > 0);
    if all.is_empty() {
        return String::new();
    }
    all.sort_by_key(|wait| std::cmp::Reverse(wait.longest_us));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["caller", "tasks", "longest wait", "mean wait"]);
    for column in 1..4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for wait in all.iter().take(NAMED) {
        let mean = wait.total_us / u128::from(wait.tasks);
        table.add_row([
            fit(&list.callers[wait.caller], NAME_WIDTH),
            wait.tasks.to_string(),
            seconds(wait.longest_us),
            seconds(mean as u64),
        ]);
    }
    let mut out = String::new();
    for line in table.lines() {
        let _ = writeln!(out, "{}", fit(line.trim_end(), width));
    }
    if all.len() > NAMED {
        let more = format!("and {} more callers", all.len() - NAMED);
        let _ = writeln!(out, "{}", fit(&more, width));
    }
    out
}
