//! The rule, which waiters are woken and which are not, and all the ways in which tickets go.

mod rule;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::word::MOST;
use super::{Ticket, TierGate};
use crate::wait::WaitCounts;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A ticket that a task of its own polls to enter.
struct Entering {
    ticket: Ticket,
    woken: Arc<Count>,
}

impl Entering {
    fn new(ticket: Ticket) -> Self {
        let woken = Arc::default();
        Self { ticket, woken }
    }

    /// Polls once, and forgets the wait, which leaves the waiter in the queue.
    fn poll(&mut self) -> Poll<()> {
        let waker = Waker::from(self.woken.clone());
        let mut wait = self.ticket.enter();
        let poll = std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
        std::mem::forget(wait);
        poll
    }
}

fn outstanding(gate: &TierGate) -> Vec<(u32, u64)> {
    gate.snapshot().outstanding
}

#[test]
fn a_tier_enters_together_and_the_next_when_all_have_left() {
    let gate = TierGate::new();
    let mut first: Vec<_> = (0..4).map(|_| Entering::new(gate.join(100))).collect();
    let mut second: Vec<_> = (0..2).map(|_| Entering::new(gate.join(200))).collect();
    assert!(first.iter_mut().all(|e| e.poll().is_ready()));
    assert!(second.iter_mut().all(|e| e.poll().is_pending()));
    while let Some(entering) = first.pop() {
        assert!(second.iter().all(|e| e.woken.get() == 0));
        drop(entering);
    }
    // The last leaver has notified the whole tier.
    assert!(second.iter().all(|e| e.woken.get() == 1));
    assert!(second.iter_mut().all(|e| e.poll().is_ready()));
    drop(second);
    let none = WaitCounts::default();
    let counts = gate.counts();
    assert_eq!((counts.open, counts.inside, counts.enters), (None, 0, none));
}

/// Fault: gating on the immediate predecessor only.
#[test]
fn a_tier_waits_for_all_lower_ones_also_if_the_one_before_it_is_empty() {
    let gate = TierGate::new();
    let mut low = gate.join(100);
    let mut high = Entering::new(gate.join(300));
    assert!(low.try_enter());
    assert!(high.poll().is_pending());
    drop(low);
    assert_eq!(high.woken.get(), 1);
    assert!(high.poll().is_ready());
}

#[test]
fn a_tier_is_not_passed_over_though_nobody_of_it_waits() {
    let gate = TierGate::new();
    let (mut low, mut high) = (gate.join(100), gate.join(300));
    assert!(low.try_enter());
    drop(low);
    assert_eq!(outstanding(&gate), [(300, 1)]);
    assert!(high.try_enter());
}

/// Fault: a waiting task holds a thread.
/// Twenty thousand wait here, more than the word counts to, and none holds a thread.
#[test]
fn those_who_wait_need_no_thread() {
    const MANY: usize = 20_000;
    assert!(MANY as u64 > MOST);
    let gate = TierGate::new();
    let mut low = gate.join(1);
    assert!(low.try_enter());
    let mut all: Vec<_> = (0..MANY).map(|_| Entering::new(gate.join(2))).collect();
    assert!(all.iter_mut().all(|e| e.poll().is_pending()));
    assert_eq!(gate.counts().enters.waiting, MANY);
    drop(low);
    assert_eq!(gate.counts().enters.notified, MANY);
    assert_eq!(gate.counts().outside, MANY as u64);
    assert!(all.iter().all(|e| e.woken.get() == 1));
    assert!(all.iter_mut().all(|e| e.poll().is_ready()));
    assert_eq!(gate.counts().enters, WaitCounts::default());
}

#[test]
fn more_are_inside_than_the_word_counts() {
    const MANY: usize = 20_000;
    let gate = TierGate::new();
    let mut all: Vec<_> = (0..MANY).map(|_| gate.join_ref(1)).collect();
    let mut next = gate.join_ref(2);
    assert!(all.iter_mut().all(Ticket::try_enter));
    assert_eq!(gate.counts().inside, MANY as u64);
    for ticket in all {
        assert!(!next.try_enter());
        drop(ticket);
    }
    assert!(next.try_enter());
    assert_eq!(gate.snapshot().outstanding, [(2, 1)]);
}

