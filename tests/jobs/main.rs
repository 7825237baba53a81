//! The job queue, and the example that uses it.

#[path = "../support/finishes.rs"]
mod finishes;
#[path = "../support/histories/mod.rs"]
mod histories;

mod agents_cli;
mod dead;
mod figures;
mod linearizable;
mod panics;
mod parts;
mod retries;
mod room;
mod threads;
mod ticker;
mod unique;
