//! The policy against a naive scan, its figures, and an `Ord` that panics.

mod awaited;
mod naive;
mod ord;
mod random;

use std::time::Duration;

use super::records::State;
use super::*;

/// A job queue's policy with small numbers in it.
type Small = Jobs<u8, u32>;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn try_add<K: Ord, J>(
    jobs: &mut Jobs<K, J>,
    key: K,
    place: Place,
    job: J,
) -> Result<Key, PushReason> {
    let mut entering = (Some((key, job)), place);
    let pushed = jobs.push((&mut entering, 0), false, || Ok(()));
    pushed.map(|(id, _)| id)
}

fn add<K: Ord, J>(jobs: &mut Jobs<K, J>, key: K, place: Place, job: J) -> Key {
    try_add(jobs, key, place, job).expect("no duplicate")
}

impl<K: Ord, J> Jobs<K, J> {
    /// Checks the invariants by a fresh count of everything.
    pub(crate) fn check(&self) {
        self.check_awaited();
        let (mut waiting, mut later, mut running, mut dead) = (0, 0, 0, 0);
        for (_, job) in self.jobs.iter() {
            let timer = job.rare.as_ref().and_then(|rare| rare.timer);
            match job.state {
                State::Ready => waiting += 1,
                State::Later => (waiting, later) = (waiting + 1, later + 1),
                State::Claimed => running += 1,
                State::Dead => dead += 1,
                State::Uncounted => panic!("a job is neither here nor there"),
            }
            let may_ring = matches!(job.state, State::Later | State::Claimed);
            assert!(job.state != State::Later || timer.is_some());
            assert_eq!(may_ring && timer.is_some(), timer.is_some());
            let waits = job.dirty && job.state == State::Ready;
            assert!(waits || job.links.is_in() == (job.state == State::Ready));
        }
        let counts = (self.waiting(), self.later, self.running, self.dead.len());
        assert_eq!(counts, (waiting, later, running, dead));
        let unreported = self.dead.range(self.reported + 1..);
        assert_eq!(self.unreported, unreported.count());
        assert_eq!(self.names.len(), self.tenants.len());
        let mut open = 0;
        for (key, tenant) in self.tenants.iter() {
            open += self.check_tenant(key.index(), tenant);
        }
        assert_eq!(self.open, open);
        assert!(self.open == 0 || self.ring.current().is_some());
        let groups = self
            .tenants
            .iter()
            .map(|(_, tenant)| 1 + tenant.groups.len());
        assert_eq!(groups.sum::<usize>(), self.groups.len());
    }

    fn check_tenant(&self, at: u32, tenant: &Tenant) -> u64 {
        let mine = |job: &&Job<K, J>| self.groups[job.group].tenant == at;
        let jobs = || self.jobs.iter().map(|(_, job)| job).filter(mine);
        let own = &self.groups[tenant.own.index()];
        assert!(!own.is_named && own.front == NO_INDEX && own.order.is_empty());
        assert_eq!((own.tenant, own.limit), (at, Limit::Unlimited));
        let mut units = 0;
        for group in tenant
            .groups
            .values()
            .map(|key| key.index())
            .chain([tenant.own.index()])
        {
            units += self.check_group(group, &self.groups[group]);
        }
        assert_eq!(tenant.units, units);
        let groups = tenant.groups.values().chain([&tenant.own]);
        let awaited = groups.filter(|key| self.groups[key.index()].waits.is_any());
        assert_eq!(tenant.awaited as usize, awaited.count());
        let room = u64::from(tenant.limit.room(tenant.running));
        assert_eq!(tenant.counted, units.min(room));
        assert_eq!(tenant.link.is_member(), tenant.counted > 0);
        assert!(!self.is_unused(tenant) || tenant.name == Name::default());
        let has_name = |job: &&Job<K, J>| {
            let name = job.rare.as_ref().and_then(|rare| rare.unique.as_ref());
            name.is_some() && job.state != State::Dead
        };
        let unique = jobs().filter(has_name);
        assert_eq!(tenant.unique.len(), unique.count());
        let running = jobs().filter(|job| job.state == State::Claimed);
        assert_eq!(tenant.running as usize, running.count());
        for part in tenant.claimable.parts(&self.jobs) {
            assert!(
                part.is_sorted_by(|&one, &next| compare(&self.jobs[one], &self.jobs[next]).is_lt())
            );
            for index in part {
                let job = &self.jobs[index];
                assert!(job.links.is_in() && job.state == State::Ready);
                let group = &self.groups[job.group];
                assert!(group.tenant == at && group.counted > 0);
                assert!(!group.is_named || group.front == index);
            }
        }
        tenant.counted
    }

