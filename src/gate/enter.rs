//! The waiting operation.

use std::task::{Context, Poll};

use super::state::start;
use super::word::Fast;
use super::{Handle, Ticket, TierGate};
use crate::sync::spin_loop;
use crate::wait::{AT_ONCE, Op, back_off, sealed};

/// The wait of [`Ticket::enter`].
#[derive(Debug)]
pub struct Enter<'a, G: Handle = TierGate> {
    ticket: &'a mut Ticket<G>,
}

impl<'a, G: Handle> Enter<'a, G> {
    #[inline]
    pub(super) fn new(ticket: &'a mut Ticket<G>) -> Self {
        Self { ticket }
    }

    /// Watches the word for a moment: whether the tier has opened.
    fn watch(&self) -> bool {
        let (word, tier) = (&self.ticket.shared().word, self.ticket.tier);
        let open = |_| {
            spin_loop();
            word.load().admits(tier).then_some(())
        };
        // With a look at the clock now and then.
        back_off(AT_ONCE, || true, || (0..32).find_map(open)).is_some()
    }
}

impl<G: Handle> sealed::Sealed for Enter<'_, G> {}

impl<G: Handle> Op for Enter<'_, G> {
    type Output = ();

    #[inline]
    fn at_once(&mut self) -> Option<()> {
        (self.ticket.enter_fast() == Fast::Done).then_some(())
    }

    fn attempt(&mut self) -> Option<()> {
        let entered = self.ticket.entered || self.watch() && self.ticket.try_enter();
        entered.then_some(())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ticket.try_enter() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let Ticket {
            gate,
            tier,
            entered,
            position,
            ..
        } = &mut *self.ticket;
        let shared = &(*gate).borrow().shared;
        let mut session = shared.state.lock();
        if session.change(&shared.word, |tiers| start(tiers, *tier)) {
            *entered = true;
            session.leave_line(*tier, position);
            session.discard_waker(Some(waker));
            return Poll::Ready(());
        }
        let line = session.lines.entry(*tier).or_default();
        let old = match *position {
            Some(position) => line.rewait(position, waker),
            None => {
                *position = Some(line.register((), waker));
                None
            }
        };
        session.discard_waker(old);
        Poll::Pending
    }

    fn cancel(&mut self) {
        self.ticket.leave_line();
    }
}
