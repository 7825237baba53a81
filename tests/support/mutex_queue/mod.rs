//! The queue in its plainest form: one mutex around lists that are searched from end to end
//! ([`model`]). It has the names and the meaning of `conversant::queue`, without waits: no wakers,
//! no `receive`.
//!
//! It is the oracle: the suite of `queue_suite/` runs over both, and
//! `queue::random` compares them step by step.
#![allow(
    dead_code,
    unused_imports,
    reason = "every test binary uses its own part"
)]

mod events;
mod handles;
mod model;
mod snapshot;
mod turns;

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conversant::error::{OutOfRange, Stale};
use conversant::limit::{Bypass, Limit};
pub(crate) use conversant::queue::{LaneError, NoMore, NoTurn, SendError, SendReason, Why};

pub(crate) use handles::{Conversation, Group, Lane};
use model::{Model, Settings};
pub(crate) use snapshot::{Counts, GroupStatus, LaneStatus, Snapshot};
pub(crate) use turns::{Batch, Delivery, Detached, Turn, Turns};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId {
    queue: usize,
    group: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poisoned {
    pub(crate) group: GroupId,
    pub(crate) message: u64,
    pub(crate) attempts: u32,
    pub(crate) waiting: usize,
}

type Shared<T> = Arc<Mutex<Model<T>>>;

/// One operation under the lock. Results leave it before they are dropped.
fn locked<T, R>(shared: &Mutex<Model<T>>, f: impl FnOnce(&mut Model<T>) -> R) -> R {
    f(&mut shared.lock().expect("nothing panics under the lock"))
}

fn id<T>(shared: &Shared<T>, group: u64) -> GroupId {
    let queue = Arc::as_ptr(shared).cast::<u8>() as usize;
    GroupId { queue, group }
}

fn check(what: &'static str, asked: u32, least: u32, most: u32) -> Result<(), OutOfRange> {
    let refused = OutOfRange {
        what,
        asked,
        least,
        most,
    };
    (least..=most).contains(&asked).then_some(()).ok_or(refused)
}

fn checked(limit: Limit) -> Result<(), OutOfRange> {
    match limit {
        Limit::AtMost(n) => check("limit", n, 0, Limit::MAX),
        Limit::Unlimited => Ok(()),
    }
}

pub(crate) struct Builder<T>(Settings, PhantomData<T>);

impl<T> Builder<T> {
    pub(crate) fn quantum(mut self, quantum: u32) -> Self {
        self.0.quantum = quantum;
        self
    }

    pub(crate) fn bypass(mut self, bypass: Bypass) -> Self {
        self.0.bypass = bypass;
        self
    }

    pub(crate) fn capacity(mut self, capacity: Limit) -> Self {
        self.0.capacity = capacity;
        self
    }

    pub(crate) fn attempts(mut self, attempts: Limit) -> Self {
        self.0.attempts = attempts;
        self
    }

    pub(crate) fn back_off(mut self, first: Duration, most: Duration) -> Self {
        (self.0.first, self.0.most) = (first, most);
        self
    }

    pub(crate) fn build(self) -> Result<Queue<T>, OutOfRange> {
        check("quantum", self.0.quantum, 1, u32::MAX)?;
        if let Limit::AtMost(n) = self.0.attempts {
            check("attempts", n, 1, u32::MAX)?;
        }
        if let Limit::AtMost(n) = self.0.capacity {
            check("capacity", n, 0, Limit::MAX)?;
        }
        let shared = Arc::new(Mutex::new(Model::new(self.0)));
        let owner = Owner {
            shared: shared.clone(),
        };
        let owner = Arc::new(owner);
        Ok(Queue { shared, owner })
    }
}

pub(crate) struct Queue<T> {
    shared: Shared<T>,
    owner: Arc<Owner<T>>,
}

/// What all handles of a queue share: the last drops it.
struct Owner<T> {
    shared: Shared<T>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            owner: self.owner.clone(),
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self::builder().build().expect("the defaults are in range")
    }

    pub(crate) fn builder() -> Builder<T> {
        let settings = Settings {
            quantum: 16,
            bypass: Bypass::AtMost(64),
            capacity: Limit::Unlimited,
            attempts: Limit::AtMost(5),
            first: Duration::ZERO,
            most: Duration::ZERO,
        };
        Builder(settings, PhantomData)
    }

    pub(crate) fn lane(&self, weight: u32, cap: Limit) -> Result<Lane<T>, LaneError> {
        let made = locked(&self.shared, |model| {
            if model.closed {
                return Err(LaneError::Closed);
            }
            check("weight", weight, 1, 1_000_000)?;
            checked(cap)?;
            Ok(model.add_lane(weight, cap))
        });
        Ok(Lane::new(&self.shared, made?))
    }

    pub(crate) fn try_receive(&self) -> Result<Turn<'_, T>, NoTurn> {
        let claimed = locked(&self.shared, |model| match model.claim() {
            Some(group) => Ok(group),
            None => Err(model.nothing()),
        });
        Ok(Turn::begin(&self.shared, claimed?))
    }

    /// Like as many receives, one after the other, whose turns begin later.
    pub(crate) fn try_receive_many(&self, n: usize) -> Result<Turns<'_, T>, NoTurn> {
        let claimed = locked(&self.shared, |model| {
            let all = std::iter::from_fn(|| model.claim());
            let claimed: Vec<_> = all.take(n.min(32)).collect();
            match claimed.is_empty() && n > 0 {
                true => Err(model.nothing()),
                false => Ok(claimed.into_iter()),
            }
        });
        Ok(Turns {
            shared: self.shared.clone(),
            claimed: claimed?,
            of: PhantomData,
        })
    }

    pub(crate) fn try_receive_from(&self, name: GroupId) -> Result<Turn<'_, T>, NoTurn> {
        let stale = NoTurn::Stale;
        let claimed = self.with(name, |model, group| {
            let mut this = std::iter::once(&model.groups[&group]);
            if let Some(no_more) = model.no_more(&mut this) {
                return Err(NoTurn::Closed(no_more));
            }
            match model.why(group) {
                Why::InLine => model.claim_this(group),
                Why::Idle => return Err(NoTurn::Empty),
                Why::Held => return Err(NoTurn::Held),
                why => return Err(NoTurn::Blocked(why)),
            }
            Ok(group)
        });
        let group = claimed.map_err(|Stale| stale)??;
        Ok(Turn::begin(&self.shared, group))
    }

    pub(crate) fn bump(&self, name: GroupId, level: u8) -> Result<(), Stale> {
        self.with(name, |model, group| handles::bump(model, group, level))
    }

    pub(crate) fn waiting_in(&self, name: GroupId) -> Result<usize, Stale> {
        self.with(name, |model, group| model.groups[&group].waiting.len())
    }

    pub(crate) fn peek(&self, name: GroupId) -> Result<Option<(u64, u32)>, Stale> {
        self.with(name, |model, group| {
            let (&number, message) = model.groups[&group].waiting.first_key_value()?;
            Some((number, message.attempts))
        })
    }

    pub(crate) fn poisoned(&self) -> Vec<Poisoned> {
        locked(&self.shared, |model| {
            let all = model.groups.iter().filter_map(|(&group, g)| {
                let (message, attempts) = g.poisoned?;
                Some(Poisoned {
                    group: id(&self.shared, group),
                    message,
                    attempts,
                    waiting: g.waiting.len(),
                })
            });
            all.collect()
        })
    }

    pub(crate) fn resume(&self, name: GroupId) -> Result<bool, Stale> {
        self.with(name, Model::resume)
    }

    pub(crate) fn drain(&self, name: GroupId) -> Result<Vec<T>, Stale> {
        self.with(name, Model::drain)
    }

    pub(crate) fn advance(&self, now: Duration) -> Option<Duration> {
        locked(&self.shared, |model| model.advance(now))
    }

    pub(crate) fn close(&self) {
        locked(&self.shared, |model| model.closed = true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        locked(&self.shared, |model| model.closed)
    }

    pub(crate) fn shutdown(&self) -> Vec<T> {
        shutdown(&self.shared)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.snapshot().counts
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        locked(&self.shared, |model| snapshot::take(&self.shared, model))
    }

    fn with<R>(&self, name: GroupId, f: impl FnOnce(&mut Model<T>, u64) -> R) -> Result<R, Stale> {
        locked(&self.shared, |model| {
            let known = name == id(&self.shared, name.group);
            let exists = known && model.groups.contains_key(&name.group);
            exists.then(|| f(model, name.group)).ok_or(Stale)
        })
    }
}

impl<T> std::fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        locked(&self.shared, |model| model.gone = true);
        drop(shutdown(&self.shared));
    }
}

fn shutdown<T>(shared: &Shared<T>) -> Vec<T> {
    locked(shared, |model| {
        model.closed = true;
        let all: Vec<_> = model.groups.keys().copied().collect();
        let drained = all.into_iter().flat_map(|group| model.drain(group));
        drained.collect()
    })
}
