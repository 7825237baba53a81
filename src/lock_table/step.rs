//! One resource of a path: what is to be done about it; and paths that share names become one.

use hashbrown::HashTable;

use super::entries::NodeId;
use super::hold::HoldId;
use super::owners::OwnerKey;
use super::shards::Locked;
use crate::modes::Mode;

pub(super) struct Step<K> {
    /// None once it is in the holds.
    pub(super) key: Option<K>,
    /// For the table's entry, if that has to be made.
    pub(super) name: Option<K>,
    /// Spread.
    pub(super) hash: u64,
    pub(super) depth: u32,
    /// Which step has its parent; none of a root, and of what is held as it is.
    pub(super) parent: Option<u32>,
    pub(super) hold: Option<HoldId>,
    /// Its owner holds nothing, and keeps the intent.
    pub(super) idle: bool,
    /// The join of the modes asked for it by name, and how many there were.
    pub(super) asked: Option<(Mode, u64)>,
    /// To be held in the table in at least this mode.
    pub(super) mode: Option<Mode>,
    /// What its owner has there, or keeps.
    pub(super) had: Option<Mode>,
    pub(super) node: Option<NodeId>,
    /// Recorded, and no more.
    pub(super) cover: Option<HoldId>,
}

impl<K> Step<K> {
    #[inline]
    pub(super) fn of(key: K, hash: u64) -> Self {
        Self {
            hash,
            key: Some(key),
            name: None,
            depth: 0,
            parent: None,
            hold: None,
            idle: false,
            asked: None,
            mode: None,
            had: None,
            node: None,
            cover: None,
        }
    }

    #[inline]
    pub(super) fn key(&self) -> &K {
        self.key.as_ref().expect("not in the holds yet")
    }

    /// Whether both are of one resource.
    #[inline]
    pub(super) fn is(&self, other: &Self) -> bool
    where
        K: Eq,
    {
        self.hash == other.hash && self.key == other.key
    }

    /// The mode to be asked for in the table, if that is more than it holds there.
    #[inline]
    pub(super) fn raised(&self) -> Option<Mode> {
        self.mode.filter(|_| self.had != self.mode)
    }

    /// A name for the entry that may have to be made.
    #[inline]
    pub(super) fn name_new(&mut self)
    where
        K: Clone,
    {
        if self.mode.is_some() && self.had.is_none() {
            self.name.clone_from(&self.key);
        }
    }

    /// Makes its entry.
    #[inline]
    pub(super) fn insert(
        &mut self,
        locked: &mut Locked<'_, K>,
        owner: OwnerKey,
        mode: Mode,
    ) -> NodeId {
        let name = self.name.take().expect("made for this");
        let entries = &mut locked.index(self.hash).entries;
        let id = entries.insert(self.hash, name, owner, mode);
        *self.node.insert(id)
    }

    /// It is needed in this mode, too.
    pub(super) fn want(&mut self, mode: Mode) {
        self.mode = Some(self.mode.map_or(mode, |wanted| wanted.join(mode)));
    }
}

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
