//! The names of resources, as the table keeps them and as it lets them go.

use std::mem;

use crate::sync::UnmodelledArc as Arc;

/// Longer lists are not kept for the next time.
pub(super) const KEPT: usize = 64;

/// Empties a list whose memory is used again.
pub(super) fn empty<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > KEPT {
        *list = Vec::new();
    }
}

/// A resource's name: moved where others may need it when the lock is let go.
pub(super) enum Name<K> {
    Own(K),
    Shared(Arc<K>),
    /// In a slot without an entry, and within `share`.
    None,
}

/// Names to be dropped with no lock held.
pub(super) struct Gone<K>(Vec<Name<K>>);

impl<K> Name<K> {
    /// Moves the name if need be: that is no code of the user's, as cloning would be.
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

    /// With no lock held.
    #[inline]
    pub(super) fn drop_all(&mut self) {
        if !self.0.is_empty() {
            self.drop_names();
        }
    }

    #[cold]
    fn drop_names(&mut self) {
        // Taken out, as a drop may panic.
        let mut names = mem::take(&mut self.0);
        empty(&mut names);
        self.0 = names;
    }
}
