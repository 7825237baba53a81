//! Operation lists against a sequential lock that looks at everything anew.

use std::task::Poll;

use proptest::prelude::*;

use super::{IntentLock, poll};
use crate::intent::{Convert, Guard, Lock};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::wait::Wait;

#[derive(Clone, Copy, Debug)]
enum Step {
    Lock(Mode),
    Try(Mode),
    Release(usize),
    Convert(usize, Mode),
    TryConvert(usize, Mode),
    Downgrade(usize, Mode),
    Cancel(usize),
}

/// What the lock of the test is known to hold, and who waits in which order.
#[derive(Default)]
struct Naive {
    /// By number of the one who holds.
    held: Vec<(usize, Mode)>,
    /// Number, what it asks for.
    line: Vec<(usize, Mode)>,
}

impl Naive {
    fn own(&self, who: usize) -> Option<Mode> {
        let mut held = self.held.iter();
        held.find(|&&(other, _)| other == who).map(|&(_, mode)| mode)
    }

    fn fits(&self, who: usize, mode: Mode, ahead: &[(usize, Mode)]) -> bool {
        let held = self.held.iter().filter(|&&(other, _)| other != who);
        let mut all = held.chain(ahead);
        all.all(|&(_, other)| mode.compatible(other))
    }

    /// Where a newcomer stands.
    fn place(&self, who: usize) -> usize {
        let own = self.own(who);
        let first = self
            .line
            .iter()
            .position(|&(_, ask)| own.is_some_and(|own| !own.compatible(ask)));
        first.unwrap_or(self.line.len())
    }

    fn may(&self, who: usize, mode: Mode) -> bool {
        self.fits(who, mode, &self.line[..self.place(who)])
    }

    fn take(&mut self, who: usize, mode: Mode) {
        self.held.retain(|&(other, _)| other != who);
        self.held.push((who, mode));
    }

    /// The order of the rule: ahead of all who wait for what one holds.
    fn stand(&mut self, who: usize, mode: Mode) {
        let at = self.place(who);
        self.line.insert(at, (who, mode));
        loop {
            let line = &self.line;
            let wrong = (0..line.len()).rev().find_map(|behind| {
                let own = self.own(line[behind].0)?;
                let ahead = (0..behind).find(|&at| !own.compatible(line[at].1))?;
                Some((behind, ahead))
            });
            let Some((behind, ahead)) = wrong else {
                break;
            };
            let moved = self.line.remove(behind);
            self.line.insert(ahead, moved);
        }
    }

    fn deadlock(&self, who: usize, mode: Mode) -> bool {
        let own = self.own(who).expect("a holder");
        self.line.iter().any(|&(other, ask)| {
            let other = self.own(other);
            other.is_some_and(|held| !mode.compatible(held) && !ask.compatible(own))
        })
    }

    /// Everybody who can go on does.
    fn settle(&mut self) {
        let mut at = 0;
        while at < self.line.len() {
            let (who, ask) = self.line[at];
            if self.fits(who, ask, &self.line[..at]) {
                self.line.remove(at);
                self.take(who, ask);
                at = 0;
            } else {
                at += 1;
            }
        }
        let stuck = self.held.iter().all(|held| self.line.iter().any(|waits| waits.0 == held.0));
        assert!(self.line.is_empty() || !stuck, "{:?} {:?}", self.held, self.line);
    }
}

/// A guard, or a wait for one, with the conversion that stands in line. The
/// conversion borrows the guard, so that it is kept as a guard that is forgotten
/// to wait.
enum Actor<'a> {
    Waits(Wait<Lock<'a>>),
    Holds(Box<Guard<&'a IntentLock>>),
    Converts(Wait<Convert<'static, &'static IntentLock>>),
    Gone,
}

fn mode() -> impl Strategy<Value = Mode> {
    (0..6usize).prop_map(|i| Mode::ALL[i])
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..6usize;
    prop_oneof![
        4 => mode().prop_map(Step::Lock),
        1 => mode().prop_map(Step::Try),
        3 => who.clone().prop_map(Step::Release),
        3 => (who.clone(), mode()).prop_map(|(who, mode)| Step::Convert(who, mode)),
        1 => (who.clone(), mode()).prop_map(|(who, mode)| Step::TryConvert(who, mode)),
        1 => (who.clone(), mode()).prop_map(|(who, mode)| Step::Downgrade(who, mode)),
        1 => who.prop_map(Step::Cancel),
    ]
}
