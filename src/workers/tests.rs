use proptest::collection::vec;
use proptest::prelude::*;

use super::{Action, Activity, MAX_WORKERS, Workers};
use Activity::{Absent, Busy, Idle, Looking, Starting, Woken};

#[derive(Clone, Debug)]
enum Op {
    /// This much work becomes eligible.
    Work(u64),
    /// This much of it is no longer eligible: it was cancelled, or its caller was capped.
    Block(u64),
    /// The live worker of this rank does its next step. If there are two possible steps,
    /// `true` takes the second: a start fails, a rest ends by time-out.
    Step(usize, bool),
    SetMax(u32),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (1..4u64).prop_map(Op::Work),
        4 => (1..4u64).prop_map(Op::Block),
        100 => (0..16usize, prop::bool::weighted(0.1)).prop_map(|(n, other)| Op::Step(n, other)),
        6 => (1..9u32).prop_map(Op::SetMax),
    ]
}

/// The workers, what each of them does, and the work.
struct World {
    workers: Workers,
    /// By the workers' numbers; a worker behind the last is absent.
    does: Vec<Activity>,
    /// Which workers look and have found nothing, but have not yet said so.
    empty_handed: Vec<bool>,
    work: u64,
    max: u32,
    closing: bool,
    wakes: u64,
}

const MOST: usize = 16;

impl World {
    fn new(max: u32) -> Self {
        Self {
            workers: Workers::new(max).unwrap(),
            does: vec![Absent; MOST],
            empty_handed: vec![false; MOST],
            work: 0,
            max,
            closing: false,
            wakes: 0,
        }
    }

    fn count(&self, what: &[Activity]) -> u32 {
        self.does.iter().filter(|does| what.contains(does)).count() as u32
    }

    fn live(&self) -> u32 {
        MOST as u32 - self.count(&[Absent])
    }

    fn coming(&self) -> u32 {
        self.count(&[Starting, Looking, Woken])
    }

    /// How many workers are coming that will not find that they are too many.
    fn useful(&self) -> u64 {
        let surplus = self.live().saturating_sub(self.max);
        u64::from(self.coming().saturating_sub(surplus))
    }

    fn wanted(&self) -> u64 {
        self.work
            .min(u64::from(self.max.saturating_sub(self.count(&[Busy]))))
    }

    fn lowest(&self, what: Activity) -> Option<u32> {
        let at = self.does.iter().position(|&does| does == what)?;
        Some(at as u32 + 1)
    }

    fn set(&mut self, n: u32, to: Activity) {
        self.does[n as usize - 1] = to;
        self.empty_handed[n as usize - 1] = false;
    }

    fn apply(&mut self, op: &Op) {
        let before = self.live();
        match *op {
            Op::Work(more) => self.work += more,
            Op::Block(less) => self.work = self.work.saturating_sub(less),
            Op::Step(nth, other) => {
                let live = |n: &u32| self.does[*n as usize - 1] != Absent;
                let live: Vec<u32> = (1..=MOST as u32).filter(live).collect();
                if !live.is_empty() {
                    self.step(live[nth % live.len()], other);
                }
            }
            Op::SetMax(max) => {
                self.max = max;
                self.workers.set_max(max).unwrap();
            }
            Op::Close => {
                self.closing = true;
                self.workers.close();
            }
        }
        self.next_action();
        self.check();
        assert!(
            self.live() <= self.max.max(before),
            "more than either maximum"
        );
    }

    fn step(&mut self, n: u32, other: bool) {
        match self.does[n as usize - 1] {
            Starting if other => {
                self.workers.failed(n);
                self.workers.end_event();
                self.set(n, Absent);
            }
            Looking if self.empty_handed[n as usize - 1] => self.give_up(n),
            Starting | Looking | Woken => self.look(n),
            Busy => {
                self.workers.finished(n);
                self.set(n, Looking);
            }
            Idle if other => {
                self.workers.retired(n);
                self.set(n, Absent);
            }
            Idle | Absent => {}
        }
    }

