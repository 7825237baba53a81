//! The scheduler on real threads: invariants, never timing. Each fault of
//! SEMANTICS 1A and 1B that a thread can show has a test here by its name.

#[path = "scheduler_threads/ahead.rs"]
mod ahead;
#[path = "scheduler_threads/asynchronous.rs"]
mod asynchronous;
#[path = "scheduler_threads/batches.rs"]
mod batches;
#[path = "scheduler_threads/callers.rs"]
mod callers;
#[path = "scheduler_threads/cancelling.rs"]
mod cancelling;
#[path = "scheduler_threads/drops.rs"]
mod drops;
#[path = "scheduler_threads/groups.rs"]
mod groups;
#[path = "scheduler_threads/later.rs"]
mod later;
#[path = "scheduler_threads/life.rs"]
mod life;
#[path = "scheduler_threads/outcomes.rs"]
mod outcomes;
#[path = "scheduler_threads/pools.rs"]
mod pools;
#[path = "scheduler_threads/readers.rs"]
mod readers;
#[path = "scheduler_threads/stage.rs"]
mod stage;
#[path = "scheduler_threads/stalls.rs"]
mod stalls;
#[path = "scheduler_threads/status.rs"]
mod status;
#[path = "scheduler_threads/wakers.rs"]
mod wakers;
