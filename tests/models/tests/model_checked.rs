//! The example `model_checked` with loom, as its Cargo.toml has it done.

extern crate conversant_models as conversant;

#[path = "../../../examples/model_checked/src/lib.rs"]
mod model_checked;
