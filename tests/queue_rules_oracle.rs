//! The suite of `queue_suite/` over the oracle: a queue of one mutex and lists.

mod mutex_queue;
mod queue_suite;

use mutex_queue as form;

/// Groups at once, where many are wanted: the oracle looks at each of them.
const MANY: usize = 200;
