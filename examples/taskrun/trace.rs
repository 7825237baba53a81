//! `--trace`: Chrome trace-event JSON, as Perfetto opens it. One track for
//! each reader, one slice for each task that ran.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::input::TaskList;
use crate::outcome::Finished;

/// All tracks belong to one process.
const PROCESS: u32 = 1;

#[derive(Serialize)]
struct Slice<'a> {
    name: String,
    cat: &'static str,
    ph: &'static str,
    ts: u64,
    dur: u64,
    pid: u32,
    tid: u32,
    args: SliceArgs<'a>,
}

#[derive(Serialize)]
struct SliceArgs<'a> {
    id: u64,
    caller: &'a str,
    tier: u32,
    group: &'a str,
    outcome: String,
}

#[derive(Serialize)]
struct Metadata<T> {
    name: &'static str,
    ph: &'static str,
    pid: u32,
    tid: u32,
    args: T,
}

#[derive(Serialize)]
struct Name {
    name: String,
}

#[derive(Serialize)]
struct SortIndex {
    sort_index: u32,
}

/// Writes one event after the other, so the whole trace is never in memory.
pub(crate) fn write(
    to: impl Write,
    list: &TaskList,
    finished: &[Finished],
    readers: u32,
) -> io::Result<()> {
    let mut out = BufWriter::new(to);
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
    let process = Name {
        name: "taskrun".to_owned(),
    };
    serde_json::to_writer(&mut out, &metadata("process_name", 0, process))?;
    for reader in 1..=readers {
        let name = Name {
            name: format!("reader {reader}"),
        };
        event(&mut out, &metadata("thread_name", reader, name))?;
        let place = SortIndex { sort_index: reader };
        event(&mut out, &metadata("thread_sort_index", reader, place))?;
    }
    for ((row, done), id) in list.rows.iter().zip(finished).zip(1u64..) {
        let Some(ran) = done.ran else { continue };
        let caller = list.caller_of(row);
        let slice = Slice {
            name: format!("{id} {caller}"),
            cat: "task",
            ph: "X",
            ts: ran.start_us,
            dur: ran.end_us.saturating_sub(ran.start_us),
            pid: PROCESS,
            tid: ran.reader,
            args: SliceArgs {
                id,
                caller,
                tier: row.tier,
                group: list.group_of(row),
                outcome: done.verdict.to_string(),
            },
        };
        event(&mut out, &slice)?;
    }
    out.write_all(b"\n]}\n")?;
    out.flush()
}

fn metadata<T>(name: &'static str, tid: u32, args: T) -> Metadata<T> {
    Metadata {
        name,
        ph: "M",
        pid: PROCESS,
        tid,
        args,
    }
}

fn event(out: &mut impl Write, event: &impl Serialize) -> io::Result<()> {
    out.write_all(b",\n")?;
    serde_json::to_writer(out, event)?;
    Ok(())
}
