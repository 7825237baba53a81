//! Pushes, and operations on jobs by name or by filter.

use conversant::job_queue::{JobId, JobState, JobStatus, Place, PushReason, Refused, Taken};
use conversant::limit::Limit;

use crate::Spot;
use crate::model::{Job, Part};
use crate::run::{Handle, Run, polled};

impl Spot {
    fn tenant(&self) -> u64 {
        u64::from(self.tenant % 3)
    }

    fn group(&self) -> Option<u64> {
        self.group.map(|group| u64::from(group % 4))
    }

    fn unique(&self) -> Option<u64> {
        self.unique.map(|unique| u64::from(unique % 3))
    }

    fn most(&self) -> Option<u32> {
        self.attempts.map(|most| u32::from(most % 4 + 1))
    }

    fn tried(&self) -> u32 {
        self.tried.map_or(0, |tried| u32::from(tried % 4))
    }
}

impl Run {
    /// The place, and the handle that it is valid with.
    fn place(&self, spot: &Spot) -> (Place, Option<Handle>) {
        let (tenant, group) = (spot.tenant(), spot.group());
        let mut handle = None;
        let mut place = match (spot.by_handle, group) {
            (true, group) => {
                let part = group.map_or(Part::Tenant(tenant), |group| Part::Group(tenant, group));
                let handle = handle.insert(self.handle(part).expect("a part"));
                handle.place()
            }
            (false, Some(group)) => Place::new().tenant(tenant).group(group),
            (false, None) => Place::new().tenant(tenant),
        };
        if let Some(due) = spot.due {
            place = place.due(self.after(due));
        }
        if let Some(unique) = spot.unique() {
            place = place.unique(unique);
        }
        if let Some(most) = spot.most() {
            place = place.attempts(Limit::AtMost(most));
        }
        if spot.tried.is_some() {
            place = place.tried(spot.tried());
        }
        (place, handle)
    }

    /// A job is in.
    fn pushed(&mut self, id: JobId, (key, content): (u8, u32), spot: &Spot) {
        let due = spot.due.map_or(self.model.now, |due| self.after(due));
        let job = Job {
            id,
            key,
            content,
            tenant: spot.tenant(),
            group: spot.group(),
            unique: spot.unique(),
            most: spot.most(),
            attempts: spot.tried(),
            state: self.model.until(due),
            claim: 0,
            death: 0,
            reported: false,
        };
        assert!(!self.ids.contains(&id));
        self.model.jobs.insert(self.ids.len(), job);
        self.model.totals.pushed += 1;
        self.ids.push(id);
    }

    /// All that is wrong with the push of so many jobs, if none of them replaces another one.
    fn refusals(&self, n: usize) -> Vec<PushReason> {
        let mut all = Vec::new();
        if self.model.closed {
            all.push(PushReason::Closed);
        }
        if let Some(capacity) = self.model.capacity {
            let total = self.model.jobs.len();
            if n > capacity {
                all.push(PushReason::AboveCapacity);
            }
            if total >= capacity || (n <= capacity && total + n > capacity) {
                all.push(PushReason::Full);
            }
        }
        all
    }

    pub(crate) fn push(&mut self, key: u8, spot: Spot, replaces: bool) {
        let job = (key, self.next_content());
        let (place, _handle) = self.place(&spot);
        let mut refusals = self.refusals(1);
        let named = self.model.named(spot.tenant(), spot.unique());
        let mut old = None;
        if let Some((number, named)) = named {
            match replaces && named.waits() {
                // The new job takes the room of the old one.
                true => {
                    old = Some(number);
                    refusals.retain(|&why| why == PushReason::Closed);
                }
                false => refusals.push(PushReason::Duplicate(named.id)),
            }
        }
        let pushed = match replaces {
            false => self.queue.push(key, job.1, place).map(|id| (id, None)),
            true => self.queue.push_replacing(key, job.1, place),
        };
        match pushed {
            Ok((id, taken)) => {
                assert!(refusals.is_empty(), "not refused for {refusals:?}");
                assert_eq!(taken.is_some(), old.is_some());
                if let (Some(taken), Some(old)) = (taken, old) {
                    self.removed(old, taken);
                }
                self.pushed(id, job, &spot);
            }
            Err(refused) => {
                assert!(refusals.contains(&refused.reason), "{refused:?}");
                assert_eq!(refused.content, job);
            }
        }
    }

