//! Random operations on a lock table and on a naive one, which was written from the docs alone:
//! each result, hold, queue, deadlock and wake-up is compared.

mod deadlocks;
mod driver;
mod naive;
mod releases;
mod steps;

use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use conversant::lock_table::Resource;

/// A path from its root.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) Vec<u8>);

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        (self.0.len() > 1).then(|| Name(self.0[..self.0.len() - 1].to_vec()))
    }
}

impl Name {
    /// From the root down, without itself.
    pub(crate) fn ancestors(&self) -> Vec<Name> {
        (1..self.0.len())
            .map(|n| Name(self.0[..n].to_vec()))
            .collect()
    }
}

/// The same in each run.
#[derive(Default)]
pub(crate) struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3) ^ (self.0 >> 29);
        }
    }
}

pub(crate) type Hash = BuildHasherDefault<Fnv>;

pub(crate) fn hash(name: &Name) -> u64 {
    // The table spreads what it is given.
    let hash = Hash::default().hash_one(name);
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

#[test]
fn agrees_with_a_naive_table() {
    crate::seeds::each(150, steps::run);
}
