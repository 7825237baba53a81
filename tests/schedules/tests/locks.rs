//! A lock table under random schedules: four owners on four resources, in
//! random order and modes.

mod schedules;

use std::sync::Arc;

use conversant_schedules::lock_table::{LockError, LockTable, Owner, Resource};
use conversant_schedules::modes::Mode;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::thread;

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

/// Who has been told that it holds what: what the table must never contradict.
type Told = Mutex<Vec<(usize, Node, Mode)>>;

/// Asks for up to three locks, and releases them all at the end or when it is
/// a victim. Says so before the release and after the grant, so that what is
/// told is held for certain.
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
    // Whoever is never granted and in no circle hangs here, which is reported.
    schedules::join(asking);
    assert!(table.is_empty(), "{:?}", table.snapshot());
}

#[test]
fn four_owners_four_resources() {
    schedules::explore(owners);
}
