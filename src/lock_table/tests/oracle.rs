//! A naive sequential lock manager, by the letter of the specification: every mode is computed from
//! scratch, every queue scanned whole, every cycle looked for by brute force.

use std::collections::BTreeMap;

use super::{Mode, Path, ReleaseError};

pub(super) type Who = usize;

#[derive(Clone, Default)]
pub(super) struct Oracle {
    pub(super) nodes: BTreeMap<Path, Node>,
    pub(super) owners: Vec<Person>,
    /// The order in which resources of one depth are taken.
    pub(super) hashes: BTreeMap<Path, u64>,
}

#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Node {
    pub(super) held: BTreeMap<Who, Mode>,
    pub(super) queue: Vec<(Who, Mode)>,
}

#[derive(Clone, Default)]
pub(super) struct Person {
    pub(super) priority: i32,
    pub(super) retries: usize,
    /// The number of its last renewal, among those of all owners.
    pub(super) renewed: usize,
    /// What was granted by name.
    pub(super) own: BTreeMap<Path, Own>,
    pub(super) saved: Vec<BTreeMap<Path, Own>>,
    /// What is still to be taken, and the state to go back to.
    pub(super) todo: Vec<(Path, Mode)>,
    pub(super) asked: Vec<(Path, Mode)>,
    pub(super) before: BTreeMap<Path, Mode>,
    pub(super) state: State,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Own {
    pub(super) mode: Mode,
    pub(super) count: u64,
    pub(super) cover: Option<Path>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum State {
    #[default]
    Idle,
    Waits,
    /// Its request was granted, and its task has not run since.
    Granted,
    Victim,
}

fn ancestors(path: &Path) -> Vec<Path> {
    (1..path.0.len())
        .map(|n| Path(path.0[..n].to_vec()))
        .collect()
}

impl Person {
    /// What the table must hold for these: it follows from all that are real.
    fn needed(own: &BTreeMap<Path, Own>) -> BTreeMap<Path, Mode> {
        let mut needed: BTreeMap<Path, Mode> = BTreeMap::new();
        let mut add = |path: Path, mode: Mode| {
            let had = needed.get(&path).copied();
            needed.insert(path, had.map_or(mode, |had| had.join(mode)));
        };
        for (path, own) in own.iter().filter(|(_, own)| own.cover.is_none()) {
            add(path.clone(), own.mode);
            for above in ancestors(path) {
                add(above, own.mode.parent_needs());
            }
        }
        needed
    }

    /// The state after these are granted.
    fn with(&self, asked: &[(Path, Mode)]) -> BTreeMap<Path, Own> {
        let mut own = self.own.clone();
        // Several requests for one resource are one for their join.
        let mut joined: BTreeMap<&Path, (Mode, u64)> = BTreeMap::new();
        for (path, mode) in asked {
            let (had, times) = joined.get(path).copied().unwrap_or((*mode, 0));
            joined.insert(path, (had.join(*mode), times + 1));
        }
        // Whether it is covered depends on what was held before the request.
        for (path, (mode, times)) in joined {
            let real = Self::needed(&self.own).contains_key(path);
            let had = own.get(path).cloned();
            let joined = had.as_ref().map_or(mode, |had| had.mode.join(mode));
            let covers = |above: &Path| {
                let above = self.own.get(above);
                above.is_some_and(|above| above.mode.covers_below(joined))
            };
            let cover = match had.as_ref().map(|had| had.cover.clone()) {
                _ if real => None,
                Some(Some(cover)) => Some(cover).filter(covers),
                Some(None) => None,
                None => ancestors(path).into_iter().find(covers),
            };
            let count = had.map_or(0, |had| had.count) + times;
            let mode = joined;
            own.insert(path.clone(), Own { mode, count, cover });
        }
        // What is needed as an ancestor of something real is itself real.
        let real = Self::needed(&own);
        for (path, own) in &mut own {
            if real.contains_key(path) {
                own.cover = None;
            }
        }
        own
    }

    fn covers_something(&self, path: &Path, with: Option<Mode>) -> bool {
        let below = self
            .own
            .values()
            .filter(|own| own.cover.as_ref() == Some(path));
        below
            .into_iter()
            .any(|own| !with.is_some_and(|with| with.covers_below(own.mode)))
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
            node.queue.insert(place, (who, mode));
            self.owners[who].state = State::Waits;
            if !self.scan(&path).contains(&who) {
                return;
            }
            self.owners[who].state = State::Idle;
        }
        let asked = std::mem::take(&mut self.owners[who].asked);
        let own = self.owners[who].with(&asked);
        self.owners[who].own = own;
    }

    /// Takes the first of these that can be had now.
    pub(super) fn first_free(&mut self, who: Who, list: &[(Path, Mode)]) -> Option<usize> {
        list.iter().position(|asked| {
            let before = self.clone();
            self.ask(who, std::slice::from_ref(asked));
            let found = self.owners[who].state == State::Idle;
            if !found {
                *self = before;
            }
            found
        })
    }

    /// Gives up, or is made to give up: everything is as it was before the request.
    pub(super) fn abort(&mut self, who: Who, state: State) {
        for node in self.nodes.values_mut() {
            node.queue.retain(|(other, _)| *other != who);
        }
        let before = self.owners[who].before.clone();
        self.owners[who].todo.clear();
        self.owners[who].asked.clear();
        self.owners[who].state = state;
        self.hold(who, &before);
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
        self.hold(who, &needed);
    }

    /// Sets what the table holds for an owner, then grants what can be granted.
    fn hold(&mut self, who: Who, modes: &BTreeMap<Path, Mode>) {
        for (path, node) in &mut self.nodes {
            node.held.remove(&who);
            node.held.extend(modes.get(path).map(|&mode| (who, mode)));
        }
        let paths: Vec<Path> = self.nodes.keys().cloned().collect();
        for path in paths {
            self.scan(&path);
        }
        self.nodes
            .retain(|_, n| !(n.held.is_empty() && n.queue.is_empty()));
    }

    fn scan(&mut self, path: &Path) -> Vec<Who> {
        let Some(node) = self.nodes.get_mut(path) else {
            return Vec::new();
        };
        let mut granted = Vec::new();
        let mut staying: Vec<(Who, Mode)> = Vec::new();
        for (who, mode) in std::mem::take(&mut node.queue) {
            let others = node.held.iter().filter(|(other, _)| **other != who);
            let others = others
                .map(|(_, m)| *m)
                .chain(staying.iter().map(|(_, m)| *m));
            if others.into_iter().all(|other| other.compatible(mode)) {
                node.held.insert(who, mode);
                self.owners[who].state = State::Granted;
                granted.push(who);
            } else {
                staying.push((who, mode));
            }
        }
        node.queue = staying;
        granted
    }
}
