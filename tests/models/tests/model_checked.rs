//! The example `model_checked` with loom, configured as in its Cargo.toml.

extern crate conversant_models as conversant;

#[path = "../../../examples/model_checked/src/lib.rs"]
mod model_checked;
