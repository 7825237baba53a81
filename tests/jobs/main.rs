//! The job queue, and the example that uses it.

#[path = "../support/histories/mod.rs"]
mod histories;

mod agents_cli;
mod figures;
mod linearizable;
mod panics;
mod parts;
mod retries;
mod room;
mod threads;
