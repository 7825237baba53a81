//! The scheduling core that other schedulers embed.
