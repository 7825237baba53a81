//! What hardly any group ever has.

use std::collections::BTreeMap;

use crate::limit::Limit;

use super::bounds::Bounds;
use super::odd::{FRONT, Head, Taken, ordinal};

/// See the [module](self).
pub(crate) struct Rare<T> {
    /// Odd messages, by place.
    pub(super) odd: BTreeMap<u64, Taken<T>>,
    /// How many of them were delivered in vain.
    pub(super) tried: u32,
    /// How many were ever put first.
    pub(super) fronts: u64,
    /// The level it is bumped to, and when.
    pub(crate) bump: (u8, u64),
    /// The tier of the message sent last.
    pub(crate) last_tier: u32,
    /// The tier that it counts in, in a lane with tiers: that of its first
    /// message.
    pub(crate) counted: Option<u32>,
    /// Tiers came into use while its turn was live, and count one started message.
    pub(crate) swept: bool,
    /// The message that somebody looks at.
    pub(crate) peeked: Option<Head>,
    /// What the embedder knows it by.
    pub(crate) tag: u64,
    /// The most units at once.
    pub(crate) limit: Limit,
    /// Units of detached deliveries.
    pub(crate) detached: u32,
    /// Capacities.
    pub(super) bounds: Option<Box<Bounds>>,
    /// Pins but one.
    pub(super) more_pins: u32,
    /// The upper half of the number of the first plain message.
    pub(super) high: u32,
}

impl<T> Rare<T> {
    /// Of a group that has nothing of it.
    pub(super) const NONE: Self = Self {
        odd: BTreeMap::new(),
        tried: 0,
        fronts: 0,
        bump: (0, 0),
        last_tier: 0,
        counted: None,
        swept: false,
        peeked: None,
        tag: 0,
        limit: Limit::SERIAL,
        detached: 0,
        bounds: None,
        more_pins: 0,
        high: 0,
    };

    /// The number of the last odd message that was sent.
    pub(super) fn last_sent(&self) -> Option<u64> {
        let (&place, _) = self.odd.last_key_value()?;
        (place & FRONT != 0).then(|| ordinal(place))
    }
}
