//! What an owner enters in the table: what it takes, and what it gives back.

use super::Resource;
use super::bias::Due;
use super::index::{KEPT, Room};
use super::owner::Owner;
use super::path::Path;

impl<K: Resource, S> Owner<K, S> {
    /// All of the path, or nothing.
    #[inline]
    pub(super) fn take(&mut self, path: &mut Path<K>) -> Room {
        let kept = path.keeps().then(|| &**self.holds.kept.word());
        path.take(&self.shared.shards, (self.id, kept), &mut self.holds.gone)
    }
}

impl<K, S> Owner<K, S> {
    /// Enters in the table what has changed in the holds.
    #[inline]
    pub(super) fn enter(&mut self) {
        let Self { shared, holds, .. } = self;
        holds.slots.compact();
        if !holds.changes.is_empty() || holds.kept.due != Due::Nothing {
            let mut changes = std::mem::take(&mut holds.changes);
            let (kept, gone) = (&mut holds.kept, &mut holds.gone);
            if !shared.shards.lower(self.id, &changes, kept, gone) {
                if kept.due != Due::Nothing {
                    changes.extend(kept.forget(gone).map(|root| (root, None)));
                }
                shared.with_state(|waits, _| waits.lower(self.id, &changes));
            }
            changes.clear();
            if changes.capacity() <= KEPT {
                holds.changes = changes;
            }
        }
        holds.gone.drop_all();
    }

    /// Gives back what it keeps and does not use.
    pub(super) fn give_up_kept(&mut self) {
        let root = self.holds.kept.forget(&mut self.holds.gone);
        self.holds.changes.extend(root.map(|root| (root, None)));
        self.enter();
    }
}
