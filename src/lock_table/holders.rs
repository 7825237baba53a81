//! The owners that hold one resource, and in which modes.
//!
//! State: the first few holders in place, the others in a map of their own with a count per mode. A
//! resource with at most three holders allocates nothing.
//!
//! Invariants:
//! 1. The modes of two holders are compatible.
//! 2. An owner is in here once, in place or in the map; the map is never empty.
//! 3. `counts` says how often each mode occurs in the map.

use std::collections::BTreeMap;

use super::owners::OwnerKey;
use crate::modes::Mode;

const FEW: usize = 3;

#[derive(Default)]
#[repr(C)]
pub(super) struct Holders {
    few: [Option<(OwnerKey, Mode)>; FEW],
    many: Option<Box<Many>>,
}

#[derive(Default)]
struct Many {
    map: BTreeMap<OwnerKey, Mode>,
    counts: [u32; Mode::ALL.len()],
}

impl Holders {
    pub(super) const fn new() -> Self {
        Self {
            few: [None; FEW],
            many: None,
        }
    }

    /// Sets the first holder, where there is none.
    #[inline]
    pub(super) fn set_first(&mut self, owner: OwnerKey, mode: Mode) {
        self.few[0] = Some((owner, mode));
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.few.iter().all(Option::is_none) && self.many.is_none()
    }

    pub(super) fn len(&self) -> usize {
        let many = self.many.as_ref().map_or(0, |many| many.map.len());
        self.few.iter().flatten().count() + many
    }

    /// Adds an owner that held nothing.
    #[inline]
    pub(super) fn add(&mut self, owner: OwnerKey, mode: Mode) {
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some((owner, mode)),
            None => drop(self.many.get_or_insert_default().set(owner, Some(mode))),
        }
    }

    /// Removes an owner: it holds nothing any more.
    #[inline]
    pub(super) fn leave(&mut self, owner: OwnerKey) {
        match &mut self.few[0] {
            Some((first, _)) if *first == owner => self.few[0] = None,
            _ => drop(self.set(owner, None)),
        }
    }

    pub(super) fn held(&self, owner: OwnerKey) -> Option<Mode> {
        let few = self.few.iter().flatten().find(|(who, _)| *who == owner);
        let many = || self.many.as_ref()?.map.get(&owner).copied();
        few.map(|&(_, mode)| mode).or_else(many)
    }

    /// Sets what an owner holds; returns what it held.
    pub(super) fn set(&mut self, owner: OwnerKey, mode: Option<Mode>) -> Option<Mode> {
        let is_owner =
            |place: &&mut Option<(OwnerKey, Mode)>| place.is_some_and(|(who, _)| who == owner);
        if let Some(place) = self.few.iter_mut().find(is_owner) {
            let before = place.map(|(_, mode)| mode);
            *place = mode.map(|mode| (owner, mode));
            return before;
        }
        if let Some(many) = &mut self.many
            && many.map.contains_key(&owner)
        {
            let before = many.set(owner, mode);
            if many.map.is_empty() {
                self.many = None;
            }
            return before;
        }
        self.add(owner, mode?);
        None
    }

    /// Whether what all other owners hold is compatible with `mode`.
    #[inline]
    pub(super) fn fit(&self, owner: OwnerKey, mode: Mode) -> bool {
        let clear = |&(who, held): &(OwnerKey, Mode)| who == owner || held.compatible(mode);
        self.few.iter().flatten().all(clear)
            && self.many.as_ref().is_none_or(|many| many.fit(owner, mode))
    }

    /// The owners whose modes conflict with `mode`. A step for each in the map, if any there does.
    pub(super) fn conflicting(&self, mode: Mode) -> impl Iterator<Item = OwnerKey> {
        let few = self.few.iter().flatten().copied();
        let many = self.many.iter().filter(move |many| !many.fits(mode, None));
        let many = many.flat_map(|many| many.map.iter().map(|(&owner, &held)| (owner, held)));
        let those = few
            .chain(many)
            .filter(move |(_, held)| !held.compatible(mode));
        those.map(|(owner, _)| owner)
    }

    /// All holders, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (OwnerKey, Mode)> {
        let many = self.many.iter().flat_map(|many| &many.map);
        let few = self.few.iter().flatten().copied();
        few.chain(many.map(|(&owner, &mode)| (owner, mode)))
    }
}

impl Many {
    fn set(&mut self, owner: OwnerKey, mode: Option<Mode>) -> Option<Mode> {
        let before = match mode {
            Some(mode) => self.map.insert(owner, mode),
            None => self.map.remove(&owner),
        };
        if let Some(before) = before {
            self.counts[before as usize] -= 1;
        }
        if let Some(mode) = mode {
            self.counts[mode as usize] += 1;
        }
        before
    }

    fn fit(&self, owner: OwnerKey, mode: Mode) -> bool {
        self.fits(mode, self.map.get(&owner).copied())
    }

    /// As `fit`, for an owner that has this mode in the map.
    fn fits(&self, mode: Mode, held: Option<Mode>) -> bool {
        Mode::ALL.into_iter().all(|other| {
            let own = u32::from(held == Some(other));
            self.counts[other as usize] == own || other.compatible(mode)
        })
    }
}
