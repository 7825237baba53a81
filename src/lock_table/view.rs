//! What the table looks like at one moment.

use super::bias::Biases;
use super::entries::Entry;
use super::error::OwnerId;
use super::index::Index;
use super::node::{Cause, Node, Request};
use super::shards::Locked;
use super::wait_table::WaitTable;
use crate::modes::Mode;
use crate::sync::Arc;
use crate::wait::WaitCounts;

/// Everything that is held in the table or waited for, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot<K> {
    /// Each resource that somebody holds or waits for, in no particular order. What an owner holds
    /// by a covering ancestor only is not in the table.
    pub resources: Vec<ResourceView<K>>,
    /// How many owners there are.
    pub owners: usize,
}

/// How much there is of what. See [`LockTable::counts`](super::LockTable::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
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

impl<K: Clone> ResourceView<K> {
    /// Clones the resource, so not under the table's lock.
    pub(super) fn from_shared(view: ResourceView<Arc<K>>) -> Self {
        Self {
            resource: K::clone(&view.resource),
            holders: view.holders,
            waiters: view.waiters,
        }
    }
}

impl<K> WaitTable<K> {
    /// Of all that the index has, with all of it locked.
    pub(super) fn view(&self, locked: &mut Locked<'_, K>) -> Vec<ResourceView<Arc<K>>> {
        let view = |(biases, entry): (&Biases, &mut Entry<K>)| {
            let (holders, node) = match entry.busy {
                None => (&entry.holders, None),
                Some(node) => {
                    let node = self.nodes.get(node)?;
                    (&node.holders, Some(node))
                }
            };
            let idle = biases.idle_at(entry.id);
            let holders = holders.iter().filter(|(owner, _)| !idle(*owner));
            let holders: Vec<_> = holders
                .map(|(owner, mode)| (self.name(owner), mode))
                .collect();
            if holders.is_empty() && node.is_none() {
                return None;
            }
            Some(ResourceView {
                resource: entry.name.share(),
                holders,
                waiters: node.map_or_else(Vec::new, |node| self.waiters(node)),
            })
        };
        let all = locked.indices().flat_map(|Index { entries, biases }| {
            let biases = &*biases;
            entries.iter_mut().map(move |entry| (biases, entry))
        });
        all.filter_map(view).collect()
    }

    fn waiters(&self, node: &Node<K>) -> Vec<WaiterView> {
        let waiter = |&request: &Request| {
            let blockers = node.blockers(request);
            WaiterView {
                owner: self.name(request.owner),
                asks: request.mode,
                holds: node.holders.held(request.owner),
                blocked_by: blockers
                    .map(|(owner, mode, cause)| (self.name(owner), mode, cause))
                    .collect(),
            }
        };
        node.queue.iter().map(waiter).collect()
    }
}
