//! The group and the tenant of a job, to change them.

use crate::by_key::Position;
use crate::slab::{NO_INDEX, Slab};

use super::records::{Dirty, Group, Job, State, Tenant};

pub(super) struct Home<'a> {
    /// The slot of the group.
    pub(super) at: u32,
    pub(super) group: &'a mut Group,
    pub(super) tenant: &'a mut Tenant,
}

/// Where a job is to be inserted; valid until the next change.
#[derive(Clone, Copy, Debug)]
pub(super) enum InOrder {
    /// In its tenant's line; a job of a group becomes the group's front.
    Tenant(Position),
    /// In its group's order.
    Group(Position),
}

impl<'a> Home<'a> {
    #[inline(always)]
    pub(super) fn of(at: u32, groups: &'a mut Slab<Group>, tenants: &'a mut Slab<Tenant>) -> Self {
        let group = &mut groups[at];
        let tenant = &mut tenants[group.tenant];
        Self { at, group, tenant }
    }

    /// Takes a job out of the order that it is in.
    #[inline]
    pub(super) fn remove<K, J>(&mut self, jobs: &Slab<Job<K, J>>, at: u32) {
        if self.group.is_named && self.group.front != at {
            return self.group.order.remove(jobs, at);
        }
        self.group.front = NO_INDEX;
        self.tenant.claimable.remove(jobs, at);
    }

    /// Inserts a job. A job before its group's front becomes the front.
    #[inline(always)]
    pub(super) fn insert<K, J>(&mut self, jobs: &Slab<Job<K, J>>, at: u32, position: InOrder) {
        match position {
            InOrder::Group(position) => self.group.order.insert(jobs, position, at),
            InOrder::Tenant(position) => {
                self.tenant.claimable.insert(jobs, position, at);
                if self.group.is_named {
                    let second = std::mem::replace(&mut self.group.front, at);
                    self.give_way(jobs, second);
                }
            }
        }
    }

    /// Counts a job's change from one state to another. Returns the tenant's `counted` before and
    /// after.
    #[inline(always)]
    pub(super) fn count<K, J>(
        &mut self,
        jobs: &Slab<Job<K, J>>,
        dirty: &mut Vec<Dirty>,
        (old, state): (State, State),
    ) -> (u64, u64) {
        let change = |count: &mut u32, was: bool, is: bool| {
            *count = *count + u32::from(is) - u32::from(was);
        };
        let is = |of| (old == of, state == of);
        let ((ran, runs), (was_ready, is_ready)) = (is(State::Claimed), is(State::Ready));
        let (was_out, is_out) = is(State::Uncounted);
        change(&mut self.tenant.running, ran, runs);
        change(&mut self.group.running, ran, runs);
        change(&mut self.group.ready, was_ready, is_ready);
        change(&mut self.group.members, !was_out, !is_out);
        self.balance_group(jobs, dirty);
        self.tenant.balance()
    }

    /// Recounts the group in its tenant, because its claimable jobs may have changed. Its front is
    /// in line exactly if the group has room.
    #[inline(always)]
    pub(super) fn balance_group<K, J>(&mut self, jobs: &Slab<Job<K, J>>, dirty: &mut Vec<Dirty>) {
        let Self { group, tenant, .. } = self;
        let counted = group.limit.room(group.running).min(group.ready);
        let old = std::mem::replace(&mut group.counted, counted);
        tenant.units = tenant.units - u64::from(old) + u64::from(counted);
        if counted == 0 {
            let front = std::mem::replace(&mut group.front, NO_INDEX);
            self.give_way(jobs, front);
        } else {
            self.seek_front(dirty);
        }
    }

    /// Counts the claim of a job that is no front any more; every limit had a unit for it.
    #[inline(always)]
    pub(super) fn count_claim(&mut self, dirty: &mut Vec<Dirty>) {
        let Self { group, tenant, .. } = self;
        (group.running, group.ready) = (group.running + 1, group.ready - 1);
        (group.front, group.counted) = (NO_INDEX, group.counted - 1);
        (tenant.units, tenant.counted) = (tenant.units - 1, tenant.counted - 1);
        tenant.running += 1;
        self.seek_front(dirty);
    }

    /// Counts a claimed job that is gone: its unit is free again, if the limits have room. Returns
    /// the tenant's `counted` before and after.
    #[inline(always)]
    pub(super) fn count_gone(&mut self, dirty: &mut Vec<Dirty>) -> (u64, u64) {
        let Self { group, tenant, .. } = self;
        (group.running, group.members) = (group.running - 1, group.members - 1);
        tenant.running -= 1;
        let counted = group.limit.room(group.running).min(group.ready);
        // Only `running` has changed, and it is lower: `counted` does not fall.
        tenant.units += u64::from(counted - group.counted);
        group.counted = counted;
        self.seek_front(dirty);
        self.tenant.balance()
    }

    /// Marks the group dirty if it lacks a front; the next claim gives it one.
    #[inline(always)]
    fn seek_front(&mut self, dirty: &mut Vec<Dirty>) {
        if self.group.lacks_front() && !self.group.dirty {
            self.group.dirty = true;
            dirty.push(Dirty::Group(self.at));
        }
    }

    /// Moves a job that is no longer the front, if there is one, to the head of its group's order.
    #[inline(always)]
    fn give_way<K, J>(&mut self, jobs: &Slab<Job<K, J>>, front: u32) {
        if front != NO_INDEX {
            self.tenant.claimable.remove(jobs, front);
            self.group.order.insert(jobs, Position::First, front);
        }
    }
}
