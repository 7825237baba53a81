//! Paths that share names become one.

use hashbrown::HashTable;

use super::step::Step;

/// Whether a path has a name twice.
pub(super) fn has_repeats<K: Eq>(path: &[Step<K>]) -> bool {
    let twice = |(n, step): (usize, &Step<K>)| path[..n].iter().any(|below| below.is(step));
    path.iter().enumerate().any(twice)
}

/// Several paths in one: each node once, by (depth, hash), where it is least deep.
pub(super) fn merged<K: Eq>(steps: Vec<Step<K>>) -> Vec<Step<K>> {
    let mut positions = vec![0_u32; steps.len()];
    let mut known = HashTable::with_capacity(steps.len());
    let mut numbered: Vec<(usize, Step<K>)> = steps.into_iter().enumerate().collect();
    numbered.sort_by_key(|(_, step)| (step.depth, step.hash));
    let mut merged: Vec<Step<K>> = Vec::new();
    for (number, mut step) in numbered {
        let is_it = |&at: &usize| merged[at].is(&step);
        if let Some(&same) = known.find(step.hash, is_it) {
            positions[number] = same as u32;
            let parent = step.parent.map(|parent| positions[parent as usize]);
            // One less deep, so that no name is below itself.
            let parent = parent.filter(|&up| merged[up as usize].depth < merged[same].depth);
            let found = &mut merged[same];
            found.asked = match (found.asked, step.asked) {
                (Some((one, n)), Some((other, m))) => Some((one.join(other), n + m)),
                (one, other) => one.or(other),
            };
            // What is held as it is has none; another way has more to do there.
            found.parent = found.parent.or(parent);
        } else {
            // Less deep, so it has its position already.
            step.parent = step.parent.map(|parent| positions[parent as usize]);
            positions[number] = merged.len() as u32;
            let rehash = |&at: &usize| merged[at].hash;
            known.insert_unique(step.hash, merged.len(), rehash);
            merged.push(step);
        }
    }
    merged
}
