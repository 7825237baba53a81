//! What the subscribers of the crate `tracing` are told.

mod jobs;
mod locks;
mod queue;
mod recorder;
mod scheduler;
