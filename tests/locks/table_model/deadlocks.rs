//! Who waits for whom in the naive table.

use conversant::lock_table::{Deadlock, OwnerId};

use super::Name;
use super::naive::{Naive, Stand};

impl Naive {
    /// Whether the owner waits for itself.
    pub(crate) fn is_in_cycle(&self, owner: usize) -> bool {
        let (mut seen, mut next) = (Vec::new(), vec![owner]);
        while let Some(it) = next.pop() {
            let Some(name) = self.queued(it) else {
                continue;
            };
            for (id, ..) in self.blockers(&name, it) {
                let other = self.by_id(id);
                if other == owner {
                    return true;
                }
                if !seen.contains(&other) {
                    seen.push(other);
                    next.push(other);
                }
            }
        }
        false
    }

    /// The real table found this deadlock: whether there is one, with this victim. It gives up.
    pub(crate) fn deadlock(&mut self, found: &Deadlock<Name>) -> usize {
        let n = found.cycle.len();
        for (at, link) in found.cycle.iter().enumerate() {
            let owner = self.by_id(link.owner);
            let name = self.queued(owner).expect("in a cycle, and does not wait");
            let holds = self.owners[&owner]
                .holds
                .get(&name)
                .and_then(|hold| hold.table);
            assert_eq!(
                (&*link.resource, link.asks, link.holds),
                (&name, self.asks(owner), holds)
            );
            assert_eq!(link.blocked_by, found.cycle[(at + 1) % n].owner);
            let edge = (link.blocked_by, link.in_mode, link.cause);
            assert!(
                self.blockers(&name, owner).contains(&edge),
                "{edge:?} {self:#?}"
            );
        }
        let weight = |id: OwnerId| {
            let it = &self.owners[&self.by_id(id)];
            (
                it.priority,
                it.retries,
                it.locks(),
                std::cmp::Reverse(it.age),
            )
        };
        let least = found
            .cycle
            .iter()
            .map(|link| link.owner)
            .min_by_key(|&id| weight(id));
        assert_eq!(Some(found.victim), least, "victim {found:?} {self:#?}");
        let victim = self.by_id(found.victim);
        self.fail(victim, Stand::Dead);
        self.scan();
        victim
    }

    fn by_id(&self, id: OwnerId) -> usize {
        *self
            .owners
            .iter()
            .find(|it| it.1.id == id)
            .expect("an owner that is gone")
            .0
    }
}
