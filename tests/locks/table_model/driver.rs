//! The real table beside the naive one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use conversant::lock_table::{Deadlock, LockError, LockTable, Owner, Savepoint};
use conversant::modes::Mode;

use super::naive::{Naive, Stand};
use super::{Hash, Name};
use crate::count::Count;
use crate::random::Random;

pub(crate) type Real = Owner<Name, Hash>;
pub(crate) type Done = Result<Option<usize>, LockError<Name>>;

/// Lends an owner to a wait, and has it back when the wait ends.
pub(crate) struct Lent {
    pub(crate) owner: Option<Real>,
    back: Rc<RefCell<Option<Real>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.back.borrow_mut() = self.owner.take();
    }
}

pub(crate) struct Sleeper {
    wait: Pin<Box<dyn Future<Output = Done>>>,
    count: Arc<Count>,
    waker: Waker,
    seen: u32,
    /// The position that the wait returns.
    position: Option<usize>,
}

pub(crate) struct Driver {
    pub(crate) table: LockTable<Name, Hash>,
    pub(crate) naive: Naive,
    pub(crate) random: Random,
    pub(crate) real: BTreeMap<usize, Rc<RefCell<Option<Real>>>>,
    pub(crate) savepoints: BTreeMap<usize, Vec<Savepoint>>,
    pub(crate) sleepers: BTreeMap<usize, Sleeper>,
    pub(crate) names: Vec<Name>,
    pub(crate) deadlocks: u64,
    /// The modes asked for, one of how many waits is given up, how rarely locks are released.
    pub(crate) shape: (Vec<Mode>, usize, usize),
}

impl Driver {
    pub(crate) fn lend(&self, owner: usize) -> Lent {
        let back = Rc::clone(&self.real[&owner]);
        let owner = back.borrow_mut().take();
        assert!(owner.is_some(), "lent already");
        Lent { owner, back }
    }

    pub(crate) fn with<T>(&self, owner: usize, does: impl FnOnce(&mut Real) -> T) -> T {
        does(self.real[&owner].borrow_mut().as_mut().unwrap())
    }

    pub(crate) fn sleep(
        &mut self,
        owner: usize,
        wait: Pin<Box<dyn Future<Output = Done>>>,
        position: Option<usize>,
    ) {
        let (count, waker) = Count::new();
        self.sleepers.insert(
            owner,
            Sleeper {
                wait,
                count,
                waker,
                seen: 0,
                position,
            },
        );
        if self.random.below(5) > 0 {
            self.poll(owner);
        }
    }

    fn new_deadlocks(&mut self) -> Vec<Arc<Deadlock<Name>>> {
        let now = self.table.counts().deadlocks;
        let fresh = (now - self.deadlocks) as usize;
        self.deadlocks = now;
        let all = self.table.deadlocks();
        assert!(fresh <= 16 && all.len() == now.min(16) as usize);
        all[all.len() - fresh..].to_vec()
    }

    /// What the model says of a poll: none if the request waits.
    fn drive(&mut self, owner: usize) -> Option<Result<(), Stand>> {
        let mut found = self.new_deadlocks().into_iter();
        let stand = self.naive.owners[&owner].request.as_ref().unwrap().stand;
        let result = match stand {
            Stand::Dead | Stand::Closed => Some(Err(stand)),
            _ if self.naive.closed && !self.naive.is_empty(owner) => Some(Err(Stand::Closed)),
            Stand::Queued => None,
            Stand::Begun | Stand::Granted if self.naive.go_on(owner) => Some(Ok(())),
            Stand::Begun | Stand::Granted => {
                while self.naive.is_in_cycle(owner) {
                    let one = found.next();
                    let one =
                        one.unwrap_or_else(|| panic!("{owner} waits for ever {:#?}", self.naive));
                    self.naive.deadlock(&one);
                }
                let stand = self.naive.owners[&owner].request.as_ref().unwrap().stand;
                (stand == Stand::Dead).then_some(Err(stand))
            }
        };
        assert_eq!(found.next(), None, "no deadlock {:#?}", self.naive);
        if matches!(result, Some(Err(_))) {
            self.naive.undo(owner);
        }
        result
    }

    pub(crate) fn poll(&mut self, owner: usize) {
        let one = self.sleepers.get_mut(&owner).unwrap();
        // It may be woken in the poll: where that makes a victim of another.
        one.seen = one.count.get();
        let polled = one.wait.as_mut().poll(&mut Context::from_waker(&one.waker));
        let expected = self.drive(owner);
        match (polled, expected) {
            (Poll::Pending, None) => return,
            (Poll::Ready(Ok(at)), Some(Ok(()))) => {
                assert_eq!(at, self.sleepers[&owner].position);
            }
            (Poll::Ready(Err(LockError::Closed)), Some(Err(Stand::Closed))) => {}
            // For nothing.
            (Poll::Ready(Err(LockError::Closed)), Some(Ok(()))) if self.naive.closed => {}
            (Poll::Ready(Err(LockError::Deadlock(it))), Some(Err(Stand::Dead))) => {
                assert_eq!(it.victim, self.naive.owners[&owner].id);
            }
            (polled, expected) => panic!("{polled:?} {expected:?} {:#?}", self.naive),
        }
        self.end(owner);
    }

