//! Receives: the next turn of whichever group comes first.

use std::iter::FusedIterator;
use std::mem::ManuallyDrop;
use std::task::{Context, Poll, Waker};

use crate::group::STARTED;
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{
    OFTEN, Op, Panics, Session, Ticket, Wait, back_off, look_again, look_twice, sealed,
};

use super::holders::Holder;
use super::refuse::{NoMore, NoTurn};
use super::shared::Shared;
use super::state::State;
use super::submissions::Submissions;
use super::turn::Turn;
use super::{GroupRef, Queue};

impl<T> Queue<T> {
    /// Waits for the next turn. The first receive that looks takes it; of those that sleep, the
    /// one that has waited longest is woken first.
    ///
    /// Cancel safe: if a receive was woken and is dropped, the wake-up passes on.
    ///
    /// # Errors
    ///
    /// [`NoMore`] if the queue is closed, nothing is in flight, and nothing waits except in
    /// poisoned groups.
    #[inline]
    pub fn receive(&self) -> Wait<impl Op<Output = Result<Turn<'_, T>, NoMore>>> {
        self.receive_one()
    }

    #[inline]
    pub(super) fn receive_one(&self) -> Wait<Receiving<'_, T, Turn<'_, T>>> {
        Wait::new(Receiving {
            shared: self.shared(),
            n: 1,
            ticket: None,
            claim: |shared, _| Turn::claim(shared),
            give: |turns| turns.next().expect("one was claimed"),
        })
    }

    /// The next turn, if there is one now.
    ///
    /// # Errors
    ///
    /// [`NoTurn`] if there is none.
    #[inline(always)]
    pub fn try_receive(&self) -> Result<Turn<'_, T>, NoTurn> {
        Turn::claim(self.shared()).ok_or_else(|| self.shared().nothing())
    }

    /// Waits for a turn, then claims up to `n` turns, at most 32, under one lock.
    ///
    /// The turns are claimed in the order of rank at that moment: a later bump overtakes none
    /// of them. Each turn begins when the iterator gives it. When the iterator is dropped, its
    /// remaining turns begin and end: their groups have used up their bumps, and become the
    /// youngest of their lanes.
    ///
    /// With `n` = 0 it gives nothing, at once.
    ///
    /// # Errors
    ///
    /// Like [`receive`](Self::receive).
    #[inline]
    pub fn receive_many(&self, n: usize) -> Wait<impl Op<Output = Result<Turns<'_, T>, NoMore>>> {
        Wait::new(Receiving {
            shared: self.shared(),
            n,
            ticket: None,
            claim: Turns::claim,
            give: Turns::give,
        })
    }

    /// Up to `n` turns, at most 32, if there is at least one now. See
    /// [`receive_many`](Self::receive_many).
    ///
    /// # Errors
    ///
    /// [`NoTurn`] if there is none.
    #[inline]
    pub fn try_receive_many(&self, n: usize) -> Result<Turns<'_, T>, NoTurn> {
        Turns::claim(self.shared(), n).ok_or_else(|| self.shared().nothing())
    }
}

impl<'q, T> Turn<'q, T> {
    /// The next turn, if there is one.
    #[inline(always)]
    fn claim(shared: &'q Arc<Shared<T>>) -> Option<Self> {
        let epoch = shared.epoch();
        let group = shared.claim()?;
        Some(Self::begin(shared, group, epoch))
    }
}

/// The most turns that are claimed under one lock.
const MOST: usize = 32;

/// Turns that were claimed together. See [`Queue::receive_many`]. If it is forgotten
/// (`mem::forget`), the groups of the remaining turns stay claimed for ever.
#[must_use = "what is not asked for is begun and ended"]
pub struct Turns<'q, T> {
    shared: &'q Arc<Shared<T>>,
    /// Those still to come; dropped as turns.
    claimed: ManuallyDrop<[Option<GroupRef<T>>; MOST]>,
    next: usize,
    end: usize,
    /// The queue's epoch before they were claimed.
    epoch: u64,
    /// The thread that received them, until the last has begun.
    holder: Holder,
}

