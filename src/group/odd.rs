//! Messages that are not plain: those that came back, were put first, or have a tier.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use super::{Group, Mailbox, ODD};
use crate::limit::Limit;

/// Set in the place of every message except those put first. These therefore stand before all
/// others.
pub(super) const FRONT: u64 = 1 << 63;
const SENT: NonZeroU64 = NonZeroU64::new(FRONT).unwrap();

/// The number of a place that users see: the message's number among those sent, or among those put
/// first.
pub(crate) fn ordinal(place: u64) -> u64 {
    place & !FRONT
}

/// A message that is out of its mailbox, and its place there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken<T> {
    /// Not 0, so that an `Option` of it is no larger.
    place: NonZeroU64,
    pub(crate) tier: u32,
    /// How many of its deliveries have failed.
    pub(crate) attempts: u32,
    pub(crate) message: T,
}

/// What is known of a message without taking it out.
pub(crate) type Head = Taken<()>;

impl<T> Taken<T> {
    /// Its place in the mailbox.
    pub(crate) fn place(&self) -> u64 {
        self.place.get()
    }

    /// A message that has not failed, behind this one without a gap, with `n` others between them.
    pub(crate) fn behind<U>(&self, n: usize, message: U) -> Taken<U> {
        let place = self.place.saturating_add(1 + n as u64);
        Taken::new(place, self.tier, message)
    }

    #[inline]
    fn new(place: NonZeroU64, tier: u32, message: T) -> Self {
        Self {
            place,
            tier,
            attempts: 0,
            message,
        }
    }

    #[inline]
    pub(super) fn plain(number: u64, message: T) -> Self {
        Self::new(SENT | number, 0, message)
    }

    pub(crate) fn head(&self) -> Head {
        let attempts = self.attempts;
        Head {
            attempts,
            ..Head::new(self.place, self.tier, ())
        }
    }
}

/// How far back the messages of one sender can be in a group: for those put first and for the
/// others, at this last place or before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    first: u64,
    sent: u64,
}

impl Reach {
    /// The reach of a sender without messages.
    pub(crate) const NONE: Self = Self {
        first: 0,
        sent: FRONT,
    };

    /// Includes a message that was put at this place, or before it.
    pub(crate) fn extend(&mut self, place: u64) {
        let last = match place & FRONT {
            0 => &mut self.first,
            _ => &mut self.sent,
        };
        *last = place.max(*last);
    }
}

impl<T> Group<T> {
    /// The number of the next message to be sent.
    fn end(&self, mailbox: &Mailbox<T>) -> u64 {
        let waiting = u64::from(self.waiting());
        let Some(rare) = &mailbox.rare else {
            return mailbox.number() + waiting;
        };
        let others = rare.odd.len() + usize::from(rare.peeked.is_some());
        let end = mailbox.number() + waiting - others as u64;
        rare.last_sent().map_or(end, |last| end.max(last + 1))
    }

    /// The place of the message that was sent last, if any was sent.
    pub(crate) fn last_place(&self, mailbox: &Mailbox<T>) -> u64 {
        FRONT | (self.end(mailbox) - 1)
    }

    /// How many messages were ever put into the group.
    pub(crate) fn sent(&self, mailbox: &Mailbox<T>) -> u64 {
        let fronts = mailbox.rare.as_ref().map_or(0, |rare| rare.fronts);
        self.end(mailbox) - 1 + fronts
    }

    /// Takes out the odd message at this place, such as a failed one. O(log n).
    pub(crate) fn take_failed(&self, mailbox: &mut Mailbox<T>, place: u64) -> Option<Taken<T>> {
        let taken = mailbox.take_odd(place)?;
        self.remove_waiting(1);
        Some(taken)
    }

    /// Takes out the first message, if it is at this place and has not failed.
    pub(super) fn take_fresh(&self, mailbox: &mut Mailbox<T>, place: u64) -> Option<T> {
        let head = mailbox.head()?;
        let fits = head.place() == place && head.attempts == 0;
        Some(fits.then(|| self.take(mailbox))??.message)
    }

    /// Takes out the messages that fit, in order, except one that is being peeked at. When a
    /// message stays, the plain messages behind it become odd, once each; from then on `fits` is
    /// asked of messages in the tree.
    pub(crate) fn take_fitting(
        &self,
        mailbox: &mut Mailbox<T>,
        mut fits: impl FnMut(&Taken<T>) -> bool,
    ) -> Vec<Taken<T>> {
        let mut out = Vec::new();
        while let Some(taken) = self.take(mailbox) {
            if fits(&taken) {
                out.push(taken);
                continue;
            }
            mailbox.insert_odd(taken);
            self.add_waiting(1);
            while let Some(taken) = mailbox.take_plain() {
                mailbox.insert_odd(taken);
            }
            let odd = &mailbox.rare().odd;
            let places = odd.iter().filter(|(_, taken)| fits(taken));
            let places: Vec<u64> = places.map(|(&place, _)| place).collect();
            out.extend(
                places
                    .into_iter()
                    .filter_map(|place| self.take_failed(mailbox, place)),
            );
            break;
        }
        out
    }

