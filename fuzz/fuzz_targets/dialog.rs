//! Any sequence of operations on dialogs, through their public interface, against the plain lists
//! of `tests/support/dialog_model`, which follow the docs.
#![no_main]

#[path = "../../tests/support/dialog_model/mod.rs"]
mod dialog_model;

use conversant_fuzz::mixed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    dialog_model::compare(&mixed(bytes)).expect("any bytes are a script");
});
