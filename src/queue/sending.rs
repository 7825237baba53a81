//! The wait for room, and then its purpose: a send, a reservation, a job, a task.
//!
//! Invariant: what is to be sent stays in its wait, with the room granted to it, until no user
//! code can panic any more.

use std::future::Future;
use std::mem::take;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use crate::group::{GROUP, LANE};
use crate::semaphore::{Acquire, AcquireError, Semaphore};
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, Wait, contained, sealed};

use super::bounds::{Bound, Granted};
use super::capacity::{Capacity, Permits, is_above, number};
use super::refuse::SendReason;

/// The wait for room of a [send](super::Conversation::send_wait), a reservation, a job or a task.
/// `O` is the sender, `M` what it sends, `R` the result.
pub struct Sending<'a, O, M, R> {
    /// The sender and what it sends; `None` once it is sent or given back.
    pending: Option<(O, M)>,
    capacity: &'a Capacity,
    messages: usize,
    /// What it waits for: `GROUP`, then `LANE`, and beyond both the queue.
    which: usize,
    /// The wait for the group or the lane.
    part: Option<Wait<Acquire<Arc<Semaphore>>>>,
    /// The wait for the queue: `None` if there is always room, and once it has its permits.
    request: Option<Acquire<&'a Semaphore>>,
    granted: Granted<'a>,
    steps: Steps<'a, O, M, R>,
    asleep: bool,
}

/// How to send something that waits for room.
pub(crate) struct Steps<'a, O, M, R> {
    /// The capacity of a group or a lane in which it needs room.
    pub(crate) bound: Bound<O>,
    /// For a send that takes its own permits: sends it before it was ever in line, or returns
    /// it if there is no room.
    pub(crate) at_once: Option<SendAtOnce<O, M, R>>,
    /// Runs before the send: what may panic.
    pub(crate) prepare: fn(&mut O),
    /// Sends it with its room.
    pub(crate) send: SendGranted<'a, O, M, R>,
    /// Runs before it is given back: drops what of the sender may panic.
    pub(crate) let_go: fn(&mut O),
    /// Gives it back for a reason.
    pub(crate) give_back: fn(M, SendReason) -> R,
    /// Told how the wait goes. Returns true if permits may have come back by that, or if a wait
    /// that was woken in vain must give up, since it would wait for itself.
    pub(crate) on_pause: fn(&O, Pause<'_>) -> bool,
}

type SendAtOnce<O, M, R> = fn(O, M) -> Result<R, (O, M)>;

pub(super) type SendGranted<'a, O, M, R> = fn(O, M, Granted<'a>) -> R;

impl<'a, O, M, R> Steps<'a, O, M, R> {
    /// Only a send.
    pub(crate) fn new(send: SendGranted<'a, O, M, R>, give_back: fn(M, SendReason) -> R) -> Self {
        Self {
            bound: |_, _| None,
            at_once: None,
            prepare: |_| (),
            send,
            let_go: |_| (),
            give_back,
            on_pause: |_, _| false,
        }
    }
}

/// How a wait for room goes.
pub(crate) enum Pause<'a> {
    /// It waits: free permits that were not yet given back must be given back now.
    Waits,
    /// Its thread is about to sleep without a deadline, until this waker is woken. The ticket
    /// is its place in line.
    Sleeps(Ticket, &'a Waker),
    /// It was woken, and there is nothing: it may have to give up.
    WokenInVain,
    /// The sleep is over.
    Over,
}

