//! Which owners wait for each other in a cycle, and which of them must give up.
//!
//! Protocol: a search starts from an owner whose request has just been enqueued, before the table's
//! lock is released. It goes breadth first from owner to owner: from an owner that waits to those
//! that hold a conflicting mode (hard edges) and to those ahead with a conflicting request (soft
//! edges). An owner that does not wait leads nowhere.
//!
//! Why only there: edges arise when a request is enqueued (from its owner, and to its owner from
//! those that it was put ahead of) and when a mode is granted (to an owner that no longer waits).
//! So only an owner that begins to wait closes a cycle, and that cycle passes through it. A grant
//! out of the queue closes none: the granted mode is compatible with every request that it
//! overtook. One lock guards all that the search reads, so it misses no cycle and invents none.
//!
//! Nobody waits for most owners that begin to wait. The search checks that first, so that an owner
//! that joins a long queue does not search it.
//!
//! The victim's request fails, and what it had taken is put back; the victim keeps what it held
//! before the request. The search goes on until no cycle is left. It begins again if others were
//! reached from the victim, which may be reached in other ways.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

use super::error::{Deadlock, Link, LockError};
use super::owners::OwnerKey;
use super::queue::{Node, Position, Request};
use super::wait_table::{WaitTable, Waiting};
use crate::modes::Mode;
use crate::slab;
use crate::sync::UnmodelledArc as Arc;
use crate::wait::WakeBatch;

/// Up to this many contended resources are looked at before a search.
const FEW: usize = 16;

/// How many deadlocks are remembered.
const REMEMBERED: usize = 16;

/// How many owners the cycles of these may have together, unless the last alone has more.
const LINKS: usize = 1_024;

impl<K> WaitTable<K> {
    /// Breaks all cycles through an owner that has begun to wait. Returns an error if that owner is
    /// itself a victim: it no longer waits, and has nothing of what it asked for.
    pub(super) fn break_cycles(
        &mut self,
        owner: OwnerKey,
        wakes: &mut WakeBatch,
    ) -> Option<LockError<K>> {
        if !self.may_be_waited_for(owner) {
            return None;
        }
        let mut search = Search::new(owner);
        while let Some(circle) = search.next_circle(self) {
            let cycle = self.describe(&circle);
            let victim = self.victim(&circle);
            let report = Arc::new(Deadlock {
                victim: self.name(victim),
                cycle,
            });
            self.remember(report.clone());
            self.found += 1;
            let deadlock = LockError::Deadlock(report);
            if victim == owner {
                self.abort(owner);
                return Some(deadlock);
            }
            self.fail(victim, deadlock, wakes);
            if circle.last() != Some(&victim) {
                search = Search::new(owner);
            }
        }
        None
    }

    /// Remembers a deadlock, and forgets the oldest for which there is no room beside it.
    fn remember(&mut self, report: Arc<Deadlock<K>>) {
        self.reports.push_back(report);
        let links = |report: &Arc<Deadlock<K>>| report.cycle.len();
        let mut all: usize = self.reports.iter().map(links).sum();
        while self.reports.len() > REMEMBERED || all > LINKS && self.reports.len() > 1 {
            let Some(oldest) = self.reports.pop_front() else {
                return;
            };
            all -= oldest.cycle.len();
            self.deferred.reports.push(oldest);
        }
    }

    /// Lowest priority, then fewest retries, then fewest locks, then youngest.
    fn victim(&self, circle: &[OwnerKey]) -> OwnerKey {
        let rank = |owner: &&OwnerKey| {
            let state = self.owners.get(owner);
            state.map(|s| (s.priority.get(), s.retries, s.locks(), Reverse(s.born)))
        };
        let victim = circle.iter().min_by_key(rank);
        *victim.expect("a circle has owners")
    }

    /// Whether another owner may wait for this one, which has begun to wait: because it holds a
    /// resource that has waiters. A request is put ahead of others only if its owner holds the
    /// resource, so that case is included. O(1) if it holds nothing, else O(resources that have
    /// waiters); if these are more than a search would see at first, it says yes.
    fn may_be_waited_for(&self, owner: OwnerKey) -> bool {
        let many = |(_, node): (&_, &Node<K>)| self.nodes.len() > node.queue.len().max(FEW);
        let mut nodes = self.nodes.iter();
        let state = self.owners.get(&owner);
        state.is_some_and(|state| state.locks() > 0)
            && (self.open_wait(owner).is_some_and(many)
                || nodes.any(|(_, node)| node.holders.held(owner).is_some()))
    }

