//! The result of the run: a table with a line of bars for each agent.

use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use crate::Options;
use crate::run::{Agent, Outcome};

/// Bars in a line.
const BARS: usize = 40;
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Prints the result; returns whether everything is as it must be.
pub(crate) fn print(options: &Options, outcome: &Outcome) -> bool {
    let late: usize = outcome.agents.iter().map(|agent| agent.late).sum();
    println!("{}", table(outcome));
    println!(
        "{} jobs in {:.2?}, {:.0} a second",
        outcome.jobs,
        outcome.took,
        outcome.jobs as f64 / outcome.took.as_secs_f64()
    );
    match outcome.wrong {
        0 => println!(
            "each job done exactly once, {} after a return",
            outcome.returned
        ),
        wrong => println!("WRONG: {wrong} jobs not done exactly once"),
    }
    let (group, tenant) = (options.group_limit, options.tenant_limit);
    match (outcome.exceeded, late) {
        (false, _) => println!("never more than {group} of a group or {tenant} of a tenant"),
        // A late agent still worked while another had its job.
        (true, 1..) => println!("limits not judged: {late} finished after their lease"),
        (true, 0) => println!("WRONG: more than a limit at once"),
    }
    outcome.wrong == 0 && (late > 0 || !outcome.exceeded)
}

fn table(outcome: &Outcome) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    let over_time = format!("jobs over {:.2?}", outcome.took);
    table.set_header([
        "agent",
        "claims of",
        "claims",
        "jobs",
        "late",
        "end",
        &over_time,
    ]);
    let most = outcome
        .agents
        .iter()
        .flat_map(|agent| counts(agent, outcome.took));
    let most = most.max().unwrap_or(0).max(1);
    for (number, agent) in outcome.agents.iter().enumerate() {
        let end = match agent.crashed_with {
            Some(held) => format!("crashed with {held}"),
            None => "drained".into(),
        };
        table.add_row([
            (number + 1).to_string(),
            agent.appetite.to_string(),
            agent.claims.to_string(),
            agent.done.len().to_string(),
            agent.late.to_string(),
            end,
            bars(agent, outcome.took, most),
        ]);
    }
    for column in table.column_iter_mut().take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Jobs done in each part of the whole time.
fn counts(agent: &Agent, took: Duration) -> [usize; BARS] {
    let mut counts = [0; BARS];
    for done in &agent.done {
        let part = done.as_secs_f64() / took.as_secs_f64() * BARS as f64;
        counts[(part as usize).min(BARS - 1)] += 1;
    }
    counts
}

/// The same scale for all agents; a part with any job has a bar.
fn bars(agent: &Agent, took: Duration, most: usize) -> String {
    let full = HEIGHTS.len() - 1;
    let bar = |count: usize| HEIGHTS[(count * full).div_ceil(most)];
    counts(agent, took).into_iter().map(bar).collect()
}
