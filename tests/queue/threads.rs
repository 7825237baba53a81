//! Real threads, no sleeps and no times: what must hold, holds in every interleaving.

mod handles;
mod races;
mod storm;
mod wakes;
