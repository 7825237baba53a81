//! An owner of the naive manager: what it holds by name, and what the table must hold for that.

use std::collections::BTreeMap;

use super::{Mode, Path};

#[derive(Clone, Default)]
pub(super) struct Person {
    pub(super) priority: i32,
    pub(super) retries: usize,
    /// The number of its last renewal, among those of all owners.
    pub(super) renewed: usize,
    /// What was granted by name.
    pub(super) own: BTreeMap<Path, Own>,
    pub(super) saved: Vec<BTreeMap<Path, Own>>,
    /// What is still to be taken, and the state to go back to.
    pub(super) todo: Vec<(Path, Mode)>,
    pub(super) asked: Vec<(Path, Mode)>,
    pub(super) before: BTreeMap<Path, Mode>,
    pub(super) state: State,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Own {
    pub(super) mode: Mode,
    pub(super) count: u64,
    pub(super) cover: Option<Path>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum State {
    #[default]
    Idle,
    Waits,
    /// It waits, and is to retry.
    Notified,
    /// Its request was granted, and its task has not run since.
    Granted,
    Victim,
}

impl State {
    /// Whether its task was woken and has not run since.
    pub(super) fn is_told(self) -> bool {
        matches!(self, Self::Notified | Self::Granted | Self::Victim)
    }
}

fn ancestors(path: &Path) -> Vec<Path> {
    (1..path.0.len())
        .map(|n| Path(path.0[..n].to_vec()))
        .collect()
}

impl Person {
    /// What the table must hold for these: it follows from all that are real.
    pub(super) fn needed(own: &BTreeMap<Path, Own>) -> BTreeMap<Path, Mode> {
        let mut needed: BTreeMap<Path, Mode> = BTreeMap::new();
        let mut add = |path: Path, mode: Mode| {
            let had = needed.get(&path).copied();
            needed.insert(path, had.map_or(mode, |had| had.join(mode)));
        };
        for (path, own) in own.iter().filter(|(_, own)| own.cover.is_none()) {
            add(path.clone(), own.mode);
            for above in ancestors(path) {
                add(above, own.mode.parent_needs());
            }
        }
        needed
    }

    /// The state after these are granted.
    pub(super) fn with(&self, asked: &[(Path, Mode)]) -> BTreeMap<Path, Own> {
        let mut own = self.own.clone();
        // Several requests for one resource are one for their join.
        let mut joined: BTreeMap<&Path, (Mode, u64)> = BTreeMap::new();
        for (path, mode) in asked {
            let (had, times) = joined.get(path).copied().unwrap_or((*mode, 0));
            joined.insert(path, (had.join(*mode), times + 1));
        }
        // Whether it is covered depends on what was held before the request.
        for (path, (mode, times)) in joined {
            let real = Self::needed(&self.own).contains_key(path);
            let had = own.get(path).cloned();
            let joined = had.as_ref().map_or(mode, |had| had.mode.join(mode));
            let covers = |above: &Path| {
                let above = self.own.get(above);
                above.is_some_and(|above| above.mode.covers_below(joined))
            };
            let cover = match had.as_ref().map(|had| had.cover.clone()) {
                _ if real => None,
                Some(Some(cover)) => Some(cover).filter(covers),
                Some(None) => None,
                None => ancestors(path).into_iter().find(covers),
            };
            let count = had.map_or(0, |had| had.count) + times;
            let mode = joined;
            own.insert(path.clone(), Own { mode, count, cover });
        }
        // What is needed as an ancestor of something real is itself real.
        let real = Self::needed(&own);
        for (path, own) in &mut own {
            if real.contains_key(path) {
                own.cover = None;
            }
        }
        own
    }

    pub(super) fn covers_something(&self, path: &Path, with: Option<Mode>) -> bool {
        let below = self
            .own
            .values()
            .filter(|own| own.cover.as_ref() == Some(path));
        below
            .into_iter()
            .any(|own| !with.is_some_and(|with| with.covers_below(own.mode)))
    }
}
