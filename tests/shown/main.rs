//! What leaves the crate to be read: in words, and as JSON.

mod json;
mod words;