impl<'q, T> Turns<'q, T> {
    #[inline]
    fn none(shared: &'q Arc<Shared<T>>) -> Self {
        Self {
            shared,
            claimed: ManuallyDrop::new([const { None }; MOST]),
            next: 0,
            end: 0,
            epoch: shared.epoch(),
            holder: Holder::NONE,
        }
    }

    /// They were claimed by the calling thread.
    #[inline]
    fn hold(&mut self) {
        if self.end > 0 {
            self.holder = self.shared.capacity.hold();
        }
    }

    /// Up to `n` turns, if there is one or `n` is 0.
    #[inline]
    fn claim(shared: &'q Arc<Shared<T>>, n: usize) -> Option<Self> {
        let mut turns = Self::none(shared);
        turns.end = shared.claim_many(&mut turns.claimed[..n.min(MOST)]);
        turns.hold();
        (!turns.is_empty() || n == 0).then_some(turns)
    }

    /// The last begins, and counts for itself.
    #[cold]
    fn let_go(&mut self) {
        self.shared.capacity.let_go(&mut self.holder);
    }

    /// Moves out what a wait has claimed.
    fn give(&mut self) -> Self {
        self.hold();
        std::mem::replace(self, Self::none(self.shared))
    }

    /// Begins and ends each turn, even if the drop of a message panics.
    #[cold]
    fn end_all(&mut self) {
        let mut panics = Panics::default();
        self.for_each(|turn| panics.contain(|| drop(turn)));
        panics.resume();
    }

    /// How many turns are still to come.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.next
    }

    /// Whether no turn is to come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'q, T> Iterator for Turns<'q, T> {
    type Item = Turn<'q, T>;

    #[inline(always)]
    fn next(&mut self) -> Option<Turn<'q, T>> {
        let group = self.claimed.get_mut(self.next)?.take()?;
        self.next += 1;
        if self.next == self.end && self.holder.is_some() {
            self.let_go();
        }
        Some(Turn::begin(self.shared, group, self.epoch))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<T> ExactSizeIterator for Turns<'_, T> {}
impl<T> FusedIterator for Turns<'_, T> {}

impl<T> Drop for Turns<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.next < self.end {
            self.end_all();
        }
    }
}

