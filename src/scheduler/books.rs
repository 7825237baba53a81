//! The books, and what readers have beside them.
//!
//! A reader that finds a backlog takes several tasks in one hold of the lock. All
//! but the first wait on its tray, from which it takes one after the other without
//! that lock; there it also leaves word of those that have ended, up to the next
//! hold. The lock of a tray is taken under that of the books, never the other way.
//!
//! Whoever holds the lock of the books may clear a tray: what has ended goes into
//! the books, what has not started goes back to its place in line, as if it had
//! never been taken. Then the books say what they would if readers took one task
//! at a time. Every event whose answer depends on that clears the trays first
//! ([`exact`](Books::exact)); only submissions, bumps and levels do not.
//!
//! Cost, in ns a task of a backlog of 20,000 on two pinned readers of two shared
//! processors (medians of 7 rounds side by side, 2026-11-21; they vary by a fifth):
//!
//! | each task | two holds a task | claims 1 | 4 | 8 | 16 | 32 |
//! |---|---|---|---|---|---|---|
//! | nothing | 1,240 | 1,043 | 1,010 | 545 | 447 | 463 |
//! | 250 ns | 1,188 | 1,061 | 780 | 677 | 672 | 666 |
//! | 1 us | 2,243 | 1,854 | 1,636 | 1,667 | 1,627 | 1,338 |
//!
//! "Two holds" is one for an ending and one for the next task. Finishing and
//! taking N without any of the rules below was no faster, so they cost nothing
//! that could be measured. Hence 16. `benches/scheduler.rs` measures it again.
//!
//! Invariants:
//! 1. What is on a tray is `Claimed` in the books, and counts in every limit.
//! 2. A tray has tasks that have not started, or endings, only if its reader is
//!    busy and, for all that the books know, runs another task.
//! 3. Nobody waits for a task whose ending may lie on a tray: one that is awaited
//!    is the last that a reader takes; when a synchronize or release comes to wait
//!    only for what readers have, the trays are cleared.
//! 4. No reader rests beside a loaded tray: who finds nothing clears all, and looks
//!    again. Nobody takes more than one in as many as there may be readers, so what
//!    stays in line calls for every reader that is free.
//! 5. A reader that has not cleared its own tray while `PATIENCE` times as many
//!    tasks were taken as could stand on all trays has it cleared by the next.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::slab::Key;
use crate::sync::{Arc, Mutex};
use crate::wait::WakeBatch;

use super::cell::Job;
use super::core::Core;
use super::outcome::Ending;
use super::state::{Claimed, Started};

type Work = Arc<dyn Job>;

const PATIENCE: u64 = 2;

/// A task that has run: its ending is not in the books yet.
pub(super) struct Ran {
    pub(super) task: Key,
    pub(super) ending: Ending,
    pub(super) start: Duration,
    pub(super) end: Duration,
}

#[derive(Default)]
struct Load {
    todo: VecDeque<Claimed<Work>>,
    /// Which of them runs, and since when.
    running: Option<(Key, Duration)>,
    ran: Vec<Ran>,
}

/// What one reader has.
pub(super) struct Tray(Mutex<Load>);

impl Tray {
    /// The reader's next task, if it has one; if so word of the last is left here.
    pub(super) fn next(&self, n: u32, ran: Ran) -> Result<Started<Work>, Ran> {
        let mut load = self.0.lock();
        load.running = None;
        // Failures may skip tasks: at once.
        if ran.ending.is_failure() {
            return Err(ran);
        }
        let Some(next) = load.todo.pop_front() else {
            return Err(ran);
        };
        // The moment between them is the reader's own.
        let start = ran.end;
        load.running = Some((next.task(), start));
        load.ran.push(ran);
        drop(load);
        Ok(next.starts(n, start))
    }
}

/// A reader's tray, as the books know it.
struct Known {
    tray: Arc<Tray>,
    /// How many had been taken by all when it was loaded; 0 if it has been
    /// cleared since.
    loaded: u64,
}

