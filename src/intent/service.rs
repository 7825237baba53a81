//! What is done for those in line: told, or handed over to.
//!
//! Protocol: whatever may let somebody in line go on (a release that must serve,
//! a downgrade, a cancel) ends in a pass over the line from the front. Each that
//! can go on beside all that is held, all that those ahead of it were told, and
//! all that those ahead of it still wait for, is told to look. At the bound the
//! front is handed what it asks for instead. Before the pass UNTOLD is set, so
//! that no release in between goes by; after it UNTOLD is cleared if all who were
//! not told stand against somebody ahead of them who was, or, by way of others,
//! wait for one who does: nothing but its leaving the line lets them go on, and
//! then UNTOLD is set again or the line served.
//!
//! The lock is released to wake a full batch, and the pass begins anew.

use super::IntentLock;
use super::line::Line;
use crate::modes::Mode;
use crate::wait::{Session, WakeBatch};

/// What those further ahead in a pass mean to those behind.
#[derive(Default)]
struct Ahead {
    /// What those were told they can have who can.
    promised: u8,
    /// What those ask for who stay.
    staying: u8,
    /// What those ask for who will look, or wait for those.
    covered: u8,
    /// Somebody waits for nothing but a release.
    untold: bool,
}

impl Ahead {
    /// Nothing behind can be told, and what must be known of it is.
    fn blocks_all(&self) -> bool {
        let all_covered = self.covered & Mode::X.bit() != 0;
        let all_stay = self.staying & Mode::X.bit() != 0;
        all_covered || (all_stay && self.untold)
    }
}

impl IntentLock {
    /// Something has come back that somebody in line may be waiting for.
    #[cold]
    pub(super) fn serve(&self) {
        self.serve_line(self.line.lock());
    }

    pub(super) fn serve_line(&self, mut session: Session<'_, Line>) {
        session.settle(|line, wakes| self.pass(line, wakes));
    }

    /// False if the batch is full, and there may be more to do.
    fn pass(&self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        // Also where nobody waits: SLOW is cleared.
        let _ = self.elsewhere(line);
        if line.order.is_empty() {
            if let Some(stripes) = &self.stripes {
                stripes.unmark();
            }
            self.reopen(line);
            return true;
        }
        self.word.some_untold();
        while self.hand_over_to_front(line, wakes) {
            if line.order.is_empty() {
                return true;
            }
        }
        self.tell(line, wakes)
    }

    /// At the bound, gives the front what it asks for, if that can be had.
    fn hand_over_to_front(&self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        let spent = self.bypass.spent(self.word.look().overtakings());
        let Some(&ticket) = line.order.front().filter(|_| spent) else {
            return false;
        };
        let ask = self.ask(line, line.claim(ticket));
        let Some(place) = self.word.hand_over(ask, line.order.len() == 1) else {
            return false;
        };
        line.grant(ticket, place, wakes);
        true
    }

    fn tell(&self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        let mut ahead = Ahead::default();
        for at in 0..line.order.len() {
            let ticket = line.order[at];
            let claim = line.claim(ticket);
            let (bit, against) = (claim.ask.bit(), claim.ask.conflicts());
            let fits = (ahead.staying | ahead.promised) & against == 0
                && self.word.look().grants(self.ask(line, claim));
            let told = line.waiters.is_notified(ticket);
            if fits && !told {
                if wakes.is_full() {
                    return false;
                }
                let _ = line.waiters.notify(ticket, wakes);
            }
            if fits || told || ahead.covered & against != 0 {
                ahead.covered |= bit;
            } else {
                ahead.untold = true;
            }
            if fits {
                ahead.promised |= bit;
            } else {
                ahead.staying |= bit;
            }
            if ahead.blocks_all() {
                break;
            }
        }
        if !ahead.untold {
            self.word.all_told();
        }
        true
    }
}