#[test]
fn the_word_counts_again_when_there_is_room() {
    let gate = TierGate::new();
    let mut inside = gate.join_ref(1);
    assert!(inside.try_enter());
    for _ in 0..3 {
        let more: Vec<_> = (0..=MOST).map(|_| gate.join_ref(1)).collect();
        let waiting = gate.snapshot();
        assert_eq!(waiting.outstanding, [(1, MOST + 2)]);
        drop(more);
        assert_eq!(gate.snapshot().outstanding, [(1, 1)]);
    }
}

/// Fault: return codes ignored. The only way in is a wait that gave its result.
#[test]
fn who_has_not_entered_does_not_count_as_inside() {
    let gate = TierGate::new();
    let mut low = gate.join(1);
    assert!(low.try_enter());
    let mut high = gate.join(2);
    assert!(!high.try_enter());
    assert!(high.enter().wait_timeout(Duration::ZERO).is_err());
    assert!(!high.entered());
    assert_eq!(gate.counts().inside, 1);
    drop(high);
    assert_eq!(outstanding(&gate), [(1, 1)]);
}

/// Fault: a crash freed the gate. The ticket belongs to its keeper, not to the worker.
#[test]
fn a_crashed_worker_does_not_open_the_gate_of_its_supervisor() {
    let gate = TierGate::new();
    let mut low = gate.join(1);
    let mut high = Entering::new(gate.join(2));
    low.enter().wait();
    assert!(high.poll().is_pending());
    let worker = std::thread::spawn(|| panic!("a crash"));
    assert!(worker.join().is_err());
    assert!(high.poll().is_pending());
    assert_eq!(high.woken.get(), 0);
    drop(low);
    assert_eq!(high.woken.get(), 1);
}

#[test]
fn a_ticket_that_unwinds_does_not_stall_the_gate() {
    let gate = TierGate::new();
    let mut low = gate.join(1);
    let mut high = Entering::new(gate.join(2));
    assert!(low.try_enter() && high.poll().is_pending());
    let crash = std::panic::AssertUnwindSafe(move || {
        let _inside = low;
        panic!("a crash");
    });
    assert!(std::panic::catch_unwind(crash).is_err());
    assert!(high.poll().is_ready());
}

/// Fault: a second batch that used the same numbers stalled everything.
#[test]
fn tier_numbers_may_be_used_again() {
    let gate = TierGate::new();
    let mut inside = gate.join(300);
    assert!(inside.try_enter());
    let mut batch: Vec<_> = [100, 200, 300].map(|t| Entering::new(gate.join(t))).into();
    assert!(batch.iter_mut().all(|e| e.poll().is_pending()));
    assert!(gate.counts().draining);
    // One drain, then lowest first.
    drop(inside);
    for _ in 0..3 {
        assert!(batch[0].poll().is_ready());
        batch.remove(0);
    }
    assert_eq!(outstanding(&gate), []);
}

/// Fault: a task waited for itself when its tier was that of the task before it.
#[test]
fn equal_tiers_do_not_wait_for_each_other() {
    let gate = TierGate::new();
    let (mut one, mut two) = (gate.join(7), gate.join(7));
    assert!(one.try_enter() && two.try_enter());
}

#[test]
fn a_late_ticket_for_a_lower_tier_waits_for_one_drain() {
    let gate = TierGate::new();
    let mut high: Vec<_> = (0..3).map(|_| Entering::new(gate.join(200))).collect();
    // MORE is set already; that one of the other tiers is lower must be recorded all the same.
    let _higher = gate.join(300);
    assert!(high[0].poll().is_ready() && high[1].poll().is_ready());
    let mut late = Entering::new(gate.join(100));
    assert!(!high[2].ticket.try_enter());
    assert!(late.poll().is_pending());
    assert!(high[2].poll().is_pending());
    drop(high.remove(0));
    assert_eq!(late.woken.get(), 0);
    drop(high.remove(0));
    assert_eq!((late.woken.get(), high[0].woken.get()), (1, 0));
    assert!(late.poll().is_ready() && high[0].poll().is_pending());
    drop(late);
    assert_eq!(high[0].woken.get(), 1);
    assert!(high[0].poll().is_ready());
}

#[test]
fn a_late_ticket_waits_for_later_ones_of_tiers_lower_still() {
    let gate = TierGate::new();
    let mut open = gate.join(3);
    assert!(open.try_enter());
    let [mut late, lower] = [2, 1].map(|tier| Entering::new(gate.join(tier)));
    drop(open);
    assert!(late.poll().is_pending());
    drop(lower);
    assert!(late.poll().is_ready());
}

