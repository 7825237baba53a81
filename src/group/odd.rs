//! Messages that are not plain: those that came back, that stand before all
//! others, or that have a tier.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use super::{Mailbox, ODD, Rare};
use crate::limit::Limit;

/// Set in the place of every message but those put first, which therefore
/// stand before all others.
pub(super) const FRONT: u64 = 1 << 63;
const SENT: NonZeroU64 = NonZeroU64::new(FRONT).unwrap();

/// What a place says to people: the how manieth message of those sent, or of
/// those put first.
pub(crate) fn ordinal(place: u64) -> u64 {
    place & !FRONT
}

/// A message out of its mailbox, and where it belongs.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    /// Not 0, so that an `Option` of it is no larger.
    place: NonZeroU64,
    pub(crate) tier: u32,
    /// How often it was delivered in vain.
    pub(crate) attempts: u32,
    pub(crate) message: T,
}

impl<T> Taken<T> {
    /// Where it belongs.
    pub(crate) fn place(&self) -> u64 {
        self.place.get()
    }

    fn new((place, tier, attempts): (u64, u32, u32), message: T) -> Self {
        Self {
            place: NonZeroU64::new(place).expect("places begin with 1"),
            tier,
            attempts,
            message,
        }
    }

    pub(crate) fn head(&self) -> Head {
        Head {
            place: self.place(),
            tier: self.tier,
            attempts: self.attempts,
        }
    }

    #[inline]
    pub(super) fn plain(number: u64, message: T) -> Self {
        Self {
            place: SENT | number,
            tier: 0,
            attempts: 0,
            message,
        }
    }
}

#[derive(Debug)]
struct Entry<T> {
    tier: u32,
    attempts: u32,
    message: T,
}

/// Messages by place.
#[derive(Debug)]
pub(crate) struct Odd<T> {
    by_place: BTreeMap<u64, Entry<T>>,
    /// How many were ever put first.
    fronts: u64,
}

impl<T> Odd<T> {
    pub(super) fn new() -> Self {
        Self {
            by_place: BTreeMap::new(),
            fronts: 0,
        }
    }

    fn first(&self) -> Option<(u64, &Entry<T>)> {
        let (&place, entry) = self.by_place.first_key_value()?;
        Some((place, entry))
    }

    fn insert(&mut self, taken: Taken<T>) {
        let place = taken.place();
        let Taken {
            tier,
            attempts,
            message,
            ..
        } = taken;
        let entry = Entry {
            tier,
            attempts,
            message,
        };
        self.by_place.insert(place, entry);
    }
}

/// A message as it waits, for those who look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) place: u64,
    pub(crate) tier: u32,
    pub(crate) attempts: u32,
}

impl<T> Mailbox<T> {
    /// What waits first.
    pub(crate) fn head(&self) -> Option<Head> {
        let plain = (!self.plain.is_empty()).then_some(Head {
            place: FRONT | self.number(),
            tier: 0,
            attempts: 0,
        });
        let odd = self.rare.as_ref().and_then(|rare| rare.odd.first());
        let odd = odd.map(|(place, entry)| Head {
            place,
            tier: entry.tier,
            attempts: entry.attempts,
        });
        let peeked = self.rare.as_ref().and_then(|rare| rare.peeked);
        let all = [plain, odd, peeked];
        all.into_iter().flatten().min_by_key(|head| head.place)
    }

    /// As `take_plain`, where odd messages wait.
    #[cold]
    pub(super) fn take_any(&mut self) -> Option<Taken<T>> {
        let plain = FRONT | self.number();
        let has_plain = !self.plain.is_empty();
        let odd = &mut self.rare().odd;
        let is_odd = odd.first().is_some_and(|o| !has_plain || o.0 < plain);
        if !is_odd {
            return self.take_plain();
        }
        let (place, entry) = odd.by_place.pop_first()?;
        let Entry {
            tier,
            attempts,
            message,
        } = entry;
        self.took_odd(place);
        Some(Taken::new((place, tier, attempts), message))
    }

