//! Those who wait, under one lock: who has been told that permits are free, who
//! has been given some, and who is turned away.
//!
//! State: `waiters` is the line, with what each asks for. Told is a waiter that
//! the list has notified. `granted` holds what was handed over to waiters that
//! have not been polled since; they are out of the line.
//!
//! ```text
//!            take_or_wait             told, by the line
//!   (taker) -------------> waiting <-------------------> told
//!                             |     looked in vain         |
//!                             +------- handed over --------+--> granted
//!                             |                            |       |
//!                             +--- turned away, cancelled, +       |
//!                             |    or took by itself       |       |
//!                             v                            v       v
//!                           (gone) <------ polled, or cancelled ---+
//! ```
//!
//! Protocol: whatever may make somebody eligible (a give-back that saw WAITERS,
//! a cancel, a limit, a close) ends in a [`Service`], which goes through the
//! line from the front and stops at the first that cannot have what it asks for.

use std::collections::BTreeMap;
use std::panic::Location;
use std::task::{Poll, Waker};

use super::Semaphore;
use super::error::{AcquireError, TryAcquireError};
use super::permit::Permit;
use super::snapshot::{Snapshot, Standing, WaiterState};
use super::word::Take;
use crate::wait::{Removed, Session, Ticket, Waiters, WakeBatch};

/// What came of a look by one who was not in line.
pub(super) enum Entered<'a> {
    Taken(Permit<&'a Semaphore>),
    InLine(Ticket),
    Refused(AcquireError),
}

/// One request in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    count: u32,
    made_at: &'static Location<'static>,
}

/// What stands under the lock.
pub(super) struct Line {
    limit: u32,
    waiters: Waiters<Claim>,
    /// The sum of all counts in `waiters`.
    asked: u64,
    /// The sum of those that have been told.
    told: u64,
    /// Nobody behind this place has ever been told.
    last_told: Option<Ticket>,
    granted: BTreeMap<Ticket, Claim>,
}

impl Line {
    pub(super) const fn new(limit: u32) -> Self {
        Self {
            limit,
            waiters: Waiters::new(),
            asked: 0,
            told: 0,
            last_told: None,
            granted: BTreeMap::new(),
        }
    }

    /// The longest waiting that has not been told.
    fn first_untold(&self) -> Option<(Ticket, Claim)> {
        let (ticket, claim) = self.waiters.iter_waiting().next()?;
        Some((ticket, *claim))
    }

    /// What those before this one ask for, unless that is more than `available`.
    fn ahead_of(&self, ticket: Ticket, available: i64) -> Option<u64> {
        let mut sum = 0u64;
        for (earlier, claim) in self.waiters.iter() {
            if earlier >= ticket {
                break;
            }
            sum += u64::from(claim.count);
            if i64::try_from(sum).is_ok_and(|sum| sum > available) {
                return None;
            }
        }
        Some(sum)
    }

    /// [`ahead_of`](Self::ahead_of) the first that has not been told: all before
    /// it have been. Without a walk unless somebody behind it has been, too,
    /// which takes one that looked in vain.
    fn ahead_of_untold(&self, ticket: Ticket, available: i64) -> Option<u64> {
        if self.last_told.is_none_or(|last| last < ticket) {
            Some(self.told)
        } else {
            self.ahead_of(ticket, available)
        }
    }

    fn tell(&mut self, ticket: Ticket, claim: Claim, wakes: &mut WakeBatch) {
        let told = self.waiters.notify(ticket, wakes);
        debug_assert!(told);
        self.told += u64::from(claim.count);
        self.last_told = self.last_told.max(Some(ticket));
    }

    /// Takes a waiter out of the line, whatever for.
    fn leave(&mut self, ticket: Ticket) -> Option<Removed<Claim>> {
        let removed = self.waiters.remove(ticket)?;
        let count = u64::from(removed.data.count);
        self.asked -= count;
        if removed.was_notified {
            self.told -= count;
        }
        Some(removed)
    }

    /// Takes a waiter out of the line and wakes it if it does not know that
    /// there is something to see.
    fn dismiss(&mut self, ticket: Ticket, wakes: &mut WakeBatch) -> Option<Claim> {
        let removed = self.leave(ticket)?;
        if let Some(waker) = removed.waker {
            wakes.push(waker);
        }
        Some(removed.data)
    }

    /// One that looked in vain is among the sleepers again, so that the next
    /// give-back, which waits for the lock, tells it.
    fn wait_again(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        if self.waiters.is_notified(ticket) {
            let count = self.waiters.get(ticket).map_or(0, |claim| claim.count);
            self.told -= u64::from(count);
        }
        self.waiters.rewait(ticket, waker)
    }

    fn collect_grant(&mut self, ticket: Ticket) -> Option<Claim> {
        let claim = self.granted.remove(&ticket);
        if self.granted.is_empty() {
            // An empty map keeps its last block otherwise.
            self.granted = BTreeMap::new();
        }
        claim
    }
}

