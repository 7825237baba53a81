//! Random programs on the policy and on the naive scan, step by step; each job at every fourth.

use proptest::prelude::*;

use super::naive::{Is, Naive, NaiveJob, Part};
use super::*;

#[derive(Clone, Debug)]
enum Act {
    Push {
        key: u8,
        tenant: u64,
        group: Option<u64>,
        due: Option<u64>,
        attempts: Option<u32>,
        unique: Option<u64>,
        replaces: bool,
    },
    Claim {
        n: usize,
        lease: Option<u64>,
    },
    Complete(usize),
    Unclaim(usize, u8, u64),
    Extend(usize, u64),
    Advance(u64),
    Limit(u8, u64, u64, Option<u32>),
    Weight(u64, u32),
    Rekey(usize, u8),
    SetDue(usize, u64),
    Pin(u64, Option<u64>),
    Unpin(usize),
    ClaimOf(usize, usize),
    Remove(usize),
    Requeue(usize),
}

fn sometimes<T: Default + Clone + std::fmt::Debug>(below: T) -> impl Strategy<Value = Option<T>>
where
    std::ops::Range<T>: Strategy<Value = T>,
{
    prop::option::weighted(0.2, T::default()..below)
}

fn act() -> impl Strategy<Value = Act> {
    let (tenant, which) = (0..3u64, 0..40usize);
    let group = || prop::option::of(0..3u64);
    prop_oneof![
        8 => (0..6u8, tenant.clone(), group(), sometimes(20u64), sometimes(5u32), sometimes(3u64), any::<bool>())
            .prop_map(|(key, tenant, group, due, attempts, unique, replaces)| {
                Act::Push { key, tenant, group, due, attempts, unique, replaces }
            }),
        6 => (0..5usize, prop::option::weighted(0.3, 0..20u64))
            .prop_map(|(n, lease)| Act::Claim { n, lease }),
        4 => which.clone().prop_map(Act::Complete),
        4 => (which.clone(), 0..6u8, 0..20u64).prop_map(|(w, how, at)| Act::Unclaim(w, how, at)),
        1 => (which.clone(), 0..20u64).prop_map(|(w, at)| Act::Extend(w, at)),
        2 => (0..4u64).prop_map(Act::Advance),
        3 => (0..3u8, tenant.clone(), 0..3u64, prop::option::of(0..4u32))
            .prop_map(|(scope, tenant, group, limit)| Act::Limit(scope, tenant, group, limit)),
        1 => (tenant, 1..4u32).prop_map(|(tenant, weight)| Act::Weight(tenant, weight)),
        2 => (which.clone(), 0..6u8).prop_map(|(which, key)| Act::Rekey(which, key)),
        2 => (which.clone(), 0..20u64).prop_map(|(which, at)| Act::SetDue(which, at)),
        2 => (0..3u64, group()).prop_map(|(tenant, group)| Act::Pin(tenant, group)),
        1 => which.clone().prop_map(Act::Unpin),
        3 => (which.clone(), 0..4usize).prop_map(|(which, n)| Act::ClaimOf(which, n)),
        1 => which.clone().prop_map(Act::Remove),
        1 => which.prop_map(Act::Requeue),
    ]
}

struct Both {
    jobs: Small,
    naive: Naive,
    /// All jobs there ever were, by number.
    ids: Vec<Key>,
    /// All claims, also those that are over.
    claims: Vec<(Pick, (u32, u64))>,
    now: u64,
    pins: Vec<(Part, Pinned)>,
}

impl Both {
    fn run(&mut self, act: Act) {
        match act {
            Act::Push { .. } => self.run_push(act),
            Act::Claim { n, lease } => {
                let lease = lease.map(|lease| at(self.now + lease));
                let picks = claim(&mut self.jobs, None, n, lease);
                let naive = self.naive.claim(None, n, lease);
                let expected: Vec<u32> = naive.iter().map(|&(number, _)| number).collect();
                assert_eq!(numbers(&self.jobs, &picks), expected);
                self.claims.extend(picks.into_iter().zip(naive));
            }
            Act::Advance(by) => {
                self.now += by;
                let next = self.naive.advance(at(self.now));
                assert_eq!(self.jobs.advance(at(self.now)), next);
            }
            Act::Limit(which, tenant, group, limit) => {
                let scope = scope(which, tenant, group);
                let limit = limit.map_or(Limit::Unlimited, Limit::AtMost);
                self.jobs.set_limit(scope.clone(), limit).unwrap();
                assert_eq!(self.jobs.limit(&scope), limit);
                self.naive.limits.push((scope, limit));
                self.naive.update_orders();
            }
            Act::Weight(tenant, weight) => {
                self.jobs.set_weight(tenant.into(), weight).unwrap();
                self.naive.weights[tenant as usize] = weight;
            }
            Act::Complete(_) | Act::Unclaim(..) | Act::Extend(..) => self.run_claim(act),
            Act::Pin(..) | Act::Unpin(_) | Act::ClaimOf(..) => self.run_pin(act),
            Act::Rekey(..) | Act::Remove(_) | Act::Requeue(_) | Act::SetDue(..) => {
                self.run_job(act);
            }
        }
    }

