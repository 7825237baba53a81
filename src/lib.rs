//! The scheduling core that other schedulers embed.

#[doc(hidden)]
pub mod ring;
#[doc(hidden)]
pub mod slab;
#[doc(hidden)]
pub mod tiers;
pub mod error;
mod sync;
pub mod wait;
