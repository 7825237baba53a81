//! What may be done.

use conversant::job_queue::{Claim, JobId, JobQueue, Name};
use conversant::limit::Limit;

use super::driver::{Driver, Kind, Out, Taken, secs};
use super::naive::{Naive, PartName};
use super::views::scope;
use crate::random::Random;

/// What a run does often.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) keys: usize,
    names: usize,
    pushes: usize,
    waits: usize,
}

fn owned<'a>(claims: impl IntoIterator<Item = Claim<'a, u8, u32>>) -> Vec<Taken> {
    claims.into_iter().map(Claim::into_owned).collect()
}

fn some_limit(random: &mut Random) -> Limit {
    match random.below(5) {
        0 => Limit::Unlimited,
        n => Limit::AtMost(n as u32 - 1),
    }
}

fn start(mut random: Random) -> Driver {
    let mut naive = Naive::new();
    let mut builder = JobQueue::builder();
    if random.below(2) == 0 {
        naive.group_limit = some_limit(&mut random);
        builder = builder.group_limit(naive.group_limit);
    }
    if random.below(2) == 0 {
        naive.attempts = Limit::AtMost(random.below(4) as u32 + 1);
        builder = builder.attempts(naive.attempts);
    }
    if random.below(2) == 0 {
        naive.back_off = (secs(random.below(3)), secs(random.below(8)));
        builder = builder.back_off(naive.back_off.0, naive.back_off.1);
    }
    if random.below(2) == 0 {
        naive.lease = Some(secs(random.below(9)));
        builder = builder.lease(naive.lease.unwrap());
    }
    let mut capacity = Limit::Unlimited;
    if random.below(2) == 0 {
        capacity = Limit::AtMost(random.below(9) as u32);
        builder = builder.capacity(capacity);
    }
    let real = builder.build().unwrap();
    let (held, ids, parts, places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let sleepers = Vec::new();
    let shape = Shape {
        keys: [1, 3, 6, 250][random.below(4)],
        names: random.below(4) + 1,
        pushes: random.below(4),
        waits: random.below(4),
    };
    Driver {
        real,
        naive,
        random,
        capacity,
        held,
        ids,
        parts,
        places,
        sleepers,
        value: 0,
        shape,
    }
}

pub(crate) fn run(random: Random, steps: usize) {
    let mut it = start(random);
    it.check();
    let end = steps.saturating_sub(it.random.below(100));
    for step in 0..steps {
        if step == end && it.random.below(2) == 0 {
            it.close();
        } else {
            it.step();
        }
        it.check();
    }
    it.sleepers.clear();
}

impl Driver {
    pub(crate) fn name(&mut self) -> Name {
        match self.random.below(self.shape.names) {
            0 => Name::default(),
            1 => Name::from(1),
            2 => Name::from("text"),
            _ => Name::from("other"),
        }
    }

    pub(crate) fn some_part(&mut self, queue: bool) -> Option<PartName> {
        let kind = self.random.below(3);
        if kind == 0 && queue {
            return None;
        }
        let tenant = self.name();
        let group = (kind != 1).then(|| self.name());
        Some((tenant, group))
    }

    pub(crate) fn some_ids(&mut self, n: usize) -> Vec<JobId> {
        if self.ids.is_empty() {
            return Vec::new();
        }
        let n = self.random.below(n + 1);
        let some = |it: &mut Self| {
            let recent = it.ids.len().min(12);
            let back = match it.random.below(5) {
                0 => it.random.below(it.ids.len()),
                _ => it.random.below(recent),
            };
            it.ids[it.ids.len() - 1 - back]
        };
        (0..n).map(|_| some(self)).collect()
    }

    fn step(&mut self) {
        let kind = match self.random.below(12) {
            n if n < self.shape.pushes => 0,
            n if n > 11 - self.shape.waits => 34 + n % 7,
            _ => self.random.below(44),
        };
        match kind {
            0..8 => self.push(),
            8 | 9 => self.push_all(),
            10 | 11 => self.push_replacing(),
            12..15 => {
                let n = self.random.below(5);
                let claims = owned(self.real.try_claim(n));
                self.claimed(claims, None, n);
            }
            15 => {
                let claims = owned(self.real.try_claim_one());
                self.claimed(claims, None, 1);
            }
            16..18 => self.claim_part(),
            18..24 => self.end_one(),
            24 => self.complete_several(),
            25..28 => {
                let now = self.naive.now + secs(self.random.below(5));
                let now = now.saturating_sub(secs(1));
                let (real, naive) = (self.real.advance(now), self.naive.advance(now));
                assert_eq!(
                    real, naive,
                    "{now:?} {:?} {:#?}",
                    self.naive.now, self.naive.jobs
                );
                assert_eq!(self.real.now(), self.naive.now);
            }
            28 | 29 => self.limit(),
            30 => {
                let (tenant, weight) = (self.name(), self.random.below(4) as u32);
                let set = self.real.set_weight(tenant.clone(), weight);
                assert_eq!(set.is_ok(), weight > 0);
                if weight > 0 {
                    self.naive.weights.insert(tenant, weight);
                    self.naive.weights.retain(|_, weight| *weight > 1);
                }
            }
            31 | 32 => self.one_job(),
            33 => self.several_jobs(),
            34 | 35 => self.begin_wait(),
            36..40 if !self.sleepers.is_empty() => {
                let at = self.random.below(self.sleepers.len());
                let told: Vec<_> = (0..self.sleepers.len())
                    .filter(|&at| self.sleepers[at].notified)
                    .collect();
                let at = told.get(at % told.len().max(1)).copied().unwrap_or(at);
                self.poll(at);
            }
            40 if !self.sleepers.is_empty() => {
                let at = self.random.below(self.sleepers.len());
                self.give_up(at);
            }
            41 | 42 => self.handle(),
            _ => {
                let part = self.some_part(true);
                let real = self.real.limit(&scope(part.as_ref()));
                let naive = part.map_or(self.naive.queue_limit, |part| self.naive.limit(&part));
                assert_eq!(real, naive);
            }
        }
    }

    fn claim_part(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        let at = self.random.below(self.parts.len());
        let (part, name) = &self.parts[at];
        let n = self.random.below(5);
        let (claims, n) = match n {
            0 => (owned(part.try_claim_one()), 1),
            n => (owned(part.try_claim(n)), n),
        };
        let name = name.clone();
        self.claimed(claims, Some(&name), n);
    }

    fn limit(&mut self) {
        let (part, limit) = (self.some_part(true), some_limit(&mut self.random));
        self.real.set_limit(scope(part.as_ref()), limit).unwrap();
        match part {
            None => self.naive.queue_limit = limit,
            Some(part) => {
                self.naive.limits.remove(&part);
                if self.naive.limit(&part) != limit {
                    self.naive.limits.insert(part, limit);
                }
            }
        }
    }

    fn begin_wait(&mut self) {
        let (real, n) = (self.real.clone(), self.random.below(4));
        match self.random.below(6) {
            0 => {
                let wait = async move { Out::Claims(real.claim(n).await.map(owned).map_err(drop)) };
                self.sleep(Kind::Claim(None, n), Box::pin(wait));
            }
            1 => {
                let one = async move {
                    Out::Claims(real.claim_one().await.map(|it| owned([it])).map_err(drop))
                };
                self.sleep(Kind::Claim(None, 1), Box::pin(one));
            }
            2 | 3 if !self.parts.is_empty() => {
                let at = self.random.below(self.parts.len());
                let (part, name) = self.parts[at].clone();
                *self.naive.handles.entry(name.clone()).or_default() += 1;
                let wait = async move { Out::Claims(part.claim(n).await.map(owned).map_err(drop)) };
                self.sleep(Kind::Claim(Some(name), n), Box::pin(wait));
            }
            4 => {
                let wait = async move { Out::Dead(real.next_dead().await.map_err(drop)) };
                self.sleep(Kind::Dead, Box::pin(wait));
            }
            _ => {
                let (job, place) = self.new_job();
                let (key, value) = (job.key, job.value);
                let wait = async move { Out::Pushed(real.push_wait(key, value, place).await) };
                self.sleep(Kind::Push(job), Box::pin(wait));
            }
        }
    }

    fn handle(&mut self) {
        if self.random.below(2) == 0 && !self.parts.is_empty() {
            let at = self.random.below(self.parts.len());
            let (part, name) = self.parts.swap_remove(at);
            drop(part);
            *self.naive.handles.get_mut(&name).unwrap() -= 1;
            return;
        }
        let name = self.some_part(false).unwrap();
        let part = self.real.tenant(name.0.clone());
        let part = name
            .1
            .clone()
            .map_or(part.clone(), |group| part.group(group));
        assert_eq!(part.scope(), scope(Some(&name)));
        *self.naive.handles.entry(name.clone()).or_default() += 1;
        self.naive.settle();
        if self.random.below(2) == 0 {
            self.places
                .push((part.place(), name.clone(), self.naive.names[&name]));
        }
        if self.places.len() > 4 {
            drop(self.places.remove(0));
        }
        self.parts.push((part, name));
    }

    fn close(&mut self) {
        self.naive.closed = true;
        if self.random.below(2) == 0 {
            self.real.close();
        } else {
            let real = self.real.shutdown();
            let real: Vec<_> = real
                .into_iter()
                .map(|it| (it.key, it.job, it.attempts))
                .collect();
            assert_eq!(real, self.drained(None));
        }
    }
}
