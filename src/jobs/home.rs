//! Where a job belongs, to change it: its group, if it has one, and its tenant.

use std::collections::VecDeque;

use crate::by_key::{Order, Position};
use crate::slab::{Key, Slab};

use super::PINNED;
use super::records::{Dirty, Group, Job, State, Tenant};

pub(super) struct Home<'a> {
    pub(super) tenant: &'a mut Tenant,
    pub(super) group: Option<(Key, &'a mut Group)>,
}

/// Where a job is to be inserted; valid until the next change.
#[derive(Clone, Copy, Debug)]
pub(super) enum InOrder {
    /// In its tenant's line; of a group as its front.
    Line(Position),
    /// In its group's order.
    Group(Position),
}

impl<'a> Home<'a> {
    #[inline(always)]
    pub(super) fn of<K, J>(
        job: &Job<K, J>,
        groups: &'a mut Slab<Group>,
        tenants: &'a mut Slab<Tenant>,
    ) -> Self {
        Self::at((job.tenant, job.group), groups, tenants)
    }

    #[inline(always)]
    pub(super) fn at(
        (tenant, group): (u32, Option<u32>),
        groups: &'a mut Slab<Group>,
        tenants: &'a mut Slab<Tenant>,
    ) -> Self {
        Self {
            tenant: tenants.by_index_mut(tenant).expect(PINNED),
            group: group.map(|group| groups.entry_at(group).expect(PINNED)),
        }
    }

    /// Takes a job out of the order that it is in.
    #[inline]
    pub(super) fn remove<K, J>(&mut self, jobs: &mut Slab<Job<K, J>>, at: u32) {
        if let Some((_, group)) = &mut self.group {
            if group.front != Some(at) {
                return group.order.remove(jobs, at);
            }
            group.front = None;
        }
        self.tenant.line.remove(jobs, at);
    }

    /// Inserts a job. In front of its group's front it takes that one's place.
    #[inline]
    pub(super) fn insert<K, J>(&mut self, jobs: &mut Slab<Job<K, J>>, at: u32, position: InOrder) {
        let group = self.group.as_mut().map(|(_, group)| group);
        match position {
            InOrder::Group(position) => {
                let order = &mut group.expect("it has a group").order;
                order.insert(jobs, position, at);
            }
            InOrder::Line(position) => {
                self.tenant.line.insert(jobs, position, at);
                if let Some(group) = group
                    && let Some(second) = group.front.replace(at)
                {
                    give_way(&mut self.tenant.line, &mut group.order, jobs, second);
                }
            }
        }
    }

    /// The first of its group's order becomes its front.
    #[inline]
    pub(super) fn come_first<K, J>(
        &mut self,
        jobs: &mut Slab<Job<K, J>>,
        at: u32,
        position: Position,
    ) {
        let (_, group) = self.group.as_mut().expect("it has a group");
        group.order.remove(jobs, at);
        self.tenant.line.insert(jobs, position, at);
        (group.front, group.dirty) = (Some(at), false);
    }

    /// Counts a job out of a state and into another. What its tenant could have had
    /// claimed, and can.
    #[inline(always)]
    pub(super) fn count<K, J>(
        &mut self,
        jobs: &mut Slab<Job<K, J>>,
        dirty: &mut VecDeque<Dirty>,
        (old, state): (State, State),
    ) -> (u64, u64) {
        let (ran, runs) = (u32::from(old.is_claimed()), u32::from(state.is_claimed()));
        let (was_ready, is_ready) = (u32::from(old.is_ready()), u32::from(state.is_ready()));
        let (was_here, is_here) = (
            usize::from(old.is_counted()),
            usize::from(state.is_counted()),
        );
        self.tenant.running = self.tenant.running + runs - ran;
        self.tenant.members = self.tenant.members + is_here - was_here;
        match &mut self.group {
            Some((_, group)) => {
                group.running = group.running + runs - ran;
                group.ready = group.ready + is_ready - was_ready;
                group.members = group.members + is_here - was_here;
            }
            None => {
                let units = &mut self.tenant.units;
                *units = *units + u64::from(is_ready) - u64::from(was_ready);
            }
        }
        self.balance_group(jobs, dirty);
        self.tenant.balance()
    }

    /// Whether nobody else is in its group, or of its tenant.
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        let group = self.group.as_ref();
        self.tenant.members == 0 || group.is_some_and(|(_, group)| group.members == 0)
    }

    /// What the group could have claimed has changed, perhaps: its tenant counts it
    /// anew, and its front is in line exactly if there is room.
    #[inline(always)]
    pub(super) fn balance_group<K, J>(
        &mut self,
        jobs: &mut Slab<Job<K, J>>,
        dirty: &mut VecDeque<Dirty>,
    ) {
        let Some((key, group)) = &mut self.group else {
            return;
        };
        let counted = group.limit.room(group.running).min(group.ready);
        let old = std::mem::replace(&mut group.counted, counted);
        let units = &mut self.tenant.units;
        *units = *units - u64::from(old) + u64::from(counted);
        if group.lacks_front() && !group.dirty {
            group.dirty = true;
            dirty.push_back(Dirty::Group(*key));
        } else if counted == 0
            && let Some(front) = group.front.take()
        {
            give_way(&mut self.tenant.line, &mut group.order, jobs, front);
        }
    }
}

/// One that is a front no more is the first of its group's order.
#[inline(never)]
fn give_way<K, J>(line: &mut Order, order: &mut Order, jobs: &mut Slab<Job<K, J>>, at: u32) {
    line.remove(jobs, at);
    order.insert(jobs, Position::First, at);
}
