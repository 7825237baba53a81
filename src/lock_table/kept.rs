//! What one owner keeps of the root that it left last: see `bias`.
//!
//! Its hold stays where it is, and is one of a kind of its own while it is idle.

use super::bias::Bias;
use super::entries::NodeId;
use crate::modes::Mode;
use crate::sync::Arc;

pub(super) struct Kept {
    /// Made when it is needed.
    word: Option<Arc<Bias>>,
    /// The root that it keeps, used or idle.
    pub(super) node: Option<NodeId>,
    pub(super) due: Due,
    /// The root that it left last: its hash, and the intent.
    last: Option<(u64, Mode)>,
}

/// What is to be entered in the table with these changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// It is not needed any more.
    Rest,
    /// This root, which the changes release, stays.
    Begin(NodeId),
}

impl Kept {
    pub(super) const fn new() -> Self {
        Self {
            word: None,
            node: None,
            due: Due::Nothing,
            last: None,
        }
    }

    #[inline]
    pub(super) fn word(&mut self) -> &Arc<Bias> {
        self.word.get_or_insert_with(|| Arc::new(Bias::new()))
    }

    /// The same, if it was needed before.
    #[inline]
    pub(super) fn known(&self) -> Option<&Bias> {
        self.word.as_deref()
    }

    /// Whether it keeps any, in the table: to be asked under a lock.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.word.as_ref().is_some_and(|word| word.is_listed())
    }

    /// A root is left; whether it was so the time before.
    #[inline]
    pub(super) fn left(&mut self, hash: u64, mode: Mode) -> bool {
        let left = Some((hash, mode));
        std::mem::replace(&mut self.last, left) == left
    }
}
