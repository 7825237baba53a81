//! The scheduling core that other schedulers embed.

pub mod error;
mod sync;
pub mod wait;
