//! Any sequence of operations on a job queue, through its public interface: no panic, no limit
//! exceeded, no claim short of the jobs that may run, no job lost or done twice, nothing left at
//! the end.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use conversant::job_queue::{
    Claim, JobId, JobQueue, JobState, Place, PushReason, Refused, Scope, Why,
};
use conversant::limit::Limit;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Script {
    group_limit: u8,
    attempts: u8,
    lease: Option<u8>,
    back_off: (u8, u8),
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Push {
        key: u8,
        tenant: u8,
        group: Option<u8>,
        due: Option<u8>,
        unique: Option<u8>,
        replaces: bool,
    },
    Claim {
        n: u8,
    },
    Complete {
        claim: u8,
    },
    GiveBack {
        claim: u8,
    },
    GiveBackAt {
        claim: u8,
        after: u8,
    },
    Fail {
        claim: u8,
    },
    FailAt {
        claim: u8,
        after: u8,
    },
    FailForGood {
        claim: u8,
    },
    Snooze {
        claim: u8,
        after: u8,
    },
    Extend {
        claim: u8,
        by: u8,
    },
    Drop {
        claim: u8,
    },
    Limit {
        scope: u8,
        tenant: u8,
        group: u8,
        limit: Option<u8>,
    },
    Weight {
        tenant: u8,
        weight: u8,
    },
    Rekey {
        job: u8,
        key: u8,
    },
    Remove {
        job: u8,
    },
    Requeue {
        job: u8,
    },
    Advance {
        by: u8,
    },
}

struct Run {
    queue: JobQueue<u8, usize>,
    ids: Vec<JobId>,
    claims: Vec<Claim<'static, u8, usize>>,
    /// How often each job left: completed or removed.
    gone: Vec<u32>,
    now: u64,
}

