//! Loom models of the gate, of at most two threads and main.
//! The printed bound of preemptions says which interleavings were explored; with none, all.

#![allow(unsafe_code)]

use super::TierGate;
use crate::sync::{Arc, AtomicUsize, Ordering, UnsafeCell, explore, spawn};

/// What the tickets of tier 1 write, one each, and those of tier 2 read.
/// There is a race if a ticket is inside too early, or sees too little.
struct Work([UnsafeCell<u32>; 2]);

// SAFETY: that the gate keeps the accesses apart is what the model checks.
unsafe impl Sync for Work {}

impl Work {
    fn new() -> Arc<Self> {
        Arc::new(Work([UnsafeCell::new(0), UnsafeCell::new(0)]))
    }

    fn first(&self, worker: usize) {
        // SAFETY: as above.
        self.0[worker].with_mut(|done| unsafe { *done += 1 });
    }

    fn second(&self) {
        for done in &self.0 {
            // SAFETY: as above.
            assert_eq!(done.with(|done| unsafe { *done }), 1);
        }
    }
}

/// Two workers go through two tiers: leave and enter, in one step or in two.
fn two_workers(name: &str, preemptions: usize, straight: bool) {
    explore(name, Some(preemptions), move || {
        let gate = TierGate::new();
        let work = Work::new();
        let hands = [0, 1].map(|_| (gate.join(1), gate.join(2)));
        let [mine, theirs] = hands;
        let run = move |worker: usize, work: &Work, (mut first, mut second): (_, _)| {
            let _: (&super::Ticket, &super::Ticket) = (&first, &second);
            first.enter().wait();
            work.first(worker);
            if !straight {
                drop(first);
                second.enter().wait();
            } else if !first.leave_for(&mut second) {
                second.enter().wait();
            }
            work.second();
        };
        let there = work.clone();
        let other = spawn(move || run(1, &there, theirs));
        run(0, &work, mine);
        other.join().unwrap();
        assert_eq!(gate.snapshot().outstanding, []);
    });
}

#[test]
fn the_last_leaver_goes_straight_on() {
    two_workers("the_last_leaver_goes_straight_on", 3, true);
}

#[test]
fn leave_and_enter_in_two_steps() {
    two_workers("leave_and_enter_in_two_steps", 3, false);
}

/// A ticket joins the tier that its last ticket is leaving, while the next tier waits.
#[test]
fn join_against_last_leave_of_the_same_tier() {
    explore("join_against_last_leave_of_the_same_tier", Some(3), || {
        let gate = TierGate::new();
        let mut inside = gate.join(1);
        assert!(inside.try_enter());
        let mut next = gate.join(2);
        let other = gate.clone();
        let late = spawn(move || {
            let mut ticket = other.join(1);
            ticket.enter().wait();
            assert_eq!(other.counts().open, Some(1));
        });
        if !inside.leave_for(&mut next) {
            next.enter().wait();
        }
        let counts = gate.counts();
        assert_eq!((counts.open, counts.inside), (Some(2), 1));
        drop(next);
        late.join().unwrap();
        assert_eq!(gate.snapshot().outstanding, []);
    });
}

/// The last ticket to go has not been inside: those it lets in see what the others did.
#[test]
fn cancel_opens_the_next() {
    explore("cancel_opens_the_next", None, || {
        let gate = TierGate::new();
        let work = Work::new();
        let (mut inside, idle, mut next) = (gate.join(1), gate.join(1), gate.join(2));
        assert!(inside.try_enter());
        work.first(1);
        let there = work.clone();
        let other = spawn(move || {
            there.first(0);
            drop(inside);
        });
        drop(idle);
        next.enter().wait();
        work.second();
        other.join().unwrap();
    });
}

/// Three tickets where the word of the model counts to two.
#[test]
fn counts_beyond_the_word() {
    explore("counts_beyond_the_word", Some(4), || {
        let gate = TierGate::new();
        let work = Work::new();
        let (mut first, mut second) = (gate.join(1), gate.join(1));
        let (mut third, mut last) = (gate.join(1), gate.join(2));
        let there = work.clone();
        let other = spawn(move || {
            first.enter().wait();
            there.first(0);
            drop(first);
        });
        assert!(second.try_enter() && third.try_enter());
        work.first(1);
        drop((second, third));
        last.enter().wait();
        work.second();
        drop(last);
        other.join().unwrap();
        assert_eq!(gate.snapshot().outstanding, []);
    });
}

/// A ticket joins tier 1 while the last one leaves tier 2 and another waits for tier 3.
#[test]
fn late_join_against_last_leave() {
    explore("late_join_against_last_leave", Some(2), || {
        let gate = TierGate::new();
        let mut inside = gate.join(2);
        assert!(inside.try_enter());
        let mut waits = gate.join(3);
        let word = Arc::new(AtomicUsize::new(0));
        let (late, there) = (gate.clone(), word.clone());
        let late = spawn(move || {
            let mut ticket = late.join(1);
            ticket.enter().wait();
            there.fetch_add(1, Ordering::Relaxed);
        });
        let last = spawn(move || drop(inside));
        waits.enter().wait();
        drop(waits);
        late.join().unwrap();
        last.join().unwrap();
        assert_eq!(gate.snapshot().outstanding, []);
    });
}

/// A waiter is let in, or is cancelled, at the moment at which the tier opens.
#[test]
fn cancel_against_last_leave() {
    explore("cancel_against_last_leave", Some(3), || {
        let gate = TierGate::new();
        let mut inside = gate.join(1);
        assert!(inside.try_enter());
        let mut fickle = gate.join(2);
        let mut steady = gate.join(3);
        let fickle = spawn(move || {
            let hour = std::time::Duration::from_secs(3600);
            let _ = fickle.enter().wait_timeout(hour);
        });
        let last = spawn(move || drop(inside));
        steady.enter().wait();
        fickle.join().unwrap();
        last.join().unwrap();
    });
}