impl Known {
    fn new() -> Self {
        let tray = Arc::new(Tray(Mutex::new(Load::default())));
        Self { tray, loaded: 0 }
    }
}

/// What a reader has taken.
pub(super) struct Taken {
    pub(super) first: Started<Work>,
    /// Where there is more.
    pub(super) tray: Option<Arc<Tray>>,
}

pub(super) struct Books {
    core: Core<Work>,
    /// The most that a reader takes at once.
    claims: u32,
    trays: Vec<Known>,
    /// The loaded trays, in the order of loading, and some that were.
    order: VecDeque<(u32, u64)>,
    loaded: u32,
    taken: u64,
    /// Kept for its memory.
    spare: Vec<Ran>,
}

impl Books {
    pub(super) fn new(core: Core<Work>, claims: u32) -> Self {
        Self {
            core,
            claims,
            trays: Vec::new(),
            order: VecDeque::new(),
            loaded: 0,
            taken: 0,
            spare: Vec::new(),
        }
    }

    /// The books as they would be if readers took one task at a time.
    pub(super) fn exact(&mut self, wakes: &mut WakeBatch) -> &mut Core<Work> {
        self.clear_but(0, wakes);
        &mut self.core
    }

    /// The same for what there is to be known of one task.
    pub(super) fn exact_for(&mut self, task: Key, wakes: &mut WakeBatch) -> &mut Core<Work> {
        if let Some(n) = self.core.reader_of(task) {
            self.clear(n, wakes);
        }
        &mut self.core
    }

    /// Whether the books are exact as they stand.
    pub(super) fn are_exact(&self) -> bool {
        self.loaded == 0
    }

    /// It is `now`: what is due arrives.
    pub(super) fn advance(&mut self, now: Duration, wakes: &mut WakeBatch) {
        for caller in self.core.advance(now, wakes) {
            if self.core.is_undercut(caller) {
                self.exact(wakes);
            }
        }
    }

    /// Reader `n` leaves.
    pub(super) fn leave(&mut self, n: u32, wakes: &mut WakeBatch) {
        self.clear(n, wakes);
        self.core.retire(n);
    }

    /// Reader `n` has run a task: that goes into the books, with what else it has
    /// left on its tray. If more is there it goes on with that.
    pub(super) fn finish(
        &mut self,
        n: u32,
        ran: Ran,
        now: Duration,
        wakes: &mut WakeBatch,
    ) -> Option<Taken> {
        let mut next = None;
        if self.is_loaded(n) {
            let load = &mut *self.trays[n as usize].tray.0.lock();
            std::mem::swap(&mut load.ran, &mut self.spare);
            next = load.todo.pop_front();
            if let Some(next) = &next {
                load.running = Some((next.task(), now));
            }
        }
        self.report(n, wakes);
        self.core.has_started(ran.task, n, ran.start);
        if let Some(next) = next {
            self.core.conclude_run(ran.task, ran.ending, ran.end, wakes);
            let first = next.starts(n, now);
            let tray = Some(self.tray(n));
            return Some(Taken { first, tray });
        }
        self.unload(n);
        self.core.finish(ran.task, ran.ending, ran.end, wakes);
        None
    }

    /// Reader `n` looks for work, having rested, arrived or finished, and takes up
    /// to `most`.
    pub(super) fn claim(
        &mut self,
        n: u32,
        most: u32,
        now: Duration,
        wakes: &mut WakeBatch,
    ) -> Option<Taken> {
        self.clear_overdue(wakes);
        let mut first = self.core.claim(n, now);
        if first.is_none() && self.loaded > 0 {
            self.exact(wakes);
            first = self.core.claim(n, now);
        }
        let first = first?;
        self.taken += 1;
        let tray = self.load(n, first.task, most);
        if std::mem::take(&mut self.core.pressing) {
            self.clear_but(n, wakes);
        }
        Some(Taken { first, tray })
    }