    fn look(&mut self, n: u32) {
        let may = self.workers.look(n);
        self.set(n, Looking);
        assert!(
            !may || self.count(&[Busy]) < self.max,
            "a claim above the maximum"
        );
        assert_eq!(may, self.live() <= self.max);
        if may && self.work > 0 {
            self.work -= 1;
            self.workers.claimed(n);
            self.set(n, Busy);
        } else {
            self.empty_handed[n as usize - 1] = true;
        }
    }

    fn give_up(&mut self, n: u32) {
        let leaves = self.workers.must_leave();
        assert_eq!(leaves, self.closing || self.live() > self.max);
        if leaves {
            self.workers.retired(n);
            self.set(n, Absent);
        } else {
            self.workers.rest(n);
            self.set(n, Idle);
        }
    }

    /// Asks for the next action and does it, until there is none.
    fn next_action(&mut self) {
        for _ in 0..=2 * MOST {
            let Some(next) = self.workers.next_action(self.work) else {
                return;
            };
            let useful = self.useful();
            let needed = useful < self.wanted();
            match next {
                Action::Start(n) => {
                    assert!(needed && self.live() < self.max);
                    assert_eq!((self.lowest(Absent), self.lowest(Idle)), (Some(n), None));
                    self.set(n, Starting);
                }
                Action::Wake(n) => {
                    assert_eq!(self.does[n as usize - 1], Idle);
                    let leaves = self.closing || self.live() > self.max + self.coming();
                    let alone = needed && useful == 0;
                    assert!(alone || leaves, "{n} is woken for nothing");
                    assert!(leaves || self.lowest(Idle) == Some(n));
                    self.set(n, Woken);
                    self.wakes += 1;
                }
            }
        }
        panic!("there is always something more to do");
    }

    fn check(&mut self) {
        let counts = [self.live(), self.count(&[Busy]), self.count(&[Idle])];
        let r = &self.workers;
        assert_eq!([r.live(), r.busy(), r.idle()], counts);
        assert_eq!((r.coming(), r.max()), (self.coming(), self.max));
        for n in 1..=MOST as u32 {
            assert_eq!(r.activity(n), self.does[n as usize - 1], "worker {n}");
        }
        let one_comes = self.useful() > 0 && self.count(&[Idle]) > 0;
        assert!(
            self.useful() >= self.wanted() || one_comes,
            "work nobody comes for"
        );
        assert!(
            !self.closing || self.count(&[Idle]) == 0,
            "one rests at the end"
        );
        if self.workers.needs_nobody() {
            assert_eq!(self.workers.next_action(u64::MAX), None);
        }
    }

