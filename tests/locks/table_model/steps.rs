//! What may be done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use conversant::lock_table::{LockError, LockTable, ReleaseError};
use conversant::modes::Mode;

use super::driver::Driver;
use super::naive::{Naive, OwnerModel, Stand};
use super::{Hash, Name};
use crate::random::Random;

fn names(random: &mut Random) -> Vec<Name> {
    let (roots, mids, leaves) = match random.below(7) {
        0 => (1, 0, 0),
        1 => (3, 0, 0),
        2 => (1, 3, 0),
        3 => (2, 2, 1),
        4 => (1, 1, 1),
        5 => (8, 0, 0),
        _ => (1, 2, 2),
    };
    let mut all = Vec::new();
    for root in 0..roots {
        all.push(Name(vec![root]));
        for mid in 0..mids {
            all.push(Name(vec![root, mid]));
            for leaf in 0..leaves {
                all.push(Name(vec![root, mid, leaf]));
                if random.below(3) == 0 {
                    all.push(Name(vec![root, mid, leaf, 0]));
                }
            }
        }
    }
    all
}

pub(crate) fn run(seed: u64, steps: usize) {
    let mut random = Random(seed);
    let names = names(&mut random);
    let table = LockTable::with_hasher(Hash::default());
    let (naive, real, savepoints) = (Naive::default(), BTreeMap::new(), BTreeMap::new());
    let sleepers = BTreeMap::new();
    let modes = match random.below(4) {
        0 => vec![Mode::S, Mode::X],
        1 => vec![Mode::S, Mode::U, Mode::X],
        2 => vec![Mode::Is, Mode::Ix, Mode::Ix, Mode::S],
        _ => Mode::ALL.to_vec(),
    };
    let shape = (modes, random.below(8) + 1, random.below(8) + 1);
    let mut it = Driver {
        table,
        naive,
        random,
        real,
        savepoints,
        sleepers,
        names,
        deadlocks: 0,
        shape,
    };
    for owner in 0..it.random.below(8) + 1 {
        it.make(owner);
    }
    let end = steps - it.random.below(60);
    for step in 0..steps {
        if step == end && it.random.below(2) == 0 {
            it.close();
        } else {
            it.step();
        }
        it.check();
    }
    it.sleepers.clear();
    it.real.clear();
    assert!(it.table.is_empty());
    assert_eq!(it.table.counts().owners, 0);
}

fn number(result: Result<(), ReleaseError>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(ReleaseError::NotHeld) => 1,
        Err(ReleaseError::StillCovers) => 2,
        Err(ReleaseError::NotWeaker) => 3,
        Err(why) => panic!("{why:?}"),
    }
}

impl Driver {
    fn make(&mut self, owner: usize) {
        let priority = self.random.below(3) as i32;
        let real = self.table.owner(priority);
        let model = OwnerModel {
            id: real.id(),
            priority,
            retries: 0,
            age: self.naive.number(),
            holds: BTreeMap::new(),
            request: None,
            saved: Vec::new(),
        };
        self.naive.owners.insert(owner, model);
        self.real.insert(owner, Rc::new(RefCell::new(Some(real))));
        self.savepoints.insert(owner, Vec::new());
    }

    fn some_name(&mut self) -> Name {
        self.names[self.random.below(self.names.len())].clone()
    }

    fn some_mode(&mut self) -> Mode {
        self.shape.0[self.random.below(self.shape.0.len())]
    }

    fn close(&mut self) {
        self.table.close();
        self.naive.closed = true;
        for owner in self.naive.owners.keys().copied().collect::<Vec<_>>() {
            let request = self.naive.owners[&owner].request.as_ref();
            match request.map(|it| it.stand) {
                Some(Stand::Queued) => self.naive.fail(owner, Stand::Closed),
                // It gives back what it got when it is polled.
                Some(Stand::Granted) => self.naive.stand(owner, Stand::Closed),
                _ => {}
            }
        }
    }

    fn step(&mut self) {
        let owners: Vec<usize> = self.naive.owners.keys().copied().collect();
        let owner = owners[self.random.below(owners.len())];
        if self.sleepers.contains_key(&owner) {
            if self.random.below(self.shape.1) > 0 {
                self.poll(owner);
            } else {
                self.end(owner);
                self.naive.undo(owner);
            }
            return;
        }
        let (name, mode) = (self.some_name(), self.some_mode());
        let mut kind = self.random.below(36);
        if (18..26).contains(&kind) && self.random.below(self.shape.2) > 1 {
            kind = self.random.below(15);
        }
        match kind {
            0..10 => self.lock(owner, name, mode),
            10 | 11 => self.lock_many(owner),
            12..15 => {
                let real = self.with(owner, |it| it.try_lock(&name, mode));
                if self.naive.closed {
                    assert_eq!(real, Err(LockError::Closed));
                    return;
                }
                let granted = self.naive.try_lock(owner, &name, mode);
                let naive = if granted {
                    Ok(())
                } else {
                    Err(LockError::WouldBlock)
                };
                assert_eq!(real, naive, "{owner} {name:?} {mode:?} {:#?}", self.naive);
            }
            15 | 16 => self.first_free(owner, mode),
            17 => self.first_free_or_wait(owner, mode),
            18..23 => {
                let name = self.held_name(owner).unwrap_or(name);
                let real = self.with(owner, |it| it.release(&name));
                assert_eq!(number(real), self.naive.release(owner, &name));
            }
            23..26 => {
                let name = self.held_name(owner).unwrap_or(name);
                let real = self.with(owner, |it| it.downgrade(&name, mode));
                let known = self.naive.owners[&owner].clone();
                let naive = self.naive.downgrade(owner, &name, mode);
                assert_eq!(number(real), naive, "{name:?} {mode:?} {known:#?}");
            }
            26..28 => {
                let made = self.with(owner, |it| it.savepoint());
                self.savepoints.get_mut(&owner).unwrap().push(made);
                let it = self.naive.owners.get_mut(&owner).unwrap();
                let held = it.holds.iter().filter(|it| it.1.grants > 0);
                let held = held.map(|it| (it.0.clone(), (it.1.grants, it.1.granted.unwrap())));
                it.saved.push(held.collect());
            }
            28..30 => self.release_to(owner),
            _ => self.all_at_once(owner, kind),
        }
    }

