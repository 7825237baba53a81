//! What one owner holds, as it sees it: without a lock, and without the other owners.
//!
//! State: a hold per resource that was granted, or that is held for the sake of something below.
//!
//! ```text
//!            covered by an ancestor          more than that covers is granted
//!   absent ------------------------> covered ---------------------------------> real
//!      |                                                                          ^
//!      +--------------------------------------------------------------------------+
//! ```
//!
//! A *real* hold is entered in the table, and so is every ancestor's. A *covered* one is known only
//! here: its cover, an ancestor that is real, keeps everybody out who could conflict.
//!
//! Invariants:
//! 1. The mode of a real hold in the table is the join of its own mode (granted and not given up)
//!    and of the intents that its real children need; there is no hold without any.
//! 2. `intents` of a hold counts its real children by the intent they need; `covers` counts the
//!    covered holds that name it as their cover, by the mode their own needs above it.
//! 3. A covered hold keeps its cover, and a real one stays real, until it is gone: so what was
//!    granted before a savepoint never comes to rest on something granted after it.
//! 4. The own mode of a cover covers what `covers` counts.

use std::cmp::Reverse;

use super::entries::NodeId;
use super::error::ReleaseError;
use super::grants::Grants;
use super::hold::{HoldId, HoldKind};
use super::index::Changes;
use super::kept::{Due, Kept};
use super::name::{Gone, Name};
use super::slots::Slots;
use super::step::Step;
use crate::modes::Mode;

pub(super) struct Holds<K> {
    pub(super) slots: Slots<K>,
    /// How many of them are real.
    pub(super) real: u64,
    /// Counts the savepoints.
    pub(super) epoch: u64,
    /// What the last call asks to be entered: from leaf to root.
    pub(super) changes: Changes,
    pub(super) kept: Kept,
    pub(super) gone: Gone<K>,
}

