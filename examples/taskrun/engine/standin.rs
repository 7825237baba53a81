//! TEMPORARY: rows in order of arrival on the lowest idle reader, so that
//! everything around the scheduler can be exercised. Of the ordering rules it
//! knows none but the skipping after a failure.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, bounded, never, select, unbounded};

use crate::command::Ended;
use crate::engine::Report;
use crate::input::TaskList;
use crate::options::Options;
use crate::outcome::{Finished, Ran, Verdict};
use crate::progress::Progress;
use crate::session::Session;

pub(super) fn simulate(list: &TaskList, options: &Options) -> Vec<Finished> {
    let _not_yet = (options.bypass, options.cap, &options.weights);
    let mut finished = not_begun(list);
    let mut free: BTreeSet<(u64, u32)> = (1..=options.readers).map(|reader| (0, reader)).collect();
    for row in list.arrivals() {
        let arrive_us = u64::from(list.rows[row as usize].arrive_ms) * 1000;
        let (at, reader) = free.pop_first().expect("there is a reader");
        let start_us = at.max(arrive_us);
        let takes_us = u64::from(list.rows[row as usize].duration_ms) * 1000;
        let end_us = start_us.saturating_add(takes_us);
        free.insert((end_us, reader));
        finished[row as usize].ran = Some(Ran {
            reader,
            start_us,
            end_us,
        });
        finished[row as usize].verdict = Verdict::Ok;
    }
    finished
}

fn not_begun(list: &TaskList) -> Vec<Finished> {
    let as_given = |arrive_ms| Finished {
        queued_us: u64::from(arrive_ms) * 1000,
        ran: None,
        verdict: Verdict::Cancelled,
    };
    list.rows
        .iter()
        .map(|row| as_given(row.arrive_ms))
        .collect()
}

struct Completion {
    row: u32,
    ran: Ran,
    ended: Ended,
}

struct Run<'a> {
    list: &'a TaskList,
    keep_going: bool,
    finished: Vec<Finished>,
    waiting: VecDeque<u32>,
    /// The lowest tier of each caller that has failed.
    failed: HashMap<u32, u32>,
    idle: BTreeSet<u32>,
    readers: Vec<Sender<u32>>,
}

pub(super) fn run(
    list: &Arc<TaskList>,
    options: &Options,
    progress: &mut Progress,
    session: &Arc<Session>,
) -> Report {
    let origin = Instant::now();
    let now_us = || origin.elapsed().as_micros() as u64;
    let (done, completions) = unbounded();
    let count = options.readers.min(list.rows.len() as u32);
    let mut run = Run {
        list,
        keep_going: options.keep_going,
        finished: not_begun(list),
        waiting: VecDeque::new(),
        failed: HashMap::new(),
        idle: (1..=count).collect(),
        readers: (1..=count)
            .map(|reader| start_reader(reader, origin, list, session, &done))
            .collect(),
    };
    let mut coming = list.arrivals().into_iter().peekable();
    let mut interrupted = false;
    loop {
        let due = |row: &u32| u64::from(list.rows[*row as usize].arrive_ms) * 1000 <= now_us();
        while let Some(row) = coming.next_if(|row| !interrupted && due(row)) {
            run.finished[row as usize].queued_us = now_us();
            run.waiting.push_back(row);
        }
        if !interrupted {
            run.dispatch(progress);
        }
        let busy = run.idle.len() < run.readers.len();
        let next = coming.peek().filter(|_| !interrupted);
        if !busy && next.is_none() {
            return Report {
                finished: run.finished,
                interrupted,
            };
        }
        let arrival = next.map_or_else(never, |&row| {
            let at = Duration::from_millis(list.rows[row as usize].arrive_ms.into());
            after((origin + at).saturating_duration_since(Instant::now()))
        });
        let stop = if interrupted {
            never()
        } else {
            session.interrupts.clone()
        };
        select! {
            recv(completions) -> done => run.complete(done.expect("we hold a sender"), progress),
            recv(arrival) -> _ => {}
            recv(stop) -> _ => {
                interrupted = true;
                progress.interrupted(run.readers.len() - run.idle.len());
            }
        }
    }
}

impl Run<'_> {
    fn dispatch(&mut self, progress: &mut Progress) {
        while let Some(&reader) = self.idle.first() {
            let Some(row) = self.waiting.pop_front() else {
                return;
            };
            let task = &self.list.rows[row as usize];
            let failed = self.failed.get(&task.caller);
            if !self.keep_going && failed.is_some_and(|&tier| task.tier > tier) {
                self.finished[row as usize].verdict = Verdict::Skipped;
                progress.settled(self.list, row, Verdict::Skipped, None);
                continue;
            }
            self.idle.remove(&reader);
            let _ = self.readers[reader as usize - 1].send(row);
        }
    }

    fn complete(&mut self, done: Completion, progress: &mut Progress) {
        let Completion { row, ran, ended } = done;
        self.idle.insert(ran.reader);
        let finished = &mut self.finished[row as usize];
        finished.ran = Some(ran);
        finished.verdict = ended.verdict;
        progress.settled(self.list, row, ended.verdict, Some(&ended.output));
        if ended.verdict.is_failure() {
            let task = &self.list.rows[row as usize];
            let lowest = self.failed.entry(task.caller).or_insert(task.tier);
            *lowest = task.tier.min(*lowest);
        }
    }
}

fn start_reader(
    reader: u32,
    origin: Instant,
    list: &Arc<TaskList>,
    session: &Arc<Session>,
    done: &Sender<Completion>,
) -> Sender<u32> {
    let (give, tasks): (_, Receiver<u32>) = bounded(1);
    let (list, session, done) = (Arc::clone(list), Arc::clone(session), done.clone());
    thread::spawn(move || {
        for row in tasks {
            let start_us = origin.elapsed().as_micros() as u64;
            let ended = session.work(&list.rows[row as usize]);
            let end_us = origin.elapsed().as_micros() as u64;
            let ran = Ran {
                reader,
                start_us,
                end_us,
            };
            if done.send(Completion { row, ran, ended }).is_err() {
                return;
            }
        }
    });
    give
}
