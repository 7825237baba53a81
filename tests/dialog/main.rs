//! Dialogs, and the example that uses them.

#[path = "../support/dialog_model/mod.rs"]
mod dialog_model;
#[path = "../support/queue_support/mod.rs"]
mod queue_support;

mod priority;
mod priority_service_cli;
mod random;
mod talks;
mod threads;
