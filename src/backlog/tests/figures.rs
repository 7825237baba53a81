//! The figures of the five systems, in virtual time, by a loop of a few lines.

use std::collections::BTreeSet;

use crate::backlog::{Backlog, GroupKey};
use crate::lanes::LaneKey;
use crate::limit::{Bypass, Limit};

/// In tenths of a second.
type Time = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    task: u32,
    worker: u32,
    start: Time,
    end: Time,
}

/// Workers that claim tasks as soon as they are free, the lowest free number first.
struct Loop {
    /// The items are a task's number and how long it takes.
    backlog: Backlog<(u32, Time)>,
    now: Time,
    free: BTreeSet<u32>,
    /// In the order of ends, then of starts.
    running: Vec<(Row, GroupKey, u32)>,
    log: Vec<Row>,
}

impl Loop {
    fn new(bypass: Bypass, workers: u32) -> Self {
        Self {
            backlog: Backlog::new(bypass),
            now: 0,
            free: (1..=workers).collect(),
            running: Vec::new(),
            log: Vec::new(),
        }
    }

    fn lane(&mut self) -> LaneKey {
        self.backlog.add_lane(1, Limit::Unlimited).unwrap()
    }

    /// Sends a task in a group of its own.
    fn send(&mut self, lane: LaneKey, task: (u32, Time), tier: Option<u32>, bump: Option<u8>) {
        let group = self.backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
        self.backlog.send(group, tier, bump, task);
        self.backlog.unpin(group);
    }

    /// Every free worker claims a task if there is one.
    fn start(&mut self) {
        while let Some(&worker) = self.free.first()
            && let Some(claim) = self.backlog.claim()
        {
            self.free.remove(&worker);
            let (task, takes) = claim.item;
            let (start, end) = (self.now, self.now + takes);
            let row = Row {
                task,
                worker,
                start,
                end,
            };
            self.log.push(row);
            self.running
                .push((row, claim.holds.group.unwrap(), claim.holds.tier));
        }
        assert!(self.free.is_empty() || self.backlog.eligible(u64::MAX) == 0);
    }

    /// Runs until `until`: tasks that end then have ended, and the next ones have started.
    fn run(&mut self, until: Time) {
        self.start();
        while let Some(next) = self.running.iter().map(|r| r.0.end).min()
            && next <= until
        {
            let at = self.running.iter().position(|r| r.0.end == next).unwrap();
            let (row, group, tier) = self.running.remove(at);
            self.now = next;
            self.free.insert(row.worker);
            self.backlog.complete(group, tier);
            // All tasks that end now end before the workers look again.
            if self.running.iter().all(|r| r.0.end > next) {
                self.start();
            }
        }
        if until < Time::MAX {
            self.now = until;
        }
    }

    fn run_on(&mut self) {
        self.run(Time::MAX);
        let counts = (self.backlog.waiting(), self.backlog.in_flight());
        assert_eq!((counts, self.backlog.group_count()), ((0, 0), 0));
    }

    fn order(&self) -> Vec<u32> {
        self.log.iter().map(|row| row.task).collect()
    }

    fn running(&self) -> Vec<u32> {
        let mut running: Vec<_> = self.running.iter().map(|r| r.0.task).collect();
        running.sort_unstable();
        running
    }

    fn starts(&self) -> Vec<(u32, Time)> {
        self.log.iter().map(|row| (row.task, row.start)).collect()
    }
}

fn own_level(n: u32) -> Option<u8> {
    n.is_multiple_of(10).then_some(n as u8)
}

/// Two workers, half a second apart, and requests of two seconds each.
fn conversations(bypass: Bypass, before_second: u32, before_third: u32) -> Loop {
    let mut sim = Loop::new(bypass, 1);
    let lane = sim.lane();
    let send = |sim: &mut Loop, from, to| {
        (from..to).for_each(|n| sim.send(lane, (n, 20), None, own_level(n)));
    };
    send(&mut sim, 0, 1);
    sim.run(5);
    send(&mut sim, 1, before_second);
    sim.free.insert(2);
    sim.run(10);
    send(&mut sim, before_second, before_third);
    sim.run_on();
    sim
}

fn unbumped() -> impl Iterator<Item = u32> {
    (1..100u32).filter(|n| !n.is_multiple_of(10))
}

#[test]
fn e1_bumps_before_and_after_the_second_dispatch() {
    for bypass in [Bypass::default(), Bypass::AtMost(9), Bypass::Unbounded] {
        let sim = conversations(bypass, 81, 100);
        let bumped = [0, 80, 90, 70, 60, 50, 40, 30, 20, 10];
        let expected: Vec<u32> = bumped.into_iter().chain(unbumped()).collect();
        assert_eq!(sim.order(), expected);
        let of = |worker| {
            let rows = sim.log.iter().filter(move |row| row.worker == worker);
            rows.map(|row| row.task).take(9).collect::<Vec<_>>()
        };
        assert_eq!(of(1), [0, 90, 60, 40, 20, 1, 3, 5, 7]);
        assert_eq!(of(2), [80, 70, 50, 30, 10, 2, 4, 6, 8]);
    }
}

#[test]
fn e1_needs_nine_overtakings() {
    let order = conversations(Bypass::AtMost(8), 81, 100).order();
    assert_eq!(order[..11], [0, 80, 90, 70, 60, 50, 40, 30, 20, 1, 10]);
}

