//! What the table looks like at one moment.

use super::entries::Entry;
use super::error::OwnerId;
use super::index::Index;
use super::kept::Biases;
use super::owners::OwnerKey;
use super::queue::{Cause, Node, Request};
use super::shards::Locked;
use super::wait_table::WaitTable;
use crate::modes::{Mode, modes_in};
use crate::sync::UnmodelledArc as Arc;
use crate::wait::WaitCounts;

/// How many of the owners in a waiter's way are listed.
const LISTED: usize = 8;

/// Everything that is held in the table or waited for, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot<K> {
    /// Each resource that is held or waited for, in no particular order. What an owner holds
    /// through a covering ancestor only is not in the table.
    pub resources: Vec<ResourceView<K>>,
    /// How many owners there are.
    pub owners: usize,
}

/// How many of each there are. See [`LockTable::counts`](super::LockTable::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// Resources that are held or waited for.
    pub resources: usize,
    /// Those of them that have waiters.
    pub contended: usize,
    /// Owners.
    pub owners: usize,
    /// Owners that wait; notified are those whose wait was granted or has failed, or that are to
    /// retry, and that have not looked yet.
    pub locks: WaitCounts,
    /// Deadlocks so far. One counts when it is broken, though the victim's wait may be dropped, or
    /// time out, before it looks: that wait gives no [`Deadlock`](super::LockError::Deadlock).
    pub deadlocks: u64,
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ResourceView<K> {
    /// Its name.
    pub resource: K,
    /// Its holders, each with its mode.
    pub holders: Vec<(OwnerId, Mode)>,
    /// Its waiters, the head of the queue first.
    pub waiters: Vec<WaiterView>,
}

/// One waiting request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WaiterView {
    /// The owner that waits.
    pub owner: OwnerId,
    /// The mode that it will hold.
    pub asks: Mode,
    /// The mode that it holds already.
    pub holds: Option<Mode>,
    /// Why: the owners in its way, in which mode, and whether they hold or wait ahead. If these are
    /// more than eight, eight are listed: holders before requests, and of the requests the first.
    /// If there are none, it was notified, or the head of the queue was and has not looked yet: see
    /// [`LockTable::with_bypass`](super::LockTable::with_bypass).
    pub blocked_by: Vec<(OwnerId, Mode, Cause)>,
    /// How many grants and requests are in its way.
    pub blockers: usize,
}

impl<K> WaitTable<K> {
    /// A view of all that the index has, with all of it locked.
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
        let mut blockers = Blockers::default();
        for (owner, mode) in node.holders.iter() {
            blockers.add((owner, mode, Cause::Holds));
        }
        let waiter = |Request { owner, mode }| {
            let holds = node.holders.held(owner);
            let (first, all) = &blockers.0[mode as usize];
            let others = first.iter().filter(|other| other.0 != owner).take(LISTED);
            let view = WaiterView {
                owner: self.name(owner),
                asks: mode,
                holds,
                blocked_by: others
                    .map(|&(o, m, cause)| (self.name(o), m, cause))
                    .collect(),
                blockers: all - usize::from(holds.is_some_and(|held| !held.compatible(mode))),
            };
            blockers.add((owner, mode, Cause::WaitsAhead));
            view
        };
        node.queue.in_order().into_iter().map(waiter).collect()
    }
}

/// The owners in the way of requests for each mode: the first few, and how many.
#[derive(Default)]
struct Blockers([(Vec<Blocker>, usize); Mode::ALL.len()]);

type Blocker = (OwnerKey, Mode, Cause);

impl Blockers {
    fn add(&mut self, blocker: Blocker) {
        for asks in modes_in(blocker.1.conflicts()) {
            let (first, all) = &mut self.0[asks as usize];
            *all += 1;
            // One more, because the owner that asks may be one of them.
            if first.len() <= LISTED {
                first.push(blocker);
            }
        }
    }
}