    /// [`append_all`](Self::append_all) into a tier.
    ///
    /// # Panics
    ///
    /// As that function; then nothing has changed.
    pub(crate) fn append_in(
        &self,
        mailbox: &mut Mailbox<T>,
        tier: u32,
        messages: impl ExactSizeIterator<Item = T>,
    ) {
        let last = mailbox.rare.as_ref().and_then(|rare| rare.last_sent());
        if tier == 0 && last.is_none_or(|last| last <= mailbox.number()) {
            self.add_sent(messages.len());
            messages.for_each(|message| mailbox.plain.push(message));
        } else {
            let end = self.end(mailbox);
            self.add_sent(messages.len());
            for (number, message) in (end..).zip(messages) {
                mailbox.insert_odd(Taken::new(SENT | number, tier, message));
            }
        }
        if tier != mailbox.last_tier() {
            mailbox.rare().last_tier = tier;
        }
    }
}

impl<T> Mailbox<T> {
    /// The first of the waiting messages.
    pub(crate) fn head(&self) -> Option<Head> {
        let rare = self.rare.as_ref();
        let plain = (!self.plain.is_empty()).then(|| Taken::plain(self.number(), ()));
        let odd = rare.and_then(|rare| rare.odd.first_key_value());
        let odd = odd.map(|(_, odd)| odd.head());
        let peeked = rare.and_then(|rare| rare.peeked);
        let all = [plain, odd, peeked];
        all.into_iter().flatten().min_by_key(Taken::place)
    }

    /// Whether any message waits within this reach, except one that is being peeked at.
    pub(crate) fn has_within(&self, reach: Reach) -> bool {
        let odd = self.rare.as_ref().map(|rare| &rare.odd);
        let odd_in = |range| odd.is_some_and(|odd| odd.range(range).next().is_some());
        let plain = FRONT | self.number();
        !self.plain.is_empty() && plain <= reach.sent
            || self.flags & ODD != 0 && (odd_in(0..=reach.first) || odd_in(FRONT..=reach.sent))
    }

    /// Takes out the first message, which may be odd. The caller counts it as taken.
    #[cold]
    pub(super) fn take_any(&mut self) -> Option<Taken<T>> {
        let first = FRONT | self.number();
        let plain = !self.plain.is_empty();
        let (&place, _) = self.rare.as_ref()?.odd.first_key_value()?;
        match plain && first < place {
            true => self.take_plain(),
            false => self.take_odd(place),
        }
    }

    /// Takes out the odd message at this place. The caller counts it as taken.
    fn take_odd(&mut self, place: u64) -> Option<Taken<T>> {
        let rare = self.rare.as_mut()?;
        let odd = &mut rare.odd;
        let taken = odd.remove(&place)?;
        rare.tried -= u32::from(taken.attempts > 0);
        if odd.is_empty() {
            // Frees the tree's last block.
            *odd = BTreeMap::new();
            self.flags &= !ODD;
        }
        // The numbers continue behind the last one that was given out.
        if place & FRONT != 0 && self.plain.is_empty() {
            let after = ordinal(place) + 1;
            self.set_number(self.number().max(after));
        }
        Some(taken)
    }

    pub(super) fn insert_odd(&mut self, taken: Taken<T>) {
        self.flags |= ODD;
        let rare = self.rare();
        rare.tried += u32::from(taken.attempts > 0);
        rare.odd.insert(taken.place(), taken);
    }

    /// Puts a message before all that wait or come back, but behind those put first earlier. It is
    /// in tier 0. Returns its place.
    pub(crate) fn put_first(&mut self, message: T) -> u64 {
        let fronts = &mut self.rare().fronts;
        let place = NonZeroU64::MIN.saturating_add(*fronts);
        *fronts += 1;
        self.insert_odd(Taken::new(place, 0, message));
        place.get()
    }

    /// Resets the attempts of all messages that wait, including one that is being peeked at. Visits
    /// odd messages up to the last one that has failed.
    pub(crate) fn reset_attempts(&mut self) {
        if let Some(rare) = &mut self.rare {
            if let Some(peeked) = &mut rare.peeked {
                peeked.attempts = 0;
            }
            let tried = rare.odd.values_mut().filter(|entry| entry.attempts > 0);
            let tried = tried.take(std::mem::take(&mut rare.tried) as usize);
            tried.for_each(|entry| entry.attempts = 0);
        }
    }

    /// Gives up the block of rare state, if nothing is in it.
    #[inline]
    pub(crate) fn close_up(&mut self) {
        let Some(rare) = &self.rare else { return };
        let kept = rare.detached > 0 || rare.high > 0 || rare.more_pins > 0 || rare.tag > 0;
        let odd = !rare.odd.is_empty() || rare.fronts > 0 || rare.bounds.is_some();
        let empty = !kept && !odd && rare.last_tier == 0 && rare.limit == Limit::SERIAL;
        if empty && self.flags & !super::HARMLESS == 0 {
            self.rare = None;
        }
    }
}
