//! The example `taskrun` from outside: the built program, its input, its
//! output and its exit code.

mod commands;
mod input;
mod interrupts;
mod options;
mod outputs;
mod place;
mod recorded;
