//! The waiting operation.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::Ticket;
use super::books::start;
use crate::sync::{model_size, spin_loop, yield_now};
use crate::wait::{Op, sealed};

/// How long a thread watches the word before it stands in line: about what a sleep costs. The model
/// does not spin.
const WATCH: Duration = Duration::from_nanos(model_size(2_000, 0) as u64);

/// The wait of [`Ticket::enter`].
#[derive(Debug)]
pub struct Enter<'a> {
    ticket: &'a mut Ticket,
}

impl<'a> Enter<'a> {
    #[inline]
    pub(super) fn new(ticket: &'a mut Ticket) -> Self {
        Self { ticket }
    }

    /// Watches the word for a moment: whether the tier has opened.
    fn watch(&self) -> bool {
        let Ticket { shared, tier, .. } = &*self.ticket;
        let open = || shared.word.look().admits(*tier);
        if WATCH.is_zero() {
            return open();
        }
        let mut begun = None;
        loop {
            for _ in 0..32 {
                if open() {
                    return true;
                }
                spin_loop();
            }
            if begun.get_or_insert_with(Instant::now).elapsed() >= WATCH {
                break;
            }
        }
        // Others may need the processor to get on.
        (0..3).any(|_| {
            yield_now();
            open()
        })
    }
}

impl sealed::Sealed for Enter<'_> {}

impl Op for Enter<'_> {
    type Output = ();

    #[inline]
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
            shared,
            tier,
            entered,
            place,
            ..
        } = &mut *self.ticket;
        let mut session = shared.books.lock();
        if session.change(&shared.word, |tiers| start(tiers, *tier)) {
            *entered = true;
            session.leave_line(*tier, place);
            session.discard_waker(Some(waker));
            return Poll::Ready(());
        }
        let line = session.lines.entry(*tier).or_default();
        let old = match *place {
            Some(place) => line.rewait(place, waker),
            None => {
                *place = Some(line.register((), waker));
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
