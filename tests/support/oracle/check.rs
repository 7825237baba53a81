//! INVARIANT CHECKER for any schedule log, simulated or real, whatever made it.
//!
//! It uses times only, in the unit of the log. A task runs from its start up to, but not
//! including, its end, so a task of zero duration runs at no time. Rules that need a running task
//! are therefore checked between instants.
//!
//! Times alone do not show the order within one instant, the ring and the bypass: `bound.rs` and
//! the comparison with the simulator check these.

/// One row of a schedule log.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) caller: String,
    pub(crate) tier: u32,
    pub(crate) group: Option<String>,
    pub(crate) queued: u64,
    /// `None`: never started.
    pub(crate) span: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Counted from 1.
    pub(crate) reader: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) readers: usize,
    pub(crate) cap: Option<usize>,
    /// How long a time stamp may lag behind its event: 0 when simulated. Only rules that compare
    /// the stamps of different tasks (arrivals against starts, idle readers) get this slack.
    pub(crate) slack: u64,
}

/// Every broken rule, in words; rows are counted from 1.
pub(crate) fn violations(log: &[Entry], limits: &Limits) -> Vec<String> {
    let mut found = Vec::new();
    rows_are_sane(log, limits, &mut found);
    for later in 0..log.len() {
        for other in 0..log.len() {
            if other != later {
                pair(log, other, later, limits, &mut found);
            }
        }
    }
    cap_is_kept(log, limits, &mut found);
    no_reader_is_idle_beside_an_eligible_task(log, limits, &mut found);
    found
}

fn rows_are_sane(log: &[Entry], limits: &Limits, found: &mut Vec<String>) {
    for (index, entry) in log.iter().enumerate() {
        let Some(span) = entry.span else { continue };
        if span.reader == 0 || span.reader > limits.readers {
            found.push(format!(
                "row {}: there is no reader {}",
                index + 1,
                span.reader
            ));
        }
        if span.start < entry.queued || span.end < span.start {
            found.push(format!(
                "row {}: queued, start, end out of order",
                index + 1
            ));
        }
    }
}

/// The rules that concern two started rows.
fn pair(log: &[Entry], one: usize, two: usize, limits: &Limits, found: &mut Vec<String>) {
    let (Some(a), Some(b)) = (log[one].span, log[two].span) else {
        return;
    };
    let apart = a.end <= b.start || b.end <= a.start;
    let same_caller = log[one].caller == log[two].caller;
    let mut report = |rule: &str| {
        found.push(format!("rows {} and {}: {rule}", one + 1, two + 1));
    };
    if one < two && a.reader == b.reader && !apart {
        report("overlap on one reader");
    }
    if same_group(&log[one], &log[two]) {
        if one < two && !apart {
            report("one group, but they overlap");
        }
        if arrives_before(log, one, two) && (b.start < a.start || b.end < a.end) {
            report("one group, but not in order of arrival");
        }
    }
    if same_caller && log[one].tier != log[two].tier {
        if one < two && !apart {
            report("tasks of two tiers of one caller overlap");
        }
        let had_arrived = log[one].queued + limits.slack <= b.start;
        if log[one].tier < log[two].tier && had_arrived && a.end > b.start {
            report("the higher tier started before the lower one had finished");
        }
    }
}

fn same_group(a: &Entry, b: &Entry) -> bool {
    a.caller == b.caller && a.group.is_some() && a.group == b.group
}

fn arrives_before(log: &[Entry], one: usize, two: usize) -> bool {
    (log[one].queued, one) < (log[two].queued, two)
}

fn runs_at(entry: &Entry, time: u64) -> bool {
    entry
        .span
        .is_some_and(|span| span.start <= time && time < span.end)
}

fn cap_is_kept(log: &[Entry], limits: &Limits, found: &mut Vec<String>) {
    let Some(cap) = limits.cap else { return };
    for (index, entry) in log.iter().enumerate() {
        let Some(span) = entry.span else { continue };
        // A task that starts at the same instant as one of zero duration may come after it.
        let beside = |other: &&Entry| {
            let other_span = other.span;
            let from_before = other_span.is_some_and(|other| other.start < span.start);
            other.caller == entry.caller
                && runs_at(other, span.start)
                && (from_before || span.start < span.end)
        };
        let itself = usize::from(span.start == span.end);
        let in_flight = log.iter().filter(beside).count() + itself;
        if in_flight > cap {
            found.push(format!(
                "row {}: {in_flight} tasks of its caller in flight",
                index + 1
            ));
        }
    }
}

/// Work conservation, between any two neighbouring instants of the log.
fn no_reader_is_idle_beside_an_eligible_task(
    log: &[Entry],
    limits: &Limits,
    found: &mut Vec<String>,
) {
    let spans = log.iter().filter_map(|entry| entry.span);
    let mut instants: Vec<u64> = spans.flat_map(|span| [span.start, span.end]).collect();
    instants.extend(log.iter().map(|entry| entry.queued));
    instants.sort_unstable();
    instants.dedup();
    for between in instants.windows(2) {
        let busy = log.iter().filter(|entry| runs_at(entry, between[0]));
        if between[1] - between[0] <= limits.slack || busy.count() >= limits.readers {
            continue;
        }
        for index in 0..log.len() {
            if is_eligible(log, index, between[0], limits) {
                found.push(format!(
                    "row {}: eligible beside an idle reader from {} to {}",
                    index + 1,
                    between[0],
                    between[1]
                ));
            }
        }
    }
}

/// Whether the task could have been started just after this time.
fn is_eligible(log: &[Entry], index: usize, time: u64, limits: &Limits) -> bool {
    let entry = &log[index];
    let Some(span) = entry.span else { return false };
    let outstanding = |other: &Entry| {
        other.queued <= time && other.span.is_some_and(|other_span| other_span.end > time)
    };
    let of_caller = || log.iter().filter(|other| other.caller == entry.caller);
    let running = || of_caller().filter(|other| runs_at(other, time));
    let group_is_free = !(0..log.len()).any(|other| {
        same_group(&log[other], entry)
            && arrives_before(log, other, index)
            && outstanding(&log[other])
    });
    let tier_is_open = of_caller().all(|other| !outstanding(other) || other.tier >= entry.tier)
        && running().all(|other| other.tier == entry.tier);
    let below_cap = limits.cap.is_none_or(|cap| running().count() < cap);
    entry.queued <= time && span.start > time && group_is_free && tier_is_open && below_cap
}
