//! What is done under the lock: look exactly, stand in line, look from there,
//! leave.
//!
//! The invariants that are cited here are those of `intent.rs`.

use std::task::Waker;

use super::bits::{Ask, is_strong};
use super::error::Deadlock;
use super::line::{Claim, Elsewhere, Line, Own};
use super::stripes::Stripes;
use super::word::Enter;
use super::{IntentLock, Place};
use crate::modes::Mode;
use crate::wait::Ticket;

/// What came of a look by one who was not in line.
pub(super) enum Entered {
    Taken(Place),
    InLine(Ticket),
}

impl IntentLock {
    /// One that found nothing looks again, exactly this time.
    #[cold]
    pub(super) fn try_in_line(&self, mode: Mode) -> Option<Place> {
        let claim = Claim {
            ask: mode,
            own: None,
        };
        self.enter(&mut self.line.lock(), claim, false)
    }

    /// One looks again, and stands in line if there is nothing for it.
    #[cold]
    pub(super) fn stand_in_line(&self, mode: Mode, spare: &mut Option<Waker>) -> Entered {
        let claim = Claim {
            ask: mode,
            own: None,
        };
        self.enter_or_wait(&mut self.line.lock(), claim, spare)
    }

    /// A holder asks for `ask`, stronger than `own`. Where that is counted may
    /// change even if there is nothing for it.
    #[cold]
    pub(super) fn convert_in_line(
        &self,
        own: &mut Own,
        ask: Mode,
        spare: Option<&mut Option<Waker>>,
    ) -> Result<Option<Entered>, Deadlock> {
        let mut session = self.line.lock();
        let line = &mut *session;
        self.move_out_of_stripe(line, own);
        let claim = Claim {
            ask,
            own: Some(*own),
        };
        let Some(spare) = spare else {
            return Ok(self.enter(line, claim, false).map(Entered::Taken));
        };
        if let Some(deadlock) = line.deadlock(own.mode, ask) {
            return Err(deadlock);
        }
        Ok(Some(self.enter_or_wait(line, claim, spare)))
    }

    fn enter_or_wait(&self, line: &mut Line, claim: Claim, spare: &mut Option<Waker>) -> Entered {
        match self.enter(line, claim, true) {
            Some(place) => Entered::Taken(place),
            None => {
                let waker = spare.take().expect("a waker for one who may wait");
                Entered::InLine(line.register(claim, waker))
            }
        }
    }

    fn enter(&self, line: &mut Line, claim: Claim, waits: bool) -> Option<Place> {
        let overtakes = line.ahead_of_new(claim) & claim.ask.conflicts() != 0;
        if !is_strong(claim.ask) {
            self.reopen(line);
        }
        loop {
            if is_strong(claim.ask) && self.stripes.is_some() && self.word.shut() {
                Stripes::after_shutting();
            }
            let ask = self.ask(line, claim);
            match self.word.enter(ask, overtakes, waits, self.bypass) {
                Enter::Taken(place) => {
                    line.exchanged(claim, place);
                    return Some(place);
                }
                // A release opened them since.
                Enter::Open => {}
                Enter::NotNow => return None,
            }
        }
    }

    /// What is held elsewhere belongs to what one asks the word for.
    pub(super) fn ask(&self, line: &Line, claim: Claim) -> Ask {
        Ask {
            mode: claim.ask,
            own: claim.own_in(Place::Word),
            elsewhere: self.elsewhere(line).modes(claim.own_in(Place::Spill)),
        }
    }

    /// What is held and does not stand in the word. It becomes only less while
    /// the lock is held, and what is in a stripe serves the line when it leaves.
    pub(super) fn elsewhere(&self, line: &Line) -> Elsewhere {
        if !self.word.look().is_slow() {
            return Elsewhere::default();
        }
        let mut elsewhere = line.spill;
        if let Some(stripes) = &self.stripes {
            let inside = stripes.held_and_marked();
            elsewhere.0[Mode::Is as usize] += inside.is;
            elsewhere.0[Mode::Ix as usize] += inside.ix;
        }
        if elsewhere.is_empty() {
            self.word.all_here();
        }
        elsewhere
    }

    /// Opens the stripes, if nobody holds or wants more than IX.
    pub(super) fn reopen(&self, line: &Line) {
        if self.stripes.is_some() && line.spill.is_empty() {
            self.word.reopen();
        }
    }

    /// A conversion is counted in the word. Nobody gets between the two counts
    /// who minds: while one is in a stripe, the word is open or slow, and who
    /// wants more than IX needs the lock.
    fn move_out_of_stripe(&self, line: &mut Line, own: &mut Own) {
        let (Place::Stripe(stripe), Some(stripes)) = (own.place, &self.stripes) else {
            return;
        };
        own.place = self.word.move_in(own.mode, None);
        line.counted(own.mode, own.place);
        // Who waits for it to leave waits for the word now.
        let _ = stripes.leave(stripe, own.mode);
    }

    /// One in line is polled again. `spare` may come back with a waker to drop.
    pub(super) fn look_from_line(
        &self,
        ticket: Ticket,
        spare: &mut Option<Waker>,
    ) -> Option<Place> {
        let mut session = self.line.lock();
        let line = &mut *session;
        if let Some((_, place)) = line.collect_grant(ticket) {
            return Some(place);
        }
        let claim = line.claim(ticket);
        let (ahead, at) = line.ahead_of(ticket);
        let taken = if ahead & claim.ask.conflicts() == 0 {
            let ask = self.ask(line, claim);
            self.word.take_in_line(ask, at == 0, line.order.len() == 1)
        } else {
            self.word.some_untold();
            None
        };
        if let Some(place) = taken {
            let removed = line.leave(ticket).expect("in line");
            line.exchanged(claim, place);
            session.discard_waker(removed.waker);
            return taken;
        }
        let waker = spare.take().expect("a waker for one who may wait");
        *spare = line.waiters.rewait(ticket, waker);
        None
    }

    /// One in line gives up, or one that was handed something does not want it.
    /// Where what it held before is counted now.
    pub(super) fn leave_line(&self, ticket: Ticket) -> Option<Place> {
        let mut session = self.line.lock();
        let line = &mut *session;
        let own = if let Some((claim, place)) = line.collect_grant(ticket) {
            self.give_back(line, claim, place)
        } else {
            let removed = line.leave(ticket).expect("in line until it leaves");
            if line.order.is_empty() {
                self.word.nobody_waits();
            }
            session.discard_waker(removed.waker);
            removed.data.own.map(|own| own.place)
        };
        self.serve_line(session);
        own
    }

    /// Undoes a grant.
    fn give_back(&self, line: &mut Line, claim: Claim, place: Place) -> Option<Place> {
        if place == Place::Spill {
            line.spill.0[claim.ask as usize] -= 1;
        }
        let granted = (place == Place::Word).then_some(claim.ask);
        let Some(own) = claim.own else {
            if let Some(mode) = granted {
                // Whether anybody waits is known under the lock.
                let _ = self.word.release(mode, self.bypass);
            }
            return None;
        };
        let back = self.word.move_in(own.mode, granted);
        line.counted(own.mode, back);
        Some(back)
    }
}
