//! `--log`: the outcome of every task as CSV, by id.

use std::io::{self, BufWriter, Write};

use crate::input::TaskList;
use crate::outcome::Finished;

const COLUMNS: [&str; 10] = [
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

/// Virtual time has whole milliseconds; real time is given with three
/// decimals.
pub(crate) fn write(
    to: impl Write,
    list: &TaskList,
    finished: &[Finished],
    simulated: bool,
) -> io::Result<()> {
    let time = |us: u64| {
        if simulated {
            (us / 1000).to_string()
        } else {
            format!("{}.{:03}", us / 1000, us % 1000)
        }
    };
    let mut out = csv::Writer::from_writer(BufWriter::new(to));
    out.write_record(COLUMNS)?;
    for ((row, done), id) in list.rows.iter().zip(finished).zip(1u64..) {
        let ran = done.ran;
        out.write_field(id.to_string())?;
        out.write_field(list.caller_of(row))?;
        out.write_field(row.tier.to_string())?;
        out.write_field(list.group_of(row))?;
        out.write_field(row.bump.map(|bump| bump.to_string()).unwrap_or_default())?;
        out.write_field(ran.map(|ran| ran.reader.to_string()).unwrap_or_default())?;
        out.write_field(time(done.queued_us))?;
        out.write_field(ran.map(|ran| time(ran.start_us)).unwrap_or_default())?;
        out.write_field(ran.map(|ran| time(ran.end_us)).unwrap_or_default())?;
        out.write_field(done.verdict.to_string())?;
        out.write_record(None::<&[u8]>)?;
    }
    // Also what the buffers still hold: a full disk shows at the last byte.
    out.flush()
}
