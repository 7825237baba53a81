//! A naive sequential lock manager, by the letter of the specification: every mode is computed from
//! scratch, every queue scanned whole, every cycle looked for by brute force.

use std::collections::BTreeMap;

use super::person::{Person, State};
use super::{Mode, Path, ReleaseError};

pub(super) type Who = usize;

#[derive(Clone, Default)]
pub(super) struct Oracle {
    pub(super) nodes: BTreeMap<Path, Node>,
    pub(super) owners: Vec<Person>,
    /// How often requests may overtake those that wait.
    pub(super) bypass: u32,
    /// The order in which resources of one depth are taken.
    pub(super) hashes: BTreeMap<Path, u64>,
}

#[derive(Clone, Default)]
pub(super) struct Node {
    pub(super) held: BTreeMap<Who, Mode>,
    pub(super) queue: Vec<(Who, Mode)>,
    /// How many have overtaken since the first of the queue was last granted a new lock.
    overtaken: u32,
    notified: Option<Who>,
}

impl Node {
    /// Whether nobody else holds a mode that conflicts.
    fn fits(&self, who: Who, mode: Mode) -> bool {
        let mut others = self.held.iter().filter(|(other, _)| **other != who);
        others.all(|(_, held)| held.compatible(mode))
    }
}

impl Oracle {
    /// Asks; the answer is in the owner's state.
    pub(super) fn ask(&mut self, who: Who, asked: &[(Path, Mode)]) {
        let person = &mut self.owners[who];
        person.before = Person::needed(&person.own);
        let after = Person::needed(&person.with(asked));
        let raised = after
            .iter()
            .filter(|(path, mode)| person.before.get(path) != Some(mode));
        let mut todo: Vec<_> = raised.map(|(path, &mode)| (path.clone(), mode)).collect();
        todo.sort_by_key(|(path, _)| (path.0.len(), self.hashes[path]));
        person.todo = todo;
        person.asked = asked.to_vec();
        self.resume(who);
    }

    /// The owner's task runs: takes what is left to take, up to what it must wait for.
    pub(super) fn resume(&mut self, who: Who) {
        self.owners[who].state = State::Idle;
        while !self.owners[who].todo.is_empty() {
            let (path, mode) = self.owners[who].todo.remove(0);
            let node = self.nodes.entry(path.clone()).or_default();
            let held = node.held.get(&who).copied();
            let ahead = held.and_then(|h| node.queue.iter().position(|(_, m)| !m.compatible(h)));
            let place = ahead.unwrap_or(node.queue.len());
            let fits = node.fits(who, mode);
            let passes = node.queue[..place].iter().all(|(_, m)| m.compatible(mode));
            let overtakes = fits && !passes && node.overtaken < self.bypass;
            if !(fits && (passes || overtakes)) {
                node.queue.insert(place, (who, mode));
                self.owners[who].state = State::Waits;
                return;
            }
            node.overtaken += u32::from(overtakes);
            node.held.insert(who, mode);
        }
        let asked = std::mem::take(&mut self.owners[who].asked);
        let own = self.owners[who].with(&asked);
        self.owners[who].own = own;
    }

    /// One that was notified looks. Returns whether its request is granted.
    pub(super) fn retry(&mut self, who: Who) -> bool {
        let is_there = |node: &Node| node.notified == Some(who);
        let found = self.nodes.iter().find(|(_, node)| is_there(node));
        let path = found.map(|(path, _)| path.clone()).expect("it waits there");
        self.grant(&path);
        if self.owners[who].state == State::Granted {
            return true;
        }
        self.owners[who].state = State::Waits;
        self.nodes.entry(path).or_default().notified = None;
        false
    }