    /// See [`Core::settle`].
    pub(super) fn settle(&mut self, wakes: &mut WakeBatch) -> bool {
        if std::mem::take(&mut self.core.pressing) {
            self.exact(wakes);
        }
        self.core.settle(wakes)
    }

    /// Puts tasks on the tray of reader `n`, which runs `last` first, so that with
    /// it they are at most `most`.
    fn load(&mut self, n: u32, mut last: Key, most: u32) -> Option<Arc<Tray>> {
        let readers = u64::from(self.core.readers().max());
        let most = u64::from(most.min(self.claims));
        let share = (self.core.startable(most * readers) + 1) / readers;
        let most = share.min(most);
        if most <= 1 {
            return None;
        }
        let tray = self.tray(n);
        let mut load = tray.0.lock();
        for _ in 1..most {
            if self.core.is_awaited(last) {
                break;
            }
            let Some(claimed) = self.core.claim_ahead(n) else {
                break;
            };
            last = claimed.task();
            load.todo.push_back(claimed);
        }
        if load.todo.is_empty() {
            return None;
        }
        self.taken += load.todo.len() as u64;
        self.trays[n as usize].loaded = self.taken;
        self.order.push_back((n, self.taken));
        self.loaded += 1;
        drop(load);
        Some(tray)
    }

    fn tray(&mut self, n: u32) -> Arc<Tray> {
        let index = n as usize;
        if self.trays.len() <= index {
            self.trays.resize_with(index + 1, Known::new);
        }
        Arc::clone(&self.trays[index].tray)
    }

    fn is_loaded(&self, n: u32) -> bool {
        let known = self.trays.get(n as usize);
        known.is_some_and(|known| known.loaded > 0)
    }

    /// Clears all trays but that of reader `n`.
    fn clear_but(&mut self, n: u32, wakes: &mut WakeBatch) {
        if self.loaded == 0 {
            return;
        }
        for other in (0..self.trays.len() as u32).rev() {
            if other != n {
                self.clear(other, wakes);
            }
        }
    }

    /// Invariant 5.
    fn clear_overdue(&mut self, wakes: &mut WakeBatch) {
        let readers = u64::from(self.core.readers().max());
        let due = PATIENCE * readers * u64::from(self.claims);
        while let Some(&(n, loaded)) = self.order.front() {
            let known = &self.trays[n as usize];
            if known.loaded == loaded && self.taken - loaded < due {
                break;
            }
            self.order.pop_front();
            if known.loaded == loaded {
                self.clear(n, wakes);
            }
        }
    }

    fn clear(&mut self, n: u32, wakes: &mut WakeBatch) {
        if !self.is_loaded(n) {
            return;
        }
        self.unload(n);
        let (running, todo) = {
            let load = &mut *self.trays[n as usize].tray.0.lock();
            std::mem::swap(&mut load.ran, &mut self.spare);
            (load.running, std::mem::take(&mut load.todo))
        };
        self.report(n, wakes);
        if let Some((task, start)) = running {
            self.core.has_started(task, n, start);
        }
        for claimed in todo.into_iter().rev() {
            self.core.put_back(claimed);
        }
    }

    /// Puts the endings in `spare` into the books: those of tasks of reader `n`,
    /// which is busy still.
    fn report(&mut self, n: u32, wakes: &mut WakeBatch) {
        let mut spare = std::mem::take(&mut self.spare);
        for ran in spare.drain(..) {
            self.core.has_started(ran.task, n, ran.start);
            self.core.conclude_run(ran.task, ran.ending, ran.end, wakes);
        }
        self.spare = spare;
    }

    fn unload(&mut self, n: u32) {
        if self.is_loaded(n) {
            self.trays[n as usize].loaded = 0;
            self.loaded -= 1;
        }
    }
}

impl Deref for Books {
    type Target = Core<Work>;

    fn deref(&self) -> &Core<Work> {
        &self.core
    }
}

impl DerefMut for Books {
    fn deref_mut(&mut self) -> &mut Core<Work> {
        &mut self.core
    }
}
