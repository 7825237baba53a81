//! Histories of a lock table under real threads, compared with a table of modes.

use crate::histories;

use std::sync::Arc;

use conversant::lock_table::{LockError, LockTable, Owner, OwnerId, Resource};
use conversant::modes::Mode;
use histories::{Log, in_turn, is_linearizable, run};
use todc_utils::specifications::Specification;

/// A root, 0, and the leaves below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct At(usize);

impl Resource for At {
    fn parent(&self) -> Option<Self> {
        (self.0 > 0).then_some(At(0))
    }
}

const NODES: usize = 3;
const OWNERS: usize = 3;

/// What each owner holds in the table.
type Modes = [[Option<Mode>; NODES]; OWNERS];

#[derive(Clone, Debug)]
enum Operation {
    /// Granted.
    Lock(usize, At, Mode),
    /// Whether it was granted.
    Try(usize, At, Mode, bool),
    Release(usize, At),
    ReleaseAll(usize),
    /// Read this.
    Snapshot(Modes),
    /// Asked for it, and became a victim.
    Victim,
}

/// For owners that never hold the root by name and a leaf at once. `WAITS`: others may wait, so a
/// try may fail because of a queued request, or of what that request has been granted on its way.
struct Table<const WAITS: bool>;

impl<const WAITS: bool> Specification for Table<WAITS> {
    type State = Modes;
    type Operation = Operation;

    fn init() -> Modes {
        Modes::default()
    }

    fn apply(operation: &Operation, modes: &Modes) -> (bool, Modes) {
        match *operation {
            Operation::Lock(who, at, mode) | Operation::Try(who, at, mode, true) => {
                (free(modes, who, at, mode), granted(modes, who, at, mode))
            }
            Operation::Try(who, at, mode, false) => (WAITS || !free(modes, who, at, mode), *modes),
            Operation::Release(who, at) => {
                let held = modes[who][at.0].is_some();
                let mut own = modes[who];
                own[at.0] = None;
                let needs = |mode: Option<Mode>| mode.map(Mode::parent_needs);
                if at.0 > 0 {
                    own[0] = joined(needs(own[1]), needs(own[2]));
                }
                (held, with(modes, who, own))
            }
            Operation::ReleaseAll(who) => (true, with(modes, who, Default::default())),
            Operation::Snapshot(seen) => (seen == *modes, *modes),
            Operation::Victim => (true, *modes),
        }
    }
}

/// The locks of a request: from the root down.
fn taken(at: At, mode: Mode) -> impl Iterator<Item = (usize, Mode)> {
    let root = (at.0 > 0).then_some((0, mode.parent_needs()));
    root.into_iter().chain([(at.0, mode)])
}

fn joined(one: Option<Mode>, other: Option<Mode>) -> Option<Mode> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.join(other)),
        (one, other) => one.or(other),
    }
}

fn with(modes: &Modes, who: usize, own: [Option<Mode>; NODES]) -> Modes {
    let mut after = *modes;
    after[who] = own;
    after
}

fn granted(modes: &Modes, who: usize, at: At, mode: Mode) -> Modes {
    let mut own = modes[who];
    for (node, mode) in taken(at, mode) {
        own[node] = joined(own[node], Some(mode));
    }
    with(modes, who, own)
}