    /// All workers do their steps until no worker has one.
    fn settle(&mut self) {
        for _ in 0..1000 {
            let moves = |n: &u32| !matches!(self.does[*n as usize - 1], Idle | Absent);
            let Some(n) = (1..=MOST as u32).rev().find(moves) else {
                return;
            };
            self.step(n, false);
            self.next_action();
            self.check();
        }
        panic!("the workers do not come to rest");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

    #[test]
    fn keeps_its_promises(max in 1..6u32, ops in vec(op(), 1..300), late in 0..3u64) {
        let mut world = World::new(max);
        ops.iter().for_each(|op| world.apply(op));
        world.settle();
        assert_eq!(world.work, 0, "all work is done");
        assert!(world.live() <= world.max, "who is too many has left");
        world.apply(&Op::Work(late));
        world.apply(&Op::Close);
        world.settle();
        assert_eq!((world.work, world.live()), (0, 0));
    }
}

/// `n` workers that all rest.
fn resting(n: u32) -> World {
    let mut world = World::new(n);
    world.apply(&Op::Work(u64::from(n)));
    world.settle();
    assert_eq!((world.count(&[Idle]), world.wakes), (n, 0));
    world
}

#[test]
fn workers_start_as_work_arrives_up_to_the_maximum() {
    let mut workers = Workers::new(2).unwrap();
    assert_eq!(workers.next_action(0), None);
    assert_eq!(workers.next_action(1), Some(Action::Start(1)));
    assert_eq!(workers.next_action(1), None);
    assert_eq!(workers.next_action(9), Some(Action::Start(2)));
    assert_eq!(workers.next_action(9), None);
    workers.failed(1);
    assert_eq!(workers.next_action(9), None, "not in the same event");
    workers.end_event();
    assert_eq!(workers.next_action(9), Some(Action::Start(1)));
}

#[test]
fn the_lowest_number_is_used_first() {
    let mut world = resting(4);
    assert!(
        world.workers.may_act(),
        "they rest, though no more may start"
    );
    assert_eq!(world.workers.next_action(2), Some(Action::Wake(1)));
    assert_eq!(
        world.workers.next_action(2),
        None,
        "the one that comes wakes the next"
    );
    assert!(world.workers.look(1));
    assert_eq!(world.workers.next_action(2), None);
    world.workers.claimed(1);
    assert_eq!(world.workers.next_action(1), Some(Action::Wake(2)));
    assert_eq!(world.workers.next_action(1), None);
}

/// One submission at a time, all before the woken worker has looked.
#[test]
fn however_much_arrives_one_is_woken_until_it_has_looked() {
    let mut world = resting(4);
    (0..50).for_each(|_| world.apply(&Op::Work(1)));
    assert_eq!((world.wakes, world.count(&[Woken])), (1, 1));
    world.apply(&Op::Step(0, false));
    assert_eq!((world.wakes, world.count(&[Busy, Woken])), (2, 2));
    world.settle();
    assert_eq!(world.work, 0);
}

#[test]
fn closing_wakes_all_that_rest() {
    let mut world = resting(5);
    world.apply(&Op::Close);
    assert_eq!((world.count(&[Woken]), world.wakes), (5, 5));
    world.settle();
    assert_eq!(world.live(), 0);
}

#[test]
fn lowering_the_maximum_wakes_only_those_who_are_to_leave() {
    let mut world = resting(10);
    world.apply(&Op::SetMax(7));
    let woken = [8, 9, 10].map(|n| world.workers.activity(n));
    assert_eq!((world.wakes, woken), (3, [Woken; 3]));
    world.settle();
    assert_eq!((world.live(), world.wakes), (7, 3));
    assert!((1..=7).all(|n| world.workers.activity(n) == Idle));
}

#[test]
fn a_lowered_maximum_takes_effect_as_tasks_end() {
    let mut world = World::new(4);
    world.apply(&Op::Work(20));
    (0..4).for_each(|n| world.apply(&Op::Step(n, false)));
    assert_eq!(world.count(&[Busy]), 4);
    world.apply(&Op::SetMax(2));
    for live in [3, 2] {
        // The worker ends its task, may not look, and leaves.
        (0..3).for_each(|_| world.apply(&Op::Step(0, false)));
        assert_eq!((world.count(&[Busy]), world.live()), (live, live));
    }
    (0..2).for_each(|_| world.apply(&Op::Step(0, false)));
    assert_eq!((world.count(&[Busy]), world.work), (2, 15));
}

#[test]
fn numbers_above_a_lowered_maximum_are_forgotten_and_come_back() {
    let mut world = resting(6);
    world.apply(&Op::SetMax(1));
    world.settle();
    assert_eq!(world.workers.activity.len(), 1);
    world.apply(&Op::SetMax(3));
    world.apply(&Op::Work(9));
    assert_eq!(world.live(), 3);
    assert_eq!(world.lowest(Absent), Some(4));
}

#[test]
fn a_maximum_out_of_range_is_refused() {
    assert!(Workers::new(0).is_err() && Workers::new(MAX_WORKERS + 1).is_err());
    let mut workers = Workers::new(MAX_WORKERS).unwrap();
    assert!(workers.set_max(0).is_err());
    assert_eq!(workers.max(), MAX_WORKERS);
    assert_eq!(workers.activity(MAX_WORKERS + 1), Absent);
}
