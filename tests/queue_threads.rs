//! Real threads, no sleeps and no times: what must hold, holds in every interleaving.

mod queue_support;

#[path = "queue_threads/handles.rs"]
mod handles;
#[path = "queue_threads/races.rs"]
mod races;
#[path = "queue_threads/storm.rs"]
mod storm;
#[path = "queue_threads/wakes.rs"]
mod wakes;