    fn check_group(&self, at: u32, group: &Group) -> u64 {
        let jobs = || self.jobs.iter().filter(|(_, job)| job.group == at);
        assert_eq!(jobs().count(), group.members as usize);
        let is_needed = !group.is_idle() || group.limit != self.group_limit;
        assert!(is_needed || !group.is_named);
        let ready = jobs().filter(|(_, job)| job.state == State::Ready).count();
        assert_eq!(group.ready as usize, ready);
        assert_eq!(
            group.counted,
            group.ready.min(group.limit.room(group.running))
        );
        let front = Some(group.front).filter(|&front| front != NO_INDEX);
        let mut in_order = usize::from(front.is_some());
        for part in group.order.parts(&self.jobs) {
            in_order += part.len();
            let all: Vec<u32> = front.into_iter().chain(part).collect();
            assert!(
                all.is_sorted_by(|&one, &next| compare(&self.jobs[one], &self.jobs[next]).is_lt())
            );
            for index in all {
                let job = &self.jobs[index];
                assert!(job.group == at && job.links.is_in() && job.state == State::Ready);
            }
        }
        let in_no_order = |job: &Job<K, J>| job.state == State::Ready && !job.links.is_in();
        let dirty = jobs().filter(|(_, job)| in_no_order(job)).count();
        let is_line = |job: &Job<K, J>| job.state == State::Ready && job.links.is_in();
        if !group.is_named {
            in_order = jobs().filter(|(_, job)| is_line(job)).count();
        }
        assert_eq!(ready, in_order + dirty);
        assert!(group.counted > 0 || front.is_none());
        assert!(
            !group.lacks_front() || group.dirty,
            "one that should be in claimable is forgotten"
        );
        u64::from(group.counted)
    }
}

/// A job's name in the queue of these tests.
fn named(key: Key) -> JobId {
    JobId { queue: 0, key }
}

/// The scope that random numbers stand for: the queue, a tenant or a group.
pub(crate) fn scope(which: u8, tenant: u64, group: u64) -> Scope {
    match which {
        0 => Scope::Queue,
        1 => Scope::tenant(tenant),
        _ => Scope::group_of(tenant, group),
    }
}

/// Claims jobs, and returns the claims.
fn claim<K: Ord, J>(
    jobs: &mut Jobs<K, J>,
    of: Option<Pinned>,
    n: usize,
    lease: Option<Duration>,
) -> Vec<Pick> {
    if n == 1 {
        let pick = jobs.claim_one(of, lease, |pick, _| pick);
        return pick.into_iter().collect();
    }
    let put_back = |jobs: &mut Jobs<K, J>, pick| _ = jobs.unpick(pick);
    jobs.claim((of, n, lease), |pick, _| pick, put_back)
}

/// The same, and checks the invariants.
fn claimed(jobs: &mut Small, n: usize) -> Vec<Pick> {
    let picks = claim(jobs, None, n, None);
    jobs.check();
    picks
}

fn numbers(jobs: &Small, picks: &[Pick]) -> Vec<u32> {
    let number = |pick: &Pick| jobs.jobs[pick.id.index()].data;
    picks.iter().map(number).collect()
}

