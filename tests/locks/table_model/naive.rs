//! A naive lock table of one thread, written from the docs alone.

use std::collections::BTreeMap;

use conversant::lock_table::{Cause, OwnerId};
use conversant::modes::Mode;

use super::{Name, hash};

/// What an owner has of one resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hold {
    pub(crate) grants: u64,
    /// The join of the grants.
    pub(crate) granted: Option<Mode>,
    /// The mode in the table.
    pub(crate) table: Option<Mode>,
    /// The ancestor that covers it, if it is not in the table.
    pub(crate) rests: Option<Name>,
}

impl Hold {
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.table.or(self.granted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stand {
    Begun,
    Queued,
    Granted,
    Dead,
    Closed,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// What to hold at least, from root to leaf, and how much of it is done.
    plan: Vec<(Name, Mode)>,
    done: usize,
    /// What the grant adds: with the ancestor that covers it, if one does.
    adds: Vec<(Name, Mode)>,
    before: BTreeMap<Name, Hold>,
    pub(crate) stand: Stand,
}

#[derive(Clone, Debug)]
pub(crate) struct OwnerModel {
    pub(crate) id: OwnerId,
    pub(crate) priority: i32,
    pub(crate) retries: u32,
    pub(crate) age: u64,
    pub(crate) holds: BTreeMap<Name, Hold>,
    pub(crate) request: Option<Request>,
    /// For each savepoint: the counts and modes to go back to.
    pub(crate) saved: Vec<BTreeMap<Name, (u64, Mode)>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    pub(crate) owners: BTreeMap<usize, OwnerModel>,
    pub(crate) queues: BTreeMap<Name, Vec<usize>>,
    pub(crate) closed: bool,
    pub(crate) numbers: u64,
}

pub(crate) type Blocker = (OwnerId, Mode, Cause);

fn join(a: Option<Mode>, b: Mode) -> Mode {
    a.map_or(b, |a| a.join(b))
}

impl OwnerModel {
    pub(crate) fn mode(&self, name: &Name) -> Option<Mode> {
        self.holds.get(name).and_then(Hold::mode)
    }

    pub(crate) fn locks(&self) -> usize {
        self.holds
            .values()
            .filter(|hold| hold.table.is_some())
            .count()
    }

    fn covering(&self, name: &Name, mode: Mode) -> Option<Name> {
        let covers = |it: &Name| self.mode(it).is_some_and(|held| held.covers_below(mode));
        name.ancestors().into_iter().find(covers)
    }

    /// Whether a request is granted without the table.
    fn is_free(&self, name: &Name, mode: Mode) -> bool {
        let Some(hold) = self.holds.get(name) else {
            return self.covering(name, mode).is_some();
        };
        let covered = |rests: &Name| self.mode(rests).unwrap().covers_below(mode);
        hold.mode().unwrap().covers(mode) || hold.rests.as_ref().is_some_and(covered)
    }

    fn add(&mut self, name: &Name, mode: Mode) {
        let rests = self.covering(name, mode);
        let hold = self.holds.entry(name.clone()).or_default();
        if hold.table.is_none() && hold.rests.is_none() {
            hold.rests = rests;
        }
        hold.grants += 1;
        hold.granted = Some(join(hold.granted, mode));
    }

    /// Intents that nothing needs go, and modes fall to what is needed.
    pub(crate) fn fall(&mut self) {
        let mut names: Vec<Name> = self.holds.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.ancestors().len()));
        for name in names {
            let below = self
                .holds
                .iter()
                .filter(|it| it.0.ancestors().contains(&name));
            let needs = below.filter_map(|it| it.1.table).map(Mode::parent_needs);
            let needs = needs.reduce(Mode::join);
            let hold = self.holds.get_mut(&name).unwrap();
            if hold.table.is_some() {
                hold.table = match (hold.granted, needs) {
                    (Some(a), Some(b)) => Some(a.join(b)),
                    (a, b) => a.or(b),
                };
            }
        }
        self.holds.retain(|_, hold| hold.mode().is_some());
    }

    /// Whether something rests on this and would not on a weaker mode.
    pub(crate) fn bare(&self, name: &Name, mode: Option<Mode>) -> bool {
        let rests = |hold: &&Hold| hold.rests.as_ref() == Some(name);
        let covered = |hold: &Hold| mode.is_some_and(|it| it.covers_below(hold.granted.unwrap()));
        self.holds.values().filter(rests).any(|hold| !covered(hold))
    }
}

impl Naive {
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn asks(&self, owner: usize) -> Mode {
        let it = &self.owners[&owner];
        let request = it.request.as_ref().unwrap();
        let (name, need) = &request.plan[request.done];
        join(it.mode(name), *need)
    }

    pub(crate) fn blockers(&self, name: &Name, owner: usize) -> Vec<Blocker> {
        let asks = self.asks(owner);
        let queue = self.queues.get(name).map_or(&[][..], |queue| &queue[..]);
        let end = queue
            .iter()
            .position(|&it| it == owner)
            .unwrap_or(self.place(name, owner));
        self.conflicts(name, owner, asks, &queue[..end])
    }

    fn conflicts(&self, name: &Name, owner: usize, asks: Mode, ahead: &[usize]) -> Vec<Blocker> {
        let holders = self.owners.iter().filter(|it| *it.0 != owner);
        let holders =
            holders.filter_map(|(_, it)| Some((it.id, it.holds.get(name)?.table?, Cause::Holds)));
        let ahead = ahead.iter();
        let ahead = ahead.map(|&it| (self.owners[&it].id, self.asks(it), Cause::WaitsAhead));
        holders
            .chain(ahead)
            .filter(|it| !it.1.compatible(asks))
            .collect()
    }

