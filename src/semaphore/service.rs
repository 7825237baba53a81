//! What is done for those in line: told, handed over to, or turned away.
//!
//! Protocol: whatever may give somebody in line a right to permits (a give-back
//! that must serve, a cancel, a limit, a close) ends in a [`Service`]. It takes
//! who must go out of the line, then goes through the rest from the front, and
//! stops at the first that cannot have what it asks for. Every step reads the
//! state anew, as the lock is released to wake a full batch.
//!
//! The invariants that are cited here are those of `semaphore.rs`.

use super::Semaphore;
use super::line::{Claim, Line};
use crate::wait::{Session, Ticket, WakeBatch};

impl Semaphore {
    /// Permits have come back that somebody in line may be waiting for.
    #[cold]
    pub(super) fn serve(&self) {
        self.serve_line(self.line.lock());
    }

    pub(super) fn serve_line(&self, session: Session<'_, Line>) {
        Service::new(self, TurnedAway::Some(Vec::new())).run(session);
    }

    /// Makes the limit what `new` says of the old one, and of the available
    /// permits what remains beside those that are out.
    pub(super) fn change_limit(&self, given_up: u32, new: impl FnOnce(u32) -> u32) {
        let mut session = self.line.lock();
        let line = &mut *session;
        let old = line.limit;
        line.limit = new(old);
        let by = i64::from(line.limit) - i64::from(old) + i64::from(given_up);
        if by != 0 {
            self.word.shift(by);
        }
        let mut impossible = Vec::new();
        if line.limit < old {
            let limit = line.limit;
            let above = |&(_, claim): &(Ticket, &Claim)| claim.count > limit;
            impossible.extend(line.waiters.iter().filter(above).map(|(ticket, _)| ticket));
        }
        Service::new(self, TurnedAway::Some(impossible)).run(session);
    }

    /// Turns everybody in line away.
    pub(super) fn close_line(&self) {
        let session = self.line.lock();
        self.word.close();
        Service::new(self, TurnedAway::All).run(session);
    }
}

/// Whom a service turns away before it serves the rest.
enum TurnedAway {
    All,
    Some(Vec<Ticket>),
}

/// One pass over the line, in bounded batches.
#[must_use]
struct Service<'a> {
    semaphore: &'a Semaphore,
    turned_away: TurnedAway,
}

impl<'a> Service<'a> {
    fn new(semaphore: &'a Semaphore, turned_away: TurnedAway) -> Self {
        Self {
            semaphore,
            turned_away,
        }
    }

    fn run(mut self, mut session: Session<'_, Line>) {
        session.settle(|line, wakes| self.fill(line, wakes));
    }

    /// Fills a batch. False if it is full, and there may be more to do.
    fn fill(&mut self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        while !wakes.is_full() {
            if !self.turn_one_away(line, wakes) && !self.serve_one(line, wakes) {
                return true;
            }
        }
        false
    }

    fn turn_one_away(&mut self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        let ticket = match &mut self.turned_away {
            TurnedAway::All => line.waiters.front().map(|(ticket, _)| ticket),
            TurnedAway::Some(tickets) => tickets.pop(),
        };
        let Some(ticket) = ticket else {
            return false;
        };
        // It may have left while a batch was fired, or the limit risen again.
        let all = matches!(self.turned_away, TurnedAway::All);
        let still = |claim: &Claim| all || claim.count > line.limit;
        if line.waiters.get(ticket).is_some_and(still) {
            line.dismiss(ticket, wakes);
            if line.waiters.is_empty() {
                self.semaphore.word.nobody_waits();
            }
        }
        true
    }

    /// Hands over to the front if the bound is reached, else tells the next that
    /// it can have what it asks for. False if nobody can.
    fn serve_one(&self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        let word = &self.semaphore.word;
        let bits = word.look();
        if bits.is_closed() {
            return false;
        }
        if self.semaphore.bypass.spent(bits.overtakings()) {
            let Some((ticket, &Claim { count, .. })) = line.waiters.front() else {
                return false;
            };
            let only = line.waiters.len() == 1;
            if !word.hand_over(count, only) {
                return false;
            }
            let claim = line.dismiss(ticket, wakes);
            line.granted.extend(claim.map(|claim| (ticket, claim)));
            return true;
        }
        let Some((ticket, claim)) = line.first_untold() else {
            return false;
        };
        let ahead = line.ahead_of_untold(ticket, bits.available());
        let fits = ahead.is_some_and(|ahead| bits.covers(ahead, claim.count));
        if fits {
            line.tell(ticket, claim, wakes);
            if line.waiters.waiting() == 0 {
                word.all_told();
            }
        }
        fits
    }
}
