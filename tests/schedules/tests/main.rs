//! One program for all: most of the build time goes into what they share.

// The example calls the crate so.
extern crate conversant_schedules as conversant;

mod dialog;
mod job_queue;
mod keyed;
mod locks;
#[path = "../../../examples/model_checked/src/lib.rs"]
mod model_checked;
mod queue;
mod scheduler;
mod schedules;
mod semaphore;