    fn run_push(&mut self, act: Act) {
        let Act::Push {
            key,
            tenant,
            group,
            due,
            attempts,
            unique,
            replaces,
        } = act
        else {
            unreachable!("{act:?}")
        };
        let due = due.map(|due| at(self.now + due));
        let place = Place::new().tenant(tenant);
        let mut place = due.into_iter().fold(place, Place::due);
        if let Some(group) = group {
            place = place.group(group);
        }
        // Every other job by handle, if there is one.
        let same = |(part, _): &&(Part, Pinned)| *part == (tenant, group);
        if let (0, Some((_, pin))) = (key % 2, self.pins.iter().find(same)) {
            place.home = Place::pinned(0, *pin).home;
        }
        if let Some(attempts) = attempts {
            place = place.attempts(attempts);
        }
        if let Some(unique) = unique {
            place = place.unique(unique);
        }
        let number = self.ids.len() as u32;
        let mut entering = (Some((key, number)), place);
        let pushed = (self.jobs).push((&mut entering, 0), replaces, || Ok(()));
        let pushed = pushed.map(|(id, old)| (id, old.map(|old| self.jobs.take_replaced(old))));
        let other = unique.and_then(|unique| self.naive.named(tenant, unique));
        let other = other.map(|other| (other.number, other.is));
        let refused = match (attempts, other) {
            (Some(0), _) => {
                assert_eq!(pushed, Err(PushReason::OutOfRange(Retry::NO_ATTEMPT)));
                return;
            }
            (_, Some((other, is))) if !replaces || matches!(is, Is::Claimed(_)) => Some(other),
            _ => None,
        };
        if let Some(other) = refused {
            let id = self.ids[other as usize];
            assert_eq!(pushed, Err(PushReason::Duplicate(named(id))));
            assert_eq!(entering.0, Some((key, number)));
            return;
        }
        let (id, old) = pushed.unwrap();
        self.ids.push(id);
        let job = NaiveJob {
            number,
            key,
            tenant,
            group,
            is: Is::Ready,
            attempts: 0,
            most: attempts,
            unique,
        };
        self.naive.push(job, due.unwrap_or_default());
        assert_eq!(old.map(|old| old.job), other.map(|(other, _)| other));
        if let Some((other, _)) = other {
            self.naive.complete(other);
        }
    }

    /// The steps that use a handle.
    fn run_pin(&mut self, act: Act) {
        let len = self.pins.len();
        match act {
            Act::Pin(tenant, group) => {
                let mut pin = self.jobs.pin(&tenant.into());
                if let Some(group) = group {
                    let whole = pin;
                    pin = self.jobs.pin_group(whole, &group.into());
                    self.jobs.unpin(whole);
                }
                self.pins.push(((tenant, group), pin));
            }
            Act::Unpin(which) if len > 0 => {
                let (_, pin) = self.pins.swap_remove(which % len);
                self.jobs.unpin(pin);
            }
            Act::ClaimOf(which, n) if len > 0 => {
                let (part, pin) = self.pins[which % len];
                let picks = claim(&mut self.jobs, Some(pin), n, None);
                let naive = self.naive.claim(Some(part), n, None);
                let expected: Vec<u32> = naive.iter().map(|&(number, _)| number).collect();
                assert_eq!(numbers(&self.jobs, &picks), expected);
                self.claims.extend(picks.into_iter().zip(naive));
            }
            _ => {}
        }
    }

    /// The steps on one claim, over or not.
    fn run_claim(&mut self, act: Act) {
        let (Act::Complete(which) | Act::Unclaim(which, ..) | Act::Extend(which, _)) = act else {
            unreachable!("{act:?}")
        };
        if self.claims.is_empty() {
            return;
        }
        let which = which % self.claims.len();
        let (pick, naive) = self.claims[which];
        let holds = self.naive.holds(naive);
        // An ended claim is not used again; one whose lease ran out ends late, and again.
        if holds && !matches!(act, Act::Extend(..)) {
            self.claims.swap_remove(which);
        }
        assert_eq!(self.jobs.holds(pick), holds);
        let number = naive.0;
        let done = match act {
            Act::Complete(_) => {
                let taken = self.jobs.complete(pick).map(|taken| taken.job);
                if holds {
                    assert_eq!(taken, Ok(number));
                    self.naive.complete(number);
                }
                taken.map(|_| ())
            }
            Act::Unclaim(_, how, due) => {
                let due = at(self.now + due);
                let ends = [
                    Unclaim::At(Duration::ZERO),
                    Unclaim::At(due),
                    Unclaim::Snoozed(due),
                    Unclaim::Failed,
                    Unclaim::FailedUntil(due),
                    Unclaim::FailedForGood,
                ];
                let how = ends[usize::from(how)];
                if holds {
                    self.naive.give_back(number, how);
                }
                self.jobs.give_back(pick, how).map(|_| ())
            }
            _ => {
                let Act::Extend(_, until) = act else {
                    unreachable!()
                };
                let until = at(self.now + until);
                if holds {
                    self.naive.forget_timer(number);
                    self.naive.set_timer(until, number);
                }
                self.jobs.extend(pick, until)
            }
        };
        assert_eq!(done, if holds { Ok(()) } else { Err(Expired) });
    }