fn limit(limit: Option<u8>) -> Limit {
    limit.map_or(Limit::Unlimited, |limit| {
        Limit::AtMost(u32::from(limit % 4))
    })
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Run {
    fn claim(&mut self, which: u8) -> Option<Claim<'static, u8, usize>> {
        let len = self.claims.len();
        (len > 0).then(|| self.claims.swap_remove(usize::from(which) % len))
    }

    fn id(&self, which: u8) -> Option<(usize, JobId)> {
        let len = self.ids.len();
        let at = usize::from(which).checked_rem(len)?;
        Some((at, self.ids[at]))
    }

    fn run(&mut self, op: Op) {
        match op {
            push @ Op::Push { .. } => self.push(push),
            Op::Claim { n } => {
                let n = usize::from(n % 9);
                let eligible = self.queue.counts().eligible as usize;
                let claims = self.queue.try_claim(n);
                assert_eq!(claims.len(), n.min(eligible));
                self.claims
                    .extend(claims.into_iter().map(Claim::into_owned));
            }
            Op::Limit {
                scope,
                tenant,
                group,
                limit: to,
            } => {
                let (tenant, group) = (u64::from(tenant % 3), u64::from(group % 4));
                let scope = match scope % 3 {
                    0 => Scope::Queue,
                    1 => Scope::tenant(tenant),
                    _ => Scope::group_of(tenant, group),
                };
                self.queue.set_limit(scope, limit(to)).expect("in range");
            }
            Op::Weight { tenant, weight } => {
                let weight = u32::from(weight.max(1));
                let set = self.queue.set_weight(u64::from(tenant % 3), weight);
                set.expect("in range");
            }
            Op::Advance { by } => {
                self.now += u64::from(by);
                let next = self.queue.advance(at(self.now));
                assert!(next.is_none_or(|next| next > at(self.now)));
            }
            Op::Rekey { job, key } => {
                if let Some((job, id)) = self.id(job) {
                    assert_eq!(self.queue.rekey(id, key).is_ok(), self.gone[job] == 0);
                }
            }
            Op::Remove { job } => {
                if let Some((job, id)) = self.id(job) {
                    self.gone[job] += u32::from(self.queue.remove(id).is_ok());
                }
            }
            Op::Requeue { job } => {
                if let Some((_, id)) = self.id(job) {
                    let dead = self.queue.why(id) == Some(Why::Dead);
                    match self.queue.requeue(id) {
                        Err(Refused::Duplicate(other)) => assert!(dead && other != id),
                        requeued => assert_eq!(requeued.is_ok(), dead),
                    }
                }
            }
            ended => self.end(ended),
        }
    }

    fn push(&mut self, op: Op) {
        let Op::Push {
            key,
            tenant,
            group,
            due,
            unique,
            replaces,
        } = op
        else {
            unreachable!()
        };
        let mut place = Place::new().tenant(u64::from(tenant % 3));
        if let Some(group) = group {
            place = place.group(u64::from(group % 4));
        }
        if let Some(due) = due {
            place = place.due(at(self.now + u64::from(due)));
        }
        if let Some(unique) = unique {
            place = place.unique(u64::from(unique % 3));
        }
        let job = self.ids.len();
        let pushed = match replaces {
            false => self.queue.push(key, job, place).map(|id| (id, None)),
            true => self.queue.push_replacing(key, job, place),
        };
        match pushed {
            Ok((id, old)) => {
                self.ids.push(id);
                self.gone.push(0);
                if let Some(old) = old {
                    self.gone[old.job] += 1;
                }
            }
            Err(refused) => {
                let PushReason::Duplicate(other) = refused.reason else {
                    panic!("{refused:?}")
                };
                let other = self.queue.status(other).expect("it is there");
                assert_eq!(other.tenant, u64::from(tenant % 3).into());
                assert_eq!(
                    other.unique,
                    unique.map(|unique| u64::from(unique % 3).into())
                );
                assert!(other.state != JobState::Dead);
                assert!(!replaces || matches!(other.state, JobState::Claimed(_)));
            }
        }
    }

    fn end(&mut self, op: Op) {
        let (Op::Complete { claim: which }
        | Op::GiveBack { claim: which }
        | Op::GiveBackAt { claim: which, .. }
        | Op::Fail { claim: which }
        | Op::FailAt { claim: which, .. }
        | Op::FailForGood { claim: which }
        | Op::Snooze { claim: which, .. }
        | Op::Extend { claim: which, .. }
        | Op::Drop { claim: which }) = op
        else {
            unreachable!()
        };
        let Some(mut claim) = self.claim(which) else {
            return;
        };
        let (holds, job) = (claim.holds(), *claim);
        let done = match op {
            Op::Complete { .. } => {
                let done = claim.complete().is_ok();
                self.gone[job] += u32::from(done);
                done
            }
            Op::GiveBack { .. } => claim.give_back().is_ok(),
            Op::GiveBackAt { after, .. } => {
                claim.give_back_at(at(self.now + u64::from(after))).is_ok()
            }
            Op::Fail { .. } => claim.fail().is_ok(),
            Op::FailAt { after, .. } => claim.fail_at(at(self.now + u64::from(after))).is_ok(),
            Op::FailForGood { .. } => claim.fail_for_good().is_ok(),
            Op::Snooze { after, .. } => claim.snooze(at(self.now + u64::from(after))).is_ok(),
            Op::Extend { by, .. } => {
                let extended = claim.extend(at(self.now + u64::from(by))).is_ok();
                self.claims.push(claim);
                extended
            }
            _ => {
                drop(claim);
                holds
            }
        };
        assert_eq!(done, holds);
    }

    /// What must hold between any two operations.
    fn check(&self) {
        let snapshot = self.queue.snapshot();
        let held = self.claims.iter().filter(|claim| claim.holds()).count();
        assert_eq!(snapshot.counts.claimed as usize, held);
        let of_tenants: u32 = snapshot.tenants.iter().map(|tenant| tenant.claimed).sum();
        assert_eq!(of_tenants, snapshot.counts.claimed);
        for (job, &id) in self.ids.iter().enumerate() {
            assert_eq!(self.queue.why(id).is_some(), self.gone[job] == 0);
            assert!(self.gone[job] <= 1);
        }
    }

    /// Lifts everything that blocks a job, and claims all.
    fn finish(mut self) {
        self.claims.clear();
        let snapshot = self.queue.snapshot();
        let set = |scope| {
            self.queue
                .set_limit(scope, Limit::Unlimited)
                .expect("in range")
        };
        set(Scope::Queue);
        for tenant in snapshot.tenants {
            set(Scope::Tenant(tenant.name.clone()));
            for group in tenant.groups {
                set(Scope::group_of(tenant.name.clone(), group.name));
            }
        }
        for id in self.queue.dead() {
            if let Err(refused) = self.queue.requeue(id) {
                assert!(matches!(refused, Refused::Duplicate(_)));
                let dead = self.queue.remove(id).expect("it is dead");
                self.gone[dead.job] += 1;
            }
        }
        self.queue.advance(Duration::MAX);
        let left = self.gone.iter().filter(|&&gone| gone == 0).count();
        let claims = self.queue.try_claim(self.ids.len() + 1);
        assert_eq!(claims.len(), left);
        for claim in claims {
            let job = *claim;
            self.gone[job] += u32::from(claim.complete().is_ok());
        }
        assert!(self.gone.iter().all(|&gone| gone == 1));
        let counts = self.queue.counts();
        assert_eq!(counts.completed + counts.removed, counts.pushed);
        assert_eq!(counts.pushed, self.gone.len() as u64);
        let left = (counts.ready, counts.later, counts.eligible, counts.dead);
        assert_eq!((left, counts.claimed), ((0, 0, 0, 0), 0));
        assert_eq!(counts.claims, Default::default());
    }
}

fuzz_target!(|script: Script| {
    let queue = JobQueue::builder()
        .group_limit(limit(Some(script.group_limit)))
        .attempts(u32::from(script.attempts).max(1))
        .back_off(
            at(u64::from(script.back_off.0)),
            at(u64::from(script.back_off.1)),
        );
    let queue = match script.lease {
        Some(lease) => queue.lease(at(u64::from(lease))),
        None => queue,
    };
    let mut run = Run {
        queue: queue.build().expect("in range"),
        ids: Vec::new(),
        claims: Vec::new(),
        gone: Vec::new(),
        now: 0,
    };
    for op in script.ops {
        run.run(op);
        run.check();
    }
    run.finish();
});
