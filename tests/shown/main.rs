//! What the crate shows to people and programs: in words, and as JSON.

mod debug;
#[path = "../support/finishes.rs"]
mod finishes;
mod json;
mod traits;
mod words;