    /// The wait is done, or is given up.
    pub(crate) fn end(&mut self, owner: usize) {
        let one = self.sleepers.remove(&owner).unwrap();
        drop(one.wait);
        assert!(one.count.is_let_go(), "a waker is kept");
        assert!(self.real[&owner].borrow().is_some());
    }

    pub(crate) fn check(&mut self) {
        for (owner, one) in &self.sleepers {
            let stand = self.naive.owners[owner].request.as_ref().unwrap().stand;
            let told = matches!(stand, Stand::Granted | Stand::Dead | Stand::Closed);
            let woken = one.count.get() > one.seen;
            assert_eq!(woken, told, "woken? {owner} {stand:?} {:#?}", self.naive);
        }
        assert!(self.new_deadlocks().is_empty());
        let used = self.used();
        if self.random.below(2) == 0 {
            let counts = self.table.counts();
            let all = (counts.resources, counts.contended, counts.owners);
            let naive = &self.naive;
            assert_eq!(
                all,
                (used.len(), naive.queues.len(), naive.owners.len()),
                "{:?} {:#?}",
                self.table.snapshot(),
                naive
            );
            let stands = naive
                .owners
                .values()
                .filter_map(|it| Some(it.request.as_ref()?.stand));
            let stands: Vec<Stand> = stands.filter(|it| *it != Stand::Begun).collect();
            let waiting = stands.iter().filter(|it| **it == Stand::Queued).count();
            let waits = (counts.locks.waiting, counts.locks.notified);
            assert_eq!(waits, (waiting, stands.len() - waiting), "{naive:#?}");
            assert_eq!(
                (self.table.len(), self.table.is_empty()),
                (used.len(), used.is_empty())
            );
        }
        if self.random.below(6) == 0 {
            self.check_snapshot(&used);
        }
        if self.random.below(4) == 0 {
            self.check_owners();
        }
    }

    fn used(&self) -> BTreeSet<Name> {
        let held = self.naive.owners.values().flat_map(|it| &it.holds);
        let held = held.filter(|it| it.1.table.is_some()).map(|it| it.0);
        held.chain(self.naive.queues.keys()).cloned().collect()
    }

    fn check_snapshot(&self, used: &BTreeSet<Name>) {
        let shown = self.table.snapshot();
        let names: BTreeSet<Name> = shown
            .resources
            .iter()
            .map(|it| it.resource.clone())
            .collect();
        assert_eq!(
            (&names, shown.resources.len()),
            (used, used.len()),
            "{:#?}",
            self.naive
        );
        for it in shown.resources {
            let mut holders = it.holders;
            holders.sort_unstable_by_key(|it| it.0);
            let table = |owner: &super::naive::OwnerModel| {
                Some((owner.id, owner.holds.get(&it.resource)?.table?))
            };
            let mut naive: Vec<_> = self.naive.owners.values().filter_map(table).collect();
            naive.sort_unstable_by_key(|it| it.0);
            assert_eq!(holders, naive, "{:?} {:#?}", it.resource, self.naive);
            let queue = self
                .naive
                .queues
                .get(&it.resource)
                .cloned()
                .unwrap_or_default();
            assert_eq!(
                it.waiters.len(),
                queue.len(),
                "{:?} {:#?}",
                it.waiters,
                self.naive
            );
            for (waiter, owner) in it.waiters.iter().zip(queue) {
                let known = &self.naive.owners[&owner];
                let holds = known.holds.get(&it.resource).and_then(|hold| hold.table);
                assert_eq!((waiter.owner, waiter.holds), (known.id, holds));
                let blockers = self.naive.blockers(&it.resource, owner);
                assert_eq!(waiter.blockers, blockers.len());
                assert_eq!(waiter.blocked_by.len(), blockers.len().min(8));
                for one in &waiter.blocked_by {
                    assert!(blockers.contains(one), "{one:?} {blockers:?}");
                }
            }
        }
    }

    fn check_owners(&self) {
        for (owner, known) in &self.naive.owners {
            let real = self.real[owner].borrow();
            let Some(real) = real.as_ref() else { continue };
            let mut all: Vec<(Name, Mode, bool)> = real
                .holdings()
                .map(|it| (it.0.clone(), it.1, it.2))
                .collect();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            let hold = |it: (&Name, &super::naive::Hold)| {
                (it.0.clone(), it.1.mode().unwrap(), it.1.table.is_some())
            };
            let naive: Vec<_> = known.holds.iter().map(hold).collect();
            assert_eq!(all, naive, "{known:#?}");
            for name in &self.names {
                assert_eq!(real.held(name), known.mode(name));
                let grants = known.holds.get(name).map_or(0, |hold| hold.grants);
                assert_eq!(real.grants(name), grants, "{name:?}");
            }
        }
    }
}
