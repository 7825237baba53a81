//! The scheduling core that other schedulers embed.
//!
//! Ordered conversations, concurrency groups, tiers, priorities and fair
//! readers, in memory. No thread starts unless a [`scheduler`] with readers of
//! its own is used; below it, everything is driven by its caller: threads, async
//! tasks, a pool, or the [`simulator`] in virtual time.
//!
//! Start at [`queue`] to pass messages, at [`dialog`] to talk both ways, at [`scheduler`] to run tasks, at
//! [`simulator`] to try a policy out, at [`lock_table`] to lock a hierarchy, at
//! [`gate`] to pass tiers, at [`semaphore`] to count permits.
//!
//! # The house
//!
//! A file imports only from lower floors, or from files above it in its own
//! list. `tests/layering` enforces that.
//!
//! | floor | file | its one job |
//! |---|---|---|
//! | 0 base | `lib.rs` | this page |
//! | | `sync.rs` | the facade over std, parking_lot and loom |
//! | | `error.rs` | the public errors |
//! | | `limit.rs` | limits, and bounds on overtaking |
//! | | `slab.rs` | slots behind keys that never match a later value |
//! | 1 policy | `modes.rs` | lock modes: compatible, join, covers, what parents need |
//! | | `ready.rs` | who stands in one line: by rank, with the oldest at hand |
//! | | `by_key.rs` | order by (key, sequence): trees in one store |
//! | | `ring.rs` | weighted round robin of lanes |
//! | | `tiers.rs` | which tier is open |
//! | | `timers.rs` | what is due when, by the embedder's clock |
//! | | `workers.rs` | when to start, wake and retire a worker |
//! | | `lanes.rs` | who is next: weighted lanes, caps, tiers, bypass |
//! | | `backlog.rs` | groups with the messages that wait, in lanes |
//! | | `jobs.rs` | which job is next: ring, orders, limits, due times, leases |
//! | 2 waiting | `wait.rs` | the one way to wait and to wake |
//! | | `turnstile.rs` | the wait queue with bounded overtaking |
//! | 3 primitives | `semaphore.rs` | the counting semaphore |
//! | | `gate.rs` | the tier gate |
//! | | `intent.rs` | one lock, six modes; striped form for hot roots |
//! | | `group.rs` | one group: its messages and its phase |
//! | 4 exchange | `queue.rs` | conversations, groups, lanes, turns, deliveries |
//! | | `keyed.rs` | send by key: the group made on first use, gone when idle |
//! | | `job_queue.rs` | ordered claims: limits, leases, dead letters |
//! | | `lock_table.rs` | owners, hierarchy, conversion queue, deadlock search |
//! | 5 top | `dialog.rs` | two endpoints, events, end and error |
//! | | `scheduler.rs` | callers, tasks and outcomes, readers, log, status |
//! | | `simulator.rs` | the scheduler in virtual time |

//!
//! # Unsafe code
//!
//! There is none but in two places, each with its invariants beside it: `group`
//! (a lock of one byte, messages in blocks, counted references) and the pages of
//! `slab`, where the groups stand. CI runs them under the address and leak
//! sanitizers and under memcheck, and the tests compare them with the standard
//! library's collections. What they gain is in `docs/benchmarks.md`.

#![deny(unsafe_code)]

mod sync;

pub mod error;
pub mod limit;
#[doc(hidden)]
pub mod slab;

// Public for the benches and fuzz targets: no promise of stability.
#[doc(hidden)]
pub mod backlog;
#[doc(hidden)]
pub mod by_key;
mod group;
#[doc(hidden)]
pub mod jobs;
#[doc(hidden)]
pub mod lanes;
#[doc(hidden)]
pub mod ready;
#[doc(hidden)]
pub mod ring;
#[doc(hidden)]
pub mod tiers;
#[doc(hidden)]
pub mod timers;
#[doc(hidden)]
pub mod workers;

pub mod modes;

mod turnstile;
pub mod wait;

pub mod gate;
pub mod intent;
pub mod semaphore;

pub mod job_queue;
pub mod keyed;
#[cfg(not(loom))]
pub mod lock_table;
pub mod queue;

pub mod dialog;

// Threads, clocks and pools are not modelled.
#[cfg(not(loom))]
pub mod scheduler;
#[cfg(not(loom))]
pub mod simulator;

#[cfg(all(doctest, not(any(loom, shuttle))))]
#[doc = include_str!("../README.md")]
mod readme {}