fn free(modes: &Modes, who: usize, at: At, mode: Mode) -> bool {
    let after = granted(modes, who, at, mode);
    let others = (0..OWNERS).filter(|&other| other != who);
    let fits = |other: usize| {
        let both = modes[other].iter().zip(after[who]);
        both.into_iter()
            .all(|(held, asked)| held.zip(asked).is_none_or(|(a, b)| a.compatible(b)))
    };
    others.into_iter().all(fits)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// An owner that asks, sometimes for two leaves, and releases one by one or all at once.
struct Session {
    me: usize,
    owner: Owner<At>,
    locks: LockTable<At>,
    ids: Arc<[OwnerId]>,
    random: Random,
    waits: bool,
}

impl Session {
    fn run(mut self, log: &mut Log<Operation>) {
        for _ in 0..6 {
            let first = At(self.random.below(NODES));
            let got = self.ask(first, log);
            let mut second = None;
            if got && first.0 > 0 && self.random.below(2) == 0 {
                let other = At(NODES - first.0);
                second = self.ask(other, log).then_some(other);
            }
            if !self.waits && self.random.below(3) == 0 {
                self.look(log);
            }
            if self.random.below(2) == 0 {
                let all = || Operation::ReleaseAll(self.me);
                log.record(|| self.owner.release_all(), |()| all());
                continue;
            }
            for at in got.then_some(first).into_iter().chain(second) {
                let release = || self.owner.release(&at).expect("it was granted");
                log.record(release, |()| Operation::Release(self.me, at));
            }
        }
    }

    fn ask(&mut self, at: At, log: &mut Log<Operation>) -> bool {
        let mode = Mode::ALL[self.random.below(Mode::ALL.len())];
        let (me, waits) = (self.me, self.waits && self.random.below(4) > 0);
        let ask = || {
            if !waits {
                return Some(self.owner.try_lock(&at, mode).is_ok());
            }
            match self.owner.lock(&at, mode).wait() {
                Ok(()) => Some(true),
                Err(LockError::Deadlock(_)) => None,
                Err(error) => panic!("{error}"),
            }
        };
        let outcome = log.record(ask, |outcome| match *outcome {
            Some(true) if waits => Operation::Lock(me, at, mode),
            Some(granted) => Operation::Try(me, at, mode, granted),
            None => Operation::Victim,
        });
        outcome == Some(true)
    }

    fn look(&mut self, log: &mut Log<Operation>) {
        let modes = |snapshot: &conversant::lock_table::Snapshot<At>| {
            let mut modes = Modes::default();
            for view in &snapshot.resources {
                for &(id, mode) in &view.holders {
                    let who = self.ids.iter().position(|&other| other == id);
                    modes[who.expect("an owner")][view.resource.0] = Some(mode);
                }
            }
            Operation::Snapshot(modes)
        };
        log.record(|| self.locks.snapshot(), modes);
    }
}

fn histories<const WAITS: bool>() {
    for round in 0..1_000u64 {
        let locks = LockTable::new();
        let owners: Vec<_> = (0..OWNERS).map(|_| locks.owner(0)).collect();
        let ids: Arc<[OwnerId]> = owners.iter().map(Owner::id).collect();
        let scripts = owners.into_iter().enumerate().map(|(me, owner)| {
            let session = Session {
                me,
                owner,
                locks: locks.clone(),
                ids: ids.clone(),
                random: Random(round * 31 + me as u64 + 1),
                waits: WAITS,
            };
            move |log: &mut Log<Operation>| session.run(log)
        });
        let history = run(scripts.collect());
        let right = is_linearizable::<Table<WAITS>>(history.clone());
        assert!(right, "{history:?}");
        assert!(locks.is_empty());
    }
}

/// Each request and each release takes effect at one moment, on the resource and all its ancestors.
#[test]
fn histories_of_those_who_try() {
    histories::<false>();
}

#[test]
fn histories_of_those_who_wait() {
    histories::<true>();
}

/// The check rejects wrong histories.
#[test]
fn wrong_histories_are_rejected() {
    use Mode::{Is, Ix, S, X};
    use Operation::{Lock, Release, ReleaseAll, Snapshot, Try};
    let (root, a, b) = (At(0), At(1), At(2));
    let mut seen = Modes::default();
    seen[0] = [Some(Ix), Some(X), None];
    let half = with(&seen, 0, [Some(Ix), None, None]);
    let wrong: [&[(usize, Operation)]; 8] = [
        &[(0, Lock(0, a, X)), (1, Lock(1, a, S))],
        // The intents are missing.
        &[(0, Lock(0, a, X)), (1, Lock(1, root, S))],
        &[(0, Try(0, root, X, true)), (1, Try(1, b, S, true))],
        // No other owner is in the way.
        &[(0, Lock(0, a, S)), (1, Try(1, root, S, false))],
        &[(0, Lock(0, a, X)), (1, Try(1, root, Is, false))],
        // One half of a request, or of a release.
        &[(0, Lock(0, a, X)), (1, Snapshot(half))],
        &[(0, Lock(0, a, X)), (0, ReleaseAll(0)), (1, Snapshot(half))],
        // Released by an owner that does not hold it.
        &[(0, Lock(0, a, X)), (1, Release(1, a))],
    ];
    for operations in wrong {
        let accepted = is_linearizable::<Table<false>>(in_turn(operations));
        assert!(!accepted, "{operations:?}");
    }
    let right = [(0, Lock(0, a, X)), (1, Snapshot(seen))];
    assert!(is_linearizable::<Table<false>>(in_turn(&right)));
}
