//! What one owner holds, as the owner sees it: without a lock, and without the other owners.
//!
//! State: a hold per resource that was granted, or that is held because of something below it.
//!
//! ```text
//!            covered by an ancestor          more than that covers is granted
//!   absent ------------------------> covered ---------------------------------> real
//!      |                                                                          ^
//!      +--------------------------------------------------------------------------+
//! ```
//!
//! A *real* hold is in the table, and so are those of all its ancestors. A *covered* hold is known
//! only here: its cover, a real hold of an ancestor, keeps out every owner that could conflict.
//!
//! Invariants:
//! 1. The mode of a real hold in the table is the join of its own mode (granted and not given up)
//!    and of the intents that its real children need. The kept root may have neither: it is *idle*
//!    then, and its owner does not hold it.
//! 2. `intents` of a hold counts its real children by the intent that they need; `covers` counts
//!    the covered holds that name it as their cover, by the mode that they need there.
//! 3. A covered hold keeps its cover, and a real hold stays real, until the hold is gone. So what
//!    was granted before a savepoint never comes to rest on something granted after it.
//! 4. The own mode of a cover covers what `covers` counts.

use super::entries::NodeId;
use super::error::ReleaseError;
use super::grants::Grants;
use super::hold::{HoldId, HoldKind};
use super::index::Change;
use super::kept::{Due, Kept};
use super::name::{Gone, KEPT, Name};
use super::slots::Slots;
use super::step::Step;
use crate::modes::Mode;
use crate::slab::shrink;

pub(super) struct Holds<K> {
    pub(super) slots: Slots<K>,
    /// How many holds are real, an idle one included.
    real: u64,
    /// Counts the savepoints: what is granted in one epoch can be given back together.
    pub(super) epoch: u64,
    /// What the last call changed and the table must learn: from leaf to root.
    pub(super) changes: Vec<Change>,
    pub(super) kept: Kept,
    pub(super) gone: Gone<K>,
}

