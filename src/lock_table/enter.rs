//! What an owner enters in the table: what it takes, and what it gives back.

use super::Resource;
use super::holds::Holds;
use super::index::Room;
use super::kept::Due;
use super::name::KEPT;
use super::owner::Owner;

impl<K: Resource, S> Owner<K, S> {
    /// All of the path, or nothing.
    #[inline]
    pub(super) fn take(&mut self) -> Room {
        let Holds { kept, gone, .. } = &mut self.holds;
        let kept = self.path.keeps().then(|| &**kept.word());
        self.path.take(&self.shared.shards, (self.id, kept), gone)
    }

    /// As `take`, without what it kept.
    #[cold]
    pub(super) fn take_anew(&mut self) -> Room {
        self.give_up_kept();
        self.take()
    }

    /// Gives back what it keeps and does not use; the path may have to ask for it now.
    pub(super) fn give_up_kept(&mut self) {
        self.path.forget_kept();
        let idle = self.holds.forget_idle();
        self.holds.changes.extend(idle.map(|idle| (idle, None)));
        self.enter_changes();
    }
}

impl<K, S> Owner<K, S> {
    /// Enters in the table what has changed in the holds.
    pub(super) fn enter(&mut self) {
        self.holds.slots.compact();
        self.enter_changes();
    }

    /// As `enter`; ids of holds stay what they are.
    fn enter_changes(&mut self) {
        let Holds {
            kept,
            gone,
            changes,
            ..
        } = &mut self.holds;
        if !changes.is_empty() {
            if self.shared.shards.lower(self.id, changes, kept, gone) {
                changes.clear();
                if changes.capacity() > KEPT {
                    *changes = Vec::new();
                }
            } else {
                self.enter_busy();
            }
        }
        self.holds.gone.drop_all();
    }

    #[cold]
    fn enter_busy(&mut self) {
        // Taken out, so that nothing is entered twice if the drop of a name panics.
        let mut changes = std::mem::take(&mut self.holds.changes);
        if self.holds.kept.due != Due::Nothing {
            changes.extend(self.holds.forget_idle().map(|idle| (idle, None)));
        }
        self.shared
            .with_state(|waits, _| waits.lower(self.id, &changes));
    }
}
