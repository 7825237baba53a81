//! What waiters ask for and hold, and their order in the queue.
//!
//! Requests are ordered by age. A conversion is ahead of every waiter that waits for what it holds,
//! even if that came first, because that cannot go on before the conversion does.

use std::task::Waker;

use super::error::Deadlock;
use super::{IntentLock, Place};
use crate::modes::Mode;
use crate::turnstile::{self, WaitQueue};
use crate::wait::Ticket;

/// What a waiter holds meanwhile, and where that is counted: never in a stripe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(super) mode: Mode,
    pub(super) place: Place,
}

/// One request or conversion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(super) ask: Mode,
    pub(super) own: Option<Own>,
}

/// How many claims ask for each mode, and how many of all hold something meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    modes: [u32; Mode::ALL.len()],
    conversions: u32,
}

impl turnstile::Claim for Claim {
    type Sum = Asks;

    const NOTHING: Asks = Asks {
        modes: [0; Mode::ALL.len()],
        conversions: 0,
    };

    fn add_to(self, sum: &mut Asks) {
        sum.modes[self.ask as usize] += 1;
        sum.conversions += u32::from(self.own.is_some());
    }

    fn take_from(self, sum: &mut Asks) {
        sum.modes[self.ask as usize] -= 1;
        sum.conversions -= u32::from(self.own.is_some());
    }
}

impl Asks {
    /// The modes that are asked for, as a set.
    pub(super) fn modes(self) -> u8 {
        self.modes_beyond(<Claim as turnstile::Claim>::NOTHING)
    }

    /// The modes that are asked for by more claims than in `part`, which some of these make up.
    pub(super) fn modes_beyond(self, part: Self) -> u8 {
        set_of(
            Mode::ALL
                .into_iter()
                .filter(|&mode| self.modes[mode as usize] > part.modes[mode as usize]),
        )
    }

    pub(super) fn has_conversions(self) -> bool {
        self.conversions > 0
    }
}

impl Claim {
    pub(super) fn of(ask: Mode) -> Self {
        Self { ask, own: None }
    }

    pub(super) fn own_in(self, place: Place) -> Option<Mode> {
        let own = self.own.filter(|own| own.place == place)?;
        Some(own.mode)
    }

    /// Whether the mode that this claim holds conflicts with one of those in `asks`.
    fn holds_up(self, asks: u8) -> bool {
        self.own.is_some_and(|own| own.mode.conflicts() & asks != 0)
    }
}

/// How many holders of IS, IX and S are not counted in the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elsewhere(pub(super) [u64; 3]);

impl Elsewhere {
    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; 3]
    }

    /// The set of modes, without one holder of `own`.
    pub(super) fn modes(mut self, own: Option<Mode>) -> u8 {
        if let Some(own) = own {
            self.0[own as usize] -= 1;
        }
        let held = Mode::ALL
            .into_iter()
            .zip(self.0)
            .filter(|&(_, count)| count > 0);
        set_of(held.map(|(mode, _)| mode))
    }

    /// Counts what was asked for at `place`, and no longer counts what was held in exchange.
    pub(super) fn exchanged(&mut self, claim: Claim, place: Place) {
        if let Some(own) = claim.own_in(Place::Spill) {
            self.0[own as usize] -= 1;
        }
        self.counted(claim.ask, place);
    }

    pub(super) fn counted(&mut self, mode: Mode, place: Place) {
        if place == Place::Spill {
            self.0[mode as usize] += 1;
        }
    }
}

pub(super) type Queue = WaitQueue<IntentLock>;

/// Modes as a set.
pub(super) fn set_of(modes: impl Iterator<Item = Mode>) -> u8 {
    modes.fold(0, |set, mode| set | mode.bit())
}

impl Queue {
    /// The modes asked for by those claims that would be ahead of a new one, as a set.
    pub(super) fn asked_ahead_of_new(&self, claim: Claim) -> u8 {
        match claim.own {
            None => self.asked().modes(),
            Some(_) => set_of(self.ahead_of_new(claim).map(|other| other.ask)),
        }
    }

    /// The claims that would be ahead of a new one.
    fn ahead_of_new(&self, claim: Claim) -> impl Iterator<Item = Claim> {
        let claims = self.iter().map(|(_, other)| other);
        claims.take_while(move |other| !claim.holds_up(other.ask.bit()))
    }

    /// Puts a conversion where it belongs.
    pub(super) fn enqueue_conversion(&mut self, claim: Claim, waker: Waker) -> Ticket {
        let at = self.ahead_of_new(claim).count();
        let last = at == self.len();
        let ticket = self.enqueue(claim, waker);
        if last {
            return ticket;
        }
        // Conversions behind `at` move along if they hold what this one waits for, or what another
        // that moves waits for. A conversion is ahead of those it holds up, so one pass from the
        // back, where this one is, finds them all.
        let mut asks = 0;
        self.move_ahead(at, |other| {
            let comes = asks == 0 || other.holds_up(asks);
            if comes {
                asks |= other.ask.bit();
            }
            comes
        });
        ticket
    }

    /// Why this conversion can never be granted, if that is so.
    /// Another one in the queue waits for what this one holds, and holds what this one asks for.
    pub(super) fn deadlock(&self, own: Mode, ask: Mode) -> Option<Deadlock> {
        if !self.asked().has_conversions() {
            return None;
        }
        let mut conversions = self.iter().filter_map(|(_, other)| {
            let held = other.own?.mode;
            Some((held, other.ask))
        });
        let (other_held, other_asked) =
            conversions.find(|&(held, asked)| !ask.compatible(held) && !asked.compatible(own))?;
        Some(Deadlock {
            held: own,
            asked: ask,
            other_held,
            other_asked,
        })
    }
}
