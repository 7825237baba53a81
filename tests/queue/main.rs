//! The queue: its rules, its figures, threads, tasks, oracles and twins, and sends by key.

#![allow(
    clippy::duplicate_mod,
    reason = "one suite runs over the queue and over its oracle"
)]

#[cfg(not(sanitized))]
#[path = "../support/histories/mod.rs"]
mod histories;
#[cfg(not(sanitized))]
#[path = "../support/mutex_queue/mod.rs"]
mod mutex_queue;
#[cfg(not(sanitized))]
#[path = "../support/oracle/mod.rs"]
mod oracle;
#[cfg(not(sanitized))]
#[path = "../support/queue_script/mod.rs"]
mod queue_script;
#[path = "../support/queue_support/mod.rs"]
mod queue_support;

#[cfg(not(sanitized))]
mod capacity;
#[cfg(not(sanitized))]
mod control;
#[cfg(not(sanitized))]
mod counts;
#[cfg(not(sanitized))]
mod dropped;
#[cfg(not(sanitized))]
mod figures;
mod keyed;
#[cfg(not(sanitized))]
mod keyed_idle;
#[cfg(not(sanitized))]
mod keyed_room;
#[cfg(not(sanitized))]
mod line;
#[cfg(not(sanitized))]
mod linearizable;
mod messages;
#[cfg(not(sanitized))]
mod named;
#[cfg(not(sanitized))]
mod named_random;
#[cfg(not(sanitized))]
mod peek;
#[cfg(not(sanitized))]
mod poison;
#[cfg(not(sanitized))]
mod random;
mod room;
#[cfg(not(sanitized))]
mod rules;
#[cfg(not(sanitized))]
mod rules_oracle;
#[cfg(not(sanitized))]
mod send_many;
mod steps;
#[cfg(not(sanitized))]
mod streams;
#[cfg(not(sanitized))]
mod tasks;
mod threads;
#[cfg(not(sanitized))]
mod twins;