#[test]
fn a_group_with_several_units_is_claimed_in_exact_key_order() {
    let mut jobs = Small::new(Limit::AtMost(2), Retry::default());
    for (key, group) in [(1, 1), (5, 1), (3, 1), (2, 2), (4, 2), (6, 2)] {
        add(&mut jobs, key, Place::new().group(group), u32::from(key));
    }
    assert_eq!(jobs.eligible(), 4);
    let picks = claimed(&mut jobs, 10);
    assert_eq!(numbers(&jobs, &picks), [1, 2, 3, 4]);
    jobs.complete(picks[2]).unwrap();
    let next = claimed(&mut jobs, 10);
    assert_eq!(numbers(&jobs, &next), [5]);
}

/// What follows several ended jobs is put in order at once, each in its tenant's own line.
#[test]
fn of_many_that_end_at_once_the_next_are_in_line() {
    let mut jobs = Small::new(Limit::SERIAL, Retry::default());
    for round in 0..3 {
        for key in 0..6 {
            let place = Place::new()
                .tenant(u64::from(key % 2))
                .group(u64::from(key / 2));
            add(&mut jobs, 6 * round + key, place, 0);
        }
    }
    for round in 0..3 {
        let picks = claimed(&mut jobs, 10);
        let keys: Vec<_> = picks
            .iter()
            .map(|pick| *jobs.key(pick.id).unwrap())
            .collect();
        assert_eq!(keys, [0, 1, 2, 3, 4, 5].map(|key| 6 * round + key));
        // The jobs of one tenant, then those of the other.
        for pick in picks
            .iter()
            .step_by(2)
            .chain(picks.iter().skip(1).step_by(2))
        {
            jobs.complete(*pick).unwrap();
        }
        jobs.check();
    }
}

#[test]
fn a_date_that_has_passed_is_not_remembered() {
    let mut jobs = Small::new(Limit::SERIAL, Retry::default());
    let id = add(&mut jobs, 1, Place::new().due(at(0)), 0);
    assert!(jobs.jobs[id.index()].rare.is_none());
}

#[test]
fn lowering_leaves_a_debt_and_zero_is_a_pause() {
    let mut jobs = Small::new(Limit::AtMost(3), Retry::default());
    for key in 1..=6 {
        add(&mut jobs, key, Place::new().group("g"), u32::from(key));
    }
    let group = Scope::group("g");
    let picks = claimed(&mut jobs, 3);
    jobs.set_limit(group.clone(), Limit::AtMost(1)).unwrap();
    jobs.complete(picks[0]).unwrap();
    jobs.complete(picks[1]).unwrap();
    assert_eq!(jobs.eligible(), 0);
    jobs.complete(picks[2]).unwrap();
    assert_eq!(jobs.eligible(), 1);
    jobs.set_limit(group.clone(), Limit::AtMost(0)).unwrap();
    assert_eq!(jobs.eligible(), 0);
    jobs.set_limit(group.clone(), Limit::Unlimited).unwrap();
    let picks = claimed(&mut jobs, 9);
    assert_eq!(numbers(&jobs, &picks), [4, 5, 6]);
    assert!(jobs.set_limit(group, Limit::AtMost(u32::MAX)).is_err());
}

/// Where jobs come one at a time, it is not made for each of them.
#[test]
fn the_default_tenant_stays_unlisted() {
    let mut jobs = Jobs::new(Limit::SERIAL, Retry::default());
    let mut slots = Vec::new();
    for n in 0..3 {
        add(&mut jobs, n, Place::new(), n);
        assert_eq!(jobs.tenants().count(), 1);
        slots.extend(jobs.names.values().copied());
        let picks = claim(&mut jobs, None, 1, None);
        jobs.complete(picks[0]).unwrap();
        assert_eq!(jobs.tenants().count(), 0);
    }
    assert_eq!((jobs.names.len(), jobs.groups.len()), (1, 1));
    assert!(slots == [slots[0]; 3]);
}

