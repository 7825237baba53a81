//! Random task lists and options, the same ones for the same seed.

use super::{Bypass, Options, Task, groups_of};

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).expect("fits");
        usize::try_from(self.next() % n).expect("fits")
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// An empty cell means `main`; the other names are there to be quoted or split wrongly.
const CALLERS: [&str; 6] = ["main", "a", "b", "c=1", "d, e", "Zoë \"q\""];
const GROUPS: [&str; 4] = ["g", "h", "i", "g,1"];

/// The character of a whole list, so that lists differ by more than their rows.
struct Flavour {
    callers: Vec<&'static str>,
    groups: usize,
    /// One row in this many is in a named group, has a bump, has a tier above 0.
    grouped: usize,
    bumped: usize,
    tiered: usize,
    levels: usize,
    last_arrival: usize,
    longest: usize,
}

fn flavour(random: &mut Random) -> Flavour {
    let first = random.below(CALLERS.len());
    let callers = 1 + random.below(4);
    let pick = |number: usize| CALLERS[(first + number) % CALLERS.len()];
    Flavour {
        callers: (0..callers).map(pick).collect(),
        groups: 1 + random.below(GROUPS.len()),
        grouped: random.pick(&[1, 2, 3, 1000]),
        bumped: random.pick(&[1, 2, 4, 1000]),
        tiered: random.pick(&[1, 2, 6, 1000]),
        levels: random.pick(&[1, 1, 2, 3, 256]),
        last_arrival: random.pick(&[0, 3, 10, 40, 80]),
        longest: random.pick(&[0, 1, 3, 6, 12]),
    }
}

/// A valid task list of 1 to 60 rows.
pub(crate) fn tasks(random: &mut Random) -> Vec<Task> {
    let flavour = flavour(random);
    let most = random.pick(&[12, 60]);
    let rows = 1 + random.below(most);
    let mut tasks: Vec<Task> = (0..rows).map(|_| task(random, &flavour)).collect();
    if random.one_in(20) {
        widen(random, &mut tasks);
    }
    raise_tiers(&mut tasks);
    tasks
}

fn task(random: &mut Random, flavour: &Flavour) -> Task {
    let grouped = random.one_in(flavour.grouped);
    let bumped = random.one_in(flavour.bumped);
    let tiered = random.one_in(flavour.tiered);
    let group = GROUPS[random.below(flavour.groups)];
    let level = random.below(flavour.levels) * 255 / flavour.levels.max(2);
    Task {
        caller: random.pick(&flavour.callers).to_owned(),
        tier: if tiered {
            random.pick(&[0, 1, 2, 3])
        } else {
            0
        },
        group: grouped.then(|| group.to_owned()),
        bump: bumped.then(|| u8::try_from(level).expect("a level")),
        arrive_ms: random.below(flavour.last_arrival + 1) as u64,
        duration_ms: random.below(flavour.longest + 1) as u64,
    }
}

/// The ends of the ranges.
fn widen(random: &mut Random, tasks: &mut [Task]) {
    for task in tasks {
        match random.below(8) {
            0 => task.tier = u32::MAX,
            1 => task.arrive_ms = u64::from(u32::MAX),
            2 => task.duration_ms = u64::from(u32::MAX),
            3 => task.bump = Some(255),
            _ => {}
        }
    }
}

/// Makes the list valid: in order of arrival, a group's tiers do not go down.
fn raise_tiers(tasks: &mut [Task]) {
    let groups = groups_of(tasks);
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| (tasks[task].arrive_ms, task));
    for group in 0..tasks.len() {
        let mut members: Vec<usize> = order.clone();
        members.retain(|&task| groups[task] == group);
        let mut tiers: Vec<u32> = members.iter().map(|&task| tasks[task].tier).collect();
        tiers.sort_unstable();
        for (task, tier) in members.into_iter().zip(tiers) {
            tasks[task].tier = tier;
        }
    }
}

/// Options for these tasks; weights only for callers that occur.
pub(crate) fn options(random: &mut Random, tasks: &[Task]) -> Options {
    let readers = 1 + random.below(5);
    let bypass = random.pick(&[0, 1, 2, 3, 64]);
    let cap = random.one_in(3).then(|| 1 + random.below(3));
    let mut weights: Vec<(String, u32)> = Vec::new();
    for task in tasks {
        let known = weights.iter().any(|(caller, _)| *caller == task.caller);
        if !known {
            weights.push((task.caller.clone(), random.pick(&[1, 1, 2, 3, 7])));
        }
    }
    if random.one_in(3) {
        weights.clear();
    }
    Options {
        readers,
        bypass: match bypass {
            0 => Bypass::Unbounded,
            most => Bypass::AtMost(most),
        },
        cap,
        weights,
    }
}