impl<K> Holds<K> {
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::new(),
            real: 0,
            epoch: 0,
            changes: Vec::new(),
            kept: Kept::new(),
            gone: Gone::new(),
        }
    }

    /// Whether `intent` is held here in the table, and neither this hold nor one above it covers
    /// `mode` below: then a request below changes nothing here or above.
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

    /// Enters what has been granted: a new hold, or more grants of one, which may become real.
    #[inline(always)]
    pub(super) fn enter(&mut self, step: &mut Step<K>, mut parent: Option<HoldId>) {
        let kind = match (step.cover, step.mode) {
            (Some(by), _) => HoldKind::Covered { by },
            (None, Some(mode)) => {
                if let Some(id) = step.hold
                    && let HoldKind::Real { parent: up, .. } = self.slots.get(id).kind
                {
                    // The parent stays what it was, whatever the user's code says now.
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
                if hold.is_real() {
                    self.real -= 1;
                } else if step.cover.is_none() {
                    hold.depth = step.depth;
                }
                hold.kind = kind;
                if let Some(asked) = step.asked {
                    self.slots.grant(id, self.epoch, asked);
                }
                id
            }
        };
        self.real += u64::from(matches!(kind, HoldKind::Real { .. }));
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

    /// Gives back what was granted since then, from the leaves up. It looks at nothing else.
    pub(super) fn release_to(&mut self, epoch: u64) {
        let mut touched = Vec::new();
        while let Some((_, id)) = self.slots.log.pop_if(|(at, _)| *at >= epoch) {
            let hold = self.slots.get(id);
            // It may have been released meanwhile.
            if hold.grants.last_epoch().is_some_and(|last| last >= epoch) {
                touched.push((hold.depth, id));
            }
        }
        shrink(&mut self.slots.log, KEPT);
        touched.sort_unstable_by(|a, b| b.cmp(a));
        touched.dedup();
        for (_, id) in touched {
            self.lower(id, |grants| grants.cut(epoch));
        }
    }

    /// Gives back everything, from the leaves up.
    pub(super) fn clear(&mut self) {
        let depths = self.slots.iter().map(|(_, hold)| hold.depth);
        for depth in (0..=depths.max().unwrap_or(0)).rev() {
            for id in self.slots.ids() {
                let hold = self.slots.get(id);
                if hold.depth == depth && hold.own().is_some() {
                    self.lower(id, |grants| *grants = Grants::default());
                }
            }
        }
        if self.slots.is_empty() {
            self.slots = Slots::new();
        }
    }

    /// How many resources the owner holds in the table.
    pub(super) fn held(&self) -> u64 {
        self.real - u64::from(self.idle().is_some())
    }

    /// Makes grants fewer or weaker, and does what follows from that for the hold and those above
    /// it, up to where nothing changes.
    #[inline]
    fn lower(&mut self, start: HoldId, change: impl FnOnce(&mut Grants)) {
        self.count(start, false);
        self.slots.change(start, change);
        let mut at = start;
        loop {
            let hold = self.slots.get_mut(at);
            let target = hold.own_and_intents();
            let HoldKind::Real { node, mode, parent } = hold.kind else {
                match target {
                    Some(_) => self.count(at, true),
                    None => self.remove(at),
                }
                return;
            };
            // The mode never rises here, whatever rests on the hold: no request asked for more.
            let target = target.map(|target| target.meet(mode));
            if let Some(mode) = target {
                hold.kind = HoldKind::Real { node, mode, parent };
                self.count(at, true);
            }
            if target == Some(mode) {
                return;
            }
            if target.is_none() {
                // A root that was granted by name is not worth keeping.
                if parent.is_none() && at != start && self.stays(at, node, mode) {
                    return;
                }
                self.real -= 1;
                self.remove(at);
            }
            self.changes.push((node, target));
            let Some(parent) = parent else { return };
            self.count(parent, false);
            at = parent;
        }
    }

    /// Removes a hold of which nothing is left; what was below it has gone before.
    fn remove(&mut self, id: HoldId) {
        self.slots.kept.take_if(|kept| *kept == id);
        if let Some(key) = self.slots.take(id) {
            self.gone.push(Name::Own(key));
        }
    }

    /// Whether a root that is not needed any more stays in the table. A root that is left twice in
    /// a row is worth keeping; if another is kept and idle, that one is given up.
    fn stays(&mut self, id: HoldId, node: NodeId, mode: Mode) -> bool {
        let again = self.kept.left(self.slots.get(id).hash, mode);
        match self.slots.kept {
            Some(kept) if kept == id => self.kept.due = Due::Rest,
            None if again => {
                (self.slots.kept, self.kept.due) = (Some(id), Due::Begin(node));
                self.changes.push((node, None));
            }
            _ => {
                if again {
                    self.forget_idle();
                }
                return false;
            }
        }
        true
    }

    /// Gives up the kept root, if it is idle.
    pub(super) fn forget_idle(&mut self) {
        if let Some(id) = self.idle()
            && let Some((node, _)) = self.slots.get(id).real()
        {
            self.real -= 1;
            self.remove(id);
            self.kept.due = Due::Nothing;
            self.changes.push((node, None));
        }
    }

    /// The kept root, if it is idle.
    #[inline]
    pub(super) fn idle(&self) -> Option<HoldId> {
        let kept = self.slots.kept;
        kept.filter(|&id| self.slots.get(id).is_idle())
    }

    /// Counts a real hold that a plain request has made, below this parent.
    #[inline(always)]
    pub(super) fn join_parent(&mut self, parent: Option<HoldId>, mode: Mode) {
        self.real += 1;
        if let Some(parent) = parent {
            self.slots.get_mut(parent).count_child(mode, true);
        }
    }

    /// Whether a parent becomes idle when it loses a child that is held in this mode. True if it is
    /// not needed then and is kept; false if it is needed as before; else none.
    #[inline(always)]
    pub(super) fn parent_rests(&self, parent: HoldId, mode: Mode) -> Option<bool> {
        let hold = self.slots.get(parent);
        let (_, held) = hold.real()?;
        let mut intents = hold.intents;
        intents.count(mode.parent_needs() == Mode::Ix, false);
        let needed = hold.own_and(intents);
        if needed == Some(held) {
            return Some(false);
        }
        (needed.is_none() && self.slots.kept == Some(parent)).then_some(true)
    }

    /// The hold made last, if nothing else is held but a parent that becomes idle without it.
    pub(super) fn only(&self) -> Option<HoldId> {
        let id = self.slots.recent()?;
        let HoldKind::Real { mode, parent, .. } = self.slots.get(id).kind else {
            return None;
        };
        let only = match parent {
            None => self.held() == 1,
            Some(parent) => self.real == 2 && self.parent_rests(parent, mode) == Some(true),
        };
        only.then_some(id)
    }

    /// Uncounts a hold that was released plainly. If its parent `rests`, notes that it is left.
    #[inline(always)]
    pub(super) fn leave_parent(&mut self, parent: Option<HoldId>, mode: Mode, rests: bool) {
        self.real -= 1;
        let Some(parent) = parent else { return };
        let hold = self.slots.get_mut(parent);
        hold.count_child(mode, false);
        if rests && let Some((_, mode)) = hold.real() {
            self.kept.left(hold.hash, mode);
        }
    }

    /// Counts a hold, or uncounts it, at what it rests on: its intent at its parent, or its own
    /// mode at its cover.
    #[inline(always)]
    fn count(&mut self, id: HoldId, more: bool) {
        let hold = self.slots.get(id);
        match hold.kind {
            HoldKind::Real { mode, parent, .. } => {
                if let Some(parent) = parent {
                    self.slots.get_mut(parent).count_child(mode, more);
                }
            }
            HoldKind::Covered { by } => {
                if let Some(own) = hold.own() {
                    let covers = &mut self.slots.get_mut(by).covers;
                    covers.count(!Mode::S.covers(own), more);
                }
            }
        }
    }
}