    /// Takes the first of these that can be had now.
    pub(super) fn first_free(&mut self, who: Who, list: &[(Path, Mode)]) -> Option<usize> {
        list.iter().position(|asked| {
            let before = self.clone();
            self.ask(who, std::slice::from_ref(asked));
            if self.owners[who].state == State::Idle {
                return true;
            }
            // Where it is in the way of a holder, and nobody waits, nothing is taken at all.
            let todo = before.todo_of(who, asked);
            let is_held = |(path, mode): &(Path, Mode)| {
                let node = before.nodes.get(path);
                node.is_some_and(|node| node.queue.is_empty() && !node.fits(who, *mode))
            };
            match todo.iter().any(is_held) {
                true => *self = before,
                // It does not join a queue, so it leaves none.
                false => self.back_out(who, State::Idle, None),
            }
            false
        })
    }

    /// What a request for this has to take.
    fn todo_of(&self, who: Who, asked: &(Path, Mode)) -> Vec<(Path, Mode)> {
        let person = &self.owners[who];
        let before = Person::needed(&person.own);
        let after = Person::needed(&person.with(std::slice::from_ref(asked)));
        let raised = after.into_iter();
        raised
            .filter(|(path, mode)| before.get(path) != Some(mode))
            .collect()
    }

    /// Gives up, or is made to give up: everything is as it was before the request.
    pub(super) fn abort(&mut self, who: Who, state: State) {
        let waits = |node: &Node| node.queue.iter().any(|(other, _)| *other == who);
        let left = self.nodes.iter().find(|(_, node)| waits(node));
        self.back_out(who, state, left.map(|(path, _)| path.clone()));
    }

    fn back_out(&mut self, who: Who, state: State, left: Option<Path>) {
        for node in self.nodes.values_mut() {
            node.queue.retain(|(other, _)| *other != who);
            node.notified.take_if(|notified| *notified == who);
        }
        let before = self.owners[who].before.clone();
        self.owners[who].todo.clear();
        self.owners[who].asked.clear();
        self.owners[who].state = state;
        self.hold(who, &before, left);
    }

    pub(super) fn release(&mut self, who: Who, path: &Path) -> Result<(), ReleaseError> {
        let person = &mut self.owners[who];
        let count = person.own.get(path).map_or(0, |own| own.count);
        match count {
            0 => return Err(ReleaseError::NotHeld),
            1 if person.covers_something(path, None) => return Err(ReleaseError::StillCovers),
            _ => {}
        }
        for saved in person.saved.iter_mut().chain([&mut person.own]) {
            if let Some(own) = saved.get_mut(path) {
                own.count = own.count.min(count - 1);
            }
            saved.retain(|_, own| own.count > 0);
        }
        self.settle(who);
        Ok(())
    }

    pub(super) fn downgrade(
        &mut self,
        who: Who,
        path: &Path,
        to: Mode,
    ) -> Result<(), ReleaseError> {
        let person = &mut self.owners[who];
        let own = person.own.get(path).ok_or(ReleaseError::NotHeld)?;
        if !own.mode.covers(to) {
            return Err(ReleaseError::NotWeaker);
        }
        if person.covers_something(path, Some(to)) {
            return Err(ReleaseError::StillCovers);
        }
        for saved in person.saved.iter_mut().chain([&mut person.own]) {
            if let Some(own) = saved.get_mut(path) {
                own.mode = own.mode.meet(to);
            }
        }
        self.settle(who);
        Ok(())
    }

    pub(super) fn savepoint(&mut self, who: Who) {
        let own = self.owners[who].own.clone();
        self.owners[who].saved.push(own);
    }

    pub(super) fn release_to(&mut self, who: Who, savepoint: usize) {
        let person = &mut self.owners[who];
        // What is real stays real.
        let mut back = person.saved[savepoint].clone();
        for (path, own) in &mut back {
            own.cover = person.own[path].cover.clone();
        }
        // A later savepoint cannot bring back what is given up now, either.
        for saved in &mut person.saved[savepoint..] {
            saved.retain(|path, _| back.contains_key(path));
            for (path, own) in saved {
                own.count = own.count.min(back[path].count);
                own.mode = own.mode.meet(back[path].mode);
            }
        }
        person.own = back;
        self.settle(who);
    }

