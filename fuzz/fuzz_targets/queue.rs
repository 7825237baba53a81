//! Any sequence of operations on a queue, through its public interface: no panic, no hang, each
//! group's order, exact limits, nothing lost or delivered twice, in the end nothing left; and at
//! every step what the oracle of `tests/mutex_queue` does.
#![no_main]

#[path = "../../tests/support/mutex_queue/mod.rs"]
mod mutex_queue;
#[path = "../../tests/support/queue_script/mod.rs"]
mod queue_script;

use libfuzzer_sys::fuzz_target;
use queue_script::Script;

fuzz_target!(|bytes: &[u8]| {
    if let Some(script) = Script::read(bytes) {
        queue_script::compare(&script);
    }
});
