//! The driver over the oracle.

use crate::mutex_queue as form;

#[path = "driver.rs"]
mod driver;

pub(super) use driver::run;
