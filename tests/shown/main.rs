//! What the crate shows to people and programs: in words, and as JSON.

mod json;
mod traits;
mod words;