#[test]
fn e2_all_bumps_before_the_second_dispatch() {
    let sim = conversations(Bypass::default(), 100, 100);
    let bumped = (0..10).map(|n| (10 - n) * 10 % 100);
    let expected: Vec<u32> = bumped.chain(unbumped()).collect();
    assert_eq!(sim.order()[..3], [0, 90, 80]);
    assert_eq!(sim.order(), expected);
}

#[test]
fn b2_two_workers_take_ten_tasks_of_ten_seconds() {
    let mut sim = Loop::new(Bypass::default(), 2);
    let lane = sim.lane();
    (1..=10).for_each(|n| sim.send(lane, (n, 100), None, None));
    sim.run(350);
    assert_eq!(sim.running(), [7, 8]);
    assert_eq!((sim.backlog.waiting(), sim.backlog.in_flight()), (2, 2));
    sim.run_on();
    let expected: Vec<_> = (1..=10)
        .map(|n| (n, u64::from((n - 1) / 2) * 100))
        .collect();
    assert_eq!(sim.starts(), expected);
    assert_eq!(sim.now, 500);
    assert_eq!(sim.log.iter().filter(|row| row.worker == 1).count(), 5);
}

/// When each caller, by number, is served first; each has 100 unit tasks.
fn first_served(lanes: usize, callers: u32) -> Vec<Time> {
    let mut sim = Loop::new(Bypass::default(), 5);
    let lanes: Vec<_> = (0..lanes).map(|_| sim.lane()).collect();
    for caller in 0..callers {
        let lane = lanes[caller as usize % lanes.len()];
        (0..100).for_each(|_| sim.send(lane, (caller, 10), None, None));
    }
    sim.run_on();
    let first = |c| sim.log.iter().find(|row| row.task == c).unwrap().start;
    (0..callers).map(first).collect()
}

#[test]
fn a_of_six_callers_on_five_workers_the_sixth_waits_one_second() {
    assert_eq!(first_served(6, 6), [0, 0, 0, 0, 0, 10]);
    // In one lane: first in, first out.
    assert_eq!(first_served(1, 6), [0, 200, 400, 600, 800, 1000]);
}

/// Sends the ten tasks in five tiers, all at once.
fn workload(workers: u32) -> Loop {
    let mut sim = Loop::new(Bypass::default(), workers);
    let lane = sim.lane();
    let tiers = [
        (4, 100, 101),
        (2, 200, 92),
        (1, 300, 83),
        (2, 400, 74),
        (1, 500, 65),
    ];
    let mut task = 0;
    for (count, tier, takes) in tiers {
        for _ in 0..count {
            task += 1;
            sim.send(lane, (task, takes), Some(tier), None);
        }
    }
    sim
}

#[test]
fn a2_tiers_run_in_waves() {
    let makespan = |workers| {
        let mut sim = workload(workers);
        sim.run_on();
        sim.now
    };
    let makespans: Vec<_> = (1..=5).map(makespan).collect();
    assert_eq!(makespans, [884, 516, 516, 415, 415]);
    let mut sim = workload(4);
    sim.run_on();
    let waves = [0, 0, 0, 0, 101, 101, 193, 276, 276, 350];
    let expected: Vec<_> = (1..=10).zip(waves).collect();
    assert_eq!(sim.starts(), expected);
}

#[test]
fn c1_what_runs_at_each_time() {
    let mut sim = workload(5);
    for (at, running) in [
        (50, &[1, 2, 3, 4][..]),
        (150, &[5, 6]),
        (220, &[7]),
        (300, &[8, 9]),
        (380, &[10]),
    ] {
        sim.run(at);
        assert_eq!(sim.running(), running, "at {at}");
    }
    let mut sim = workload(3);
    sim.run_on();
    let row = |task| *sim.log.iter().find(|row| row.task == task).unwrap();
    assert_eq!((row(4).start, row(4).end), (101, 202));
    assert_eq!((row(5).start, row(6).start, row(6).end), (202, 202, 294));
}

#[test]
fn d2_jobs_of_two_groups_with_limit_one() {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let named: Vec<_> = (0..2)
        .map(|_| backlog.add_group(lane, Limit::SERIAL, 100).unwrap())
        .collect();
    for job in 1..=12u32 {
        let group = match job % 4 {
            1 => named[0],
            3 => named[1],
            _ => backlog.add_group(lane, Limit::SERIAL, 100).unwrap(),
        };
        backlog.send(group, None, None, job);
    }
    let claim = |backlog: &mut Backlog<u32>, n| -> Vec<u32> {
        let claims = (0..n).map_while(|_| backlog.claim());
        claims.map(|claim| claim.item).collect()
    };
    assert_eq!(claim(&mut backlog, 6), [1, 2, 3, 4, 6, 8]);
    assert_eq!(claim(&mut backlog, 6), [10, 12]);
    assert_eq!((backlog.waiting(), backlog.eligible(u64::MAX)), (4, 0));
    backlog.complete(named[0], 0);
    assert_eq!(claim(&mut backlog, 6), [5]);
    backlog.complete(named[1], 0);
    assert_eq!(claim(&mut backlog, 6), [7]);
}
