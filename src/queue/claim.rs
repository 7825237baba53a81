//! Claims: whose turns begin next, decided under the policy lock.

use crate::group::STARTED;
use crate::wait::Session;

use super::GroupRef;
use super::refuse::TryReceive;
use super::shared::Shared;
use super::state::State;
use super::submissions::Submissions;

impl<T> State<T> {
    /// Claims some of the next groups, into the first places, and says how many:
    /// 0 only if none is eligible.
    #[inline(always)]
    fn claim_run(
        &mut self,
        submissions: &Submissions<T>,
        claimed: &mut [Option<GroupRef<T>>],
    ) -> usize {
        match self.lanes.pop_run(claimed) {
            0 => self.claim_ranked(submissions, claimed),
            n => n,
        }
    }

    /// Claims one after the other, until all that stand in line are in order again.
    /// Where there are several lanes or levels it does not look whether they are.
    #[inline(never)]
    fn claim_ranked(
        &mut self,
        submissions: &Submissions<T>,
        claimed: &mut [Option<GroupRef<T>>],
    ) -> usize {
        for (n, place) in claimed.iter_mut().enumerate() {
            *place = self.claim();
            if place.is_none() {
                return n;
            }
            if !submissions.is_mixed() && self.lanes.is_plain() {
                return n + 1;
            }
        }
        claimed.len()
    }

    /// Claims the next group, if there is one.
    #[inline(never)]
    pub(super) fn claim(&mut self) -> Option<GroupRef<T>> {
        let (group, lane, tiered) = self.lanes.pop()?;
        if tiered {
            self.claimed_in_tier(&group, lane);
        }
        Some(group)
    }

    #[cold]
    fn claimed_in_tier(&mut self, group: &GroupRef<T>, lane: u32) {
        let mut mailbox = group.lock();
        mailbox.flags |= STARTED;
        self.lanes.settle(lane);
    }
}

impl<T> Shared<T> {
    /// Claims the next group, if there is one.
    #[inline(never)]
    pub(super) fn claim(&self) -> Option<GroupRef<T>> {
        let mut state = self.lock_to_claim();
        let group = state.lanes.pop_plain().or_else(|| state.claim());
        if !state.receives.is_empty() {
            self.wake_due(Session::over(state));
        }
        group
    }

    /// Fills `claimed` from the first on, as far as there are groups.
    #[inline(never)]
    pub(super) fn claim_many(&self, claimed: &mut [Option<GroupRef<T>>]) -> usize {
        let mut state = self.lock_to_claim();
        let mut n = 0;
        while n < claimed.len() {
            n += state.claim_run(&self.submissions, &mut claimed[n..]);
            if state.lanes.has_eligible() {
                continue;
            }
            if !self.submissions.has_some() {
                break;
            }
            state.collect(&self.submissions);
        }
        if state.receives.is_empty() {
            drop(state);
        } else {
            self.wake_due(Session::over(state));
        }
        for group in &claimed[..n] {
            group.iter().for_each(GroupRef::prefetch);
        }
        n
    }

    /// Why a claim found nothing.
    #[cold]
    pub(super) fn nothing(&self) -> TryReceive {
        self.trim();
        let no_more = self.with_state(|state| {
            state.shrink(&self.submissions);
            state.no_more()
        });
        no_more.map_or(TryReceive::Empty, TryReceive::Closed)
    }
}
