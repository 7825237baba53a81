//! Four owners over four resources, and the naive manager next to them: after each step the table
//! must hold and queue exactly what the manager does, and every deadlock must be a real one. The
//! world uses the table's public interface only, and the fuzzer runs it too.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::oracle::{Oracle, Who};
use super::person::{Person, State};
use super::steps::{Answer, Mail, Step, live};
use super::{Bypass, Count, Deadlock, LockError, LockTable, Owner, OwnerId, Path, Priority, path};

/// The same in every run, so that a schedule can be run again.
pub(super) type Hashes = BuildHasherDefault<DefaultHasher>;

/// The table remembers 16 deadlocks, and one request may end in three: after this many deadlocks no
/// lock is asked for any more.
const ENOUGH: usize = 13;

pub(super) const OWNERS: usize = 4;

/// A root, what is below it, and two leaves.
pub(super) fn resources() -> [Path; 4] {
    [path([1]), path([1, 2]), path([1, 2, 3]), path([1, 2, 4])]
}

pub(super) struct World {
    locks: LockTable<Path, Hashes>,
    ids: Vec<OwnerId>,
    priorities: Vec<Priority>,
    tasks: Vec<Pin<Box<dyn Future<Output = ()>>>>,
    mail: Vec<Rc<RefCell<Mail>>>,
    woken: Vec<Arc<Count>>,
    seen: Vec<usize>,
    oracle: Oracle,
    /// What each request from a list is to find.
    found: Vec<Option<usize>>,
    /// How many times an owner was renewed.
    renewed: usize,
    /// How many deadlocks there were.
    pub(super) deadlocks: usize,
}

