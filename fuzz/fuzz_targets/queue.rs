//! Any sequence of operations on a queue, through its public interface: no panic, no hang, each
//! group's order, exact limits, nothing lost or delivered twice, nothing left at the end; and each
//! step agrees with the oracle of `tests/support/mutex_queue`.
#![no_main]

#[path = "../../tests/support/mutex_queue/mod.rs"]
mod mutex_queue;
#[path = "../../tests/support/queue_script/mod.rs"]
mod queue_script;

use conversant_fuzz::mixed;
use libfuzzer_sys::fuzz_target;
use queue_script::Script;

fuzz_target!(|bytes: &[u8]| {
    if let Some(script) = Script::read(&mixed(bytes)) {
        queue_script::compare(&script);
    }
});
