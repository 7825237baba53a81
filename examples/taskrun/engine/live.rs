//! The list on the scheduler.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conversant::limit::{DEFAULT_LEVEL, Limit};
use conversant::scheduler::Verdict as Gave;
use conversant::scheduler::{Caller, Group, How, Place, Record, Scheduler, Task};
use crossbeam_channel::{Receiver, after, never, select, unbounded};

use super::{ADMISSIBLE, IN_RANGE, Report, bypass, caller_options, not_begun, ran};
use crate::command::Ended;
use crate::input::TaskList;
use crate::options::Options;
use crate::outcome::{Finished, Verdict};
use crate::progress::Progress;
use crate::session::Session;

struct Live<'a> {
    list: &'a Arc<TaskList>,
    session: &'a Arc<Session>,
    scheduler: Scheduler,
    callers: Vec<Caller>,
    groups: Vec<Option<Group>>,
    /// In order of submission: the row, and its task until it has ended.
    tasks: Vec<(u32, Option<Task<Ended, Ended>>)>,
    open: usize,
    finished: Vec<Finished>,
    log: Receiver<Record>,
}

pub(super) fn run(
    list: &Arc<TaskList>,
    options: &Options,
    progress: &mut Progress,
    session: &Arc<Session>,
) -> Report {
    let mut live = Live::new(list, options, session);
    let origin = Instant::now();
    let arrivals = list.arrivals();
    let mut coming = arrivals.iter().copied().peekable();
    let arrives = |row: u32| Duration::from_millis(list.rows[row as usize].arrive_ms.into());
    let mut interrupted = false;
    loop {
        // Checked before anything is submitted: nothing new may start.
        if !interrupted && session.interrupts.try_recv().is_ok() {
            interrupted = true;
            live.interrupt(progress);
        }
        let now = origin.elapsed();
        let due = |row: &u32| !interrupted && arrives(*row) <= now;
        live.submit(std::iter::from_fn(|| coming.next_if(due)));
        let next = coming.peek().filter(|_| !interrupted).copied();
        if live.open == 0 && next.is_none() {
            let finished = live.finished;
            let cut_short = |done: &Finished| done.verdict == Verdict::Cancelled;
            let interrupted = interrupted || finished.iter().any(cut_short);
            return Report {
                finished,
                interrupted,
            };
        }
        let arrival = next.map_or_else(never, |row| after(arrives(row).saturating_sub(now)));
        let stop = match interrupted {
            true => never(),
            false => session.interrupts.clone(),
        };
        select! {
            recv(live.log) -> record => live.settle(record.expect("the scheduler is there"), progress),
            recv(arrival) -> _ => {}
            recv(live.retry(progress)) -> _ => {
                live.scheduler.set_workers(options.readers).expect(IN_RANGE);
            }
            recv(stop) -> _ => {
                interrupted = true;
                live.interrupt(progress);
            }
        }
    }
}

impl<'a> Live<'a> {
    fn new(list: &'a Arc<TaskList>, options: &Options, session: &'a Arc<Session>) -> Self {
        let (sender, log) = unbounded();
        let scheduler = Scheduler::builder()
            .workers(options.readers)
            .bypass(bypass(options))
            // The rows of a list start in their exact order.
            .claims(1)
            .log(sender)
            .build()
            .expect(IN_RANGE);
        let callers = (0..list.callers.len() as u32)
            .zip(&list.callers)
            .map(|(number, name)| scheduler.caller(name, caller_options(number, options)))
            .collect::<Result<_, _>>()
            .expect(IN_RANGE);
        Self {
            list,
            session,
            scheduler,
            callers,
            groups: list.groups.iter().map(|_| None).collect(),
            tasks: Vec::new(),
            open: 0,
            finished: not_begun(list),
            log,
        }
    }

    /// Submits the rows that arrive at one instant; none starts before all are known.
    fn submit(&mut self, rows: impl Iterator<Item = u32>) {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return;
        }
        let hold = self.scheduler.hold();
        for number in rows {
            let row = &self.list.rows[number as usize];
            let caller = &self.callers[row.caller as usize];
            let group = row.group.map(|group| {
                let group = &mut self.groups[group as usize];
                &*group.get_or_insert_with(|| {
                    let group = caller.group(Limit::SERIAL, DEFAULT_LEVEL);
                    group.expect(IN_RANGE)
                })
            });
            let mut place = Place::new().tier(row.tier);
            place = group.into_iter().fold(place, Place::group);
            place = row.bump.into_iter().fold(place, Place::bump);
            let (list, session) = (Arc::clone(self.list), Arc::clone(self.session));
            let task = caller.exec_with(place, move || {
                let ended = session.work(&list.rows[number as usize]);
                match ended.verdict.is_failure() {
                    true => Err(ended),
                    false => Ok(ended),
                }
            });
            self.tasks.push((number, Some(task.expect(ADMISSIBLE))));
            self.open += 1;
        }
        drop(hold);
    }

    /// Takes the outcome of a task whose row of the execution log has come.
    fn settle(&mut self, record: Record, progress: &mut Progress) {
        let (number, task) = &mut self.tasks[record.task.id.get() as usize - 1];
        let mut task = task.take().expect("a task ends once");
        let outcome = task.outcome().wait().expect("this is no reader");
        let (verdict, output) = match outcome.verdict {
            Gave::Ok(ended) | Gave::Failed(ended) => (ended.verdict, Some(ended.output)),
            Gave::Panicked(payload) => resume_unwind(payload),
            Gave::Cancelled => (Verdict::Cancelled, None),
            Gave::Skipped => (Verdict::Skipped, None),
        };
        self.finished[*number as usize] = Finished {
            queued_us: outcome.queued.as_micros() as u64,
            // If it was not begun at Ctrl-C, it has not run.
            ran: outcome
                .run
                .filter(|_| verdict != Verdict::Cancelled)
                .map(ran),
            verdict,
        };
        self.open -= 1;
        progress.settled(self.list, *number, verdict, output.as_ref());
    }

    /// Cancels what waits; the loop waits for what runs.
    fn interrupt(&self, progress: &mut Progress) {
        progress.interrupted(self.scheduler.workers().busy as usize);
        // The first poll of the wait cancels.
        let _ = self
            .scheduler
            .shutdown(How::Cancel)
            .wait_timeout(Duration::ZERO);
    }

    /// There is work but no reader, since none could be started: try again in a while.
    fn retry(&self, progress: &mut Progress) -> Receiver<Instant> {
        let readers = self.scheduler.workers();
        if self.open == 0 || readers.live > 0 {
            return never();
        }
        progress.stranded(readers.start_error.as_deref().unwrap_or("no reader"));
        after(Duration::from_secs(1))
    }
}
