//! What the table looks like at one moment.

use super::error::OwnerId;
use super::holders::Holders;
use super::index::{Entry, State};
use super::node::{Cause, Node};
use super::shards::Locked;
use super::wait_table::WaitTable;
use crate::modes::Mode;
use crate::sync::Arc;
use crate::wait::WaitCounts;

/// Everything that is held in the table or waited for, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<K> {
    /// Each resource that somebody holds or waits for, in no particular order. What an owner holds
    /// by a covering ancestor only is not in the table.
    pub resources: Vec<ResourceView<K>>,
    /// How many owners there are.
    pub owners: usize,
}

/// How much there is of what. See [`LockTable::counts`](super::LockTable::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Resources that somebody holds or waits for.
    pub resources: usize,
    /// Those of them that somebody waits for.
    pub contended: usize,
    /// Owners.
    pub owners: usize,
    /// Owners that wait; notified are those whose wait was granted or has failed, and
    /// who have not looked.
    pub locks: WaitCounts,
    /// Deadlocks so far.
    pub deadlocks: u64,
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceView<K> {
    /// Which.
    pub resource: K,
    /// Who holds it, and how.
    pub holders: Vec<(OwnerId, Mode)>,
    /// Who waits for it, the head of the queue first.
    pub waiters: Vec<WaiterView>,
}

/// One waiting request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// Who waits.
    pub owner: OwnerId,
    /// The mode that it will hold.
    pub asks: Mode,
    /// The mode that it holds already.
    pub holds: Option<Mode>,
    /// Why: the owners in its way, in which mode, and whether they hold or wait ahead.
    pub blocked_by: Vec<(OwnerId, Mode, Cause)>,
}

impl<K: Clone> Snapshot<K> {
    pub(super) fn from_views(views: Vec<ResourceView<Arc<K>>>, owners: usize) -> Self {
        let resources = views.into_iter().map(ResourceView::with_key).collect();
        Self { resources, owners }
    }
}

impl<K: Clone> ResourceView<Arc<K>> {
    /// Clones the resource, so not under the table's lock.
    fn with_key(self) -> ResourceView<K> {
        ResourceView {
            resource: K::clone(&self.resource),
            holders: self.holders,
            waiters: self.waiters,
        }
    }
}

impl<K> WaitTable<K> {
    /// Of all that the index has, with all of it locked.
    pub(super) fn view(&self, mut locked: Locked<'_, K>) -> (Vec<ResourceView<Arc<K>>>, usize) {
        let view = |entry: &mut Entry<K>| match entry.state {
            State::Busy(node) => self.nodes.get(node).map(Node::view),
            State::Quiet(ref holders) => {
                let holders = view_of(holders);
                Some(ResourceView {
                    resource: entry.share(),
                    holders,
                    waiters: Vec::new(),
                })
            }
        };
        (
            locked.iter_mut().filter_map(view).collect(),
            self.owners.len(),
        )
    }
}

fn view_of(holders: &Holders) -> Vec<(OwnerId, Mode)> {
    let holders = holders.iter();
    holders
        .map(|(owner, mode)| (OwnerId(owner), mode))
        .collect()
}

impl<K> Node<K> {
    fn view(&self) -> ResourceView<Arc<K>> {
        let waiters = self.queue.iter().map(|&request| WaiterView {
            owner: OwnerId(request.owner),
            asks: request.mode,
            holds: self.holders.held(request.owner),
            blocked_by: self
                .blockers(request)
                .map(|(owner, mode, cause)| (OwnerId(owner), mode, cause))
                .collect(),
        });
        ResourceView {
            resource: self.key.clone(),
            holders: view_of(&self.holders),
            waiters: waiters.collect(),
        }
    }
}
