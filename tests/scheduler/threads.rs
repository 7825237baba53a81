//! The scheduler on real threads: invariants, never timing. Each fault of
//! SEMANTICS 1A and 1B that a thread can show has a test here by its name.

mod asynchronous;
mod batches;
mod callers;
mod cancelling;
mod driver;
mod drops;
mod futures;
mod futures_cancelled;
mod groups;
mod later;
mod life;
mod log;
mod outcomes;
mod pools;
mod posted;
mod prefetch;
mod room;
mod several;
pub(crate) mod stage;
mod stalls;
mod status;
mod stuck;
mod ticked;
mod tokens;
mod wakers;
mod workers;
