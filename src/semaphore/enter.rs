//! What a taker and a waiter do under the lock: look exactly, stand in line, look
//! from there, leave.
//!
//! The invariants that are cited here are those of `semaphore.rs`.

use std::panic::Location;
use std::task::{Poll, Waker};

use super::Semaphore;
use super::error::{AcquireError, TryAcquireError};
use super::line::{Claim, Line};
use super::permit::Permit;
use super::word::Take;
use crate::wait::{Removed, Ticket};

/// What came of a look by one who was not in line.
pub(super) enum Entered<'a> {
    Taken(Permit<&'a Semaphore>),
    InLine(Ticket),
    Refused(AcquireError),
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
        spare: &mut Option<Waker>,
    ) -> Entered<'_> {
        let mut line = self.line.lock();
        if let Err(error) = self.admissible(&line, count) {
            return Entered::Refused(error);
        }
        match self.word.take_or_wait(count, line.asked, self.bypass) {
            Take::Taken => Entered::Taken(Permit::of(self, count)),
            Take::Closed => Entered::Refused(AcquireError::Closed),
            Take::NotNow => {
                let waker = spare.take().expect("a waker for one who may wait");
                line.asked += u64::from(count);
                let claim = Claim { count, made_at };
                Entered::InLine(line.waiters.register(claim, waker))
            }
        }
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

    /// One in line is polled again. `spare` may come back with a waker to drop.
    pub(super) fn look_from_line(
        &self,
        ticket: Ticket,
        spare: &mut Option<Waker>,
    ) -> Poll<Result<Permit<&Self>, AcquireError>> {
        let mut session = self.line.lock();
        let line = &mut *session;
        if let Some(claim) = line.collect_grant(ticket) {
            return Poll::Ready(Ok(Permit::of(self, claim.count)));
        }
        match self.find(line, ticket) {
            Ok((permit, removed)) => {
                session.discard_waker(removed.waker);
                Poll::Ready(Ok(permit))
            }
            Err(Some(error)) => Poll::Ready(Err(error)),
            Err(None) => {
                let waker = spare.take().expect("a waker for one who may wait");
                *spare = line.wait_again(ticket, waker);
                Poll::Pending
            }
        }
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
        self.serve_line(session);
    }
}
