//! What the tests lock, and a waker that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::Resource;

/// A path from the root: `[1, 2]` is the second part of the first root.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Path(pub(super) Vec<u32>);

impl Resource for Path {
    fn parent(&self) -> Option<Self> {
        let (_, up) = self.0.split_last()?;
        (!up.is_empty()).then(|| Path(up.to_vec()))
    }
}

pub(super) fn path<const N: usize>(parts: [u32; N]) -> Path {
    Path(parts.to_vec())
}

#[derive(Default)]
pub(super) struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