shows!([O, M, R] Sending<'_, O, M, R>, |sending| messages: sending.messages);

impl<'a, O, M, R> Sending<'a, O, M, R> {
    pub(crate) fn wait(
        capacity: &'a Capacity,
        messages: usize,
        pending: (O, M),
        steps: Steps<'a, O, M, R>,
    ) -> Wait<Self> {
        let permits = capacity.permits();
        Wait::new(Self {
            pending: Some(pending),
            capacity,
            messages,
            which: GROUP,
            part: None,
            request: permits.map(|permits| Semaphore::request(permits, number(messages))),
            granted: Granted::default(),
            steps,
            asleep: false,
        })
    }

    fn pending(&mut self) -> (O, M) {
        self.pending.take().expect("what has not been sent is here")
    }

    /// Sends it, if there is room now that no waiter wants.
    fn send_at_once(&mut self, send: SendAtOnce<O, M, R>) -> Option<R> {
        let (by, message) = self.pending();
        let sent = send(by, message);
        sent.map_err(|back| self.pending = Some(back)).ok()
    }

    /// Sends it with these permits; it has everything else that it needs.
    fn send_with(&mut self, permits: Permits<'a>) -> R {
        self.unblock();
        self.granted.permits = permits;
        self.request = None;
        self.send()
    }

    fn send(&mut self) -> R {
        if let Some((by, _)) = &mut self.pending {
            (self.steps.prepare)(by);
        }
        let (by, message) = self.pending();
        (self.steps.send)(by, message, take(&mut self.granted))
    }

    /// Whether it may have to wait for the group or the lane.
    fn may_wait_for_parts(&self) -> bool {
        self.which <= LANE && self.capacity.has_parts()
    }

    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendReason>> {
        // At the first look: nobody waits behind what the queue or the lane can never take.
        if self.part.is_none() && self.never_gets_room() {
            return Poll::Ready(Err(SendReason::AboveCapacity));
        }
        while let Some((by, _)) = &mut self.pending
            && self.which <= LANE
        {
            if self.part.is_none() {
                let ask = |bound| Wait::new(Semaphore::request(bound, number(self.messages)));
                self.part = (self.steps.bound)(by, self.which).map(ask);
            }
            if let Some(part) = &mut self.part {
                let answer = ready!(Pin::new(part).poll(cx));
                self.part = None;
                match answer {
                    Ok(permit) => self.granted.parts[self.which] = Some(permit),
                    // The capacity was removed or the queue closed: looks again.
                    Err(AcquireError::Closed) => continue,
                    Err(above) => return Poll::Ready(Err(above.into())),
                }
            }
            self.which += 1;
        }
        Poll::Ready(Ok(()))
    }

    fn never_gets_room(&mut self) -> bool {
        let lane = match &mut self.pending {
            Some((by, _)) if self.messages > 1 => (self.steps.bound)(by, LANE),
            _ => None,
        };
        let is_above = |lane: &Semaphore| is_above(lane, number(self.messages));
        self.capacity.is_below(self.messages) || lane.is_some_and(|lane| is_above(&lane))
    }

    /// Reports a pause; returns what [`Steps::on_pause`] does.
    fn report(&self, pause: Pause<'_>) -> bool {
        let pending = self.pending.as_ref();
        pending.is_some_and(|(by, _)| (self.steps.on_pause)(by, pause))
    }

    /// Leaves the line, if it is in it, and gives the message back.
    fn leave(&mut self, reason: SendReason) -> R {
        self.cancel();
        self.unblock();
        if let Some((by, _)) = &mut self.pending {
            (self.steps.let_go)(by);
        }
        let (_by, message) = self.pending();
        (self.steps.give_back)(message, reason)
    }
}

impl<O, M, R> sealed::Sealed for Sending<'_, O, M, R> {}

// Nothing in it is ever pinned.
impl<O, M, R> Unpin for Sending<'_, O, M, R> {}

impl<O, M, R> Op for Sending<'_, O, M, R> {
    type Output = R;

    fn at_once(&mut self) -> Option<Self::Output> {
        if self.may_wait_for_parts() {
            return None;
        }
        if let Some(send) = self.steps.at_once {
            return self.send_at_once(send);
        }
        let permits = self.capacity.take(self.messages).ok()?;
        Some(self.send_with(permits))
    }

    /// For a thread that waits without a deadline: the rule for handlers.
    fn attempt(&mut self) -> Option<Self::Output> {
        if self.capacity.is_own() {
            return Some(match self.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(sent) => sent,
                Poll::Pending => self.leave(SendReason::OwnQueue),
            });
        }
        if self.may_wait_for_parts() {
            return None;
        }
        if let Some(send) = self.steps.at_once {
            let free = self.capacity.permits()?.is_free(1);
            return free.then(|| self.send_at_once(send)).flatten();
        }
        let permit = self.request.as_mut()?.attempt()?.ok()?;
        Some(self.send_with(Permits(Some(permit))))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.pending.is_some(), "polled after it was done");
        if self.may_wait_for_parts()
            && let Err(reason) = ready!(self.poll_parts(cx))
        {
            return Poll::Ready(self.leave(reason));
        }
        self.which = LANE + 1;
        if let Some(send) = self.steps.at_once.take()
            && let Some(sent) = self.send_at_once(send)
        {
            return Poll::Ready(sent);
        }
        let Some(request) = &mut self.request else {
            return Poll::Ready(self.send());
        };
        let is_first = request.ticket().is_none();
        let mut polled = request.poll(cx);
        if polled.is_pending() {
            let came_back = self.capacity.waited_for() | self.report(Pause::Waits);
            if let Some(request) = self.request.as_mut().filter(|_| is_first && came_back) {
                // If the waker cannot be cloned again, the wait stays in line.
                contained(|| polled = request.poll(cx));
            }
        }
        match ready!(polled) {
            Ok(permit) => Poll::Ready(self.send_with(Permits(Some(permit)))),
            Err(error) => Poll::Ready(self.leave(error.into())),
        }
    }

    fn cancel(&mut self) {
        if let Some(request) = &mut self.request {
            request.cancel();
        }
        (self.part, self.granted) = (None, Granted::default());
    }

    fn block(&mut self, waker: &Waker) {
        if let Some(ticket) = self.request.as_ref().and_then(Acquire::ticket) {
            self.asleep = true;
            self.report(Pause::Sleeps(ticket, waker));
        }
    }

    fn give_up(&mut self) -> Option<R> {
        let stalled = self.report(Pause::WokenInVain);
        stalled.then(|| self.leave(SendReason::OwnQueue))
    }

    #[inline]
    fn unblock(&mut self) {
        if take(&mut self.asleep) {
            self.report(Pause::Over);
        }
    }
}

