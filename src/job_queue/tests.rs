//! The waking rule after every step of random programs, with claims that wait for any job,
//! for tenants and for groups.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::{Claim, JobQueue, Part, Place};
use crate::error::Closed;
use crate::jobs::tests::scope;
use crate::jobs::{Name, Pinned, Scope};
use crate::limit::Limit;
use crate::wait::Waiters;

type Queue = JobQueue<u8, u8>;

#[derive(Clone, Debug)]
enum Act {
    Push(u64, Option<u64>, u8),
    Claim(usize, usize),
    Complete(usize),
    GiveBack(usize),
    Limit(u8, u64, u64, Option<u32>),
    Wait(usize),
    Poll(usize),
    Cancel(usize),
    Close,
}

fn act() -> impl Strategy<Value = Act> {
    let which = || 0..20usize;
    let limit = prop_oneof![2 => (0..4u32).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        8 => (0..2u64, prop::option::of(0..2u64), 0..4u8)
            .prop_map(|(tenant, group, key)| Act::Push(tenant, group, key)),
        3 => (which(), 1..4usize).prop_map(|(part, n)| Act::Claim(part, n)),
        3 => which().prop_map(Act::Complete),
        3 => which().prop_map(Act::GiveBack),
        4 => (0..3u8, 0..2u64, 0..2u64, limit)
            .prop_map(|(scope, tenant, group, limit)| Act::Limit(scope, tenant, group, limit)),
        8 => which().prop_map(Act::Wait),
        2 => which().prop_map(Act::Poll),
        2 => which().prop_map(Act::Cancel),
        1 => Just(Act::Close),
    ]
}

/// A claim that waits.
type Waiting<'q> = Pin<Box<dyn Future<Output = Result<Vec<Claim<'q, u8, u8>>, Closed>> + 'q>>;

struct Run<'q> {
    queue: &'q Queue,
    /// Tenants and groups.
    parts: &'q [Part<u8, u8>],
    waits: Vec<Waiting<'q>>,
    claims: Vec<Claim<'q, u8, u8>>,
}

impl<'q> Run<'q> {
    fn run(&mut self, act: Act) {
        let queue = self.queue;
        match act {
            Act::Push(tenant, group, key) => {
                let mut place = Place::new().tenant(tenant);
                if let Some(group) = group {
                    place = place.group(group);
                }
                // Refused once the queue is closed.
                _ = queue.push(key, key, place);
            }
            Act::Claim(part, n) => {
                let claims = match self.part(part) {
                    None => queue.try_claim(n),
                    Some(part) => part.try_claim(n),
                };
                self.claims.extend(claims);
            }
            Act::Complete(which) => {
                if let Some(claim) = taken(&mut self.claims, which) {
                    claim.complete().unwrap();
                }
            }
            Act::GiveBack(which) => drop(taken(&mut self.claims, which)),
            Act::Limit(which, tenant, group, limit) => {
                let limit = limit.map_or(Limit::Unlimited, Limit::AtMost);
                let scope = scope(which, tenant, group);
                queue.set_limit(scope, limit).unwrap();
            }
            Act::Wait(part) => {
                let wait: Waiting<'q> = match self.part(part) {
                    None => Box::pin(queue.claim(1)),
                    Some(part) => Box::pin(part.claim(1)),
                };
                self.poll(wait);
            }
            Act::Poll(which) => {
                if let Some(wait) = taken(&mut self.waits, which) {
                    self.poll(wait);
                }
            }
            Act::Cancel(which) => drop(taken(&mut self.waits, which)),
            Act::Close => queue.close(),
        }
    }

    /// Any job, a tenant, or a group.
    fn part(&self, which: usize) -> Option<&'q Part<u8, u8>> {
        self.parts.get(which % (self.parts.len() + 1))
    }

    fn poll(&mut self, mut wait: Waiting<'q>) {
        let mut cx = Context::from_waker(Waker::noop());
        match wait.as_mut().poll(&mut cx) {
            Poll::Pending => self.waits.push(wait),
            Poll::Ready(claims) => self.claims.extend(claims.into_iter().flatten()),
        }
    }

    fn check(&self) {
        let snapshot = self.queue.snapshot();
        self.queue.shared().read(|state| {
            state.jobs.check();
            let due = |of| match state.finished() {
                true => usize::MAX,
                false => state.jobs.eligible_of(of).try_into().unwrap(),
            };
            let lacks = |of, claims: &Waiters<()>| claims.notified() < due(of).min(claims.len());
            assert!(!lacks(None, &state.claims), "{:?}", state.claims.counts());
            let parts = &state.part_claims.queues;
            let notified = |tenant: Option<&Name>| -> usize {
                let is_of = |&(of, _): &(&Pinned, _)| {
                    tenant.is_none_or(|t| tenant_of(state.jobs.scope_of(*of)) == *t)
                };
                parts
                    .iter()
                    .filter(is_of)
                    .map(|(_, claims)| claims.notified())
                    .sum()
            };
            assert_eq!(state.part_claims.counts().notified, notified(None));
            let room = snapshot.limit.room(snapshot.counts.claimed) as usize;
            for (&of, claims) in parts {
                assert!(!claims.is_empty());
                let name = tenant_of(state.jobs.scope_of(of));
                let tenant = snapshot
                    .tenants
                    .iter()
                    .find(|tenant| tenant.name == name)
                    .unwrap();
                let own = tenant.limit.room(tenant.claimed) as usize;
                let is_full = notified(None) >= room || notified(Some(&name)) >= own;
                assert!(
                    !lacks(Some(of), claims) || !state.finished() && is_full,
                    "{of:?}"
                );
            }
        });
    }
}

fn tenant_of(scope: Scope) -> Name {
    match scope {
        Scope::Tenant(tenant) | Scope::Group { tenant, .. } => tenant,
        Scope::Queue => unreachable!(),
    }
}

fn taken<T>(all: &mut Vec<T>, which: usize) -> Option<T> {
    (!all.is_empty()).then(|| all.swap_remove(which % all.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn as_many_are_told_as_jobs_may_run(acts in prop::collection::vec(act(), 0..80)) {
        let queue = Queue::builder().group_limit(2).build().unwrap();
        let tenants = [0, 1].map(|name| queue.tenant(name));
        let groups = [0, 1, 2, 3].map(|n| tenants[n as usize / 2].group(n % 2));
        let parts = [&tenants[..], &groups].concat();
        let mut run = Run {
            queue: &queue,
            parts: &parts,
            waits: Vec::new(),
            claims: Vec::new(),
        };
        for act in acts {
            run.run(act);
            run.check();
        }
        run.waits.clear();
        run.check();
    }
}
