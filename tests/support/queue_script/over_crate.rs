//! The driver over the queue of the crate.

use conversant::queue as form;

#[path = "driver.rs"]
mod driver;

pub(super) use driver::run;
