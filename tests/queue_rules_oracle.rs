//! The suite of `queue_suite/` over the oracle: a queue of one mutex and lists.

mod mutex_queue;
mod queue_suite;

use mutex_queue as form;
