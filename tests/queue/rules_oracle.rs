//! The suite of `queue_suite/` over the oracle: a queue of one mutex and lists.

use crate::mutex_queue;
#[path = "../support/queue_suite/mod.rs"]
mod queue_suite;

use mutex_queue as form;

/// The number of groups where a test wants many: the oracle scans all of them.
const MANY: usize = 200;
