//! Task lists and logs as CSV.

use super::check::{Entry, Span};
use super::{Row, Task};
use std::path::{Path, PathBuf};

/// The columns of a log.
pub(crate) const LOG: [&str; 10] = [
    "id",
    "caller",
    "tier",
    "group",
    "bump",
    "reader",
    "queued_ms",
    "start_ms",
    "end_ms",
    "outcome",
];

/// The columns of a task list.
const COLUMNS: [&str; 6] = [
    "caller",
    "tier",
    "group",
    "bump",
    "arrive_ms",
    "duration_ms",
];

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/data").join(name)
}

/// Reads a task list; cells that are empty or absent have their defaults.
pub(crate) fn read_tasks(path: &Path) -> Vec<Task> {
    let mut reader = csv::Reader::from_path(path).expect("a readable file");
    let header = reader.headers().expect("a header").clone();
    let tasks = reader.into_records().map(|record| {
        let record = record.expect("a valid row");
        let cell = |name: &str| {
            let column = header.iter().position(|column| column == name);
            let text = column.map_or("", |column| &record[column]);
            (!text.is_empty()).then(|| text.to_owned())
        };
        Task {
            caller: cell("caller").unwrap_or_else(|| "main".to_owned()),
            tier: cell("tier").map_or(0, number),
            group: cell("group"),
            bump: cell("bump").map(number),
            arrive_ms: cell("arrive_ms").map_or(0, number),
            duration_ms: cell("duration_ms").map_or(0, number),
        }
    });
    tasks.collect()
}

fn number<N: std::str::FromStr>(text: String) -> N
where
    N::Err: std::fmt::Debug,
{
    text.parse().expect("a number")
}

/// How a task list is written; the meaning is the same in every style.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    /// Columns start with this one and go round.
    pub(crate) rotate: usize,
    /// Defaults are written as empty cells, columns without values are left out.
    pub(crate) terse: bool,
    pub(crate) crlf: bool,
}

pub(crate) fn write_tasks(tasks: &[Task], style: Style) -> String {
    let cells = |name: &str| -> Vec<String> {
        let cells = tasks.iter().map(|task| cell(task, name, style.terse));
        cells.collect()
    };
    let mut columns: Vec<(&str, Vec<String>)> =
        COLUMNS.iter().map(|&name| (name, cells(name))).collect();
    columns.rotate_left(style.rotate % COLUMNS.len());
    columns.retain(|(name, cells)| {
        !style.terse || *name == "duration_ms" || cells.iter().any(|cell| !cell.is_empty())
    });
    let terminator = if style.crlf {
        csv::Terminator::CRLF
    } else {
        csv::Terminator::Any(b'\n')
    };
    let mut writer = csv::WriterBuilder::new()
        .terminator(terminator)
        .from_writer(Vec::new());
    writer
        .write_record(columns.iter().map(|(name, _)| *name))
        .expect("written to memory");
    for row in 0..tasks.len() {
        writer
            .write_record(columns.iter().map(|(_, cells)| cells[row].as_str()))
            .expect("written to memory");
    }
    String::from_utf8(writer.into_inner().expect("written to memory")).expect("UTF-8")
}

fn cell(task: &Task, column: &str, terse: bool) -> String {
    let (text, default) = match column {
        "caller" => (task.caller.clone(), "main"),
        "tier" => (task.tier.to_string(), "0"),
        "group" => (task.group.clone().unwrap_or_default(), ""),
        "bump" => (task.bump.map_or(String::new(), |b| b.to_string()), ""),
        "arrive_ms" => (task.arrive_ms.to_string(), "0"),
        _ => (task.duration_ms.to_string(), "0"),
    };
    if terse && text == default {
        return String::new();
    }
    text
}

/// The log that `taskrun` must write for these rows, header first.
pub(crate) fn log_of(tasks: &[Task], rows: &[Row]) -> Vec<Vec<String>> {
    let header = LOG.iter().map(|&name| name.to_owned()).collect();
    let lines = tasks.iter().zip(rows).enumerate().map(|(index, both)| {
        let (task, row) = both;
        vec![
            (index + 1).to_string(),
            task.caller.clone(),
            task.tier.to_string(),
            task.group.clone().unwrap_or_default(),
            task.bump.map_or(String::new(), |level| level.to_string()),
            row.reader.to_string(),
            row.queued_ms.to_string(),
            row.start_ms.to_string(),
            row.end_ms.to_string(),
            "ok".to_owned(),
        ]
    });
    std::iter::once(header).chain(lines).collect()
}

/// All lines of a CSV file, header first.
pub(crate) fn read_lines(path: &Path) -> Result<Vec<Vec<String>>, csv::Error> {
    let mut builder = csv::ReaderBuilder::new();
    let reader = builder.has_headers(false).flexible(true).from_path(path)?;
    let lines = reader.into_records().map(|line| {
        let line = line?;
        Ok(line.iter().map(str::to_owned).collect())
    });
    lines.collect()
}

/// A log for `check::violations`, in microseconds, simulated or real.
pub(crate) fn entries(log: &[Vec<String>]) -> Vec<Entry> {
    let entry = |line: &Vec<String>| {
        let span = (!line[7].is_empty()).then(|| Span {
            reader: number(line[5].clone()),
            start: microseconds(&line[7]),
            end: microseconds(&line[8]),
        });
        Entry {
            caller: line[1].clone(),
            tier: number(line[2].clone()),
            group: (!line[3].is_empty()).then(|| line[3].clone()),
            queued: microseconds(&line[6]),
            span,
        }
    };
    log.iter().skip(1).map(entry).collect()
}

/// `12` or `12.345` milliseconds.
fn microseconds(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, "000"));
    assert_eq!(part.len(), 3, "three decimals in {text}");
    number::<u64>(whole.to_owned()) * 1000 + number::<u64>(part.to_owned())
}