impl World {
    pub(super) fn new(priorities: [i32; OWNERS], bypass: u32) -> Self {
        let locks = LockTable::with_hasher(Hashes::default());
        let locks = locks.with_bypass(Bypass::AtMost(bypass));
        let owners = priorities.map(|priority| locks.owner(priority));
        let ids = owners.iter().map(Owner::id).collect();
        let handles = owners.iter().map(Owner::priority).collect();
        let mail: Vec<Rc<RefCell<Mail>>> = (0..OWNERS).map(|_| Rc::default()).collect();
        let task = |(owner, mail): (_, &Rc<RefCell<Mail>>)| -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(live(owner, mail.clone()))
        };
        let tasks = owners.into_iter().zip(&mail).map(task).collect();
        let person = |priority| Person {
            priority,
            ..Person::default()
        };
        let hash = |path: Path| (Hashes::default().hash_one(&path), path);
        let oracle = Oracle {
            owners: priorities.map(person).into(),
            hashes: resources().map(hash).map(|(h, p)| (p, h)).into(),
            bypass,
            ..Oracle::default()
        };
        Self {
            locks,
            ids,
            priorities: handles,
            tasks,
            mail,
            woken: (0..OWNERS).map(|_| Arc::default()).collect(),
            seen: vec![0; OWNERS],
            oracle,
            found: vec![None; OWNERS],
            renewed: 0,
            deadlocks: 0,
        }
    }

    fn poll(&mut self, who: Who) -> Option<Answer> {
        self.seen[who] = self.woken[who].get();
        let waker = Waker::from(self.woken[who].clone());
        let poll = self.tasks[who]
            .as_mut()
            .poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        self.mail[who].borrow_mut().answer.take()
    }

    fn send(&mut self, who: Who, step: &Step) -> Option<Answer> {
        self.mail[who].borrow_mut().steps.push_back(step.clone());
        self.poll(who)
    }

    pub(super) fn step(&mut self, step: &Step) {
        let all = resources();
        let who = step.who();
        let idle = self.oracle.owners[who].state == State::Idle;
        match step {
            Step::Cancel(_) if !idle => self.cancel(who),
            Step::Run(_) if !idle => self.run(who),
            Step::Lock(_, asked) if idle && self.deadlocks < ENOUGH => {
                let asked: Vec<_> = asked.iter().map(|&(r, m)| (all[r].clone(), m)).collect();
                self.oracle.ask(who, &asked);
                self.found[who] = None;
                let answer = self.send(who, step);
                self.answered(who, answer);
            }
            Step::FirstFree(_, list, mode, waits) if idle && self.deadlocks < ENOUGH => {
                let list: Vec<_> = list.iter().map(|&r| (all[r].clone(), *mode)).collect();
                self.found[who] = self.oracle.first_free(who, &list);
                if self.found[who].is_none() && *waits && !list.is_empty() {
                    self.oracle.ask(who, &list[..1]);
                    self.found[who] = Some(0);
                }
                let answer = self.send(who, step);
                self.answered(who, answer);
            }
            Step::Release(_, r) if idle => {
                let expected = self.oracle.release(who, &all[*r]);
                assert_eq!(self.send(who, step), Some(Answer::Released(expected)));
            }
            Step::Downgrade(_, r, m) if idle => {
                let expected = self.oracle.downgrade(who, &all[*r], *m);
                assert_eq!(self.send(who, step), Some(Answer::Released(expected)));
            }
            Step::Savepoint(_) if idle => {
                self.oracle.savepoint(who);
                self.send(who, step);
            }
            Step::ReleaseTo(_, n) if idle && *n < self.oracle.savepoints(who) => {
                self.oracle.release_to(who, *n);
                assert_eq!(self.send(who, step), Some(Answer::Released(Ok(()))));
            }
            Step::ReleaseAll(_) if idle => {
                self.oracle.release_all(who);
                self.send(who, step);
            }
            Step::Retry(_) if idle => {
                let retries = self.oracle.owners[who].retries;
                self.oracle.release_all(who);
                self.oracle.owners[who].retries = retries + 1;
                self.send(who, step);
            }
            Step::Renew(_) if idle => {
                self.oracle.release_all(who);
                self.renewed += 1;
                self.oracle.owners[who].renewed = self.renewed;
                self.send(who, step);
            }
            Step::SetPriority(_, priority) => {
                self.oracle.owners[who].priority = *priority;
                self.priorities[who].set(*priority);
            }
            _ => {}
        }
        self.compare();
    }

    fn cancel(&mut self, who: Who) {
        self.oracle.abort(who, State::Idle);
        self.mail[who].borrow_mut().cancel = true;
        assert_eq!(self.poll(who), Some(Answer::Cancelled));
        self.mail[who].borrow_mut().cancel = false;
    }

    fn run(&mut self, who: Who) {
        let state = self.oracle.owners[who].state;
        match state {
            State::Idle => {}
            // Woken for nothing, or not at all.
            State::Waits => assert_eq!(self.poll(who), None),
            State::Notified if !self.oracle.retry(who) => assert_eq!(self.poll(who), None),
            State::Granted | State::Notified => {
                self.oracle.resume(who);
                let answer = self.poll(who);
                self.answered(who, answer);
            }
            State::Victim => {
                let answer = self.poll(who);
                let deadlock = matches!(answer, Some(Answer::Locked(Err(LockError::Deadlock(_)))));
                assert!(deadlock, "{answer:?}");
                self.oracle.owners[who].state = State::Idle;
            }
        }
    }

    /// Compares the table's answer to a request with the state of the oracle.
    fn answered(&mut self, who: Who, answer: Option<Answer>) {
        let mut waited = self.oracle.owners[who].state == State::Waits;
        let reports = self.locks.deadlocks().split_off(self.deadlocks);
        self.deadlocks += reports.len();
        for report in &reports {
            assert!(waited, "a deadlock without a wait");
            self.check_circle(report);
            let victim = self.who(report.victim);
            let mine = victim == who;
            self.oracle
                .abort(victim, if mine { State::Idle } else { State::Victim });
            waited &= !mine;
        }
        assert!(!self.oracle.has_circle(), "an undetected deadlock");
        match answer {
            None => assert_ne!(self.oracle.owners[who].state, State::Idle),
            Some(Answer::Locked(Ok(found))) => {
                assert!(reports.is_empty());
                assert_eq!(found, self.found[who]);
                assert_eq!(self.oracle.owners[who].state, State::Idle);
            }
            Some(Answer::Locked(Err(LockError::Deadlock(deadlock)))) => {
                assert_eq!(self.who(deadlock.victim), who);
                assert_eq!(self.oracle.owners[who].state, State::Idle);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Every edge of the cycle is there, and the right owner is the victim.
    fn check_circle(&self, deadlock: &Deadlock<Path>) {
        let all: Vec<Who> = deadlock
            .cycle
            .iter()
            .map(|link| self.who(link.owner))
            .collect();
        assert!(all.len() > 1);
        for (link, next) in deadlock.cycle.iter().zip(all.iter().cycle().skip(1)) {
            let owner = self.who(link.owner);
            assert_eq!(self.who(link.blocked_by), *next);
            assert!(
                self.oracle.edges(owner).contains(next),
                "a false deadlock: {deadlock}"
            );
            let node = &self.oracle.nodes[&*link.resource];
            assert!(node.queue.contains(&(owner, link.asks)));
            assert_eq!(node.held.get(&owner), link.holds.as_ref());
        }
        let rank = |&who: &Who| {
            let person = &self.oracle.owners[who];
            let age = std::cmp::Reverse((person.renewed, who));
            (person.priority, person.retries, self.oracle.locks(who), age)
        };
        let victim = all.iter().copied().min_by_key(rank);
        assert_eq!(victim, Some(self.who(deadlock.victim)), "{deadlock}");
    }

    fn who(&self, id: OwnerId) -> Who {
        self.ids
            .iter()
            .position(|&other| other == id)
            .expect("an owner")
    }

    /// The table is the oracle's, no two holders conflict, and every owner that was granted or made
    /// to give up has been told.
    fn compare(&self) {
        let snapshot = self.locks.snapshot();
        let counts = self.locks.counts();
        assert_eq!(counts.resources, snapshot.resources.len());
        let all = snapshot.resources.iter().map(|view| view.waiters.len());
        assert_eq!(counts.contended, all.filter(|&waiters| waiters > 0).count());
        let wait = |is: &dyn Fn(State) -> bool| {
            let owners = self.oracle.owners.iter();
            owners.filter(|person| is(person.state)).count()
        };
        assert_eq!(counts.locks.waiting, wait(&|state| state == State::Waits));
        assert_eq!(counts.locks.notified, wait(&State::is_told));
        let all = self.oracle.nodes.iter();
        let all = all.map(|(path, node)| (path.clone(), (node.held.clone(), node.queue.clone())));
        let expected: BTreeMap<_, _> = all.collect();
        let mut nodes = BTreeMap::new();
        for resource in snapshot.resources {
            for waiter in &resource.waiters {
                let blockers = waiter.blocked_by.iter().map(|blocker| self.who(blocker.0));
                let mut blockers: Vec<_> = blockers.collect();
                let mut edges = self.oracle.edges(self.who(waiter.owner));
                blockers.sort_unstable();
                edges.sort_unstable();
                assert_eq!((blockers, waiter.blockers), (edges.clone(), edges.len()));
            }
            let holders = resource.holders.iter();
            let held: BTreeMap<_, _> = holders.map(|&(id, mode)| (self.who(id), mode)).collect();
            let waiters = resource.waiters.iter();
            let queue: Vec<_> = waiters.map(|w| (self.who(w.owner), w.asks)).collect();
            for (&one, a) in &held {
                let others = held.iter().filter(|(other, _)| **other != one);
                assert!(others.into_iter().all(|(_, b)| a.compatible(*b)));
            }
            nodes.insert(resource.resource, (held, queue));
        }
        assert_eq!(nodes, expected);
        for (who, person) in self.oracle.owners.iter().enumerate() {
            let told = self.woken[who].get() > self.seen[who];
            match person.state {
                state if state.is_told() => assert!(told, "{who} was not told"),
                State::Waits => assert!(!told, "{who} was told for nothing"),
                _ => {
                    for (resource, grants) in &self.mail[who].borrow().held {
                        let own = person.own.get(resource);
                        assert_eq!(own.map_or(0, |own| own.count), *grants);
                    }
                }
            }
        }
    }

    /// All tasks run until none can, and give up what they hold; then nothing is left.
    pub(super) fn wind_up(&mut self) {
        for _ in 0..100 {
            for who in 0..OWNERS {
                self.step(&Step::Run(who));
                self.step(&Step::ReleaseAll(who));
            }
            if self.oracle.nodes.is_empty() {
                break;
            }
        }
        let idle = |person: &Person| person.state == State::Idle;
        assert!(
            self.oracle.owners.iter().all(idle),
            "somebody waits for ever"
        );
        assert!(self.locks.is_empty());
        let counts = self.locks.counts();
        assert_eq!((counts.locks, counts.contended), Default::default());
    }
}