impl<K> Holds<K> {
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::new(),
            real: 0,
            epoch: 0,
            changes: Changes::new(),
            kept: Kept::new(),
            gone: Gone::new(),
        }
    }

    /// Whether `intent` is held here in the table, and neither this nor what is above covers `mode`
    /// below: then a request below has nothing to do here or above.
    #[inline]
    pub(super) fn carries(&self, id: HoldId, intent: Mode, mode: Mode) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            let hold = self.slots.get(id);
            let covers = hold.own().is_some_and(|own| own.covers_below(mode));
            match hold.kind {
                HoldKind::Real { mode, parent, .. } if !covers && mode.covers(intent) => {
                    at = parent
                }
                _ => return false,
            }
        }
        true
    }

    /// Enters what has been granted: a new hold, or more of one, which may become real by it.
    #[inline(always)]
    pub(super) fn enter(&mut self, step: &mut Step<K>, mut parent: Option<HoldId>) {
        let kind = match (step.cover, step.mode) {
            (Some(by), _) => HoldKind::Covered { by },
            (None, Some(mode)) => {
                if let Some(id) = step.hold
                    && let HoldKind::Real { parent: up, .. } = self.slots.get(id).kind
                {
                    // What it was, whatever the user's code says now.
                    parent = up;
                }
                let node = step.node.expect("granted");
                HoldKind::Real { node, mode, parent }
            }
            (None, None) => return,
        };
        let id = match step.hold {
            None => {
                let key = step.key.take().expect("a key is entered once");
                let asked = (self.epoch, step.asked);
                self.slots.insert((step.hash, key), step.depth, kind, asked)
            }
            Some(id) => {
                self.count(id, false);
                let hold = self.slots.get_mut(id);
                self.real -= u64::from(hold.is_real());
                if !hold.is_real() && step.cover.is_none() {
                    hold.depth = step.depth;
                }
                hold.kind = kind;
                if let Some(asked) = step.asked {
                    self.slots.grant(id, self.epoch, asked);
                }
                id
            }
        };
        self.real += u64::from(self.slots.get(id).is_real());
        self.count(id, true);
        step.hold = Some(id);
    }

    /// Gives one grant back.
    #[inline]
    pub(super) fn release(&mut self, id: HoldId) -> Result<(), ReleaseError> {
        let hold = self.slots.get(id);
        match hold.grants.count() {
            0 => Err(ReleaseError::NotHeld),
            1 if hold.covers.any() => Err(ReleaseError::StillCovers),
            _ => {
                self.lower(id, Grants::pop);
                Ok(())
            }
        }
    }

    /// Lowers the own mode.
    pub(super) fn downgrade(&mut self, id: HoldId, mode: Mode) -> Result<(), ReleaseError> {
        let hold = self.slots.get(id);
        let own = hold.own().ok_or(ReleaseError::NotHeld)?;
        if !own.covers(mode) {
            return Err(ReleaseError::NotWeaker);
        }
        let needed = hold.covers.map(Mode::S, Mode::X);
        if needed.is_some_and(|needed| !mode.covers_below(needed)) {
            return Err(ReleaseError::StillCovers);
        }
        self.lower(id, |grants| grants.cap(mode));
        Ok(())
    }

    /// What is granted from now on can be given back together.
    pub(super) fn savepoint(&mut self) -> u64 {
        self.slots.begin_log();
        self.epoch += 1;
        self.epoch
    }

    /// Gives back what was granted since, from the leaves up. Looks at nothing else.
    pub(super) fn release_to(&mut self, epoch: u64) {
        let mut touched: Vec<(u32, HoldId)> = Vec::new();
        while let Some(id) = self.slots.log.pop_since(epoch) {
            let hold = self.slots.get(id);
            // It may have been released meanwhile.
            if hold.grants.last_epoch().is_some_and(|last| last >= epoch) {
                touched.push((hold.depth, id));
            }
        }
        self.slots.log.shrink();
        touched.sort_unstable_by(|a, b| b.cmp(a));
        touched.dedup();
        for (_, id) in touched {
            self.lower(id, |grants| grants.cut(epoch));
        }
    }

    /// Gives back everything, from the leaves up.
    pub(super) fn clear(&mut self) {
        let mut all = self.slots.take_all();
        all.sort_by_key(|hold| (!hold.is_kept(), Reverse(hold.depth)));
        self.real = 0;
        for hold in all {
            let intent = hold.own().is_none();
            if let Some(key) = hold.key {
                self.leave((hold.hash, key), hold.kind, intent);
            }
        }
    }

    /// All that the table has of its owner, to be taken away.
    pub(super) fn all(&self) -> Changes {
        let nodes = self.slots.iter().filter_map(|(_, hold)| hold.node());
        nodes.map(|node| (node, None)).collect()
    }

    /// Fewer or weaker grants: what follows from it for the hold and all above it, up to where
    /// nothing changes.
    #[inline]
    fn lower(&mut self, start: HoldId, change: impl FnOnce(&mut Grants)) {
        self.count(start, false);
        change(&mut self.slots.get_mut(start).grants);
        let mut at = start;
        loop {
            let hold = self.slots.get_mut(at);
            let target = hold.own_and_intents();
            let HoldKind::Real { node, mode, parent } = hold.kind else {
                if target.is_some() {
                    self.count(at, true);
                } else {
                    let (named, kind) = self.slots.remove(at);
                    self.leave(named, kind, false);
                }
                return;
            };
            // No more than it had, whatever rests on it: nobody has been asked.
            let target = target.map(|target| target.meet(mode));
            if let Some(mode) = target {
                hold.kind = HoldKind::Real { node, mode, parent };
                self.count(at, true);
            }
            if target == Some(mode) {
                return;
            }
            if target.is_some() {
                self.changes.push((node, target));
            } else {
                self.real -= 1;
                let (named, kind) = self.slots.remove(at);
                self.leave(named, kind, at != start);
            }
            let Some(parent) = parent else { return };
            self.count(parent, false);
            at = parent;
        }
    }

    /// A hold of which nothing is left; what is below it has gone before. It was held only for the
    /// sake of that, or granted.
    #[inline]
    fn leave(&mut self, named: (u64, K), kind: HoldKind, intent: bool) {
        match kind {
            HoldKind::Real {
                node,
                mode,
                parent: None,
            } if intent => return self.leave_root(named, node, mode),
            HoldKind::Real { node, .. } => {
                self.changes.push((node, None));
                if self.kept.node == Some(node) {
                    self.kept.node = None;
                }
            }
            HoldKind::Kept { node, mode } => return self.keep(named, node, mode),
            HoldKind::Covered { .. } => {}
        }
        self.gone.push(Name::Own(named.1));
    }

    /// A root is not needed any more. Worth keeping is what is left twice in a row: then it stays
    /// in the table, for another if need be.
    fn leave_root(&mut self, named: (u64, K), node: NodeId, mode: Mode) {
        let again = self.kept.left(named.0, mode);
        if self.kept.node == Some(node) {
            self.kept.due = Due::Rest;
            return self.keep(named, node, mode);
        }
        self.changes.push((node, None));
        if again && self.kept.node.is_none() {
            (self.kept.node, self.kept.due) = (Some(node), Due::Begin(node));
            return self.keep(named, node, mode);
        }
        self.gone.push(Name::Own(named.1));
        if again {
            let idle = self.forget_idle();
            self.changes.extend(idle.map(|idle| (idle, None)));
        }
    }

    fn keep(&mut self, named: (u64, K), node: NodeId, mode: Mode) {
        let kind = HoldKind::Kept { node, mode };
        self.slots.idle = Some(self.slots.insert(named, 0, kind, (0, None)));
    }

    /// It keeps nothing any more, if it does not use it. Gives what it kept.
    pub(super) fn forget_idle(&mut self) -> Option<NodeId> {
        let idle = self.slots.idle.take()?;
        let ((_, key), _) = self.slots.remove(idle);
        self.gone.push(Name::Own(key));
        self.kept.due = Due::Nothing;
        self.kept.node.take()
    }

    /// The root that is kept and idle, and the intent.
    pub(super) fn idle(&self) -> Option<(NodeId, Mode)> {
        match self.slots.get(self.slots.idle?).kind {
            HoldKind::Kept { node, mode } => Some((node, mode)),
            _ => None,
        }
    }

    /// A child is held in this mode from now on, in the table. Who keeps its parent uses it.
    #[inline(always)]
    pub(super) fn join_parent(&mut self, parent: HoldId, mode: Mode) {
        let hold = self.slots.get_mut(parent);
        let strong = mode.parent_needs() == Mode::Ix;
        hold.intents.count(strong, true);
        if let HoldKind::Kept { node, mode } = hold.kind {
            let parent = None;
            hold.kind = HoldKind::Real { node, mode, parent };
            self.slots.idle = None;
            self.real += 1;
        }
    }

    /// Without a child that is held in this mode: true if the parent is not needed and can rest, as
    /// it is kept; false if it is needed as before.
    #[inline(always)]
    pub(super) fn parent_rests(&self, parent: HoldId, mode: Mode) -> Option<bool> {
        let hold = self.slots.get(parent);
        let HoldKind::Real {
            node, mode: held, ..
        } = hold.kind
        else {
            return None;
        };
        let mut intents = hold.intents;
        intents.count(mode.parent_needs() == Mode::Ix, false);
        let needed = hold.own_and(intents);
        if needed == Some(held) {
            return Some(false);
        }
        (needed.is_none() && self.kept.node == Some(node)).then_some(true)
    }

    /// What was granted last, if no more is held than that and a parent that can rest then.
    pub(super) fn only(&self) -> Option<HoldId> {
        let id = self.slots.recent()?;
        let HoldKind::Real { mode, parent, .. } = self.slots.get(id).kind else {
            return None;
        };
        let only = match parent {
            None => self.real == 1,
            Some(parent) => self.real == 2 && self.parent_rests(parent, mode) == Some(true),
        };
        only.then_some(id)
    }

    /// That child has gone, and the parent rests if it can.
    #[inline(always)]
    pub(super) fn leave_parent(&mut self, parent: HoldId, mode: Mode, rests: bool) {
        let hold = self.slots.get_mut(parent);
        hold.intents.count(mode.parent_needs() == Mode::Ix, false);
        if rests && let HoldKind::Real { node, mode, .. } = hold.kind {
            hold.kind = HoldKind::Kept { node, mode };
            self.kept.left(hold.hash, mode);
            self.slots.idle = Some(parent);
            self.real -= 1;
        }
    }

    /// Counts a hold at what it rests on, or no more: its intent at its parent, its own mode at its
    /// cover.
    #[inline(always)]
    fn count(&mut self, id: HoldId, more: bool) {
        let hold = self.slots.get(id);
        match hold.kind {
            HoldKind::Real { mode, parent, .. } => {
                if let Some(parent) = parent {
                    let intents = &mut self.slots.get_mut(parent).intents;
                    intents.count(mode.parent_needs() == Mode::Ix, more);
                }
            }
            HoldKind::Covered { by } => {
                if let Some(own) = hold.own() {
                    let covers = &mut self.slots.get_mut(by).covers;
                    covers.count(!Mode::S.covers(own), more);
                }
            }
            HoldKind::Kept { .. } => {}
        }
    }
}