impl Semaphore {
    /// A taker that found nothing looks again, exactly this time.
    #[cold]
    pub(super) fn try_in_line(&self, count: u32) -> Result<Permit<&Self>, TryAcquireError> {
        let line = self.line.lock();
        self.admissible(&line, count)?;
        match self.word.take_behind(count, line.asked, self.bypass) {
            Take::Taken => Ok(Permit::of(self, count)),
            Take::NotNow => Err(TryAcquireError::NoPermits),
            Take::Closed => Err(TryAcquireError::Closed),
        }
    }

    /// A taker looks again, and stands in line if there is nothing for it.
    #[cold]
    pub(super) fn stand_in_line(
        &self,
        count: u32,
        made_at: &'static Location<'static>,
        waker: Waker,
    ) -> Entered<'_> {
        let mut line = self.line.lock();
        if let Err(error) = self.admissible(&line, count) {
            return Entered::Refused(error);
        }
        let taken = match self.word.take_or_wait(count, line.asked, self.bypass) {
            Take::Taken => Permit::of(self, count),
            Take::Closed => return Entered::Refused(AcquireError::Closed),
            Take::NotNow => {
                line.asked += u64::from(count);
                let claim = Claim { count, made_at };
                return Entered::InLine(line.waiters.register(claim, waker));
            }
        };
        // Here, so that a panic of theirs gives the permit back.
        drop((line, waker));
        Entered::Taken(taken)
    }

    fn admissible(&self, line: &Line, count: u32) -> Result<(), AcquireError> {
        if self.word.look().is_closed() {
            Err(AcquireError::Closed)
        } else if count > line.limit {
            Err(AcquireError::AboveLimit)
        } else {
            Ok(())
        }
    }

    /// One in line is polled again.
    pub(super) fn look_from_line(
        &self,
        ticket: Ticket,
        waker: Waker,
    ) -> Poll<Result<Permit<&Self>, AcquireError>> {
        let mut session = self.line.lock();
        let line = &mut *session;
        let found = match line.collect_grant(ticket) {
            Some(claim) => Permit::of(self, claim.count),
            None => match self.find(line, ticket) {
                Ok((permit, removed)) => {
                    session.discard_waker(removed.waker);
                    permit
                }
                Err(Some(error)) => return Poll::Ready(Err(error)),
                Err(None) => {
                    let old = line.wait_again(ticket, waker);
                    session.discard_waker(old);
                    return Poll::Pending;
                }
            },
        };
        // Here, so that a panic of theirs gives the permit back.
        drop((session, waker));
        Poll::Ready(Ok(found))
    }

    /// Takes what one in line asks for, if that is there beside what those ahead
    /// of it ask for. `None`: not now.
    fn find(
        &self,
        line: &mut Line,
        ticket: Ticket,
    ) -> Result<(Permit<&Self>, Removed<Claim>), Option<AcquireError>> {
        let bits = self.word.look();
        if bits.is_closed() {
            // It may be in line still, and is turned away in its turn.
            return Err(Some(AcquireError::Closed));
        }
        let Some(&Claim { count, .. }) = line.waiters.get(ticket) else {
            return Err(Some(AcquireError::AboveLimit));
        };
        let only = line.waiters.len() == 1;
        let ahead = |available| line.ahead_of(ticket, available);
        if !self.word.take_or_wait_on(count, only, ahead) {
            return Err(None);
        }
        let permit = Permit::of(self, count);
        let removed = line.leave(ticket).expect("found in line above");
        Ok((permit, removed))
    }

    /// [`look_from_line`](Self::look_from_line) that leaves everything as it is
    /// if there is nothing. `Pending`: the line has told it to look, so that
    /// give-backs pass by, and it must look again soon.
    pub(super) fn glance_from_line(
        &self,
        ticket: Ticket,
    ) -> Option<Poll<Result<Permit<&Self>, AcquireError>>> {
        let mut session = self.line.lock();
        let line = &mut *session;
        if let Some(claim) = line.collect_grant(ticket) {
            let permit = Permit::of(self, claim.count);
            drop(session);
            return Some(Poll::Ready(Ok(permit)));
        }
        line.waiters.is_notified(ticket).then_some(Poll::Pending)
    }

    /// One in line gives up, or one that was given something does not want it.
    pub(super) fn leave_line(&self, ticket: Ticket) {
        let mut session = self.line.lock();
        let line = &mut *session;
        if let Some(claim) = line.collect_grant(ticket) {
            // Whether anybody waits is known under the lock.
            let _ = self.word.put(claim.count, self.bypass);
        } else if let Some(removed) = line.leave(ticket) {
            if line.waiters.is_empty() {
                self.word.nobody_waits();
            }
            session.discard_waker(removed.waker);
        } else {
            // Turned away, and not looked since.
            return;
        }
        Service::nobody_turned_away(self).run(session);
    }

    /// Permits have come back that somebody in line may be waiting for.
    #[cold]
    pub(super) fn serve(&self) {
        let session = self.line.lock();
        Service::nobody_turned_away(self).run(session);
    }

    /// Makes the limit what `new` says of the old one, and of the available
    /// permits what remains beside those that are out.
    pub(super) fn change_limit(&self, given_up: u32, new: impl FnOnce(u32) -> u32) {
        let mut session = self.line.lock();
        let line = &mut *session;
        let old = line.limit;
        line.limit = new(old);
        let by = i64::from(line.limit) - i64::from(old) + i64::from(given_up);
        if by != 0 {
            self.word.shift(by);
        }
        let mut impossible = Vec::new();
        if line.limit < old {
            let limit = line.limit;
            let above = |&(_, claim): &(Ticket, &Claim)| claim.count > limit;
            impossible.extend(line.waiters.iter().filter(above).map(|(ticket, _)| ticket));
        }
        let mut service = Service {
            semaphore: self,
            turned_away: TurnedAway::Some(impossible),
            done: false,
        };
        service.run(session);
    }

    /// Turns everybody in line away.
    pub(super) fn close_line(&self) {
        let session = self.line.lock();
        self.word.close();
        let mut service = Service {
            semaphore: self,
            turned_away: TurnedAway::All,
            done: false,
        };
        service.run(session);
    }

    pub(super) fn inspect(&self) -> Snapshot {
        let session = self.line.lock();
        let line = &*session;
        let standing = |claim: &Claim, state| Standing {
            count: claim.count,
            state,
            made_at: claim.made_at,
        };
        let granted = line.granted.iter();
        let mut all: Vec<_> = granted
            .map(|(&ticket, claim)| (ticket, standing(claim, WaiterState::Granted)))
            .collect();
        all.extend(line.waiters.iter().map(|(ticket, claim)| {
            let state = match line.waiters.is_notified(ticket) {
                true => WaiterState::Told,
                false => WaiterState::Waiting,
            };
            (ticket, standing(claim, state))
        }));
        all.sort_unstable_by_key(|&(ticket, _)| ticket);
        let bits = self.word.look();
        Snapshot {
            limit: line.limit,
            available: bits.available(),
            overtakings: bits.overtakings(),
            closed: bits.is_closed(),
            waiters: all.into_iter().map(|(_, standing)| standing).collect(),
        }
    }
}