    /// Where in the queue a request stands: before the first that waits for what its owner holds.
    fn place(&self, name: &Name, owner: usize) -> usize {
        let Some(queue) = self.queues.get(name) else {
            return 0;
        };
        let holds = self.owners[&owner]
            .holds
            .get(name)
            .and_then(|hold| hold.table);
        let waits = |&it: &usize| holds.is_some_and(|holds| !holds.compatible(self.asks(it)));
        queue.iter().position(waits).unwrap_or(queue.len())
    }

    pub(crate) fn queued(&self, owner: usize) -> Option<Name> {
        let request = self.owners[&owner].request.as_ref()?;
        (request.stand == Stand::Queued).then(|| request.plan[request.done].0.clone())
    }

    /// Begins a request; `order` sorts what is in one depth.
    pub(crate) fn begin(&mut self, owner: usize, all: &[(Name, Mode)]) {
        let it = self.owners.get_mut(&owner).unwrap();
        let mut plan: BTreeMap<(usize, u64, Name), Mode> = BTreeMap::new();
        for (name, mode) in all.iter().filter(|one| !it.is_free(&one.0, one.1)) {
            let mut needs = vec![(name.clone(), *mode)];
            needs.extend(
                name.ancestors()
                    .into_iter()
                    .map(|it| (it, mode.parent_needs())),
            );
            for (name, need) in needs {
                let at = (name.ancestors().len(), hash(&name), name);
                let mode = join(plan.get(&at).copied(), need);
                plan.insert(at, mode);
            }
        }
        let plan = plan.into_iter().map(|(at, mode)| (at.2, mode)).collect();
        let (adds, before) = (all.to_vec(), it.holds.clone());
        it.request = Some(Request {
            plan,
            done: 0,
            adds,
            before,
            stand: Stand::Begun,
        });
    }

    /// Whether the request is for nothing.
    pub(crate) fn is_empty(&self, owner: usize) -> bool {
        self.owners[&owner]
            .request
            .as_ref()
            .unwrap()
            .adds
            .is_empty()
    }

    fn hold(&mut self, owner: usize) {
        let asks = self.asks(owner);
        let it = self.owners.get_mut(&owner).unwrap();
        let request = it.request.as_mut().unwrap();
        let hold = it
            .holds
            .entry(request.plan[request.done].0.clone())
            .or_default();
        (hold.table, hold.rests) = (Some(asks), None);
        request.done += 1;
    }

    /// Goes on with a request: whether it is granted, or has to wait.
    pub(crate) fn go_on(&mut self, owner: usize) -> bool {
        loop {
            let it = &self.owners[&owner];
            let request = it.request.as_ref().unwrap();
            let Some((name, need)) = request.plan.get(request.done).cloned() else {
                break;
            };
            let held = it.holds.get(&name).and_then(|hold| hold.table);
            if held.is_some_and(|held| held.covers(need)) {
                self.request(owner).done += 1;
                continue;
            }
            if !self.blockers(&name, owner).is_empty() {
                let place = self.place(&name, owner);
                self.queues.entry(name).or_default().insert(place, owner);
                self.stand(owner, Stand::Queued);
                return false;
            }
            self.hold(owner);
        }
        let it = self.owners.get_mut(&owner).unwrap();
        let request = it.request.take().unwrap();
        for (name, mode) in &request.adds {
            it.add(name, *mode);
        }
        true
    }

    pub(crate) fn stand(&mut self, owner: usize, stand: Stand) {
        self.request(owner).stand = stand;
    }

    fn request(&mut self, owner: usize) -> &mut Request {
        let it = self.owners.get_mut(&owner).unwrap();
        it.request.as_mut().unwrap()
    }

    /// Takes a request out of its queue.
    pub(crate) fn leave(&mut self, owner: usize) {
        for queue in self.queues.values_mut() {
            queue.retain(|&it| it != owner);
        }
        self.queues.retain(|_, queue| !queue.is_empty());
    }

    /// The request fails, and has nothing of what it got so far.
    pub(crate) fn fail(&mut self, owner: usize, why: Stand) {
        self.leave(owner);
        let it = self.owners.get_mut(&owner).unwrap();
        let request = it.request.as_mut().unwrap();
        (it.holds, request.stand) = (request.before.clone(), why);
    }

    /// The request got nothing.
    pub(crate) fn undo(&mut self, owner: usize) {
        self.leave(owner);
        let it = self.owners.get_mut(&owner).unwrap();
        if let Some(request) = it.request.take() {
            it.holds = request.before;
        }
        self.scan();
    }

    /// Grants what can be granted.
    pub(crate) fn scan(&mut self) {
        for name in self.queues.keys().cloned().collect::<Vec<_>>() {
            let mut at = 0;
            while let Some(&owner) = self.queues[&name].get(at) {
                if self.blockers(&name, owner).is_empty() {
                    self.hold(owner);
                    self.stand(owner, Stand::Granted);
                    self.queues.get_mut(&name).unwrap().remove(at);
                } else {
                    at += 1;
                }
            }
        }
        self.queues.retain(|_, queue| !queue.is_empty());
    }

    /// Whether a request could be granted now: if not, it leaves nothing behind.
    pub(crate) fn try_lock(&mut self, owner: usize, name: &Name, mode: Mode) -> bool {
        self.begin(owner, &[(name.clone(), mode)]);
        let granted = self.go_on(owner);
        if !granted {
            self.undo(owner);
        }
        granted
    }
}