#[test]
fn names_used_once_leave_nothing() {
    let mut jobs = Jobs::new(Limit::SERIAL, Retry::default());
    let names = if cfg!(debug_assertions) {
        100_000
    } else {
        1_000_000
    };
    for n in 0..names {
        let place = Place::new().tenant(1 + n % 1_000).group(n);
        add(&mut jobs, n, place, n);
    }
    loop {
        let picks = claim(&mut jobs, None, 64, None);
        if picks.is_empty() {
            break;
        }
        for pick in picks {
            jobs.complete(pick).unwrap();
        }
    }
    assert!(jobs.names.is_empty() && jobs.groups.len() == 0);
    assert_eq!((jobs.total(), jobs.timers.len()), (0, 0));
    assert!(jobs.heap_bytes() < 100_000, "{}", jobs.heap_bytes());
}

/// A job that came due, and a group whose first job was taken out: the next claim would have put
/// them in order.
#[test]
fn what_leaves_while_nobody_claims_leaves_nothing() {
    let mut jobs = Jobs::new(Limit::SERIAL, Retry::default());
    for n in 1..=1_000u64 {
        let later = Place::new().due(Duration::from_secs(n));
        let ids = [
            add(&mut jobs, n, later, n),
            add(&mut jobs, n, Place::new().group(n), n),
            add(&mut jobs, n, Place::new().group(n), n),
        ];
        jobs.advance(Duration::from_secs(n));
        for id in ids {
            jobs.remove(id).unwrap();
        }
    }
    assert!(jobs.dirty.len() < 2 * DIRTY_KEPT, "{}", jobs.dirty.len());
    add(&mut jobs, 7, Place::new(), 7);
    assert_eq!(claim(&mut jobs, None, 9, None).len(), 1);
    assert!(jobs.dirty.is_empty());
}

#[test]
fn no_timer_outlives_its_job() {
    let mut jobs = Small::new(Limit::SERIAL, Retry::default());
    let later = add(&mut jobs, 1, Place::new().due(at(5)), 0);
    jobs.remove(later).unwrap();
    assert_eq!(jobs.timers.len(), 0);
    add(&mut jobs, 1, Place::new(), 0);
    let picks = claim(&mut jobs, None, 1, Some(at(5)));
    assert_eq!(jobs.timers.len(), 1);
    jobs.complete(picks[0]).unwrap();
    assert_eq!(jobs.timers.len(), 0);
}

/// The group's only job has no other behind it yet.
#[test]
fn a_smaller_key_is_before_the_only_one_of_its_group() {
    let mut jobs = Small::new(Limit::SERIAL, Retry::default());
    let groups = [(5, "g"), (1, "h"), (3, "g")];
    let mut picked = Vec::new();
    for (key, group) in groups {
        add(&mut jobs, key, Place::new().group(group), u32::from(key));
        jobs.check();
        if key == 1 {
            // From now on the job of the other group is known as its first.
            picked = claimed(&mut jobs, 1);
        }
    }
    picked.extend(claimed(&mut jobs, 2));
    assert_eq!(numbers(&jobs, &picked), [1, 3]);
}

#[test]
fn a_job_that_is_replaced_leaves_its_name_to_the_new_one() {
    let mut jobs = Small::new(Limit::SERIAL, Retry::default());
    let once = || Place::new().unique("once");
    add(&mut jobs, 1, once(), 1);
    let mut entering = (Some((2, 2)), once());
    let (new, old) = jobs.push((&mut entering, 0), true, || Ok(())).unwrap();
    let old = old.map(|old| jobs.take_replaced(old).job);
    assert_eq!(old, Some(1));
    let duplicate = PushReason::Duplicate(named(new));
    assert_eq!(try_add(&mut jobs, 3, once(), 3), Err(duplicate));
}
