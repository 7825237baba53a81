//! What the lock tells its turnstile: who may take, where a claim is queued, who is notified.
//!
//! A waiter is notified if it conflicts with nothing that is held, and with no claim ahead of it,
//! notified or waiting. Before a pass over the queue UNNOTIFIED is set, so that every release
//! during the pass serves. After the pass it is cleared if every waiter that was not notified
//! conflicts with a notified one ahead, directly or by way of others. Such a waiter can go on only
//! when that one leaves the queue, and then UNNOTIFIED is set again or the queue is served.
//!
//! The grant of a conversion does not restart the count of overtakings. Otherwise one holder after
//! the other could overtake a waiter, convert ahead of it, and so let the next one overtake it.

use std::ops::Deref;
use std::task::Waker;

use super::bits::Ask;
use super::claim::{Claim, Elsewhere, Queue, set_of};
use super::error::Deadlock;
use super::guard::Guard;
use super::stripes::Stripes;
use super::{IntentLock, Place};
use crate::modes::{Mode, modes_in};
use crate::turnstile::{Admission, AdmissionOf, Look, Turnstile};
use crate::wait::{Guarded, SELDOM, Ticket, WakeBatch, back_off};

/// What a pass over the queue must know of the claims that it has passed.
#[derive(Default)]
struct Ahead {
    /// The modes that they ask for.
    asks: u8,
    /// The modes of those that are notified, or conflict with one of these ahead of them.
    covered: u8,
    /// Some claim waits for nothing but a release.
    unnotified: bool,
}

impl Ahead {
    /// After claims that have all been notified.
    fn of_notified(asks: u8) -> Self {
        Self {
            asks,
            covered: asks,
            unnotified: false,
        }
    }

    fn add(&mut self, ask: Mode, looks: bool) {
        let bit = ask.bit();
        if looks || self.covered & ask.conflicts() != 0 {
            self.covered |= bit;
        } else {
            self.unnotified = true;
        }
        self.asks |= bit;
    }

    /// Whether the pass can end: no claim behind can be notified, and `unnotified` is final.
    /// `asleep` is the set of modes asked for by claims that are not notified; `could` are those of
    /// them that what is held allows.
    fn keeps_all(&self, asleep: u8, could: u8) -> bool {
        let conflict = |with: u8, modes| modes_in(modes).all(|mode| with & mode.conflicts() != 0);
        conflict(self.covered, asleep) || self.unnotified && conflict(self.asks, could)
    }
}

impl Turnstile for IntentLock {
    type Claim = Claim;
    type Grant = Place;
    type Refusal = Deadlock;
    /// The holders that do not fit in the word.
    type State = Elsewhere;
    type Output<L: Deref<Target = Self>> = Guard<L>;

    #[inline]
    fn granted<L: Deref<Target = Self>>(lock: L, claim: Claim, place: Place) -> Guard<L> {
        Guard::of(lock, claim.ask, place)
    }

    fn refused<L: Deref<Target = Self>>(_: Deadlock) -> Guard<L> {
        unreachable!("what is not a conversion is not refused")
    }

    fn queue(&self) -> &Guarded<Queue> {
        &self.queue
    }

    fn is_at_bound(&self) -> bool {
        self.word.is_at_bound()
    }

    fn nobody_waits(&self) {
        self.word.nobody_waits();
    }

    fn is_shut(&self) -> bool {
        self.word.is_shut()
    }

    #[inline(always)]
    fn take_now(&self, claim: Claim) -> Option<Place> {
        IntentLock::take(self, claim.ask)
    }

    fn spin(&self, claim: Claim) -> Option<Place> {
        // The claim may conflict with nothing, and yet need the lock.
        let bits = self.word.load();
        let asked = bits.is_open() || bits.is_slow();
        let place = asked.then(|| self.take_exactly(claim.ask)).flatten();
        place.or_else(|| back_off(SELDOM, || !self.is_shut(), || self.take_now(claim)))
    }

    fn look(&self, claim: Claim) -> Look {
        self.word.look(|bits| bits.admits(claim.ask))
    }

    /// The place where a conversion is counted may change even if it is not granted.
    fn admit(&self, queue: &mut Queue, claim: &mut Claim, waits: bool) -> AdmissionOf<Self> {
        self.move_out_of_stripe(&mut queue.state, claim);
        if waits
            && let Some(own) = claim.own
            && let Some(deadlock) = queue.deadlock(own.mode, claim.ask)
        {
            return Admission::Refused(deadlock);
        }
        self.enter(queue, *claim, waits)
    }

    fn enqueue(&self, queue: &mut Queue, claim: Claim, waker: Waker) -> Ticket {
        match claim.own {
            Some(_) => queue.enqueue_conversion(claim, waker),
            None => queue.enqueue(claim, waker),
        }
    }

    fn admit_queued(&self, queue: &mut Queue, ticket: Ticket) -> AdmissionOf<Self> {
        let claim = queue.claim(ticket);
        let conflicts = |other: Claim| !other.ask.compatible(claim.ask);
        let is_next = || {
            let any = queue.most_ahead(ticket).modes() & claim.ask.conflicts() != 0;
            !(any && queue.ahead_of(ticket).any(conflicts))
        };
        let front = queue.front().is_some_and(|(first, _)| first == ticket);
        let ask = self.ask(queue.state, claim);
        let (restarts, only) = (front && claim.own.is_none(), queue.len() == 1);
        let Some(place) = self.word.take_queued(ask, is_next, restarts, only) else {
            return Admission::NotNow;
        };
        queue.state.exchanged(claim, place);
        Admission::Granted(place)
    }

