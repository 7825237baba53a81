//! Semaphore, turnstile, intent lock and lock table.

#[path = "../support/count.rs"]
mod count;
#[path = "../support/histories/mod.rs"]
mod histories;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/seeds.rs"]
mod seeds;

mod clones_of_wakers;
mod intent_crowd;
mod intent_history;
mod owned;
mod semaphore;
mod semaphore_crowd;
mod semaphore_linearizable;
mod semaphore_oracle;
mod semaphore_pause;
mod semaphore_permits;
mod semaphore_pitfalls;
mod semaphore_semantics;
mod semaphore_threads;
mod table_crowd;
mod table_linearizable;
mod table_model;
mod table_storm;
mod table_tiers;
mod turnstile_service;
