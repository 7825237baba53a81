//! This crate compared with its peers.
//!
//! Contenders run as A B C A B C .. in one process. Each round is the best of several short runs,
//! and every contender's results are checked in the same run. A row of `docs/benchmarks.md`, such as
//! D1, is one or more cells; a family of rows is one file in `rows/`.

mod contender;
mod drive;
mod machine;
mod measure;
mod race;
mod report;
mod rows;
mod work;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::contender::Cell;
use crate::measure::Plan;

/// The crate beside its peers: wall nanoseconds per operation, contenders interleaved.
#[derive(Parser)]
struct Options {
    /// Only these rows, as `L1,L6`; a letter stands for all of its rows.
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Only the cells whose title contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only the contenders whose name contains this: for a profiler.
    #[arg(long, default_value = "")]
    contender: String,
    /// How many rounds; the figures are medians over them.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// How many undisturbed runs make a round: it is the best of them.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// About how long one run takes, in microseconds.
    #[arg(long, default_value_t = 2_500)]
    length: u64,
    /// Writes all the figures to this file, too.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Only lists what there is.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.rounds > 0 && options.runs > 0, "nothing to measure");
    let cells: Vec<Cell> = rows::all()
        .into_iter()
        .filter(|cell| wanted(cell, &options))
        .collect();
    ensure!(!cells.is_empty(), "no such row; see --list");
    if options.list {
        for cell in cells {
            println!("{:<3} {}", cell.row, cell.title);
        }
        return Ok(());
    }
    let mut csv = options
        .csv
        .as_deref()
        .map(report::Csv::create)
        .transpose()?;
    let plan = Plan {
        contender: options.contender.clone(),
        rounds: options.rounds,
        runs: options.runs,
        length: std::time::Duration::from_micros(options.length),
    };
    println!("{}", machine::header());
    let mut verdicts = Vec::new();
    for cell in cells {
        let name = format!("{} {}", cell.row, cell.title);
        let table = measure::cell(cell, &plan).with_context(|| name)?;
        println!("{}", report::table(&table));
        if let Some(csv) = &mut csv {
            csv.add(&table)?;
        }
        verdicts.extend(report::verdicts(&table));
    }
    println!("{}", report::summary(&verdicts));
    Ok(())
}

fn wanted(cell: &Cell, options: &Options) -> bool {
    let named = |row: &String| {
        let letters = row.chars().all(char::is_alphabetic);
        cell.row.eq_ignore_ascii_case(row)
            || letters && cell.row.to_lowercase().starts_with(&row.to_lowercase())
    };
    (options.rows.is_empty() || options.rows.iter().any(named))
        && cell.title.contains(&options.only)
}
