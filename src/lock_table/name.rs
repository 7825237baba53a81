//! The names of resources, as the table keeps them and as it gives them up.

use std::mem;

use crate::sync::UnmodelledArc as Arc;

/// A list with more room than this is not reused.
pub(super) const KEPT: usize = 64;

/// Empties a list, and keeps its memory for reuse.
pub(super) fn empty<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > KEPT {
        *list = Vec::new();
    }
}

/// A resource's name. It is moved to an `Arc` if others may need it after the unlock.
pub(super) enum Name<K> {
    Own(K),
    Shared(Arc<K>),
    /// In a slot without an entry, and within `share`.
    None,
}

/// Names to be dropped with no lock held.
pub(super) struct Gone<K>(Vec<Name<K>>);

impl<K> Name<K> {
    /// Moves the name if need be. Unlike a clone, that runs no code of the user's.
    pub(super) fn share(&mut self) -> Arc<K> {
        let shared = match mem::replace(self, Self::None) {
            Self::Own(key) => Arc::new(key),
            Self::Shared(key) => key,
            Self::None => unreachable!("an entry has a name"),
        };
        *self = Self::Shared(shared.clone());
        shared
    }
}

impl<K: Eq> Name<K> {
    #[inline]
    pub(super) fn is(&self, name: &K) -> bool {
        match self {
            Self::Own(key) => key == name,
            Self::Shared(key) => **key == *name,
            Self::None => false,
        }
    }
}

impl<K> Gone<K> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    #[inline(always)]
    pub(super) fn push(&mut self, name: Name<K>) {
        if mem::needs_drop::<K>() || !matches!(name, Name::Own(_)) {
            self.0.push(name);
        }
    }

    /// Drops them, with no lock held.
    #[inline]
    pub(super) fn drop_all(&mut self) {
        if !self.0.is_empty() {
            self.drop_names();
        }
    }

    #[cold]
    fn drop_names(&mut self) {
        // Taken out, because a drop may panic.
        let mut names = mem::take(&mut self.0);
        empty(&mut names);
        self.0 = names;
    }
}
