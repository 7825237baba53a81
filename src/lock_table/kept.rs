//! What one owner keeps of the root that it left last: see `bias`.

use super::bias::Bias;
use super::index::{Changes, Gone, Name, NodeId};
use crate::modes::Mode;
use crate::sync::Arc;

/// What one owner keeps, as it sees it.
pub(super) struct Kept<K> {
    /// Made when it is needed.
    word: Option<Arc<Bias>>,
    root: Option<Root<K>>,
    /// Whether that is not used.
    idle: bool,
    pub(super) due: Due,
    /// The root that it left last: its hash, and the intent.
    last: Option<(u64, Mode)>,
}

/// A root that is held for the sake of what is below.
pub(super) struct Root<K> {
    pub(super) key: K,
    pub(super) hash: u64,
    pub(super) node: NodeId,
    pub(super) mode: Mode,
}

/// What is to be entered in the table with the changes at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// It is not needed any more.
    Rest,
    /// This root, which the changes release, stays.
    Begin(NodeId),
}

impl<K> Kept<K> {
    pub(super) fn new() -> Self {
        Self {
            word: None,
            root: None,
            idle: false,
            due: Due::Nothing,
            last: None,
        }
    }

    #[inline]
    pub(super) fn word(&mut self) -> &Arc<Bias> {
        self.word.get_or_insert_with(|| Arc::new(Bias::new()))
    }

    /// The mode and the entry of an idle root, if this is it.
    #[inline]
    pub(super) fn idle(&self, hash: u64, key: &K) -> Option<(Mode, NodeId)>
    where
        K: Eq,
    {
        let root = self.root.as_ref().filter(|root| root.hash == hash)?;
        (self.idle && root.key == *key).then_some((root.mode, root.node))
    }

    /// The request that needs it has been granted.
    #[inline]
    pub(super) fn taken(&mut self) {
        self.idle = false;
    }

    /// A root is not needed any more. Worth keeping is what is left twice in a row: then it stays in
    /// the table, for another if need be.
    #[inline]
    pub(super) fn leave(&mut self, mut root: Root<K>, changes: &mut Changes, gone: &mut Gone<K>) {
        let left = Some((root.hash, root.mode));
        let again = std::mem::replace(&mut self.last, left) == left;
        match &mut self.root {
            Some(kept) if kept.node == root.node => {
                std::mem::swap(kept, &mut root);
                (self.idle, self.due) = (true, Due::Rest);
            }
            None if again => {
                changes.push((root.node, None));
                (self.idle, self.due) = (true, Due::Begin(root.node));
                self.root = Some(root);
                return;
            }
            kept => {
                changes.push((root.node, None));
                if again
                    && self.idle
                    && let Some(kept) = kept.take()
                {
                    changes.push((kept.node, None));
                    gone.push(Name::Own(kept.key));
                }
            }
        }
        gone.push(Name::Own(root.key));
    }

    /// It keeps nothing any more. Gives what it kept.
    pub(super) fn forget(&mut self, gone: &mut Gone<K>) -> Option<NodeId> {
        let root = self.root.take()?;
        self.due = Due::Nothing;
        gone.push(Name::Own(root.key));
        Some(root.node)
    }

    /// As `forget`, if this is what it keeps.
    #[inline]
    pub(super) fn forget_if(&mut self, node: NodeId, gone: &mut Gone<K>) {
        if self.node() == Some(node) {
            self.forget(gone);
        }
    }

    #[inline]
    pub(super) fn node(&self) -> Option<NodeId> {
        self.root.as_ref().map(|root| root.node)
    }
}
