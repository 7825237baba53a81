//! How the naive table releases.

use conversant::modes::Mode;

use super::Name;
use super::naive::Naive;

impl Naive {
    /// 0: done; otherwise the number of the error: not held, still covers, not weaker.
    pub(crate) fn release(&mut self, owner: usize, name: &Name) -> u8 {
        let it = self.owners.get_mut(&owner).unwrap();
        let grants = it.holds.get(name).map_or(0, |hold| hold.grants);
        if grants == 0 {
            return 1;
        }
        if grants == 1 && it.bare(name, None) {
            return 2;
        }
        let hold = it.holds.get_mut(name).unwrap();
        hold.grants -= 1;
        for saved in &mut it.saved {
            saved
                .entry(name.clone())
                .and_modify(|it| it.0 = it.0.min(grants - 1));
        }
        if grants == 1 {
            hold.granted = None;
            it.fall();
        }
        self.scan();
        0
    }

    pub(crate) fn downgrade(&mut self, owner: usize, name: &Name, mode: Mode) -> u8 {
        let it = self.owners.get_mut(&owner).unwrap();
        let Some(hold) = it.holds.get(name).filter(|hold| hold.grants > 0) else {
            return 1;
        };
        if !hold.granted.unwrap().covers(mode) {
            return 3;
        }
        if it.bare(name, Some(mode)) {
            return 2;
        }
        it.holds.get_mut(name).unwrap().granted = Some(mode);
        for saved in &mut it.saved {
            saved
                .entry(name.clone())
                .and_modify(|it| it.1 = it.1.meet(mode));
        }
        it.fall();
        self.scan();
        0
    }

    pub(crate) fn release_to(&mut self, owner: usize, savepoint: usize) {
        let it = self.owners.get_mut(&owner).unwrap();
        let saved = it.saved[savepoint].clone();
        for (name, hold) in &mut it.holds {
            let (grants, mode) = saved.get(name).copied().unwrap_or((0, Mode::Is));
            hold.grants = grants;
            hold.granted = (grants > 0).then_some(mode);
            for later in &mut it.saved[savepoint + 1..] {
                let cap = |it: &mut (u64, Mode)| *it = (it.0.min(grants), it.1.meet(mode));
                later.entry(name.clone()).and_modify(cap);
            }
        }
        it.fall();
        self.scan();
    }

    pub(crate) fn release_all(&mut self, owner: usize) {
        let it = self.owners.get_mut(&owner).unwrap();
        it.holds.clear();
        it.saved
            .iter_mut()
            .flat_map(|saved| saved.values_mut())
            .for_each(|it| it.0 = 0);
        it.retries = 0;
        self.scan();
    }
}
