//! The queue as a plain value.
//! The decisions over it are tested with the semaphore and the intent lock.

use std::cell::Cell;
use std::ops::Deref;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::watch::{Look, WATCH, watch_by};
use super::{Admission, AdmissionOf, Claim, Turnstile, WaitQueue, Word};
use crate::limit::Bypass;
use crate::wait::{BACK_OFF, WaiterState};
use crate::wait::{Guarded, Ticket, WakeBatch};

/// A primitive that never grants anything.
struct Empty(Guarded<WaitQueue<Self>>);

impl Claim for u64 {
    type Sum = u64;

    const NOTHING: u64 = 0;

    fn add_to(self, sum: &mut u64) {
        *sum += self;
    }

    fn take_from(self, sum: &mut u64) {
        *sum -= self;
    }
}

impl Turnstile for Empty {
    type Claim = u64;
    type Grant = char;
    type Refusal = ();
    type State = ();
    type Output<H: Deref<Target = Self>> = ();

    fn granted<H: Deref<Target = Self>>(_: H, _: u64, _: char) {}

    fn refused<H: Deref<Target = Self>>((): ()) {}

    fn is_shut(&self) -> bool {
        false
    }

    fn look(&self, _: u64) -> Look {
        unreachable!("no thread waits in it")
    }

    fn take_now(&self, _: u64) -> Option<char> {
        None
    }

    fn queue(&self) -> &Guarded<WaitQueue<Self>> {
        &self.0
    }

    fn is_at_bound(&self) -> bool {
        false
    }

    fn nobody_waits(&self) {}

    fn admit(&self, _: &mut WaitQueue<Self>, _: &mut u64, _: bool) -> AdmissionOf<Self> {
        Admission::NotNow
    }

    fn admit_queued(&self, _: &mut WaitQueue<Self>, _: Ticket) -> AdmissionOf<Self> {
        Admission::NotNow
    }

    fn hand_over(&self, (): &mut (), _: u64, _: bool) -> Option<char> {
        None
    }

    fn put_back(&self, (): &mut (), _: &mut u64, _: char) {}

    fn notify(&self, _: &mut WaitQueue<Self>, _: &mut WakeBatch) -> bool {
        true
    }
}

fn claims(queue: &WaitQueue<Empty>) -> Vec<u64> {
    queue.iter().map(|(_, claim)| claim).collect()
}

fn queue_of(claims: &[u64]) -> (WaitQueue<Empty>, Vec<Ticket>) {
    let mut queue = WaitQueue::new(());
    let enqueue = |&claim| queue.enqueue(claim, Waker::noop().clone());
    let tickets = claims.iter().map(enqueue).collect();
    (queue, tickets)
}

/// Some claims move ahead in their order, others come later and leave: the rest keep their order.
#[test]
fn some_move_ahead() {
    let (mut queue, tickets) = queue_of(&[10, 20, 31, 40, 51]);
    queue.move_ahead(1, |claim| claim % 10 == 1);
    assert_eq!(claims(&queue), [10, 31, 51, 20, 40]);
    queue.enqueue(60, Waker::noop().clone());
    assert_eq!(queue.ahead_of(tickets[4]).collect::<Vec<_>>(), [10, 31]);
    for at in [0, 2, 3] {
        assert!(queue.remove(tickets[at]).is_some());
        assert!(queue.remove(tickets[at]).is_none());
    }
    assert_eq!(claims(&queue), [51, 20, 60]);
    assert_eq!(queue.front(), Some((tickets[4], 51)));
    queue.move_ahead(0, |claim| claim == 60);
    assert_eq!(claims(&queue), [60, 51, 20]);
    while let Some((ticket, _)) = queue.front() {
        let _ = queue.remove(ticket);
    }
    // By age again.
    let (first, second) = (queue.enqueue(1, Waker::noop().clone()), 2);
    queue.enqueue(second, Waker::noop().clone());
    assert_eq!(queue.front(), Some((first, 1)));
    assert_eq!((claims(&queue), queue.asked()), (vec![1, 2], 3));
}

