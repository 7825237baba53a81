//! A queue beside its model.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conversant::job_queue::{Claim, JobId, JobQueue};
use conversant::limit::Limit;

use crate::model::{Model, Part, Totals};
use crate::{Op, Script, Which};

pub(crate) type Handle = conversant::job_queue::Part<u8, u32>;

pub(crate) struct Run {
    pub(crate) queue: JobQueue<u8, u32>,
    pub(crate) model: Model,
    /// Of all pushes.
    pub(crate) ids: Vec<JobId>,
    pub(crate) held: Vec<Held>,
    /// Handles that keep their names.
    pub(crate) handles: Vec<Handle>,
    /// The last content that a job was given.
    pub(crate) content: u32,
}

/// A claim, and what it must show even after its lease.
pub(crate) struct Held {
    pub(crate) claim: Claim<'static, u8, u32>,
    pub(crate) job: usize,
    pub(crate) number: u64,
    pub(crate) content: u32,
    pub(crate) attempt: u32,
}

pub(crate) fn limit(limit: Option<u8>) -> Limit {
    limit.map_or(Limit::Unlimited, |limit| {
        Limit::AtMost(u32::from(limit % 4))
    })
}

pub(crate) fn seconds(seconds: u8) -> Duration {
    Duration::from_secs(seconds.into())
}

pub(crate) fn part(which: Which) -> Part {
    let (tenant, group) = (u64::from(which.tenant % 3), u64::from(which.group % 4));
    match which.kind % 3 {
        0 => Part::Queue,
        1 => Part::Tenant(tenant),
        _ => Part::Group(tenant, group),
    }
}

/// What a wait gives if it is polled once, and then dropped.
pub(crate) fn polled<R>(wait: impl Future<Output = R>) -> Option<R> {
    match pin!(wait).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

impl Run {
    pub(crate) fn new(script: &Script) -> Self {
        let group_limit = limit(Some(script.group_limit));
        let attempts = u32::from(script.attempts % 6 + 1);
        let (first, most) = script.back_off;
        let back_off = (seconds(first), seconds(most));
        let capacity = script.capacity.map(|most| usize::from(most % 12));
        let lease = script.lease.map(seconds);
        let weights = script.weights.map(|weight| u32::from(weight % 4 + 1));

        let mut builder = JobQueue::builder()
            .group_limit(group_limit)
            .attempts(attempts)
            .back_off(back_off.0, back_off.1);
        if let Some(capacity) = capacity {
            builder = builder.capacity(capacity as u32);
        }
        if let Some(lease) = lease {
            builder = builder.lease(lease);
        }
        let queue = builder.build().expect("in range");
        for (tenant, &weight) in (0_u64..).zip(&weights) {
            queue.set_weight(tenant, weight).expect("in range");
        }
        let model = Model {
            now: Duration::ZERO,
            jobs: Default::default(),
            limits: Default::default(),
            weights,
            reweighted: false,
            group_limit,
            attempts,
            back_off,
            lease,
            capacity,
            closed: false,
            claims: 0,
            deaths: 0,
            totals: Totals::default(),
        };
        Self {
            queue,
            model,
            ids: Vec::new(),
            held: Vec::new(),
            handles: Vec::new(),
            content: 0,
        }
    }

    pub(crate) fn apply(&mut self, op: Op) {
        self.model.deaths += 1;
        match op {
            Op::Push { key, spot } => self.push(key, spot, false),
            Op::PushReplacing { key, spot } => self.push(key, spot, true),
            Op::PushAll { jobs, n } => self.push_all(&jobs[..usize::from(n % 3) + 1]),
            Op::Claim { of, n, how } => self.claim(part(of), usize::from(n % 9), how),
            Op::End { claim, end } => self.end(claim, end),
            Op::Extend { claim, by } => self.extend(claim, self.after(by)),
            Op::CompleteAll { n } => self.complete_all(usize::from(n % 5)),
            Op::Limit { of, limit: to } => self.set_limit(part(of), limit(to)),
            Op::Weight { tenant, weight } => self.set_weight(tenant % 3, weight % 4 + 1),
            Op::Rekey { job, key } => self.rekey(job, key),
            Op::SetDue { job, due } => self.set_due(job, due),
            Op::Replace { job } => self.replace(job),
            Op::Remove { job } => self.remove(job),
            Op::RemoveAll { jobs } => self.remove_all(&jobs),
            Op::RemoveOfState { of, state } => self.remove_of_state(part(of), state),
            Op::Drain { of } => self.drain(part(of)),
            Op::List { of } => self.list(part(of)),
            Op::Requeue { job } => self.requeue(job),
            Op::NextDead => self.next_dead(),
            Op::Advance { by, back } => self.advance(by, back),
            Op::Close { how } => self.close(how % 32),
            Op::Keep { of } => {
                let kept = self.handle(part(of));
                self.handles.truncate(5);
                self.handles.extend(kept);
            }
            Op::Forget => self.handles.clear(),
        }
    }

    pub(crate) fn after(&self, by: u8) -> Duration {
        self.model.now + seconds(by)
    }

    pub(crate) fn next_content(&mut self) -> u32 {
        self.content += 1;
        self.content
    }

    /// Any job that was ever pushed.
    pub(crate) fn job(&self, which: u8) -> Option<(usize, JobId)> {
        let at = usize::from(which).checked_rem(self.ids.len())?;
        Some((at, self.ids[at]))
    }

    pub(crate) fn handle(&self, part: Part) -> Option<Handle> {
        let handle = match part {
            Part::Queue => return None,
            Part::Tenant(tenant) => self.queue.tenant(tenant),
            Part::Group(tenant, group) => self.queue.tenant(tenant).group(group),
        };
        assert_eq!(handle.scope(), part.scope());
        Some(handle)
    }

    fn set_limit(&mut self, part: Part, limit: Limit) {
        let set = self.queue.set_limit(part.scope(), limit);
        set.expect("in range");
        self.model.limits.insert(part, limit);
    }

    fn set_weight(&mut self, tenant: u8, weight: u8) {
        let set = self.queue.set_weight(u64::from(tenant), weight.into());
        set.expect("in range");
        self.model.weights[usize::from(tenant)] = weight.into();
        self.model.reweighted = true;
    }

    fn advance(&mut self, by: u8, back: bool) {
        let to = match back {
            true => self.model.now.saturating_sub(seconds(by)),
            false => self.after(by),
        };
        self.model.advance(to);
        assert_eq!(self.queue.advance(to), self.model.next());
    }

    fn close(&mut self, how: u8) {
        match how {
            0 => self.queue.close(),
            1 => {
                let taken = self.queue.shutdown();
                self.taken_in_line(Part::Queue, taken);
            }
            _ => return,
        }
        self.model.closed = true;
    }
}