#[test]
fn the_lower_ticket_gone_the_open_tier_goes_on() {
    let gate = TierGate::new();
    let mut inside = gate.join(2);
    assert!(inside.try_enter());
    let late = gate.join(1);
    let mut waits = Entering::new(gate.join(2));
    assert!(waits.poll().is_pending());
    drop(late);
    assert_eq!(waits.woken.get(), 1);
    assert!(waits.poll().is_ready());
}

#[test]
fn a_cancelled_ticket_never_stalls_the_gate() {
    let gate = TierGate::new();
    let mut inside = gate.join(1);
    assert!(inside.try_enter());
    let mut doomed = Entering::new(gate.join(2));
    let mut last = Entering::new(gate.join(3));
    assert!(doomed.poll().is_pending() && last.poll().is_pending());
    drop(inside);
    // It was notified, and is dropped before it retried.
    assert_eq!((doomed.woken.get(), last.woken.get()), (1, 0));
    drop(doomed);
    assert!(last.poll().is_ready());
    // A ticket that never tried to enter counts as well.
    let idle = gate.join(0);
    drop(last);
    let mut next = Entering::new(gate.join(9));
    assert!(next.poll().is_pending());
    drop(idle);
    assert!(next.poll().is_ready());
}

#[test]
fn a_wait_that_times_out_leaves_the_ticket_where_it_was() {
    let gate = TierGate::new();
    let mut low = gate.join(1);
    assert!(low.try_enter());
    let mut high = gate.join(2);
    for _ in 0..3 {
        assert!(high.enter().wait_timeout(Duration::ZERO).is_err());
        assert_eq!(gate.counts().enters, WaitCounts::default());
        // No queue is kept for a tier in which nobody waits.
        assert!(gate.shared.state.lock().waits.is_empty());
    }
    assert_eq!(outstanding(&gate), [(1, 1), (2, 1)]);
    drop(low);
    high.enter().wait();
    // Entering again ends at once.
    high.enter().wait();
    assert_eq!(gate.counts().inside, 1);
}

#[test]
fn a_notification_overtaken_by_a_lower_ticket_is_not_an_admission() {
    let gate = TierGate::new();
    let mut low = gate.join(1);
    assert!(low.try_enter());
    let mut high = Entering::new(gate.join(2));
    assert!(high.poll().is_pending());
    drop(low);
    let mut late = Entering::new(gate.join(1));
    assert!(high.poll().is_pending());
    assert!(late.poll().is_ready());
    drop(late);
    assert_eq!(high.woken.get(), 2);
    assert!(high.poll().is_ready());
}

#[test]
fn a_waker_that_panics_keeps_nobody_out() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("bad waker");
        }
    }
    let gate = TierGate::new();
    let mut low = gate.join(1);
    assert!(low.try_enter());
    let bad = Waker::from(Arc::new(Bad));
    let mut first = gate.join(2);
    let mut wait = pin!(first.enter());
    assert!(
        wait.as_mut()
            .poll(&mut Context::from_waker(&bad))
            .is_pending()
    );
    // More than one batch.
    let mut rest: Vec<_> = (0..100).map(|_| Entering::new(gate.join(2))).collect();
    assert!(rest.iter_mut().all(|e| e.poll().is_pending()));
    drop(low);
    assert!(rest.iter().all(|e| e.woken.get() == 1));
    assert!(rest.iter_mut().all(|e| e.poll().is_ready()));
}

/// Threads through many tiers: nobody is inside while a lower tier is.
#[test]
fn threads_keep_the_order_of_tiers() {
    const TIERS: u32 = 20;
    let gate = TierGate::new();
    let done: Vec<AtomicUsize> = (0..TIERS).map(|_| AtomicUsize::new(0)).collect();
    let tickets: Vec<_> = (0..TIERS)
        .flat_map(|t| [t; 3])
        .map(|t| gate.join(t))
        .collect();
    std::thread::scope(|scope| {
        for mut ticket in tickets {
            let done = &done;
            scope.spawn(move || {
                ticket.enter().wait();
                let tier = ticket.tier() as usize;
                for (number, lower) in done.iter().enumerate() {
                    let expected = if number < tier { 3 } else { 0 };
                    let count = lower.load(Ordering::Relaxed);
                    assert!(count == expected || number == tier && count < 3);
                }
                done[tier].fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(outstanding(&gate), []);
}

#[test]
fn handles_cross_threads() {
    fn sendable<T: Send + Sync + 'static>() {}
    sendable::<TierGate>();
    sendable::<Ticket>();
    sendable::<Ticket<&'static TierGate>>();
}