impl<O, M, R> Wait<Sending<'_, O, M, R>> {
    /// Gives up, and returns what was not sent; `None` if it was sent or given back before.
    pub fn into_message(mut self) -> Option<M> {
        self.cancel();
        let (_, message) = self.op_mut().pending.take()?;
        Some(message)
    }

    /// Like [`wait_timeout`](Wait::wait_timeout), but a time-out returns the message. It blocks a
    /// thread of a runtime, too: in a task await with the runtime's time-out, and then call
    /// [`into_message`](Self::into_message).
    ///
    /// # Errors
    ///
    /// The errors of the wait, and [`SendReason::TimedOut`].
    pub fn or_return_after(self, timeout: Duration) -> R {
        // The clock is read only by a wait that must wait.
        self.give_back(|| Instant::now().checked_add(timeout))
    }

    /// Like [`wait_deadline`](Wait::wait_deadline), but a time-out returns the message. It blocks a
    /// thread of a runtime, too.
    ///
    /// # Errors
    ///
    /// The errors of the wait, and [`SendReason::TimedOut`].
    pub fn or_return_at(self, deadline: Instant) -> R {
        self.give_back(|| Some(deadline))
    }

    fn give_back(mut self, deadline: impl FnOnce() -> Option<Instant>) -> R {
        let sent = self.wait_at_most(deadline);
        sent.unwrap_or_else(|_| self.op_mut().leave(SendReason::TimedOut))
    }
}

impl<O, M, R> Wait<Sending<'_, (Option<u32>, O), M, R>> {
    /// Sets the tier. See [`send_in`](super::Conversation::send_in).
    pub fn in_tier(mut self, tier: u32) -> Self {
        if let Some(((to, _), _)) = &mut self.op_mut().pending {
            *to = Some(tier);
        }
        self
    }
}
