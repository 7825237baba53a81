//! What must hold when all that can start has started, and at the end.

use std::time::Duration;

use conversant::scheduler::{Counts, Ending, Record, RunningTask, Status, WaitingTask, Why};

use crate::world::World;

/// The running and the waiting tasks of this caller.
fn of_caller<'a>(
    status: &'a Status,
    name: &'a str,
) -> (
    impl Iterator<Item = &'a RunningTask>,
    impl Iterator<Item = &'a WaitingTask>,
) {
    let running = status.running.iter();
    let waiting = status.waiting.iter();
    (
        running.filter(move |task| *task.caller == *name),
        waiting.filter(move |task| *task.caller == *name),
    )
}

impl World {
    /// Lets all that can start do so, and looks. Then a millisecond is over.
    pub(crate) fn settle(&mut self) {
        let now = self.sim.now();
        self.sim.advance_to(now + Duration::from_nanos(1));
        let status = self.sim.status();
        self.counts_agree(&status);
        self.limits_hold(&status);
        for task in &status.waiting {
            self.reason_holds(&status, task);
        }
        self.sim.advance_to(now + Duration::from_millis(1));
    }

    fn counts_agree(&self, status: &Status) {
        let workers = &status.workers;
        assert_eq!(workers.busy as usize, status.running.len());
        assert_eq!(workers.busy + workers.idle, workers.live);
        let is = |why: &dyn Fn(Why) -> bool| {
            let waiting = status.waiting.iter();
            waiting.filter(|task| why(task.why)).count() as u64
        };
        let delayed = is(&|why| matches!(why, Why::NotDue { .. }));
        let suspended = is(&|why| why == Why::Suspended);
        let counts = self.sim.counts();
        assert_eq!((counts.delayed, counts.suspended), (delayed, suspended));
        let waiting = status.waiting.len() as u64 - delayed - suspended;
        assert_eq!(
            (counts.waiting, counts.running),
            (waiting, status.running.len() as u64)
        );
        for caller in &status.callers {
            let (running, waiting) = of_caller(status, &caller.name);
            assert_eq!(
                caller.unfinished as usize,
                running.count() + waiting.count()
            );
        }
    }

    /// Tasks of a group that run or await; with those that may have begun if `may`.
    fn in_group(&self, status: &Status, group: usize, may: bool) -> u32 {
        let of = |id: u64| &self.known[id as usize - 1];
        let mine = |id: u64| of(id).group == Some(group);
        let running = status.running.iter().filter(|task| mine(task.id.get()));
        let begun = status.waiting.iter().filter(|task| {
            let may = may && of(task.id.get()).is_future && !matches!(task.why, Why::NotDue { .. });
            mine(task.id.get()) && (task.why == Why::Suspended || may)
        });
        (running.count() + begun.count()) as u32
    }

    fn limits_hold(&mut self, status: &Status) {
        for (n, view) in status.callers.iter().enumerate() {
            let caller = &mut self.callers[n];
            assert_eq!(*view.name, *caller.name);
            assert!(view.running <= caller.ceiling);
            caller.ceiling = caller.cap.max(view.running);
            let (running, waiting) = of_caller(status, &view.name);
            let awaits = waiting.filter(|task| task.why == Why::Suspended);
            let mut tiers = running
                .map(|task| task.tier)
                .chain(awaits.map(|task| task.tier));
            let first = tiers.next();
            assert!(tiers.all(|tier| Some(tier) == first), "two tiers at once");
        }
        for n in 0..self.groups.len() {
            let used = self.in_group(status, n, false);
            let may = self.in_group(status, n, true);
            let group = &mut self.groups[n];
            assert!(used <= group.ceiling);
            group.ceiling = group.limit.max(may);
        }
    }

