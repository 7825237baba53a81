//! The events that subscribers of the crate `tracing` get.

mod jobs;
mod locks;
mod queue;
mod recorder;
mod scheduler;