    pub(crate) fn push_all(&mut self, jobs: &[(u8, Spot)]) {
        let mut refusals = self.refusals(jobs.len());
        let name = |spot: &Spot| (spot.tenant(), spot.unique());
        let duplicates = jobs.iter().enumerate().filter_map(|(at, (_, spot))| {
            let (tenant, unique) = name(spot);
            let earlier = |(_, other): &(u8, Spot)| name(other) == (tenant, unique);
            match self.model.named(tenant, unique) {
                Some((_, job)) => Some(PushReason::Duplicate(job.id)),
                None if unique.is_some() && jobs[..at].iter().any(earlier) => {
                    Some(PushReason::DuplicateInBatch)
                }
                None => None,
            }
        });
        refusals.extend({ duplicates }.next());

        let places: Vec<_> = jobs.iter().map(|(_, spot)| self.place(spot)).collect();
        let contents = jobs.iter().map(|&(key, _)| (key, self.next_content()));
        let contents: Vec<_> = contents.collect();
        let batch = contents.iter().zip(&places);
        let batch = batch.map(|(&(key, content), (place, _))| (key, content, place.clone()));
        match self.queue.push_all(batch) {
            Ok(ids) => {
                assert!(refusals.is_empty(), "not refused for {refusals:?}");
                assert_eq!(ids.len(), jobs.len());
                for ((id, content), (_, spot)) in ids.into_iter().zip(contents).zip(jobs) {
                    self.pushed(id, content, spot);
                }
            }
            Err(refused) => {
                assert!(refusals.contains(&refused.reason), "{refused:?}");
                assert_eq!(refused.content, contents);
            }
        }
    }

    /// A job that was not claimed is out.
    fn removed(&mut self, number: usize, taken: Taken<u8, u32>) {
        let job = self.model.jobs.remove(&number).expect("it was in");
        let Taken {
            key,
            job: content,
            attempts,
        } = taken;
        assert_eq!(
            (key, content, attempts),
            (job.key, job.content, job.attempts)
        );
        assert!(!job.is_claimed());
        self.model.totals.removed += 1;
    }

    /// The jobs of this part that wait are out, in the order in which they were pushed.
    pub(crate) fn taken_in_line(&mut self, part: Part, taken: Vec<Taken<u8, u32>>) {
        let waits = |job: &Job| job.is_of(part) && job.waits();
        let waits = self.model.jobs.iter().filter(|(_, job)| waits(job));
        let waits: Vec<usize> = waits.map(|(&number, _)| number).collect();
        assert_eq!(taken.len(), waits.len());
        for (number, taken) in waits.into_iter().zip(taken) {
            self.removed(number, taken);
        }
    }

    pub(crate) fn drain(&mut self, part: Part) {
        let taken = self.queue.drain(&part.scope());
        self.taken_in_line(part, taken);
    }

    pub(crate) fn rekey(&mut self, job: u8, key: u8) {
        let Some((number, id)) = self.job(job) else {
            return;
        };
        let old = self.model.jobs.get_mut(&number);
        let old = old.map(|job| std::mem::replace(&mut job.key, key));
        assert_eq!(self.queue.rekey(id, key), old.ok_or(Refused::Stale));
    }

    /// Why a job that must wait is refused.
    fn must_wait(&self, number: usize) -> Result<(), Refused> {
        match self.model.jobs.get(&number).map(|job| job.state) {
            None => Err(Refused::Stale),
            Some(JobState::Claimed(_)) => Err(Refused::Claimed),
            Some(JobState::Dead) => Err(Refused::Dead),
            Some(_) => Ok(()),
        }
    }

    /// Dates before now too.
    pub(crate) fn set_due(&mut self, job: u8, due: u8) {
        let Some((number, id)) = self.job(job) else {
            return;
        };
        let due = self.after(due).saturating_sub(crate::run::seconds(32));
        let set = self.must_wait(number);
        assert_eq!(self.queue.set_due(id, due), set);
        if set.is_ok() {
            let state = self.model.until(due);
            self.model.jobs.get_mut(&number).expect("it waits").state = state;
        }
    }

    pub(crate) fn replace(&mut self, job: u8) {
        let Some((number, id)) = self.job(job) else {
            return;
        };
        let content = self.next_content();
        let expected = self.must_wait(number);
        match self.queue.replace(id, content) {
            Ok(old) => {
                assert_eq!(expected, Ok(()));
                let job = self.model.jobs.get_mut(&number).expect("it waits");
                assert_eq!(std::mem::replace(&mut job.content, content), old);
            }
            Err(refused) => {
                assert_eq!(refused.content, content);
                assert_eq!(Err(refused.reason), expected);
            }
        }
    }

    pub(crate) fn remove(&mut self, job: u8) {
        if let Some((number, _)) = self.job(job) {
            self.remove_this(number);
        }
    }

    pub(crate) fn remove_this(&mut self, number: usize) {
        let id = self.ids[number];
        let expected = match self.must_wait(number) {
            Err(Refused::Dead) => Ok(()),
            other => other,
        };
        match self.queue.remove(id) {
            Ok(taken) => {
                assert_eq!(expected, Ok(()));
                self.removed(number, taken);
            }
            Err(refused) => assert_eq!(Err(refused), expected),
        }
    }

