//! The bound of the fairness rules, checked on every dispatch.
//!
//! With `W`, `w`, `K`, `i` and `L` as in SEMANTICS 3, a group
//! starts its next turn within `(ceil(i * (K + 1) / w) + L) * W` dispatches
//! counted while it is eligible. Two readings are watched:
//!
//! - [`Watch::letter`]: that formula, `i` among the ready. It holds as long as
//!   only caps interrupt.
//! - [`Watch::amended`]: `(ceil((i * (K + 1) + R * K) / w) + L) * W`, where `R`
//!   is how many of the `L` interruptions saw the lane's count reset by
//!   another group, and `i` counts every older group with work that no turn
//!   holds, a paused one too, since it keeps its age. That is needed once
//!   tiers or pauses interrupt: see `rules`.

use super::model::Model;
use crate::limit::Bypass;

#[derive(Clone, Copy, Debug)]
struct Wait {
    ready: u64,
    /// `i`.
    rank: u64,
    /// `W`.
    weights: u64,
    /// `L`.
    stops: u64,
    /// `R`.
    resets: u64,
    /// Dispatches counted while the group was eligible.
    counted: u64,
    eligible: bool,
    reset_since: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    waits: Vec<Option<Wait>>,
    letter: bool,
    /// The longest wait in percent of its bound.
    pub(crate) tightest: u64,
}

impl Watch {
    pub(crate) fn letter() -> Self {
        Self {
            letter: true,
            ..Self::default()
        }
    }

    pub(crate) fn amended() -> Self {
        Self::default()
    }

    /// Called after each event; `picked` is the group, if the event was a dispatch.
    pub(crate) fn observe(&mut self, model: &Model, picked: Option<usize>) {
        self.waits.resize(model.groups.len(), None);
        let Bypass::AtMost(k) = model.bypass else {
            return;
        };
        if let Some(picked) = picked {
            self.dispatched(model, u64::from(k), picked);
        }
        for g in 0..self.waits.len() {
            self.waits[g] = self.follow(model, g);
        }
    }

    fn dispatched(&mut self, model: &Model, k: u64, picked: usize) {
        let lane = model.groups[picked].lane;
        let reset = model.lanes[lane].overtaken == 0;
        for (g, wait) in self.waits.iter_mut().enumerate() {
            let Some(wait) = wait else { continue };
            if wait.eligible {
                wait.counted += 1;
                let weight = u64::from(model.lanes[model.groups[g].lane].weight);
                let bound = wait.bound(k, weight, self.letter);
                assert!(wait.counted <= bound, "{g}: {bound} for {wait:?}");
                if g == picked {
                    self.tightest = self.tightest.max(100 * wait.counted / bound);
                }
            } else if model.groups[g].lane == lane {
                wait.reset_since |= reset && wait.stops > 0;
            }
        }
        self.waits[picked] = None;
    }

    fn follow(&self, model: &Model, g: usize) -> Option<Wait> {
        let group = &model.groups[g];
        if group.waiting.is_empty() || group.held {
            return None;
        }
        let eligible = model.is_eligible(g);
        let weights = model.weights();
        match self.waits[g] {
            Some(mut wait) if wait.ready == group.ready => {
                wait.weights = wait.weights.max(weights);
                wait.stops += u64::from(wait.eligible && !eligible);
                if eligible && wait.reset_since {
                    wait.resets += 1;
                    wait.reset_since = false;
                }
                wait.eligible = eligible;
                Some(wait)
            }
            _ => group.is_ready().then(|| Wait {
                ready: group.ready,
                rank: self.rank(model, g),
                weights,
                stops: 0,
                resets: 0,
                counted: 0,
                eligible,
                reset_since: false,
            }),
        }
    }

    fn rank(&self, model: &Model, g: usize) -> u64 {
        let lane = model.groups[g].lane;
        let older = |&o: &usize| {
            let other = &model.groups[o];
            let counts = match self.letter {
                true => other.is_ready(),
                false => !other.waiting.is_empty() && !other.held,
            };
            counts && other.ready < model.groups[g].ready
        };
        1 + model.in_lane(lane).filter(older).count() as u64
    }
}

impl Wait {
    fn bound(&self, k: u64, weight: u64, letter: bool) -> u64 {
        let resets = if letter { 0 } else { self.resets };
        let turns = self.rank * (k + 1) + resets * k;
        (turns.div_ceil(weight) + self.stops) * self.weights
    }
}
