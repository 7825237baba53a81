//! A reference simulator of `taskrun --simulate`, written from the specification alone.
//!
//! It is slow on purpose: plain vectors, every question answered by a scan, nothing stored that can
//! be computed again. It shares no code with the crate, so where both agree it is not because one
//! copied the other.
//!
//! - `simulate.rs`: the simulator: who runs what when.
//! - `check.rs`: **invariant checker**: what any schedule log must satisfy, whatever made it.
//! - `bound.rs`: **invariant checker**: the fairness bound on every dispatch of an event trace.
//! - `sheet.rs`: task lists and logs as CSV.
//! - `random.rs`: random task lists and options from a seed.
#![allow(dead_code, reason = "every test binary uses its own part")]

pub(crate) mod bound;
pub(crate) mod check;
pub(crate) mod random;
pub(crate) mod sheet;
mod simulate;

pub(crate) use simulate::simulate;

/// One row of a task list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) caller: String,
    pub(crate) tier: u32,
    /// `None` is a group of its own.
    pub(crate) group: Option<String>,
    pub(crate) bump: Option<u8>,
    pub(crate) arrive_ms: u64,
    pub(crate) duration_ms: u64,
}

/// How often in a row the oldest eligible group of a caller may be overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bypass {
    AtMost(u32),
    Unbounded,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) readers: usize,
    pub(crate) bypass: Bypass,
    /// The most tasks of one caller in flight.
    pub(crate) cap: Option<usize>,
    /// Callers that are not named have weight 1.
    pub(crate) weights: Vec<(String, u32)>,
}

impl Options {
    /// What `taskrun --readers N` means without further options.
    pub(crate) fn readers(readers: usize) -> Options {
        Options {
            readers,
            bypass: Bypass::AtMost(64),
            cap: None,
            weights: Vec::new(),
        }
    }

    pub(crate) fn weight_of(&self, caller: &str) -> u32 {
        let named = self.weights.iter().find(|(name, _)| name == caller);
        named.map_or(1, |(_, weight)| *weight)
    }
}

/// When and where one task ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Counted from 1.
    pub(crate) reader: usize,
    pub(crate) queued_ms: u64,
    pub(crate) start_ms: u64,
    pub(crate) end_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A task arrives, with its bump.
    Arrival,
    /// A task is dispatched to this reader.
    Dispatch(usize),
    /// A task completes on this reader.
    Completion(usize),
}

/// One event, in the exact order in which the simulator let it happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ms: u64,
    pub(crate) what: Happening,
    /// Index into the task list.
    pub(crate) task: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// By task.
    pub(crate) rows: Vec<Row>,
    pub(crate) events: Vec<Event>,
}

impl Run {
    /// Indices of the tasks in the order of their dispatch.
    pub(crate) fn order(&self) -> Vec<usize> {
        let dispatches = self
            .events
            .iter()
            .filter(|event| matches!(event.what, Happening::Dispatch(_)));
        dispatches.map(|event| event.task).collect()
    }

    /// The same for one reader, counted from 1.
    pub(crate) fn order_of_reader(&self, reader: usize) -> Vec<usize> {
        let order = self.order().into_iter();
        order
            .filter(|&task| self.rows[task].reader == reader)
            .collect()
    }

    pub(crate) fn makespan_ms(&self) -> u64 {
        self.rows.iter().map(|row| row.end_ms).max().unwrap_or(0)
    }
}

/// The group of every task, as the smallest index of a task in the same group.
pub(crate) fn groups_of(tasks: &[Task]) -> Vec<usize> {
    let same = |a: &Task, b: &Task| a.group.is_some() && a.group == b.group && a.caller == b.caller;
    let first = |index: usize| {
        (0..index)
            .find(|&other| same(&tasks[other], &tasks[index]))
            .unwrap_or(index)
    };
    (0..tasks.len()).map(first).collect()
}

/// The caller of every task, as the smallest index of a task of the same caller.
pub(crate) fn callers_of(tasks: &[Task]) -> Vec<usize> {
    let first = |task: &Task| {
        tasks
            .iter()
            .position(|other| other.caller == task.caller)
            .expect("every task has a caller")
    };
    tasks.iter().map(first).collect()
}
