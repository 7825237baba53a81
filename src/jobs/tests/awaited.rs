//! What claims wait for: a fresh count, and how many parts an event looks at.

use std::collections::BTreeMap;

use crate::jobs::{Jobs, Pinned, Place, Scope, Waits};
use crate::limit::Limit;
use crate::retry::Retry;

use super::{Small, add};

impl<K: Ord, J> Jobs<K, J> {
    pub(super) fn check_awaited(&self) {
        let all = &self.awaited;
        let awaited = self.groups.iter().filter(|(_, group)| group.waits.is_any());
        assert_eq!(all.parts, awaited.count());
        assert!(all.parts > 0 || all.tenants.is_empty());
        let notified = all.tenants.values().map(|parts| parts.notified);
        assert_eq!(all.notified, notified.sum::<u64>());
        let is_marked = |tenant| !all.tenants[tenant].marked.is_empty();
        assert!(all.open.iter().all(is_marked));
        let mut notified = BTreeMap::<_, u64>::new();
        for (key, group) in self.groups.iter() {
            let of = &self.tenants[group.tenant];
            let Waits {
                asleep,
                notified: own,
            } = group.waits;
            *notified.entry(group.tenant).or_default() += u64::from(own);
            let wanted = match group.is_named {
                true => u64::from(group.counted),
                false => of.units,
            };
            if asleep > 0 && wanted > u64::from(own) {
                let parts = &all.tenants[&group.tenant];
                assert!(parts.marked.contains(&Pinned(key)));
                let has_room = u64::from(of.limit.room(of.running)) > parts.notified;
                assert!(!has_room || all.open.contains(&group.tenant));
            }
        }
        for (tenant, parts) in &all.tenants {
            assert_eq!(parts.notified, notified[tenant]);
        }
    }
}

const ASLEEP: Waits = Waits {
    asleep: 1,
    notified: 0,
};

/// Room that comes back looks at no part that has no jobs, nor at one in a tenant without room.
#[test]
fn room_looks_at_the_parts_that_want_it() {
    let mut jobs = Small::new(Limit::Unlimited, Retry::default());
    jobs.set_limit(Scope::Queue, 0.into()).unwrap();
    for name in 0..9_u64 {
        let part = jobs.pin(&name.into());
        jobs.waits_changed(part, ASLEEP);
        let place = Place::new().tenant(name);
        if name % 3 == 0 {
            let id = add(&mut jobs, 1, place, 1);
            jobs.remove(id).unwrap();
        } else if name % 3 == 1 {
            jobs.set_limit(Scope::tenant(name), 0.into()).unwrap();
            add(&mut jobs, 1, place, 1);
        }
        jobs.check();
    }
    assert!(jobs.awaited.open.is_empty());
    jobs.set_limit(Scope::Queue, 1.into()).unwrap();
    assert!(jobs.next_look().is_none());
    jobs.set_limit(Scope::tenant(4_u64), 1.into()).unwrap();
    let look = jobs.next_look().unwrap();
    assert_eq!((look.wanted, look.room), (1, 1));
    assert_eq!(jobs.scope_of(look.of), Scope::tenant(4_u64));
}
