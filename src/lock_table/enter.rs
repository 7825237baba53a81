//! What an owner enters in the table: what it takes, and what it gives back.

use super::Resource;
use super::bias::Due;
use super::index::NodeId;
use super::owner::Owner;
use super::path::Path;
use super::step::Taken;
use crate::modes::Mode;

/// Longer lists of what is entered are not kept for the next time.
const KEPT: usize = 64;

impl<K: Resource, S> Owner<K, S> {
    /// All of the path, or nothing.
    #[inline]
    pub(super) fn take(&mut self, path: &mut Path<K>) -> Taken {
        let kept = path.keeps().then(|| &**self.holds.kept.word());
        path.take(&self.shared.shards, (self.id, kept), &mut self.deferred)
    }
}

impl<K, S> Owner<K, S> {
    /// Enters in the table what has changed in the holds.
    #[inline]
    pub(super) fn enter(&mut self) {
        self.holds.compact();
        let due = std::mem::replace(&mut self.holds.kept.due, Due::Nothing);
        if let ([change], Due::Nothing | Due::Rest) = (&self.holds.changes[..], due) {
            let change = *change;
            let rests = (due == Due::Rest).then(|| &**self.holds.kept.word());
            // Taken out, so that nothing is entered twice if the drop of a name panics.
            match self.shared.shards.lower_one(self.id, change, rests) {
                Some(name) => {
                    self.holds.changes.clear();
                    return drop(name);
                }
                None if due == Due::Nothing => {
                    self.holds.changes.clear();
                    return self.enter_busy(&[change]);
                }
                None => {}
            }
        }
        if !self.holds.changes.is_empty() || due != Due::Nothing {
            self.enter_all(due);
        }
    }

    fn enter_all(&mut self, due: Due) {
        let mut changes = std::mem::take(&mut self.holds.changes);
        let (shared, id) = (&self.shared, self.id);
        let kept = &mut self.holds.kept;
        let mut forgotten = None;
        if !shared
            .shards
            .lower(id, &changes, (due, kept.word()), &mut self.deferred)
        {
            if matches!(due, Due::Rest | Due::Begin(_)) {
                forgotten = kept.forget();
            }
            if due == Due::Rest {
                changes.extend(forgotten.as_ref().map(|(root, _)| (*root, None)));
            }
            self.enter_busy(&changes);
        }
        changes.clear();
        if changes.capacity() <= KEPT {
            self.holds.changes = changes;
        }
        if due == Due::GiveUp {
            self.give_up_kept();
        }
        drop(forgotten);
        self.drop_deferred();
    }

    /// Gives back what it keeps and does not use.
    pub(super) fn give_up_kept(&mut self) {
        let Some((root, key)) = self.holds.kept.forget() else {
            return;
        };
        let name = self.shared.shards.give_up(self.id, root);
        drop((key, name));
    }

    /// With no lock held.
    #[inline]
    pub(super) fn drop_deferred(&mut self) {
        if !self.deferred.is_empty() {
            self.drop_names();
        }
    }

    #[cold]
    fn drop_names(&mut self) {
        let mut names = std::mem::take(&mut self.deferred);
        names.clear();
        if names.capacity() <= KEPT {
            self.deferred = names;
        }
    }

    #[cold]
    fn enter_busy(&self, changes: &[(NodeId, Option<Mode>)]) {
        let id = self.id;
        self.shared.with_state(|waits, _| waits.lower(id, changes));
    }
}
