//! Entries: whatever comes and goes, its id and its name find an entry, and no other.

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};

use super::super::entries::{Entries, Entry, NodeId};
use super::super::index::Index;
use super::super::name::Gone;
use crate::modes::Mode::X;
use crate::slab::{Key, Slab};

/// Entries of names below 1,000, with three hashes for all, or with hashes that differ.
struct Known {
    entries: Entries<u32>,
    ids: BTreeMap<u32, NodeId>,
    gone: Vec<NodeId>,
    owner: Key,
    hash: fn(u32) -> u64,
}

impl Known {
    fn new(hash: fn(u32) -> u64) -> Self {
        Self {
            entries: Entries::new(),
            ids: BTreeMap::new(),
            gone: Vec::new(),
            owner: Slab::new().insert(()),
            hash,
        }
    }

    /// Whether its name finds it.
    fn is_there(&mut self, name: u32) -> bool {
        let hash = (self.hash)(name);
        let found = self.entries.find(hash, |entry| entry.is(hash, &name));
        found.is_some_and(|entry| entry.id == self.ids[&name])
    }

    fn change(&mut self, name: u32) {
        match self.ids.remove(&name) {
            Some(id) => {
                let entry = self.entries.get_mut(id).expect("it is there");
                assert!(entry.name.is(&name));
                entry.holders.leave(self.owner);
                self.entries.remove(id, &mut Gone::new());
                self.gone.push(id);
            }
            None => {
                let hash = (self.hash)(name);
                let id = self.entries.insert(hash, name, self.owner, X);
                self.ids.insert(name, id);
            }
        }
    }

    fn check(&mut self) {
        assert_eq!(self.entries.len(), self.ids.len());
        assert_eq!(self.entries.iter_mut().count(), self.ids.len());
        for (name, id) in self.ids.clone() {
            let entry = self.entries.get_mut(id).expect("it is there");
            assert!(entry.name.is(&name) && entry.id == id);
            assert!(self.is_there(name));
        }
        for &id in &self.gone {
            assert!(self.entries.get_mut(id).is_none(), "{id:?} is gone");
        }
    }
}

#[test]
fn they_are_found_whatever_comes_and_goes() {
    let few: fn(u32) -> u64 = |name| u64::from(name % 3);
    let spread: fn(u32) -> u64 = |name| u64::from(name) << 40 | u64::from(name * 7);
    for hash in [few, spread] {
        let mut known = Known::new(hash);
        // Many come, and most go in another order, so that the table shrinks; then again.
        for (most, step) in [(40, 7), (300, 11), (90, 1), (1_000, 17)] {
            (0..most).for_each(|name| known.change(name));
            known.check();
            for at in 0..most - 3 {
                // The first entry, which stands in front, is among the last to go.
                known.change((at * step + 1) % most);
                if at % 16 == 0 || at + 20 > most {
                    known.check();
                }
            }
            let room = known.entries.capacity();
            assert!(room < 64, "{room} of {most}");
            for name in known.ids.clone().into_keys() {
                known.change(name);
            }
            known.check();
        }
    }
}

/// In memory, the lock with its note is before the index.
#[test]
fn what_changes_with_one_entry_and_its_holder_is_on_the_line_after_the_lock() {
    let born = offset_of!(Index<u64>, entries) + offset_of!(Entries<u64>, born);
    assert_eq!(size_of::<u64>() + born, 64);
    let holder = offset_of!(Entry<u64>, holders);
    let holders_end = holder + size_of::<Option<(Key, crate::modes::Mode)>>();
    assert!(size_of::<u64>() + holders_end <= 64, "{holders_end}");
}
