//! Who ran what and when: one row for each reader, time from left to right.

use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::escape;
use crate::input::TaskList;
use crate::outcome::{Finished, Ran};

const MOST_READERS: u32 = 32;
/// Callers beyond these share one mark.
const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
const OTHERS: u8 = b'*';
/// Columns of a caller's name in the legend and in the summary.
pub(crate) const NAME_WIDTH: usize = 24;

/// The task that takes most of a cell.
#[derive(Clone, Copy)]
struct Cell {
    row: usize,
    held_us: u64,
}

pub(crate) fn draw(list: &TaskList, finished: &[Finished], readers: u32, width: usize) -> String {
    let makespan = makespan_us(finished);
    let shown = readers.min(MOST_READERS);
    let number_width = shown.to_string().len();
    // The number, a space and a bar before the cells, a bar behind them.
    let cells = width.saturating_sub(number_width + 3).max(1);
    let letters = letters(list, finished);
    let grid = fill(finished, shown, cells, makespan);
    let mut out = String::new();
    for (reader, row) in (1..=shown).zip(&grid) {
        let text = render(row, list, &letters);
        let _ = writeln!(out, "{reader:>number_width$} |{text}|");
    }
    if readers > shown {
        let _ = writeln!(
            out,
            "{}",
            fit(&format!("and {} more readers", readers - shown), width)
        );
    }
    let scale = format!(
        "{:number_width$}  0{:>2$}",
        "",
        seconds(makespan),
        cells.saturating_sub(1)
    );
    let _ = writeln!(out, "{}", fit(&scale, width));
    out += &legend(list, &letters, width);
    out
}

/// From the start to the last end.
pub(crate) fn makespan_us(finished: &[Finished]) -> u64 {
    let ends = finished.iter().filter_map(|done| Some(done.ran?.end_us));
    ends.max().unwrap_or(0)
}

pub(crate) fn seconds(us: u64) -> String {
    format!("{}.{:03} s", us / 1_000_000, us / 1000 % 1000)
}

/// `text` as one safe line of `width` columns at most. Characters can be two
/// columns wide, or none.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = escape::line(text);
    if text.width() <= width {
        return text;
    }
    let mut used = 1;
    let mut kept: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect();
    kept.push('…');
    kept
}

/// A mark for each caller: letters for those that were busy longest.
fn letters(list: &TaskList, finished: &[Finished]) -> Vec<u8> {
    let mut busy = vec![0u64; list.callers.len()];
    for (row, done) in list.rows.iter().zip(finished) {
        if let Some(ran) = done.ran {
            let total = &mut busy[row.caller as usize];
            *total = total.saturating_add(ran.end_us - ran.start_us);
        }
    }
    let mut order: Vec<usize> = (0..busy.len()).collect();
    if order.len() > LETTERS.len() {
        order.sort_by_key(|&caller| std::cmp::Reverse(busy[caller]));
        order.truncate(LETTERS.len());
        order.sort_unstable();
    }
    let mut letters = vec![OTHERS; busy.len()];
    for (caller, &letter) in order.into_iter().zip(LETTERS) {
        letters[caller] = letter;
    }
    letters
}

fn fill(
    finished: &[Finished],
    readers: u32,
    cells: usize,
    makespan: u64,
) -> Vec<Vec<Option<Cell>>> {
    let mut grid = vec![vec![None; cells]; readers as usize];
    // The cell at a time, and the time at which a cell begins.
    let span = u128::from(makespan.max(1));
    let cell_at = |us: u64| (u128::from(us) * cells as u128 / span) as usize;
    let begins = |cell: usize| (cell as u128 * span).div_ceil(cells as u128) as u64;
    for (row, done) in finished.iter().enumerate() {
        let Some(Ran {
            reader,
            start_us,
            end_us,
        }) = done.ran
        else {
            continue;
        };
        if reader > readers {
            continue;
        }
        let line = &mut grid[reader as usize - 1];
        let first = cell_at(start_us).min(cells - 1);
        let last = cell_at(end_us.saturating_sub(1).max(start_us)).min(cells - 1);
        for (at, cell) in line.iter_mut().enumerate().take(last + 1).skip(first) {
            let from = start_us.max(begins(at));
            let held_us = end_us.min(begins(at + 1)).saturating_sub(from);
            if cell.is_none_or(|cell: Cell| held_us > cell.held_us) {
                *cell = Some(Cell { row, held_us });
            }
        }
    }
    grid
}

/// A task is its caller's letter, its id where there is room, and dashes.
fn render(line: &[Option<Cell>], list: &TaskList, letters: &[u8]) -> String {
    let mut out = String::with_capacity(line.len());
    let same = |a: &Option<Cell>, b: &Option<Cell>| a.map(|c| c.row) == b.map(|c| c.row);
    for run in line.chunk_by(same) {
        let Some(Cell { row, .. }) = run[0] else {
            out.extend(run.iter().map(|_| ' '));
            continue;
        };
        let letter = letters[list.rows[row].caller as usize] as char;
        let label = format!("{letter}{}", row + 1);
        let label = if label.len() <= run.len() {
            label
        } else {
            letter.to_string()
        };
        let _ = write!(out, "{label:-<0$}", run.len());
    }
    out
}

fn legend(list: &TaskList, letters: &[u8], width: usize) -> String {
    let lettered = letters.iter().filter(|&&letter| letter != OTHERS).count();
    let mut entries: Vec<String> = (letters.iter().zip(&list.callers))
        .filter(|&(&letter, _)| letter != OTHERS)
        .map(|(&letter, name)| format!("{} {}", letter as char, fit(name, NAME_WIDTH)))
        .collect();
    if letters.len() > lettered {
        entries.push(format!("* {} more callers", letters.len() - lettered));
    }
    let mut out = String::new();
    let mut used = 0;
    for entry in entries {
        let entry = fit(&entry, width);
        let columns = entry.width();
        if used > 0 && used + 3 + columns > width {
            out.push('\n');
            used = 0;
        }
        if used > 0 {
            out += "   ";
            used += 3;
        }
        out += &entry;
        used += columns;
    }
    if used > 0 {
        out.push('\n');
    }
    out
}
