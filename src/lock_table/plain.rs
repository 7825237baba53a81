//! Most requests and releases: of one resource, in one shard, without a path.
//!
//! A request is plain if its owner holds nothing of the resource, and holds what it needs of the
//! parent, if there is one: in the table, or kept. A release is plain if it gives back all of a
//! hold on which nothing rests, and the parent is then held as before, or kept. A call that is not
//! plain, or is blocked, changes nothing and is left to `path` and `holds`, which know all rules.

use std::hash::BuildHasher;

use super::entries::Entry;
use super::error::LockError;
use super::hold::{HoldId, HoldKind};
use super::name::Name;
use super::owner::Owner;
use super::{MAX_DEPTH, Resource};
use crate::modes::Mode;

impl<K: Resource, S: BuildHasher> Owner<K, S> {
    /// Grants a plain request, and takes it out of `asked`; false if it is not plain.
    #[inline]
    pub(super) fn lock_plain(&mut self, asked: &mut Option<(K, Mode)>) -> bool {
        let Some((key, mode)) = &*asked else {
            return false;
        };
        let mode = *mode;
        let hash = self.shared.hash(key);
        self.hash = hash;
        if self.shared.is_closed() || self.holds.slots.find(hash, key).is_some() {
            return false;
        }
        let above = match key.parent() {
            None => None,
            // Checked here, because `parent` may give another answer when it is asked again.
            Some(parent) if parent == *key => {
                // The error first: the drop of the name may panic.
                (self.path.unfit, *asked) = (Some(LockError::OwnAncestor), None);
                return false;
            }
            Some(parent) => match self.find_above(&parent, mode) {
                None => return false,
                above => above,
            },
        };
        let (parent, idle) = above.unzip();
        let depth = parent.map_or(0, |parent| self.holds.slots.get(parent).depth + 1);
        let name = key.clone();
        let holds = &mut self.holds;
        let kept = match idle {
            Some(true) => holds.kept.known(),
            _ => None,
        };
        let node = {
            let mut index = self.shared.shards.lock_one(hash);
            let is_it = |entry: &Entry<K>| entry.is(hash, key);
            let there = index.entries.find(hash, is_it);
            if there
                .as_ref()
                .is_some_and(|entry| !entry.has_room(self.id, mode))
                || kept.is_some_and(|word| !word.take())
            {
                return false;
            }
            match there {
                Some(entry) => {
                    entry.holders.add(self.id, mode);
                    entry.id
                }
                None => index.entries.insert(hash, name, self.id, mode),
            }
        };
        if let Some((key, _)) = asked.take() {
            let kind = HoldKind::Real { node, mode, parent };
            let grants = (holds.epoch, Some((mode, 1)));
            holds.slots.insert((hash, key), depth, kind, grants);
            holds.join_parent(parent, mode);
        }
        true
    }

    /// The hold of a parent, in the table or idle, if that is enough; and whether it is idle.
    #[inline]
    fn find_above(&self, parent: &K, mode: Mode) -> Option<(HoldId, bool)> {
        let slots = &self.holds.slots;
        let recent = slots.above_recent(parent);
        let id = recent.or_else(|| slots.find(self.shared.hash(parent), parent))?;
        let hold = slots.get(id);
        let (needs, idle) = (mode.parent_needs(), self.holds.idle() == Some(id));
        let enough = match hold.kind {
            HoldKind::Real { mode, .. } if idle => mode == needs,
            _ => self.holds.carries(id, needs, mode),
        };
        (enough && (hold.depth as usize) < MAX_DEPTH).then_some((id, idle))
    }
}

impl<K, S> Owner<K, S> {
    /// Gives a hold back; false if the release is not plain.
    #[inline]
    pub(super) fn release_plain(&mut self, id: HoldId) -> bool {
        let holds = &mut self.holds;
        let hold = holds.slots.get(id);
        let HoldKind::Real { node, mode, parent } = hold.kind else {
            return false;
        };
        if !hold.grants.is_one() || hold.intents.any() || hold.covers.any() {
            return false;
        }
        let rests = match parent {
            None if holds.slots.kept == Some(id) => return false,
            None => false,
            Some(parent) => match holds.parent_rests(parent, mode) {
                None => return false,
                Some(rests) => rests,
            },
        };
        let word = if rests { holds.kept.known() } else { None };
        let mut index = self.shared.shards.lock_one(node.hash);
        let Some(entry) = index.entries.get_mut(node) else {
            return false;
        };
        if entry.busy.is_some() || word.is_some_and(|word| !word.rest()) {
            return false;
        }
        entry.holders.leave(self.id);
        if entry.holders.is_empty() {
            index.entries.remove(node, &mut holds.gone);
        }
        drop(index);
        if let Some(key) = holds.slots.take(id) {
            holds.gone.push(Name::Own(key));
        }
        holds.leave_parent(parent, mode, rests);
        holds.slots.compact();
        holds.gone.drop_all();
        true
    }
}
