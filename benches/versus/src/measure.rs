//! Measures contenders round by round, and computes their figures.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::contender::{Cell, Contender, Entry, Role, Target};
use crate::machine::{load, probe};

pub struct Plan {
    /// Only contenders whose name contains this.
    pub contender: String,
    pub rounds: usize,
    pub runs: usize,
    pub length: Duration,
}

/// A cell that has been measured.
pub struct Table {
    pub row: &'static str,
    pub title: String,
    pub unit: &'static str,
    pub targets: Vec<Target>,
    pub lines: Vec<Line>,
    /// The two-processor probe before and after.
    pub probe: [f64; 2],
    pub load: String,
}

/// A contender of a table.
pub struct Line {
    pub name: String,
    pub role: Role,
    /// Nanoseconds per operation, round by round.
    pub rounds: Vec<f64>,
    /// How many runs there were, and how many of them another job disturbed.
    pub runs: usize,
    pub disturbed: usize,
    /// Rounds in which every run was disturbed: their figures include another job's time.
    pub spoilt: usize,
}

/// A round goes on until it has enough undisturbed runs, or this many times as many runs in all.
const MAX_RUNS_FACTOR: usize = 4;

pub fn cell(cell: Cell, plan: &Plan) -> Result<Table> {
    let mut entries = (cell.build)();
    entries.retain(|entry| entry.name.contains(&plan.contender));
    let mut sizes = Vec::new();
    for entry in &mut entries {
        let size = calibrate(&mut *entry.contender, plan.length);
        sizes.push(size.with_context(|| entry.name.clone())?);
    }
    let line = |entry: &Entry| Line {
        name: entry.name.clone(),
        role: entry.role,
        rounds: Vec::new(),
        runs: 0,
        disturbed: 0,
        spoilt: 0,
    };
    let mut lines: Vec<Line> = entries.iter().map(line).collect();
    let before = probe();
    for _ in 0..plan.rounds {
        for ((entry, line), &ops) in entries.iter_mut().zip(&mut lines).zip(&sizes) {
            round(&mut *entry.contender, line, ops, plan.runs)
                .with_context(|| entry.name.clone())?;
        }
    }
    let after = probe();
    for entry in &mut entries {
        entry
            .contender
            .check()
            .with_context(|| entry.name.clone())?;
    }
    Ok(Table {
        row: cell.row,
        title: cell.title,
        unit: cell.unit,
        targets: cell.targets,
        lines,
        probe: [before, after],
        load: load(),
    })
}

/// The best of several runs; of the undisturbed ones, if there are any.
fn round(contender: &mut dyn Contender, line: &mut Line, ops: u64, runs: usize) -> Result<()> {
    let (mut best, mut best_disturbed) = (f64::INFINITY, f64::INFINITY);
    let mut clean = 0;
    for _ in 0..runs * MAX_RUNS_FACTOR {
        let sample = contender.run(ops)?;
        let cost = sample.took.as_nanos() as f64 / sample.ops as f64;
        line.runs += 1;
        if sample.disturbed {
            line.disturbed += 1;
            best_disturbed = best_disturbed.min(cost);
        } else {
            clean += 1;
            best = best.min(cost);
        }
        if clean == runs {
            break;
        }
    }
    line.spoilt += usize::from(clean == 0);
    line.rounds
        .push(if clean > 0 { best } else { best_disturbed });
    Ok(())
}

/// How many operations make a run of about `length`.
fn calibrate(contender: &mut dyn Contender, length: Duration) -> Result<u64> {
    let mut ops = 16;
    loop {
        // The faster of two: a disturbance in one must not make all runs short.
        let (a, b) = (contender.run(ops)?, contender.run(ops)?);
        let took = a.took.min(b.took);
        if took * 4 > length || ops >= 1 << 32 {
            let scale = length.as_secs_f64() / took.as_secs_f64().max(1e-9);
            return Ok(((a.ops as f64 * scale) as u64).max(2));
        }
        ops *= 4;
    }
}

impl Line {
    /// The value below which the part `at` of all rounds lies.
    pub fn quantile(&self, at: f64) -> f64 {
        quantile(self.rounds.clone(), at)
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The ratio to another line, round by round: a disturbance of a whole round cancels out.
    pub fn ratios(&self, other: &Line) -> Vec<f64> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        pairs.map(|(a, b)| a / b).collect()
    }
}

pub fn quantile(mut values: Vec<f64>, at: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len().saturating_sub(1) as f64 * at).round() as usize;
    values.get(place).copied().unwrap_or(f64::NAN)
}