    pub(crate) fn remove_all(&mut self, jobs: &[u8]) {
        let jobs = jobs.iter().filter_map(|&job| self.job(job));
        let numbers = jobs.map(|(number, _)| number).collect();
        self.remove_these(numbers);
    }

    /// Takes out those that are in a state, by their status.
    pub(crate) fn remove_of_state(&mut self, part: Part, state: u8) {
        let is = |other: JobState| match state % 4 {
            0 => other == JobState::Ready,
            1 => matches!(other, JobState::Due(_)),
            2 => matches!(other, JobState::Claimed(_)),
            _ => other == JobState::Dead,
        };
        let all = self.queue.statuses(&part.scope()).into_iter();
        let chosen = all.filter(|(_, job)| is(job.state)).map(|(id, _)| id);
        let chosen: Vec<JobId> = chosen.collect();
        let expected = self.model.jobs.iter();
        let expected = expected.filter(|(_, job)| job.is_of(part) && is(job.state));
        let (numbers, ids): (Vec<usize>, Vec<JobId>) =
            expected.map(|(&number, job)| (number, job.id)).unzip();
        assert_eq!(chosen, ids);
        self.remove_these(numbers);
    }

    fn remove_these(&mut self, mut numbers: Vec<usize>) {
        let ids: Vec<JobId> = numbers.iter().map(|&number| self.ids[number]).collect();
        let mut taken = self.queue.remove_all(ids);
        numbers.sort_unstable();
        numbers.dedup();
        let free = |job: &Job| !job.is_claimed();
        numbers.retain(|number| self.model.jobs.get(number).is_some_and(free));
        assert_eq!(taken.len(), numbers.len());
        for number in numbers {
            let content = self.model.jobs[&number].content;
            let at = taken.iter().position(|taken| taken.job == content);
            let taken = taken.swap_remove(at.expect("it was taken out"));
            self.removed(number, taken);
        }
    }

    pub(crate) fn list(&mut self, part: Part) {
        let of = self.model.jobs.values().filter(|job| job.is_of(part));
        let listed: Vec<JobId> = of.clone().map(|job| job.id).collect();
        assert_eq!(self.queue.list(&part.scope()), listed);
        let statuses = self.queue.statuses(&part.scope());
        assert_eq!(statuses.len(), listed.len());
        for ((id, status), job) in statuses.into_iter().zip(of) {
            assert_eq!(id, job.id);
            let JobStatus {
                tenant,
                group,
                unique,
                attempts,
                state,
                ..
            } = status;
            assert_eq!((attempts, state), (job.attempts, job.state));
            assert_eq!(tenant, job.tenant.into());
            assert_eq!(group, job.group.map(Into::into));
            assert_eq!(unique, job.unique.map(Into::into));
        }
    }

    pub(crate) fn requeue(&mut self, job: u8) {
        if let Some((number, _)) = self.job(job) {
            self.requeue_this(number);
        }
    }

    pub(crate) fn requeue_this(&mut self, number: usize) {
        let id = self.ids[number];
        let mut refusals = Vec::new();
        if self.model.closed {
            refusals.push(Refused::Closed);
        }
        match self.model.jobs.get(&number) {
            None => refusals.push(Refused::Stale),
            Some(job) if job.state != JobState::Dead => refusals.push(Refused::Alive),
            Some(job) => {
                let named = self.model.named(job.tenant, job.unique);
                refusals.extend(named.map(|(_, other)| Refused::Duplicate(other.id)));
            }
        }
        match self.queue.requeue(id) {
            Ok(()) => {
                assert!(refusals.is_empty(), "not refused for {refusals:?}");
                let job = self.model.jobs.get_mut(&number).expect("it was dead");
                (job.state, job.attempts) = (JobState::Ready, 0);
            }
            Err(refused) => assert!(refusals.contains(&refused), "{refused:?}"),
        }
    }

    pub(crate) fn next_dead(&mut self) {
        let dead = self.model.jobs.values_mut();
        let dead = dead.filter(|job| job.state == JobState::Dead && !job.reported);
        let first = dead.min_by_key(|job| job.death).map(|job| job.death);
        let Some(returned) = polled(self.queue.next_dead()) else {
            assert!(first.is_none() && !self.model.finished());
            return;
        };
        let Ok(id) = returned else {
            assert!(first.is_none() && self.model.finished());
            return;
        };
        let job = self.model.jobs.values_mut().find(|job| job.id == id);
        let job = job.expect("it is in");
        assert!(job.state == JobState::Dead && !job.reported);
        assert_eq!(Some(job.death), first);
        job.reported = true;
    }
}