    /// What is done to an owner as a whole.
    fn all_at_once(&mut self, owner: usize, kind: usize) {
        match kind {
            30 => {
                self.with(owner, |it| it.release_all());
                self.naive.release_all(owner);
            }
            31 | 32 => {
                let retries = self.naive.owners[&owner].retries + 1;
                self.with(owner, |it| it.retry());
                self.naive.release_all(owner);
                self.naive.owners.get_mut(&owner).unwrap().retries = retries;
            }
            33 => {
                self.with(owner, |it| it.renew());
                self.naive.release_all(owner);
                let age = self.naive.number();
                self.naive.owners.get_mut(&owner).unwrap().age = age;
            }
            34 => {
                let priority = self.random.below(3) as i32;
                self.with(owner, |it| it.priority().set(priority));
                self.naive.owners.get_mut(&owner).unwrap().priority = priority;
            }
            _ => {
                self.real.remove(&owner);
                self.naive.release_all(owner);
                self.naive.owners.remove(&owner);
                self.make(owner);
            }
        }
    }

    fn release_to(&mut self, owner: usize) {
        let saved = &self.savepoints[&owner];
        if saved.is_empty() {
            return;
        }
        let at = self.random.below(saved.len());
        let savepoint = saved[at];
        let back = self.with(owner, |it| it.release_to(savepoint));
        assert_eq!(back, Ok(()));
        self.naive.release_to(owner, at);
    }

    fn held_name(&mut self, owner: usize) -> Option<Name> {
        let held: Vec<Name> = self.naive.owners[&owner].holds.keys().cloned().collect();
        (!held.is_empty()).then(|| held[self.random.below(held.len())].clone())
    }

    fn lock(&mut self, owner: usize, name: Name, mode: Mode) {
        self.naive.begin(owner, &[(name.clone(), mode)]);
        let mut lent = self.lend(owner);
        let wait = async move {
            let owner = lent.owner.as_mut().unwrap();
            owner.lock(&name, mode).await.map(|()| None)
        };
        self.sleep(owner, Box::pin(wait), None);
    }

    fn lock_many(&mut self, owner: usize) {
        let mut all: Vec<(Name, Mode)> = Vec::new();
        for _ in 0..self.random.below(4) {
            let (name, mode) = (self.some_name(), self.some_mode());
            let related = |it: &(Name, Mode)| {
                it.0 == name || it.0.ancestors().contains(&name) || name.ancestors().contains(&it.0)
            };
            if !all.iter().any(related) {
                all.push((name, mode));
            }
        }
        self.naive.begin(owner, &all);
        let mut lent = self.lend(owner);
        let wait = async move {
            let owner = lent.owner.as_mut().unwrap();
            owner.lock_many(all).await.map(|()| None)
        };
        self.sleep(owner, Box::pin(wait), None);
    }

    fn some_list(&mut self) -> Vec<Name> {
        (0..self.random.below(4))
            .map(|_| self.some_name())
            .collect()
    }

    fn first_free(&mut self, owner: usize, mode: Mode) {
        let list = self.some_list();
        let real = self.with(owner, |it| it.first_free(&list, mode));
        if self.naive.closed {
            assert!(real == Err(LockError::Closed) || list.is_empty());
            return;
        }
        let naive = list
            .iter()
            .position(|name| self.naive.try_lock(owner, name, mode));
        assert_eq!(real, Ok(naive));
    }

    fn first_free_or_wait(&mut self, owner: usize, mode: Mode) {
        let list = self.some_list();
        let free = |it: &Name| self.naive.clone().try_lock(owner, it, mode);
        let at = list.iter().position(free).unwrap_or(0);
        let all: Vec<_> = list
            .get(at)
            .map(|it| (it.clone(), mode))
            .into_iter()
            .collect();
        self.naive.begin(owner, &all);
        let position = (!list.is_empty()).then_some(at);
        let mut lent = self.lend(owner);
        let wait = async move {
            let owner = lent.owner.as_mut().unwrap();
            owner.first_free_or_wait(list, mode).await
        };
        self.sleep(owner, Box::pin(wait), position);
        if self.sleepers.contains_key(&owner) {
            self.poll(owner);
        }
    }
}
