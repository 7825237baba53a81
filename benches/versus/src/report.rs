//! The figures as tables and as CSV.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table as Grid, presets::ASCII_MARKDOWN};
use serde::Serialize;

use crate::contender::{Bound, Role};
use crate::measure::{Line, Table, quantile};

/// One cell as a Markdown table, with the state that the machine was in.
pub fn table(table: &Table) -> String {
    let unit = table.unit;
    let mut grid = grid(&[
        &format!("ns per {unit}"),
        "median",
        "min",
        "quartiles",
        "ratio to best",
        "runs disturbed",
        "rounds spoilt",
    ]);
    let median = |line: &&Line| line.median();
    let real = table.lines.iter().filter(|line| line.role != Role::Limit);
    let best = real.min_by(|a, b| median(a).total_cmp(&median(b)));
    for line in &table.lines {
        let name = match line.role {
            Role::Ours => format!("**{}**", line.name),
            Role::Peer => line.name.clone(),
            Role::Limit => format!("_{}_", line.name),
        };
        let ratio = best.map_or(f64::NAN, |best| quantile(line.ratios(best), 0.5));
        grid.add_row([
            name,
            number(line.median()),
            number(line.quantile(0.0)),
            format!(
                "{} .. {}",
                number(line.quantile(0.25)),
                number(line.quantile(0.75))
            ),
            format!("{ratio:.2}"),
            format!("{:.0}%", 100.0 * line.disturbed as f64 / line.runs as f64),
            format!("{} of {}", line.spoilt, line.rounds.len()),
        ]);
    }
    let [before, after] = table.probe;
    format!(
        "### {} {}\n\nTwo threads spinning 1 us each: {before:.0} ns before, {after:.0} after. \
         Load {}.\n\n{grid}\n",
        table.row, table.title, table.load,
    )
}

/// One target, and whether it was met.
pub struct Verdict {
    what: String,
    ours: &'static str,
    wanted: String,
    /// The median and the quartiles of the rounds, none if a contender is missing.
    measured: Option<[f64; 3]>,
    bound: f64,
}

pub fn verdicts(table: &Table) -> Vec<Verdict> {
    let line = |name: &str| table.lines.iter().find(|line| line.name == name);
    let verdict = |target: &crate::contender::Target| {
        let (bound, wanted, values) = match target.bound {
            Bound::Nanoseconds(most) => {
                let values = line(target.ours).map(|ours| ours.rounds.clone());
                (most, format!("<= {most} ns"), values)
            }
            Bound::Times(most, other) => {
                let values = line(target.ours).zip(line(other));
                let values = values.map(|(ours, other)| ours.ratios(other));
                (most, format!("<= {most}x {other}"), values)
            }
        };
        let quartiles = |v: Vec<f64>| [0.25, 0.5, 0.75].map(|at| quantile(v.clone(), at));
        Verdict {
            what: format!("{} {}", table.row, table.title),
            ours: target.ours,
            wanted,
            measured: values.map(quartiles),
            bound,
        }
    };
    table.targets.iter().map(verdict).collect()
}

/// The targets, one by one.
pub fn summary(verdicts: &[Verdict]) -> String {
    let mut grid = grid(&["row", "ours", "target", "measured (quartiles)", "met"]);
    for verdict in verdicts {
        let (measured, met) = match verdict.measured {
            None => ("-".into(), "not there yet".into()),
            Some([low, median, high]) => {
                let times = median / verdict.bound;
                let met = match times {
                    ..=1.0 => "yes".into(),
                    _ => format!("no, {times:.2}x the target"),
                };
                (format!("{median:.2} ({low:.2} .. {high:.2})"), met)
            }
        };
        let row = [
            &verdict.what,
            verdict.ours,
            &verdict.wanted,
            &measured,
            &met,
        ];
        grid.add_row(row);
    }
    format!("## Target by target\n\n{grid}\n")
}

fn grid(header: &[&str]) -> Grid {
    let mut grid = Grid::new();
    grid.load_preset(ASCII_MARKDOWN);
    grid.set_header(header.to_vec());
    for column in grid.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    grid
}

fn number(value: f64) -> String {
    match value {
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// All figures, one line for each contender of each cell.
pub struct Csv(csv::Writer<File>);

#[derive(Serialize)]
struct Record<'a> {
    row: &'a str,
    cell: &'a str,
    unit: &'a str,
    contender: &'a str,
    role: &'a str,
    median_ns: f64,
    min_ns: f64,
    lower_quartile_ns: f64,
    upper_quartile_ns: f64,
    max_ns: f64,
    rounds: usize,
    runs: usize,
    disturbed_runs: usize,
    spoilt_rounds: usize,
    probe_before_ns: f64,
    probe_after_ns: f64,
    load: &'a str,
}

impl Csv {
    pub fn create(path: &Path) -> Result<Self> {
        let writer = csv::Writer::from_path(path);
        Ok(Self(writer.with_context(|| path.display().to_string())?))
    }

    pub fn add(&mut self, table: &Table) -> Result<()> {
        for line in &table.lines {
            self.0.serialize(Record {
                row: table.row,
                cell: &table.title,
                unit: table.unit,
                contender: &line.name,
                role: match line.role {
                    Role::Ours => "ours",
                    Role::Peer => "peer",
                    Role::Limit => "limit",
                },
                median_ns: line.median(),
                min_ns: line.quantile(0.0),
                lower_quartile_ns: line.quantile(0.25),
                upper_quartile_ns: line.quantile(0.75),
                max_ns: line.quantile(1.0),
                rounds: line.rounds.len(),
                runs: line.runs,
                disturbed_runs: line.disturbed,
                spoilt_rounds: line.spoilt,
                probe_before_ns: table.probe[0],
                probe_after_ns: table.probe[1],
                load: &table.load,
            })?;
        }
        Ok(self.0.flush()?)
    }
}
