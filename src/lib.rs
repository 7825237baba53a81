//! The core of a scheduler, in memory: queues that keep order per key, job queues, task schedulers
//! and lock tables. It decides who is next, by order, limits, priorities and fair shares; your
//! threads, async tasks or pool do the work.
//!
//! ```
//! use conversant::prelude::*;
//!
//! let queue = Queue::new();
//! let hooks = Keyed::new(queue.lane(1, Limit::Unlimited)?); // weight 1, no cap
//! hooks.send("customer 7", "created")?;
//! hooks.send("customer 8", "created")?;
//! hooks.send("customer 7", "paid")?;
//! queue.close();
//!
//! // Any number of threads or tasks may do this; in a task: `queue.receive().await`.
//! while let Ok(mut turn) = queue.receive().wait() {
//!     while let Some(hook) = turn.next() {
//!         // "paid" comes after "created" is completed.
//!         hook.complete();
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | pass messages in order for each customer, actor or key | [`keyed::Keyed`] over a [`queue::Queue`] |
//! | run tasks of several callers, in tiers and groups | [`scheduler::Scheduler`] |
//! | give out jobs by key, with limits, leases and retries | [`job_queue::JobQueue`] |
//! | lock rows, tables and what contains them | [`lock_table::LockTable`]; one lock: [`intent::IntentLock`] |
//! | try a policy in virtual time | [`simulator::Simulation`] |
//! | have two sides talk | [`dialog::Dialogs`] |
//! | bound how many do something at once | [`semaphore::Semaphore`] |
//! | let threads or tasks of yours pass tier by tier | [`gate::TierGate`] |
//! | keep the time for back-offs, leases and timers | [`ticker::Ticker`] |
//!
//! If all your work is alike, use a channel: it is simpler. The crate stores nothing on disk,
//! preempts nothing, and works within one process only.
//!
//! Each module begins with what it does for you and an example. An operation that may wait
//! returns a [`wait::Wait`]: a future, with `wait()` for a thread. The only ones that block are a
//! scope, the calls of a driver, and the drops that say so. Only a `Ticker` and a
//! [`scheduler::Scheduler`] without a pool of yours start threads. A scheduler, and a thing whose
//! time a ticker keeps or has kept, read the clock to date what happens. Everything else reads it
//! only for a wait with a time-out, and during the microseconds in which a thread spins before it
//! sleeps.
//!
//! `README.md` explains the words, `docs/guarantees.md` lists the guarantees, and
//! `docs/model-checking.md` says how to model-check what you build on the crate. In the repository,
//! `docs/house.md` says how the crate is built.
//!
//! # Features
//!
//! `dialog`, `jobs`, `locks` (with the gate) and `scheduler` (with the simulator) are on by
//! default. Without them the queue, sends by key, the semaphore and the ticker remain; they
//! compile in about half of the time.
//!
//! Off by default: `futures` makes a queue a `Stream` of turns (`Queue::turns`) and a
//! conversation a `Sink` (`Conversation::sink`). `serde` makes all snapshots, counts and
//! statuses serializable. `tracing` sends the rare events below to subscribers of the `tracing`
//! crate.
//!
//! # Events for `tracing`
//!
//! | target | level | event | fields |
//! |---|---|---|---|
//! | `conversant::queue` | debug | `bumped`: a group | `group`, `tag`, `level` |
//! | | debug | `blocked`: a group was paused by a limit of 0 | `group`, `tag`, `why` |
//! | | debug | `blocked`: a group backs off after a failure | `group`, `tag`, `number` of the message, `attempts`, `why` |
//! | | warn | `poisoned`: a group | `group`, `tag`, `number`, `attempts` |
//! | `conversant::job_queue` | warn | `dead`: a job | `job`, `attempts` |
//! | `conversant::scheduler` | trace | `queued`, `started`, `ended`: a task, by the log `scheduler::Tracing` | see there |
//! | | debug | `bumped`: a group, or a task | `group` or `task`, `level` |
//! | | debug | `blocked`: a group was paused by a limit of 0 | `group`, `why` |
//! | | debug | `blocked`: a task waits for others without a time-out, and its thread sleeps | `task`, `label`, `worker`, `why` |
//! | | warn | `deadlock`: such a wait gives up, since nothing could go on | `task`, `label`, `worker` |
//! | `conversant::lock_table` | debug | `blocked`: an owner begins to wait | `owner`, `mode` |
//! | | warn | `deadlock`: sent by the victim where it gets the error | `victim`, `cycle` |
//!
//! The name of an event is here its message, not that of its metadata.
//!
//! A queue sends no event for a message: sending and receiving cost the same as without the
//! feature. Events have no keys and no resources, since these need not be printable: use a
//! queue group's [tag](queue::Conversation::set_tag) instead.
//!
//! A bump, or a limit of 0, that changes nothing sends no event of a queue, though it may while the
//! turn that uses the bump up is claimed and has not begun; it sends one of a scheduler. A bump
//! that comes with a task (`scheduler::Place::bump`), and a group that is made with a limit of 0,
//! send none.
//!
//! A subscriber is called when the operation is done, under no lock of the crate. If it panics,
//! only that event is lost. It may use the crate; but if it bumps a group on each bump, to another
//! level or in a scheduler, it never ends.

#![deny(unsafe_code)]
// Without all features, code that only a missing feature or the benches use is dead.
#![cfg_attr(
    not(all(
        feature = "dialog",
        feature = "internals",
        feature = "jobs",
        feature = "locks",
        feature = "scheduler",
        feature = "tracing"
    )),
    allow(dead_code, unused_imports)
)]

mod shown;
mod sync;

pub mod error;
pub mod limit;
mod slab;

#[cfg(feature = "scheduler")]
mod backlog;
#[cfg(feature = "jobs")]
mod by_key;
mod group;
#[cfg(feature = "jobs")]
mod jobs;
mod lanes;
mod ready;
mod retry;
mod ring;
mod tiers;
mod timers;
#[cfg(feature = "scheduler")]
mod workers;

#[cfg(feature = "locks")]
pub mod modes;

mod due;
mod trace;
mod turnstile;
pub mod wait;

#[cfg(feature = "locks")]
pub mod gate;
#[cfg(feature = "locks")]
pub mod intent;
pub mod semaphore;

#[cfg(feature = "jobs")]
pub mod job_queue;
pub mod keyed;
#[cfg(feature = "locks")]
pub mod lock_table;
pub mod queue;

#[cfg(feature = "dialog")]
pub mod dialog;
pub mod prelude;

// Threads, clocks and pools are not modelled: the compiler shows these lines if a model uses them.
#[cfg(all(feature = "scheduler", not(loom)))] // not for loom: see docs/model-checking.md
pub mod scheduler;
#[cfg(all(test, loom, feature = "scheduler"))]
#[path = "scheduler/model.rs"]
mod scheduler;
#[cfg(all(feature = "scheduler", not(loom)))] // not for loom: see docs/model-checking.md
pub mod simulator;
#[cfg(not(loom))] // not for loom: see docs/model-checking.md
pub mod ticker;

/// Parts that the benches measure alone; not stable.
#[cfg(all(feature = "internals", feature = "scheduler"))]
#[doc(hidden)]
pub mod internals {
    pub use crate::backlog::{Backlog, GroupKey};
    pub use crate::lanes::LaneKey;
    pub use crate::ready::{Position, ReadyQueue};
}

// Its examples need these features.
#[cfg(all(
    doctest,
    feature = "jobs",
    feature = "locks",
    feature = "scheduler",
    not(any(loom, shuttle))
))]
#[doc = include_str!("../README.md")]
mod readme {}