shows!([T] Turns<'_, T>, |turns| left: turns.len());

/// A wait for a turn, or for several: for `R`.
pub struct Receiving<'q, T, R> {
    shared: &'q Arc<Shared<T>>,
    /// The most turns.
    n: usize,
    ticket: Option<Ticket>,
    /// Claims what can be claimed at once.
    claim: fn(&'q Arc<Shared<T>>, usize) -> Option<R>,
    /// What the turns are returned as.
    give: fn(&mut Turns<'q, T>) -> R,
}

shows!([T, R] Receiving<'_, T, R>, |receiving| most: receiving.n);

impl<T, R> Receiving<'_, T, R> {
    #[inline]
    fn claim(&self) -> Option<R> {
        (self.claim)(self.shared, self.n)
    }
}

impl<T, R> sealed::Sealed for Receiving<'_, T, R> {}

impl<'q, T, R> Op for Receiving<'q, T, R> {
    type Output = Result<R, NoMore>;

    #[inline]
    fn at_once(&mut self) -> Option<Self::Output> {
        self.claim().map(Ok)
    }

    /// Spins for a moment until something is submitted, before it enqueues: while no receive
    /// sleeps, a send need not wake any.
    fn attempt(&mut self) -> Option<Self::Output> {
        if self.ticket.is_some() {
            return None;
        }
        let submissions = &self.shared.submissions;
        let look = || submissions.has_some().then(|| self.claim()).flatten();
        back_off(OFTEN, || true, look).map(Ok)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let is_first = self.ticket.is_none();
        if is_first {
            if let Some(claimed) = self.claim() {
                return Poll::Ready(Ok(claimed));
            }
            self.shared.trim(false);
        }
        let (shared, ticket) = (self.shared, &mut self.ticket);
        let mut turns = Turns::none(shared);
        let places = self.n.min(MOST);
        let look = |current: &Waker, cloned: &mut Option<Waker>| {
            shared.with_state(|state| {
                turns.end = state.claim_all(&shared.submissions, &mut turns.claimed[..places]);
                prefetch(&turns.claimed[..turns.end]);
                let found = (turns.end > 0).then_some(Ok(()));
                if let Some(found) = found.or_else(|| state.no_more().map(Err)) {
                    let waker = state.receives.withdraw(ticket);
                    state.discard_waker(waker);
                    return Some(Poll::Ready(found));
                }
                state.shrink(&shared.submissions);
                let stands = state.receives.enqueue((), ticket, current, cloned);
                stands.then_some(Poll::Pending)
            })
        };
        let found = match is_first {
            true => look_again(cx, look),
            false => look_twice(cx, look),
        };
        found.map(|found| found.map(|()| (self.give)(&mut turns)))
    }

    fn cancel(&mut self) {
        self.shared.with_state(|state| {
            // If it had been notified, the waking rule passes that on.
            let waker = state.receives.withdraw(&mut self.ticket);
            state.discard_waker(waker);
        });
    }
}

fn prefetch<T>(claimed: &[Option<GroupRef<T>>]) {
    claimed.iter().flatten().for_each(GroupRef::prefetch);
}

impl<T> State<T> {
    /// Claims one group after the other, until the rest of the line is in order again. With
    /// several lanes or levels it does not check for that.
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

    /// Claims the next groups into the first places, and returns how many: fewer only if no
    /// more are eligible.
    #[inline(always)]
    fn claim_all(
        &mut self,
        submissions: &Submissions<T>,
        claimed: &mut [Option<GroupRef<T>>],
    ) -> usize {
        let mut n = 0;
        while n < claimed.len() {
            n += match self.lanes.pop_run(&mut claimed[n..]) {
                0 => self.claim_ranked(submissions, &mut claimed[n..]),
                run => run,
            };
            if self.lanes.has_eligible() {
                continue;
            }
            if !submissions.has_some() {
                break;
            }
            self.collect(submissions);
        }
        n
    }

    /// Claims the next group, if there is one.
    #[inline(never)]
    pub(super) fn claim(&mut self) -> Option<GroupRef<T>> {
        let (group, lane, tiered) = self.lanes.pop()?;
        if tiered {
            group.lock().flags |= STARTED;
            self.lanes.update(lane);
        }
        Some(group)
    }
}

impl<T> Shared<T> {
    /// Claims the next group, if there is one.
    #[inline(never)]
    pub(super) fn claim(&self) -> Option<GroupRef<T>> {
        let mut state = self.lock_to_claim();
        let group = state.lanes.pop_plain().or_else(|| state.claim());
        if !state.receives.is_empty() {
            self.wake_due(Session::over(state), 0);
        }
        group
    }

    /// Fills `claimed` from the front, while there are eligible groups.
    #[inline(never)]
    pub(super) fn claim_many(&self, claimed: &mut [Option<GroupRef<T>>]) -> usize {
        let mut state = self.lock_to_claim();
        let n = state.claim_all(&self.submissions, claimed);
        if state.receives.is_empty() {
            drop(state);
        } else {
            self.wake_due(Session::over(state), 0);
        }
        prefetch(&claimed[..n]);
        n
    }

    /// Why a claim found nothing.
    #[cold]
    pub(super) fn nothing(&self) -> NoTurn {
        self.trim(false);
        let no_more = self.with_state(|state| {
            state.shrink(&self.submissions);
            state.no_more()
        });
        no_more.map_or(NoTurn::Empty, NoTurn::Closed)
    }
}
