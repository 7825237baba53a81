//! The scheduler on real threads. The tests check invariants, never timing. Each
//! fault of SEMANTICS 1A and 1B that threads can show has a test of its name here.

mod asynchronous;
mod batches;
mod callers;
mod cancelling;
mod doors;
mod driver;
mod drops;
mod ending;
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
mod refused;
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