    fn hand_over(&self, spill: &mut Elsewhere, claim: Claim, only: bool) -> Option<Place> {
        let (ask, restarts) = (self.ask(*spill, claim), claim.own.is_none());
        // Nobody is ahead of the front.
        let place = self.word.take_queued(ask, || true, restarts, only)?;
        spill.exchanged(claim, place);
        Some(place)
    }

    fn put_back(&self, spill: &mut Elsewhere, claim: &mut Claim, place: Place) {
        if place == Place::Spill {
            spill.0[claim.ask as usize] -= 1;
        }
        let granted = (place == Place::Word).then_some(claim.ask);
        if let Some(own) = &mut claim.own {
            own.place = self.word.count_in(own.mode, granted);
            spill.counted(own.mode, own.place);
        } else if let Some(mode) = granted {
            let _ = self.word.release(mode);
        }
    }

    fn prepare(&self, queue: &Queue) {
        // Even if nobody waits: SLOW is cleared.
        let _ = self.elsewhere(queue.state);
        if !queue.is_empty() {
            self.word.some_unnotified();
            return;
        }
        if let Some(stripes) = &self.stripes.0 {
            stripes.unmark();
            self.reopen(stripes, queue.state);
        }
    }

    fn notify(&self, queue: &mut Queue, wakes: &mut WakeBatch) -> bool {
        let room = WakeBatch::BOUND.saturating_sub(wakes.len());
        let (due, all_notified, full) = match queue.notified_ahead() {
            Some(notified) => {
                let ahead = Ahead::of_notified(notified.modes());
                self.due(queue, ahead, queue.unnotified(), room)
            }
            None => self.due(queue, Ahead::default(), queue.iter(), room),
        };
        for (ticket, claim) in due {
            queue.notify(ticket, claim, wakes);
        }
        if all_notified {
            self.word.all_notified();
        }
        !full
    }
}

impl IntentLock {
    /// Those of the modes `asleep` that what is held allows.
    /// A release after this call has the queue served again.
    fn could_go_on(&self, queue: &Queue, asleep: u8) -> u8 {
        if queue.asked().has_conversions() {
            return asleep;
        }
        let bits = self.word.load();
        let fits = |&mode: &Mode| bits.grants(self.ask(queue.state, Claim::of(mode)));
        set_of(modes_in(asleep).filter(fits))
    }

    /// Finds the claims to notify among `those`, which come after `ahead`.
    /// Returns these, at most `room`; whether no claim is left that a release could let go on; and
    /// whether some had no room.
    fn due(
        &self,
        queue: &Queue,
        mut ahead: Ahead,
        those: impl Iterator<Item = (Ticket, Claim)>,
        room: usize,
    ) -> (Vec<(Ticket, Claim)>, bool, bool) {
        let asleep = queue.asked().modes_beyond(queue.notified());
        let could = self.could_go_on(queue, asleep);
        let mut due = Vec::new();
        for (ticket, claim) in those {
            let fits = ahead.asks & claim.ask.conflicts() == 0
                && self.word.load().grants(self.ask(queue.state, claim));
            let notified = queue.is_notified(ticket);
            if fits && !notified {
                if due.len() == room {
                    return (due, false, true);
                }
                due.push((ticket, claim));
            }
            ahead.add(claim.ask, fits || notified);
            if ahead.keeps_all(asleep, could) {
                break;
            }
        }
        (due, !ahead.unnotified, false)
    }

    fn enter(&self, queue: &mut Queue, claim: Claim, waits: bool) -> AdmissionOf<Self> {
        let overtakes = queue.asked_ahead_of_new(claim) & claim.ask.conflicts() != 0;
        if let Some(stripes) = &self.stripes.0 {
            if stripes.take(claim.ask) {
                self.reopen(stripes, queue.state);
            } else if self.word.shut() {
                Stripes::after_shutting();
            }
        }
        let ask = self.ask(queue.state, claim);
        let Some(place) = self.word.enter(ask, overtakes, waits) else {
            return Admission::NotNow;
        };
        queue.state.exchanged(claim, place);
        Admission::Granted(place)
    }

    /// What a claim asks the word for, with what is held elsewhere.
    fn ask(&self, spill: Elsewhere, claim: Claim) -> Ask {
        Ask {
            mode: claim.ask,
            own: claim.own_in(Place::Word),
            elsewhere: self.elsewhere(spill).modes(claim.own_in(Place::Spill)),
        }
    }

    /// What is held outside the word. It only becomes less while the queue's lock is held, and a
    /// holder that leaves a stripe serves the queue.
    fn elsewhere(&self, spill: Elsewhere) -> Elsewhere {
        if !self.word.load().is_slow() {
            return Elsewhere::default();
        }
        let elsewhere = match &self.stripes.0 {
            Some(stripes) => stripes.held_and_marked(spill),
            None => spill,
        };
        if elsewhere.is_empty() {
            self.word.all_here();
        }
        elsewhere
    }

    /// Opens the stripes, if nobody holds or wants a mode that they do not take.
    fn reopen(&self, stripes: &Stripes, spill: Elsewhere) {
        if spill.is_empty() {
            self.word.reopen(stripes.wide());
        }
    }

    /// Counts a conversion in the word instead of its stripe. No conflicting claim gets between the
    /// two counts: while anybody is in a stripe, the word is open or slow, and a claim for a mode
    /// that stripes do not take needs the lock.
    fn move_out_of_stripe(&self, spill: &mut Elsewhere, claim: &mut Claim) {
        let (Some(own), Some(stripes)) = (&mut claim.own, &self.stripes.0) else {
            return;
        };
        let Place::Stripe(stripe) = own.place else {
            return;
        };
        own.place = self.word.count_in(own.mode, None);
        spill.counted(own.mode, own.place);
        // A claim that waits for it to leave the stripe waits for the word now.
        let _ = stripes.leave(stripe, own.mode);
    }
}