    /// The cycle, with the reason for each wait.
    fn describe(&self, circle: &[OwnerKey]) -> Vec<Link<K>> {
        let next = circle.iter().cycle().skip(1);
        let pairs = circle.iter().zip(next);
        let edge = |(&owner, &blocked_by): (&OwnerKey, &OwnerKey)| {
            let (&Waiting { mode: asks, .. }, node) = self.open_wait(owner)?;
            let request = Request { owner, mode: asks };
            let (in_mode, cause) = node.blocks(request, blocked_by)?;
            Some(Link {
                owner: self.name(owner),
                resource: node.key.clone(),
                asks,
                holds: node.holders.held(owner),
                blocked_by: self.name(blocked_by),
                in_mode,
                cause,
            })
        };
        pairs.filter_map(edge).collect()
    }

    /// The wait of an owner, if it has no outcome yet, and the resource.
    fn open_wait(&self, owner: OwnerKey) -> Option<(&Waiting<K>, &Node<K>)> {
        let wait = self.owners.get(&owner)?.wait.as_ref()?;
        let node = self.nodes.get(wait.node)?;
        wait.outcome.is_none().then_some((wait, node))
    }
}

struct Search {
    start: OwnerKey,
    /// The owners that were reached, and from which owner first.
    reached: HashMap<OwnerKey, OwnerKey>,
    frontier: VecDeque<OwnerKey>,
    /// How far each queue has been looked through for conflicts with each mode. Requests of one
    /// mode have the same blockers, except the requests between them and themselves.
    seen: HashMap<(slab::Key, Mode), Position>,
}

impl Search {
    fn new(start: OwnerKey) -> Self {
        Self {
            start,
            reached: HashMap::new(),
            frontier: VecDeque::from([start]),
            seen: HashMap::new(),
        }
    }

    /// A shortest cycle through `start`: each owner waits for the next, and the last for the first.
    /// Nobody was reached from the last owner. So if that one waits no more, the search can go on.
    fn next_circle<K>(&mut self, table: &WaitTable<K>) -> Option<Vec<OwnerKey>> {
        while let Some(owner) = self.frontier.pop_front() {
            if self.visit(table, owner) {
                return Some(self.way_to(owner));
            }
        }
        None
    }

    /// Reaches all owners that this one waits for; or returns true if it waits for the start.
    fn visit<K>(&mut self, table: &WaitTable<K>, owner: OwnerKey) -> bool {
        let Some((wait, node)) = table.open_wait(owner) else {
            return false;
        };
        let (at, is_start) = ((wait.node, wait.mode), owner == self.start);
        let mode = wait.mode;
        if !is_start && node.blocks(Request { owner, mode }, self.start).is_some() {
            return true;
        }
        let position = node.queue.position(owner).expect("it is queued");
        let seen = self.seen.get(&at).copied();
        let holders = seen.is_none().then(|| node.holders.conflicting(mode));
        let unseen = seen.unwrap_or(0).min(position)..position;
        let ahead = node.queue.conflicting(mode, unseen);
        for other in holders.into_iter().flatten().chain(ahead) {
            self.reach(table, other, owner);
        }
        // What the start holds itself is in the way of others.
        if !is_start && seen.is_none_or(|seen| seen < position) {
            self.seen.insert(at, position);
        }
        false
    }

    fn reach<K>(&mut self, table: &WaitTable<K>, owner: OwnerKey, from: OwnerKey) {
        if owner != self.start
            && table.open_wait(owner).is_some()
            && let Entry::Vacant(new) = self.reached.entry(owner)
        {
            new.insert(from);
            self.frontier.push_back(owner);
        }
    }

    /// The path from the start to `last`, both included.
    fn way_to(&self, last: OwnerKey) -> Vec<OwnerKey> {
        let mut way: Vec<_> =
            std::iter::successors(Some(last), |at| self.reached.get(at).copied()).collect();
        way.reverse();
        way
    }
}
