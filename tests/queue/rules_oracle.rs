//! The suite of `queue_suite/` over the oracle: a queue of one mutex and lists.

use crate::mutex_queue;
#[path = "../support/queue_suite/mod.rs"]
mod queue_suite;

use mutex_queue as form;

/// Groups at once, where many are wanted: the oracle looks at each of them.
const MANY: usize = 200;
