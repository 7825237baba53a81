//! Loom models of the gate, of two threads and the main one. The printed bound says which
//! interleavings were explored; with none, all.

use super::TierGate;
use crate::sync::{Arc, AtomicUsize, Ordering, Tally, spawn};

fn explore(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let runs = std::sync::Arc::new(Tally::new());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    let counted = runs.clone();
    builder.check(move || {
        counted.count();
        model();
    });
    let bound = preemptions.map_or("none".into(), |n| n.to_string());
    let runs = runs.get();
    println!("{name}: {runs} interleavings, preemption bound {bound}");
}

/// A ticket joins a lower tier while the last one leaves a higher one and another waits in that.
#[test]
fn late_join_against_last_leave() {
    explore("late_join_against_last_leave", Some(3), || {
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

/// One who waits is let in or steps back just when the tier opens.
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
