//! A lock table under random schedules: four owners on four resources, in
//! random order and modes.

use std::sync::Arc;

use conversant_schedules::lock_table::{LockError, LockTable, Owner, Resource};
use conversant_schedules::modes::Mode;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::schedules;

/// A root, and leaves below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Root,
    Leaf(usize),
}

impl Resource for Node {
    fn parent(&self) -> Option<Self> {
        matches!(self, Self::Leaf(_)).then_some(Self::Root)
    }
}

const NODES: [Node; 4] = [Node::Root, Node::Leaf(0), Node::Leaf(1), Node::Leaf(2)];

/// Which owner was told that it holds what: the table must never contradict this.
type Told = Mutex<Vec<(usize, Node, Mode)>>;

/// Asks for up to three locks, and releases them all at the end or when it is a victim. It records
/// a lock after the grant, and removes it before the release, so recorded locks are surely held.
fn ask(me: usize, owner: &mut Owner<Node>, told: &Told) {
    for _ in 0..3 {
        let node = NODES[thread_rng().gen_range(0..NODES.len())];
        let mode = Mode::ALL[thread_rng().gen_range(0..Mode::ALL.len())];
        match owner.lock(&node, mode).wait() {
            Ok(()) => tell(me, node, mode, told),
            Err(LockError::Deadlock(deadlock)) => {
                assert!(deadlock.cycle.len() > 1, "a circle of one");
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    told.lock().unwrap().retain(|&(whose, ..)| whose != me);
    owner.release_all();
}

fn tell(me: usize, node: Node, mode: Mode, told: &Told) {
    let mut told = told.lock().unwrap();
    for &(whose, other, held) in told.iter() {
        let both = other != node || whose == me || held.compatible(mode);
        assert!(both, "{held:?} and {mode:?} on {node:?}");
    }
    told.push((me, node, mode));
}

fn owners() {
    let table = Arc::new(LockTable::new());
    let told = Arc::new(Told::default());
    let asking = [0, 1, 2, 3].map(|me| {
        let (table, told) = (table.clone(), told.clone());
        thread::spawn(move || ask(me, &mut table.owner(me as i32 % 2), &told))
    });
    // A request that is never granted and is in no cycle hangs here, which is reported.
    schedules::join(asking);
    assert!(table.is_empty(), "{:?}", table.snapshot());
}

#[test]
fn four_owners_four_resources() {
    schedules::explore(owners);
}

/// Two owners that lock leaf after leaf keep the root's intent; a third asks for the whole root.
/// A snapshot taken meanwhile shows no kept intent.
fn a_root_that_is_kept() {
    let table = Arc::new(LockTable::new());
    let told = Arc::new(Told::default());
    let leaves = [1, 2].map(|me| {
        let (table, told) = (table.clone(), told.clone());
        thread::spawn(move || {
            let mut owner = table.owner(0);
            for _ in 0..4 {
                owner.lock(&NODES[me], Mode::X).wait().unwrap();
                // The lock of the leaf implies this about the root.
                tell(me, Node::Root, Mode::Ix, &told);
                told.lock().unwrap().retain(|&(whose, ..)| whose != me);
                owner.release(&NODES[me]).unwrap();
            }
        })
    });
    let (all, all_told) = (table.clone(), told.clone());
    let root = thread::spawn(move || {
        let mut owner = all.owner(0);
        for mode in [Mode::S, Mode::X] {
            owner.lock(&Node::Root, mode).wait().unwrap();
            tell(3, Node::Root, mode, &all_told);
            all_told.lock().unwrap().retain(|&(whose, ..)| whose != 3);
            owner.release_all();
        }
    });
    let seen = table.snapshot();
    let held = |node| seen.resources.iter().filter(move |r| r.resource == node);
    for holder in held(Node::Root).flat_map(|r| &r.holders) {
        let below = seen.resources.iter().filter(|r| r.resource != Node::Root);
        let has_leaf = below
            .flat_map(|r| &r.holders)
            .any(|(who, _)| *who == holder.0);
        assert!(holder.1 != Mode::Ix || has_leaf, "{seen:?}");
    }
    schedules::join(leaves);
    root.join().unwrap();
    assert!(table.is_empty(), "{:?}", table.snapshot());
}

#[test]
fn two_who_keep_a_root_and_one_who_wants_it() {
    schedules::explore(a_root_that_is_kept);
}
