//! The example `taskrun` from outside: the built program, its input, its
//! output and its exit code.
#![cfg(unix)]

#[path = "taskrun_cli/commands.rs"]
mod commands;
#[path = "taskrun_cli/input.rs"]
mod input;
#[path = "taskrun_cli/interrupts.rs"]
mod interrupts;
#[path = "taskrun_cli/options.rs"]
mod options;
#[path = "taskrun_cli/outputs.rs"]
mod outputs;
#[path = "taskrun_cli/place.rs"]
mod place;