    pub(super) fn release_all(&mut self, who: Who) {
        self.owners[who].own.clear();
        self.owners[who].retries = 0;
        for saved in &mut self.owners[who].saved {
            saved.clear();
        }
        self.settle(who);
    }

    pub(super) fn savepoints(&self, who: Who) -> usize {
        self.owners[who].saved.len()
    }

    /// The owners that an owner waits for.
    pub(super) fn edges(&self, who: Who) -> Vec<Who> {
        let mut edges = Vec::new();
        for node in self.nodes.values() {
            let Some(place) = node.queue.iter().position(|(other, _)| *other == who) else {
                continue;
            };
            let mode = node.queue[place].1;
            let all = node.held.iter().map(|(&w, &m)| (w, m));
            let all = all.chain(node.queue[..place].iter().copied());
            let conflicting = all.filter(|&(other, m)| other != who && !m.compatible(mode));
            edges.extend(conflicting.map(|(other, _)| other));
        }
        edges
    }

    /// Whether some owner waits for itself, through others.
    pub(super) fn has_circle(&self) -> bool {
        let n = self.owners.len();
        let mut reach = vec![vec![false; n]; n];
        for (who, reached) in reach.iter_mut().enumerate() {
            self.edges(who)
                .into_iter()
                .for_each(|to| reached[to] = true);
        }
        for middle in 0..n {
            for from in 0..n {
                for to in 0..n {
                    reach[from][to] |= reach[from][middle] && reach[middle][to];
                }
            }
        }
        (0..n).any(|who| reach[who][who])
    }

    pub(super) fn locks(&self, who: Who) -> usize {
        self.nodes
            .values()
            .filter(|n| n.held.contains_key(&who))
            .count()
    }

    fn settle(&mut self, who: Who) {
        let needed = Person::needed(&self.owners[who].own);
        self.hold(who, &needed, None);
    }

    /// Sets what the table holds for an owner. Then grants what can be granted where that changed,
    /// and where a request has `left`.
    fn hold(&mut self, who: Who, modes: &BTreeMap<Path, Mode>, left: Option<Path>) {
        let mut changed = Vec::from_iter(left);
        for (path, node) in &mut self.nodes {
            let before = node.held.remove(&who);
            let after = modes.get(path).copied();
            node.held.extend(after.map(|mode| (who, mode)));
            if before != after {
                changed.push(path.clone());
            }
        }
        for path in changed {
            self.scan(&path);
        }
        self.nodes
            .retain(|_, n| !(n.held.is_empty() && n.queue.is_empty()));
    }

    /// Grants what can be granted; or notifies the first, if nobody holds it and others may overtake.
    fn scan(&mut self, path: &Path) {
        let Some(node) = self.nodes.get_mut(path) else {
            return;
        };
        match node.queue.first() {
            None => (node.overtaken, node.notified) = (0, None),
            Some(&(first, _)) if node.held.is_empty() && node.overtaken < self.bypass => {
                if node.notified.is_none() {
                    node.notified = Some(first);
                    self.owners[first].state = State::Notified;
                }
            }
            Some(_) => self.grant(path),
        }
    }

    fn grant(&mut self, path: &Path) {
        let Some(node) = self.nodes.get_mut(path) else {
            return;
        };
        let mut staying: Vec<(Who, Mode)> = Vec::new();
        for (who, mode) in std::mem::take(&mut node.queue) {
            let passes = staying.iter().all(|(_, m)| m.compatible(mode));
            if !passes || !node.fits(who, mode) {
                staying.push((who, mode));
                continue;
            }
            if staying.is_empty() && !node.held.contains_key(&who) {
                node.overtaken = 0;
            }
            node.notified.take_if(|notified| *notified == who);
            node.held.insert(who, mode);
            self.owners[who].state = State::Granted;
        }
        node.queue = staying;
        if node.queue.is_empty() {
            node.overtaken = 0;
        }
    }
}
