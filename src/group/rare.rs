//! State that hardly any group ever has.

use std::collections::BTreeMap;

use crate::limit::Limit;

use super::bounds::Bounds;
use super::odd::{FRONT, Head, Taken, ordinal};

/// See the [module](self).
pub(crate) struct Rare<T> {
    /// Odd messages, by place.
    pub(super) odd: BTreeMap<u64, Taken<T>>,
    /// How many odd messages have failed at least once.
    pub(super) tried: u32,
    /// How many messages were ever put first.
    pub(super) fronts: u64,
    /// The level that the group is bumped to, and when.
    pub(crate) bump: (u8, u64),
    /// The tier of the message sent last.
    pub(crate) last_tier: u32,
    /// The tier in which the group counts, if its lane has tiers: that of its first message.
    pub(crate) counted: Option<u32>,
    /// Tiers came into use while its turn was live, and count one started message.
    pub(crate) swept: bool,
    /// The message that is being peeked at.
    pub(crate) peeked: Option<Head>,
    /// The embedder's tag for the group.
    pub(crate) tag: u64,
    /// The most units in use at once.
    pub(crate) limit: Limit,
    /// Units in use by detached deliveries.
    pub(crate) detached: u32,
    /// Capacities.
    pub(super) bounds: Option<Box<Bounds>>,
    /// How many pins it has besides the first.
    pub(super) more_pins: u32,
    /// The upper half of the number of the first plain message.
    pub(super) high: u32,
}

impl<T> Rare<T> {
    /// The value for a group that has no rare state.
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
