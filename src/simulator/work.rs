//! The tasks of a simulation, and the names of its callers and tasks. A name holds the number of
//! its simulation.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::scheduler::{Body, Ending, GroupId, Location, Placing, TaskId};
use crate::shown::{id_says, shows};
use crate::slab::Key;
use crate::sync::{Arc, Mutex};
use crate::timers::Timer;

/// A caller of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(pub(super) u64, pub(super) Key);

id_says!(
    /// The simulation's number, and a name in it.
    CallerId { Self(simulation, key) => "{simulation}.{key:?}" }
);

/// Serialized as its `Display`.
#[cfg(feature = "serde")]
impl serde::Serialize for CallerId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A task of a simulation, by which to bump or cancel it.
#[derive(Clone)]
pub struct SimTask {
    pub(super) number: u64,
    pub(super) job: Job,
    pub(super) id: TaskId,
}

/// A task and its progress.
pub(super) type Job = Arc<Task>;

#[derive(Debug)]
pub(super) struct Task {
    pub(super) work: Work,
    label: Option<Arc<str>>,
    pub(super) progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Where it waits; `None` once it has ended.
    pub(super) location: Option<Location>,
    /// How many more times it awaits.
    awaits: u32,
    /// The timer that wakes it.
    pub(super) pause: Option<Timer>,
}

impl Task {
    pub(super) fn new(work: Work) -> Job {
        let awaits = work.awaits.map_or(0, |(_, times)| times);
        let progress = Progress {
            awaits,
            ..Progress::default()
        };
        Arc::new(Self {
            work,
            label: work.label.map(Arc::from),
            progress: Mutex::new(progress),
        })
    }

    /// The task has ended. Returns the timer that would have woken it.
    pub(super) fn ended(&self) -> Option<Timer> {
        std::mem::take(&mut *self.progress.lock()).pause
    }

    /// The task was polled. Returns how long it awaits now, if it does.
    pub(super) fn awaits(&self) -> Option<Duration> {
        let (pause, _) = self.work.awaits?;
        let progress = &mut *self.progress.lock();
        progress.awaits = progress.awaits.checked_sub(1)?;
        Some(pause)
    }
}

impl Body for Job {
    fn moved(&self, to: Location) {
        self.progress.lock().location = Some(to);
    }

    fn is_future(&self) -> bool {
        self.work.awaits.is_some()
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }
}

shows!(SimTask, |this| id: this.id);

impl PartialEq for SimTask {
    fn eq(&self, other: &Self) -> bool {
        (self.number, self.id) == (other.number, other.id)
    }
}

impl Eq for SimTask {}

impl Hash for SimTask {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.number, self.id).hash(state);
    }
}

impl SimTask {
    /// Its number, as in the records.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }
}

/// A simulated task: how long it takes, how it ends, and its place.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Work {
    pub(super) takes: Duration,
    pub(super) ending: Ending,
    pub(super) placing: Placing,
    /// If it is a future: how long it awaits, and how often.
    pub(super) awaits: Option<(Duration, u32)>,
    /// Its group, whose simulation is checked when it is submitted.
    pub(super) group: Option<GroupId>,
    pub(super) label: Option<&'static str>,
}

impl Work {
    /// A task that succeeds after `takes`, in tier 0 and a group of its own.
    pub fn takes(takes: Duration) -> Self {
        Self {
            takes,
            ending: Ending::Ok,
            placing: Placing::default(),
            awaits: None,
            group: None,
            label: None,
        }
    }

    /// Makes it a future that awaits `times` times, for `pause` each time.
    ///
    /// Like a [spawned](crate::scheduler::Caller::spawn) future it keeps no worker while it awaits.
    /// Each of its `times + 1` polls takes as long as the work [takes](Self::takes). With a pause
    /// of 0 it wakes itself while it is polled. A pause of [`Duration::MAX`] lasts until it is
    /// [woken](super::Simulation::wake).
    ///
    /// ```
    /// use std::time::Duration;
    /// use conversant::scheduler::CallerOptions;
    /// use conversant::simulator::{Simulation, Work};
    ///
    /// let second = Duration::from_secs(1);
    /// let mut sim = Simulation::new(1)?;
    /// let caller = sim.caller("web", CallerOptions::default())?;
    /// for _ in 0..2 {
    ///     sim.submit(caller, Work::takes(second).awaits(10 * second, 1))?;
    /// }
    /// sim.run();
    /// // Both await at once: polls at 0 and 1, then at 11 and 12.
    /// assert_eq!(sim.now(), 13 * second);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn awaits(self, pause: Duration, times: u32) -> Self {
        let awaits = Some((pause, times));
        Self { awaits, ..self }
    }

    /// It ends with a failure.
    pub fn failing(self) -> Self {
        let ending = Ending::Failed;
        Self { ending, ..self }
    }

    /// It ends with a panic.
    pub fn panicking(self) -> Self {
        let ending = Ending::Panicked;
        Self { ending, ..self }
    }

    /// It arrives this long after it is submitted, like a task with a
    /// [delay](crate::scheduler::Place::after).
    pub fn after(mut self, after: Duration) -> Self {
        self.placing.after = after;
        self
    }

    /// In this tier.
    pub fn tier(mut self, tier: u32) -> Self {
        self.placing.tier = Some(tier);
        self
    }

    /// In this group, which is of the same caller.
    pub fn group(mut self, group: GroupId) -> Self {
        self.group = Some(group);
        self
    }

    /// With this [label](crate::scheduler::Place::label).
    pub fn label(self, label: &'static str) -> Self {
        let label = Some(label);
        Self { label, ..self }
    }

    /// On arrival bumps its group to this level.
    pub fn bump(mut self, level: u8) -> Self {
        self.placing.bump = Some(level);
        self
    }
}
