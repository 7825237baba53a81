//! The waiting operation.

use std::borrow::Borrow;
use std::task::{Context, Poll};

use super::word::Fast;
use super::{Ticket, TierGate};
use crate::sync::spin_loop;
use crate::wait::{AT_ONCE, Op, back_off, sealed};

/// The operation that [`Ticket::enter`] waits for.
#[derive(Debug)]
pub struct Enter<'a, G: Borrow<TierGate> = TierGate> {
    pub(super) ticket: &'a mut Ticket<G>,
}

impl<G: Borrow<TierGate>> Enter<'_, G> {
    /// Watches the word for a moment. Returns whether the tier has opened.
    fn watch(&self) -> bool {
        let (word, tier) = (&self.ticket.shared().word, self.ticket.tier);
        let open = |_| {
            spin_loop();
            word.load().admits(tier).then_some(())
        };
        // Reads the clock only now and then.
        back_off(AT_ONCE, || true, || (0..32).find_map(open)).is_some()
    }
}

impl<G: Borrow<TierGate>> sealed::Sealed for Enter<'_, G> {}

impl<G: Borrow<TierGate>> Op for Enter<'_, G> {
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
        if self.at_once().is_none() {
            self.ticket.enter_locked(Some(cx.waker().clone()));
        }
        match self.ticket.entered {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn cancel(&mut self) {
        self.ticket.stop_waiting();
    }
}