/// Whom a service turns away before it serves the rest.
enum TurnedAway {
    All,
    Some(Vec<Ticket>),
}

/// One pass over the line, in bounded batches. If a waker panics between two of
/// them, dropping the service finishes it: nobody stays asleep for that.
#[must_use]
struct Service<'a> {
    semaphore: &'a Semaphore,
    turned_away: TurnedAway,
    done: bool,
}

impl<'a> Service<'a> {
    fn nobody_turned_away(semaphore: &'a Semaphore) -> Self {
        Self {
            semaphore,
            turned_away: TurnedAway::Some(Vec::new()),
            done: false,
        }
    }

    fn run(&mut self, mut session: Session<'_, Line>) {
        while self.step(&mut session) {
            session.flush();
        }
        self.done = true;
    }

    /// Fills a batch. True if it is full, and there may be more to do.
    fn step(&mut self, session: &mut Session<'_, Line>) -> bool {
        let (line, wakes) = session.parts();
        while !wakes.is_full() {
            if !self.turn_one_away(line, wakes) && !self.serve_one(line, wakes) {
                return false;
            }
        }
        true
    }

    fn turn_one_away(&mut self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        let ticket = match &mut self.turned_away {
            TurnedAway::All => line.waiters.front().map(|(ticket, _)| ticket),
            TurnedAway::Some(tickets) => tickets.pop(),
        };
        let Some(ticket) = ticket else {
            return false;
        };
        // It may have left while a batch was fired, or the limit risen again.
        let all = matches!(self.turned_away, TurnedAway::All);
        let still = |claim: &Claim| all || claim.count > line.limit;
        if line.waiters.get(ticket).is_some_and(still) {
            line.dismiss(ticket, wakes);
            if line.waiters.is_empty() {
                self.semaphore.word.nobody_waits();
            }
        }
        true
    }

    /// Hands over to the front if the bound is reached, else tells the next that
    /// it can have what it asks for. False if nobody can.
    fn serve_one(&self, line: &mut Line, wakes: &mut WakeBatch) -> bool {
        let word = &self.semaphore.word;
        let bits = word.look();
        if bits.is_closed() {
            return false;
        }
        if self.semaphore.bypass.spent(bits.overtakings()) {
            let Some((ticket, &Claim { count, .. })) = line.waiters.front() else {
                return false;
            };
            let only = line.waiters.len() == 1;
            if !word.hand_over(count, only) {
                return false;
            }
            let claim = line.dismiss(ticket, wakes);
            line.granted.extend(claim.map(|claim| (ticket, claim)));
            return true;
        }
        let Some((ticket, claim)) = line.first_untold() else {
            return false;
        };
        let ahead = line.ahead_of_untold(ticket, bits.available());
        let fits = ahead.is_some_and(|ahead| bits.covers(ahead, claim.count));
        if fits {
            line.tell(ticket, claim, wakes);
            if line.waiters.waiting() == 0 {
                word.all_told();
            }
        }
        fits
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.done = true;
            let session = self.semaphore.line.lock();
            self.run(session);
        }
    }
}
