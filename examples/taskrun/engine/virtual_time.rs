//! The list on the simulator. Ctrl-C stops it at its current instant: nothing more starts, what
//! runs ends.

use std::time::Duration;

use conversant::limit::{DEFAULT_LEVEL, Limit};
use conversant::simulator::{CallerId, Driver, GroupId, Simulation, Work};

use super::{ADMISSIBLE, IN_RANGE, Report, bypass, caller_options, not_begun, ran};
use crate::input::{Row, TaskList};
use crate::options::Options;
use crate::outcome::Verdict;

pub(super) fn simulate(
    list: &TaskList,
    options: &Options,
    interrupted: &dyn Fn() -> bool,
) -> Report {
    let sim = Simulation::with_bypass(options.readers, bypass(options));
    let mut sim = sim.expect(IN_RANGE);
    let callers: Vec<CallerId> = (0..list.callers.len() as u32)
        .zip(&list.callers)
        .map(|(number, name)| sim.caller(name, caller_options(number, options)))
        .collect::<Result<_, _>>()
        .expect(IN_RANGE);
    let mut groups: Vec<Option<GroupId>> = vec![None; list.groups.len()];
    let arrivals = list.arrivals();
    for &number in &arrivals {
        let arrives = list.rows[number as usize].arrive_ms;
        while !interrupted() && sim.step_to(Duration::from_millis(arrives.into())) {}
        if interrupted() {
            break;
        }
        let row = &list.rows[number as usize];
        let caller = callers[row.caller as usize];
        let group = row.group.map(|group| {
            *groups[group as usize].get_or_insert_with(|| {
                let group = sim.group(caller, Limit::SERIAL, DEFAULT_LEVEL);
                group.expect(IN_RANGE)
            })
        });
        sim.submit(caller, work(row, group)).expect(ADMISSIBLE);
    }
    while !interrupted() && sim.step() {}
    let interrupted = interrupted();
    if interrupted {
        for &caller in &callers {
            sim.set_cap(&caller, Limit::AtMost(0)).expect(IN_RANGE);
        }
        sim.run();
    }
    let mut finished = not_begun(list);
    for record in sim.take_records() {
        let number = arrivals[record.task.id.get() as usize - 1];
        let done = &mut finished[number as usize];
        done.ran = record.run.map(ran);
        done.verdict = Verdict::Ok;
    }
    Report {
        finished,
        interrupted,
    }
}

fn work(row: &Row, group: Option<GroupId>) -> Work {
    let mut work = Work::takes(Duration::from_millis(row.duration_ms.into())).tier(row.tier);
    if let Some(group) = group {
        work = work.group(group);
    }
    if let Some(level) = row.bump {
        work = work.bump(level);
    }
    work
}