    fn reason_holds(&self, status: &Status, task: &WaitingTask) {
        let known = &self.known[task.id.get() as usize - 1];
        let due = known.due <= self.sim.now();
        assert_eq!(due, !matches!(task.why, Why::NotDue { .. }));
        let group = known.group.map(|group| (group, &self.groups[group]));
        match task.why {
            Why::NotDue { due } => assert_eq!(due, known.due),
            Why::Suspended => assert!(known.is_future),
            Why::Hold => assert!(self.holds > 0),
            Why::Worker => assert!(
                self.holds == 0 && status.workers.busy >= self.max,
                "{task:?}"
            ),
            Why::Paused => assert_eq!(group.expect("a group").1.limit, 0),
            Why::GroupLimit => {
                let (n, group) = group.expect("a group");
                assert!(group.limit <= self.in_group(status, n, true));
            }
            Why::Cap => {
                let used = status.callers[known.caller].running;
                assert!(self.callers[known.caller].cap <= used);
            }
            Why::Behind => {
                let (n, _) = group.expect("a group");
                let others = status.waiting.iter().filter(|other| other.id != task.id);
                let mut others = others.map(|other| &self.known[other.id.get() as usize - 1]);
                assert!(others.any(|other| other.group == Some(n)));
            }
            Why::Tier { open } => {
                let open = open.expect("a task is due");
                let lower = |other: &WaitingTask| {
                    let mine = self.known[other.id.get() as usize - 1].caller == known.caller;
                    mine && other.tier < task.tier
                };
                let runs = of_caller(status, &task.caller).0.next().is_some();
                assert!(open != task.tier || runs || status.waiting.iter().any(lower));
            }
        }
    }

    /// Each task has ended once, in the order of tiers and groups.
    pub(crate) fn all_has_ended(&self) {
        let status = self.sim.status();
        assert!(
            status.running.is_empty() && status.waiting.is_empty(),
            "{status:?}"
        );
        let mut rows: Vec<&Record> = self.sim.records().iter().collect();
        rows.sort_by_key(|row| row.task.id);
        let ids = rows.iter().map(|row| row.task.id.get());
        assert!(ids.eq(1..=self.known.len() as u64));
        let counts: Counts = self.sim.counts();
        assert_eq!(
            (
                counts.waiting,
                counts.delayed,
                counts.suspended,
                counts.running
            ),
            (0, 0, 0, 0)
        );
        assert_eq!(counts.ended.tasks, rows.len() as u64);
        for (n, caller) in self.callers.iter().enumerate() {
            let ended = |how: &[Ending]| {
                let mine = rows
                    .iter()
                    .zip(&self.known)
                    .filter(|(_, known)| known.caller == n);
                mine.filter(|(row, _)| how.contains(&row.ending)).count() as u64
            };
            let sum = caller.summed;
            assert_eq!(
                (sum.ok, sum.failed),
                (ended(&[Ending::Ok]), ended(&[Ending::Failed]))
            );
            assert_eq!(sum.panicked, ended(&[Ending::Panicked]));
            assert_eq!(sum.cancelled, ended(&[Ending::Cancelled]));
            assert_eq!(sum.skipped, ended(&[Ending::Skipped]));
            assert_eq!(status.callers[n].running, 0);
        }
        self.in_order(&rows);
    }

    fn in_order(&self, rows: &[&Record]) {
        let all = || rows.iter().zip(&self.known);
        for (row, known) in all() {
            let Some(run) = row.run else { continue };
            assert!(run.start >= known.due);
            for (other, before) in all().filter(|(_, other)| other.caller == known.caller) {
                let lower = other.task.tier < row.task.tier && before.due < run.start;
                assert!(
                    !lower || other.ended <= run.start,
                    "{row:?} before {other:?}"
                );
                let first = before.group.is_some() && before.group == known.group;
                let arrived = before.due < known.due
                    || before.due == known.due
                        && !(before.delayed || known.delayed)
                        && other.task.id < row.task.id;
                if let Some(earlier) = other.run.filter(|_| first && arrived) {
                    assert!(earlier.start <= run.start, "{row:?} before {other:?}");
                }
            }
        }
    }
}
