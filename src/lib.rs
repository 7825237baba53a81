//! The scheduling core that other schedulers embed.

mod sync;

pub mod error;
#[doc(hidden)]
pub mod slab;

#[doc(hidden)]
pub mod backlog;
#[doc(hidden)]
pub mod dispatch;
pub mod limit;
#[doc(hidden)]
pub mod line;
#[doc(hidden)]
pub mod rank;
#[doc(hidden)]
pub mod readers;
#[doc(hidden)]
pub mod ring;
#[doc(hidden)]
pub mod tiers;

pub mod wait;

#[cfg(not(loom))]
pub mod scheduler;
#[cfg(not(loom))]
pub mod simulator;
