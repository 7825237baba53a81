//! Those who wait, under one lock: in which order they are served, who has been
//! told that it can go on, and who has been given what it asked for.
//!
//! State: `waiters` holds what each asks for; told is one that the list has
//! notified. `order` is the line. `granted` holds what was handed over to waiters
//! that have not been polled since; they are out of the line. `spill` counts the
//! holders for whom there is no room in the word.
//!
//! A plain value: who takes and who waits is decided in `enter`, who is told or
//! handed over to in `service`.
//!
//! Invariants:
//! 1. A ticket is in `order` if and only if it is in `waiters`, and then not in
//!    `granted`.
//! 2. Requests stand by age. A conversion stands ahead of everybody who waits for
//!    what it holds, whoever came first: they cannot go on before it does.
//! 3. What has become empty has given its memory back, but for a few slots of
//!    the list.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use super::Place;
use super::error::Deadlock;
use super::snapshot::{Standing, WaiterState};
use crate::modes::Mode;
use crate::wait::{Removed, Ticket, Waiters, WakeBatch};

/// What one in line holds meanwhile, and where that is counted: never in a
/// stripe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub(super) mode: Mode,
    pub(super) place: Place,
}

/// One request or conversion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) ask: Mode,
    pub(super) own: Option<Own>,
}

impl Claim {
    pub(super) fn own_in(self, place: Place) -> Option<Mode> {
        let own = self.own.filter(|own| own.place == place)?;
        Some(own.mode)
    }

    /// Whether another asks for what this one's own mode stands against.
    fn holds_up(self, asks: u8) -> bool {
        self.own.is_some_and(|own| own.mode.conflicts() & asks != 0)
    }
}

/// How many hold IS, IX and S where the word does not say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Elsewhere(pub(super) [u64; 3]);

impl Elsewhere {
    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; 3]
    }

    /// The set of modes, without one holder of `own`.
    pub(super) fn modes(mut self, own: Option<Mode>) -> u8 {
        if let Some(own) = own {
            self.0[own as usize] -= 1;
        }
        let held = Mode::ALL.iter().zip(self.0).filter(|&(_, count)| count > 0);
        held.fold(0, |set, (mode, _)| set | mode.bit())
    }
}

/// What stands under the lock.
pub(super) struct Line {
    pub(super) waiters: Waiters<Claim>,
    pub(super) order: VecDeque<Ticket>,
    granted: BTreeMap<Ticket, (Claim, Place)>,
    pub(super) spill: Elsewhere,
}

impl Line {
    pub(super) const fn new() -> Self {
        Self {
            waiters: Waiters::new(),
            order: VecDeque::new(),
            granted: BTreeMap::new(),
            spill: Elsewhere([0; 3]),
        }
    }

    pub(super) fn claim(&self, ticket: Ticket) -> Claim {
        *self.waiters.get(ticket).expect("one in line")
    }

    fn claims(&self) -> impl Iterator<Item = Claim> {
        self.order.iter().map(|&ticket| self.claim(ticket))
    }

    /// What those ask for, as a set, whom this one would stand behind.
    pub(super) fn ahead_of_new(&self, claim: Claim) -> u8 {
        let mut ahead = 0;
        for &ticket in &self.order {
            let ask = self.claim(ticket).ask.bit();
            if claim.holds_up(ask) {
                break;
            }
            ahead |= ask;
        }
        ahead
    }

    /// What those ahead of this one ask for, as a set, and its place.
    pub(super) fn ahead_of(&self, ticket: Ticket) -> (u8, usize) {
        let mut ahead = 0;
        for (at, &other) in self.order.iter().enumerate() {
            if other == ticket {
                return (ahead, at);
            }
            ahead |= self.claim(other).ask.bit();
        }
        unreachable!("one in line")
    }

    /// Puts one in line, by invariant 2.
    pub(super) fn register(&mut self, claim: Claim, waker: Waker) -> Ticket {
        let ahead_of = self
            .claims()
            .position(|other| claim.holds_up(other.ask.bit()));
        let ticket = self.waiters.register(claim, waker);
        let Some(at) = ahead_of else {
            self.order.push_back(ticket);
            return ticket;
        };
        // Conversions behind `at` that hold what this one waits for, or what one
        // of those waits for, come along. Who holds up another is ahead of it, so
        // one pass from the back finds them all.
        let mut asks = claim.ask.bit();
        let mut along = vec![ticket];
        for i in (at..self.order.len()).rev() {
            let other = self.claim(self.order[i]);
            if other.holds_up(asks) {
                asks |= other.ask.bit();
                along.extend(self.order.remove(i));
            }
        }
        for moved in along {
            self.order.insert(at, moved);
        }
        ticket
    }

    /// Why this conversion can never be granted: one in line waits for what it
    /// holds, and holds what it asks for.
    pub(super) fn deadlock(&self, own: Mode, ask: Mode) -> Option<Deadlock> {
        let mut conversions = self.claims().filter_map(|other| {
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

    /// What was asked for is now counted at `place`, and what was held for it
    /// nowhere.
    pub(super) fn exchanged(&mut self, claim: Claim, place: Place) {
        if let Some(own) = claim.own_in(Place::Spill) {
            self.spill.0[own as usize] -= 1;
        }
        self.counted(claim.ask, place);
    }

    pub(super) fn counted(&mut self, mode: Mode, place: Place) {
        if place == Place::Spill {
            self.spill.0[mode as usize] += 1;
        }
    }

    /// Takes one out of the line, whatever for.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Removed<Claim>> {
        let removed = self.waiters.remove(ticket)?;
        let at = self.place_of(ticket);
        self.order.remove(at);
        if self.order.is_empty() {
            self.order = VecDeque::new();
        }
        Some(removed)
    }

    fn place_of(&self, ticket: Ticket) -> usize {
        let at = self.order.iter().position(|&other| other == ticket);
        at.expect("one in line")
    }

    /// Takes one out of the line that has been given what it asks for at `place`.
    pub(super) fn grant(&mut self, ticket: Ticket, place: Place, wakes: &mut WakeBatch) {
        let Some(removed) = self.leave(ticket) else {
            return;
        };
        if let Some(waker) = removed.waker {
            wakes.push(waker);
        }
        self.exchanged(removed.data, place);
        self.granted.insert(ticket, (removed.data, place));
    }

    pub(super) fn collect_grant(&mut self, ticket: Ticket) -> Option<(Claim, Place)> {
        let granted = self.granted.remove(&ticket);
        if self.granted.is_empty() {
            // An empty map keeps its last block otherwise.
            self.granted = BTreeMap::new();
        }
        granted
    }

    /// All that wait, in the order in which they are served.
    pub(super) fn standing(&self) -> Vec<Standing> {
        let standing = |claim: Claim, state| Standing {
            asked: claim.ask,
            held: claim.own.map(|own| own.mode),
            state,
        };
        let granted = self.granted.values();
        let granted = granted.map(|&(claim, _)| standing(claim, WaiterState::Granted));
        let in_line = self.order.iter().map(|&ticket| {
            let state = match self.waiters.is_notified(ticket) {
                true => WaiterState::Told,
                false => WaiterState::Waiting,
            };
            standing(self.claim(ticket), state)
        });
        granted.chain(in_line).collect()
    }
}