    /// The steps on one job by name, gone or not.
    fn run_job(&mut self, act: Act) {
        let (Act::Rekey(which, _)
        | Act::Remove(which)
        | Act::Requeue(which)
        | Act::SetDue(which, _)) = act
        else {
            unreachable!("{act:?}")
        };
        if self.ids.is_empty() {
            return;
        }
        let number = (which % self.ids.len()) as u32;
        let id = self.ids[number as usize];
        let is = self.naive.job(number).map(|job| job.is);
        match (act, is) {
            (Act::Rekey(_, key), Some(_)) => {
                let old = &mut self.naive.job(number).unwrap().key;
                let mut new = key;
                self.jobs.rekey(id, &mut new).unwrap();
                assert_eq!(new, std::mem::replace(old, key));
                self.naive.update_orders();
            }
            (Act::Rekey(_, mut key), None) => {
                assert_eq!(self.jobs.rekey(id, &mut key), Err(Refused::Stale));
            }
            (Act::Remove(_), is) => {
                let removed = self.jobs.remove(id).map(|taken| taken.job);
                match is {
                    None => assert_eq!(removed, Err(Refused::Stale)),
                    Some(Is::Claimed(_)) => assert_eq!(removed, Err(Refused::Claimed)),
                    Some(_) => {
                        assert_eq!(removed, Ok(number));
                        self.naive.complete(number);
                    }
                }
            }
            (Act::SetDue(_, by), is) => {
                let due = at(self.now + by);
                let set = self.jobs.set_due(id, due);
                match is {
                    None => assert_eq!(set, Err(Refused::Stale)),
                    Some(Is::Claimed(_)) => assert_eq!(set, Err(Refused::Claimed)),
                    Some(Is::Dead(_)) => assert_eq!(set, Err(Refused::Dead)),
                    Some(Is::Ready | Is::Later) => {
                        set.unwrap();
                        self.naive.forget_timer(number);
                        self.naive.wait(number, due);
                        self.naive.update_orders();
                    }
                }
            }
            (_, Some(Is::Dead(_))) => self.requeue(number, id),
            (_, is) => {
                let refused = is.map_or(Refused::Stale, |_| Refused::Alive);
                assert_eq!(self.jobs.requeue(named(id)), Err(refused));
            }
        }
    }

    fn requeue(&mut self, number: u32, id: Key) {
        let job = self.naive.job(number).unwrap();
        let (tenant, unique) = (job.tenant, job.unique);
        let other = unique.and_then(|unique| self.naive.named(tenant, unique));
        let requeued = self.jobs.requeue(named(id));
        if let Some(other) = other {
            let other = Refused::Duplicate(named(self.ids[other.number as usize]));
            return assert_eq!(requeued, Err(other));
        }
        requeued.unwrap();
        let job = self.naive.job(number).unwrap();
        (job.is, job.attempts) = (Is::Ready, 0);
        self.naive.update_orders();
    }

    fn compare(&mut self, each_job: bool) {
        self.jobs.check();
        assert_eq!(self.jobs.eligible(), self.naive.eligible());
        for &(part, pin) in &self.pins {
            let eligible = self.naive.eligible_of(part);
            assert_eq!(self.jobs.eligible_of(Some(pin)), eligible);
        }
        assert_eq!(self.jobs.jobs.len(), self.naive.jobs.len());
        for job in self.naive.jobs.iter().filter(|_| each_job) {
            let id = self.ids[job.number as usize];
            let why = self.jobs.why(id).unwrap();
            let same = match job.is {
                Is::Ready => !matches!(why, Why::Due(_) | Why::Claimed(_) | Why::Dead),
                Is::Later => matches!(why, Why::Due(_)),
                Is::Claimed(_) => matches!(why, Why::Claimed(_)),
                Is::Dead(_) => why == Why::Dead,
            };
            assert!(same, "{job:?}: {why:?}");
            let behind = match why {
                Why::Behind(before) => Some(before),
                _ => None,
            };
            assert_eq!(behind, self.naive.behind(job), "{job:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_first_that_a_scan_by_key_finds(acts in prop::collection::vec(act(), 0..120)) {
        let retry = Retry {
            attempts: Limit::AtMost(2),
            first: at(2),
            most: at(5),
        };
        let mut both = Both {
            jobs: Small::new(Limit::SERIAL, retry),
            naive: Naive::new(2, (2, 5)),
            ids: Vec::new(),
            claims: Vec::new(),
            now: 0,
            pins: Vec::new(),
        };
        for (n, act) in acts.into_iter().enumerate() {
            both.run(act);
            both.compare(n % 4 == 0);
        }
    }
}