    fn took_odd(&mut self, place: u64) {
        if self.rare().odd.by_place.is_empty() {
            self.flags &= !ODD;
        }
        // Numbers go on behind the last that was given out.
        if place & FRONT != 0 && self.plain.is_empty() {
            self.set_number(self.number().max(ordinal(place) + 1));
        }
    }

    /// A message goes back to its place: in front, or in between.
    pub(super) fn put_back(&mut self, taken: Taken<T>) {
        let before = self.number() - 1;
        let is_next = taken.place() == FRONT | before;
        if is_next && taken.attempts == 0 && taken.tier == 0 && self.flags & ODD == 0 {
            self.set_number(before);
            return self.plain.push_front(taken.message);
        }
        self.insert_odd(taken);
    }

    fn insert_odd(&mut self, taken: Taken<T>) {
        self.flags |= ODD;
        self.rare().odd.insert(taken);
    }

    /// The number of the next message to be sent.
    fn end(&self) -> u64 {
        let end = self.number() + self.plain_len();
        let odd = self.rare.as_ref().map(|rare| &rare.odd.by_place);
        let last = odd.and_then(|odd| odd.last_key_value());
        let sent = last.filter(|&(&place, _)| place & FRONT != 0);
        sent.map_or(end, |(&place, _)| end.max(ordinal(place) + 1))
    }

    /// How many messages were ever put into it.
    pub(crate) fn sent(&self) -> u64 {
        let fronts = self.rare.as_ref().map_or(0, |rare| rare.odd.fronts);
        self.end() - 1 + fronts
    }

    /// Puts a message last, in a tier.
    pub(crate) fn append_in(&mut self, tier: u32, message: T) {
        let first_plain = FRONT | self.number();
        let rare = self.rare();
        rare.last_tier = tier;
        let last = rare.odd.by_place.last_key_value();
        let after_plain = last.is_some_and(|(&place, _)| place > first_plain);
        if tier == 0 && !after_plain {
            return self.append(message);
        }
        let place = FRONT | self.end();
        self.insert_odd(Taken::new((place, tier, 0), message));
    }

    /// Puts a message before all that wait or come back, but behind those that
    /// were put so before. It stands in tier 0.
    pub(crate) fn put_first(&mut self, message: T) {
        let odd = &mut self.rare().odd;
        odd.fronts += 1;
        let place = odd.fronts;
        self.insert_odd(Taken::new((place, 0, 0), message));
    }

    /// Takes out all that waits, in order, with its places.
    pub(crate) fn drain(&mut self) -> Vec<Taken<T>> {
        let mut all = Vec::new();
        while let Some(taken) = match self.flags & ODD {
            0 => self.take_plain(),
            _ => self.take_any(),
        } {
            all.push(taken);
        }
        all
    }

    /// Puts back what [`drain`](Self::drain) took out, or some of it.
    pub(crate) fn restore(&mut self, taken: impl IntoIterator<Item = Taken<T>>) {
        taken.into_iter().for_each(|taken| self.insert_odd(taken));
    }

    /// What waits starts its attempts anew, also what somebody looks at.
    pub(crate) fn start_anew(&mut self) {
        if let Some(rare) = &mut self.rare {
            if let Some(peeked) = &mut rare.peeked {
                peeked.attempts = 0;
            }
            let entries = rare.odd.by_place.values_mut();
            entries.for_each(|entry| entry.attempts = 0);
        }
    }

    /// Gives up the block of what is rare, if nothing is in it.
    pub(crate) fn close_up(&mut self) {
        let empty = |rare: &mut Box<Rare<T>>| {
            let kept = rare.high > 0 || rare.more_pins > 0 || rare.detached > 0;
            let odd = !rare.odd.by_place.is_empty() || rare.odd.fronts > 0;
            !kept && !odd && rare.last_tier == 0 && rare.limit == Limit::SERIAL
        };
        if self.flags & !super::HARMLESS == 0 && self.rare.as_mut().is_some_and(empty) {
            self.rare = None;
        }
    }
}
