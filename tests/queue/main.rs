//! The queue: its rules, its figures, threads, tasks, oracles and twins, and sends by key.

#![allow(
    clippy::duplicate_mod,
    reason = "one suite runs over the queue and over its oracle"
)]

#[path = "../support/histories/mod.rs"]
mod histories;
#[path = "../support/mutex_queue/mod.rs"]
mod mutex_queue;
#[path = "../support/oracle/mod.rs"]
mod oracle;
#[path = "../support/queue_script/mod.rs"]
mod queue_script;
#[path = "../support/queue_support/mod.rs"]
mod queue_support;

mod capacity;
mod control;
mod counts;
mod dropped;
mod figures;
mod keyed;
mod keyed_idle;
mod keyed_room;
mod line;
mod linearizable;
mod messages;
mod named;
mod peek;
mod poison;
mod random;
mod room;
mod rules;
mod rules_oracle;
mod send_many;
mod steps;
mod streams;
mod tasks;
mod threads;
mod twins;
