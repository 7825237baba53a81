//! The example `model_checked` with shuttle.

extern crate conversant_schedules as conversant;

#[path = "../../../examples/model_checked/src/lib.rs"]
mod model_checked;