#[test]
fn sums_follow_who_is_notified() {
    let (mut queue, tickets) = queue_of(&[1, 2, 4, 8]);
    let mut wakes = WakeBatch::new();
    for (at, ahead) in [(0, 0), (1, 1), (2, 3)] {
        let ticket = tickets[at];
        assert_eq!(queue.first_unnotified().unwrap().0, ticket);
        assert_eq!(queue.sum_ahead_of_unnotified(ticket), Some(ahead));
        queue.notify(ticket, ahead + 1, &mut wakes);
        // A second notification changes nothing.
        queue.notify(ticket, ahead + 1, &mut wakes);
    }
    assert_eq!((queue.asked(), wakes.len()), (15, 3));
    let _ = queue.remove(tickets[0]);
    assert_eq!(queue.sum_ahead_of_unnotified(tickets[3]), Some(6));
    // A waiter that retried without success has younger ones behind it that were notified.
    let _ = queue.rewait(tickets[1], Waker::noop().clone());
    assert_eq!(queue.first_unnotified().unwrap().0, tickets[1]);
    assert_eq!(queue.sum_ahead_of_unnotified(tickets[1]), None);
    assert_eq!(queue.sum_ahead_of_unnotified(tickets[3]), Some(4));
    assert_eq!(queue.asked(), 14);
    let most = [1, 2, 3].map(|at| queue.most_ahead(tickets[at]));
    assert_eq!(most, [12, 10, 6]);
    queue.notify(tickets[1], 2, &mut wakes);
    assert_eq!(queue.most_ahead(tickets[2]), 2);
    queue.notify(tickets[3], 8, &mut wakes);
    assert!(queue.all_notified());
}

#[test]
fn a_grant_is_collected_once() {
    let (mut queue, tickets) = queue_of(&[1, 2, 3]);
    let mut wakes = WakeBatch::new();
    queue.notify(tickets[1], 2, &mut wakes);
    queue.grant(tickets[0], 'g', &mut wakes);
    // It has left the queue: there is nothing to grant.
    queue.grant(tickets[0], 'h', &mut wakes);
    let states = queue.snapshot(|claim, state| (claim, state));
    let expected = [
        (1, WaiterState::Granted),
        (2, WaiterState::Notified),
        (3, WaiterState::Waiting),
    ];
    assert_eq!(states, expected);
    assert_eq!((queue.len(), queue.asked(), wakes.len()), (2, 5, 2));
    assert_eq!(queue.collect(tickets[1]), None);
    assert_eq!(queue.collect(tickets[0]), Some((1, 'g')));
    assert_eq!(queue.collect(tickets[0]), None);
}

/// The field of overtakings is wherever its mask is, and does not carry into other bits.
#[test]
fn a_word_counts_in_its_field() {
    const FIELD: u64 = 0b111 << 5;
    for (bound, most) in [(0, 0), (6, 6), (7, 7), (8, 7), (u32::MAX, 7)] {
        let word = Word::<FIELD>::new(!FIELD, Bypass::AtMost(bound));
        assert_eq!(word.bypass, Bypass::AtMost(most));
        let mut bits = word.load();
        for overtakings in 0..most {
            assert_eq!(bits.overtakings(), overtakings);
            bits = bits.overtaken(word.bypass).unwrap();
        }
        assert!(bits.is_at_bound(word.bypass) && bits.overtaken(word.bypass).is_none());
        assert_eq!(bits.0 & !FIELD, !FIELD);
        assert_eq!(bits.overtaken(Bypass::Unbounded).unwrap().0, bits.0);
        assert_eq!(bits.dequeued(true, false).0, !FIELD);
        assert_eq!(bits.dequeued(false, true).0, !FIELD & !0b11);
    }
}

fn look(overtakings: u32, is_free: bool) -> Option<Look> {
    let bits = overtakings.into();
    Some(Look {
        bits,
        overtakings,
        is_free,
    })
}

#[test]
fn a_watch_ends_by_what_it_sees() {
    let (busy, free, shut) = (|n| look(n, false), |n| look(n, true), None);
    let scripts: [&[Option<Look>]; 5] = [
        &[shut],
        &[busy(1), busy(2), shut],
        // Free in two looks, one after the other. The first look of all does not count.
        &[free(1), busy(2), free(2), free(2)],
        &[busy(1), free(1), busy(2), free(2), free(3)],
        // The front was handed its claim.
        &[busy(5), busy(6), busy(0)],
    ];
    let now = Instant::now();
    for script in scripts {
        let looks = Cell::new(0);
        let look = || {
            let at = looks.replace(looks.get() + 1);
            *script.get(at).expect("it ends with the script")
        };
        watch_by(look, || now);
        assert_eq!(looks.get(), script.len());
    }
}

/// Each look takes a tenth of a microsecond.
#[test]
fn a_watch_ends_though_nothing_is_ever_free() {
    let lasts = |look: &dyn Fn() -> Option<Look>| {
        let (begun, looks) = (Instant::now(), Cell::new(0));
        let passed = || Duration::from_nanos(100) * looks.get();
        let look = || {
            looks.set(looks.get() + 1);
            look()
        };
        watch_by(look, || begun + passed());
        passed() - Duration::from_nanos(100)
    };
    assert_eq!(lasts(&|| look(7, false)), BACK_OFF);
    let overtakings = Cell::new(0);
    let busy = || look(overtakings.replace(overtakings.get() + 1), false);
    assert_eq!(lasts(&busy), WATCH);
}
