//! A key whose comparison panics at the n-th call, for every n.

use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

thread_local! {
    /// Comparisons until one panics; 0: none does.
    static FUSE: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug, PartialEq, Eq)]
struct Fused(u8);

impl PartialOrd for Fused {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fused {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = FUSE.get();
        FUSE.set(left.saturating_sub(1));
        if left == 1 {
            std::panic::resume_unwind(Box::new("a comparison"));
        }
        self.0.cmp(&other.0)
    }
}

type Fusing = Jobs<Fused, u32>;

/// Groups of two units, ungrouped jobs, some claimed, some unclaimed, some dirty.
fn stage() -> (Fusing, Vec<Key>, Vec<Pick>) {
    let mut jobs = Fusing::new(Limit::AtMost(2), Retry::default());
    let mut ids = Vec::new();
    for n in 0..24u8 {
        let place = Place::new().tenant(u64::from(n % 2));
        let place = match n % 4 {
            3 => place,
            group => place.group(u64::from(group)),
        };
        ids.push(add(&mut jobs, Fused(n * 7 % 12), place, u32::from(n)));
    }
    let picks = claim(&mut jobs, None, 9, None);
    for &pick in &picks[..3] {
        jobs.give_back(pick, Unclaim::At(Duration::ZERO)).unwrap();
    }
    jobs.complete(picks[4]).unwrap();
    (jobs, ids, picks)
}

/// Everything that can be seen of the jobs.
fn snapshot(jobs: &mut Fusing, ids: &[Key]) -> impl PartialEq + std::fmt::Debug + use<> {
    let why: Vec<_> = ids.iter().map(|&id| jobs.why(id)).collect();
    (
        (jobs.waiting(), jobs.later(), jobs.running()),
        why,
        jobs.tenants().collect::<Vec<_>>(),
    )
}

/// All jobs that are left, in order.
fn rest(jobs: &mut Fusing) -> Vec<u32> {
    jobs.set_limit(Scope::Queue, Limit::Unlimited).unwrap();
    let mut order = Vec::new();
    loop {
        let picks = claim(jobs, None, 1, None);
        let Some(&pick) = picks.first() else { break };
        jobs.check();
        order.push(jobs.complete(pick).unwrap().job);
    }
    order
}

/// Runs `act`, which returns what it completed, with a fuse of every length until none burns down.
fn with_every_fuse(act: impl Fn(&mut Fusing, &[Key]) -> Vec<u32>) {
    let mut failed = 0;
    for fuse in 1.. {
        let (mut jobs, ids, _) = stage();
        // Looking inserts what is dirty: it looks at jobs of its own.
        let before = snapshot(&mut stage().0, &ids);
        FUSE.set(fuse);
        let panicked = catch_unwind(AssertUnwindSafe(|| act(&mut jobs, &ids))).is_err();
        FUSE.set(0);
        jobs.check();
        if !panicked {
            break;
        }
        failed += 1;
        assert_eq!(snapshot(&mut jobs, &ids), before);
        let mut order = act(&mut jobs, &ids);
        jobs.check();
        order.extend(rest(&mut jobs));
        let (mut untouched, ids, _) = stage();
        let mut expected = act(&mut untouched, &ids);
        expected.extend(rest(&mut untouched));
        // Turns of tenants may have moved on; the order within each tenant has not.
        expected.sort_by_key(|n| n % 2);
        order.sort_by_key(|n| n % 2);
        assert_eq!(order, expected);
    }
    assert!(failed > 0, "{failed}");
}

#[test]
fn a_push_changes_nothing() {
    for place in [
        Place::new().tenant(1),
        Place::new().group(0),
        Place::new().tenant(1).group(1),
        Place::new().tenant(1).group(9),
    ] {
        with_every_fuse(|jobs, _| {
            add(jobs, Fused(0), place.clone(), 24);
            Vec::new()
        });
    }
}

#[test]
fn a_look_changes_nothing() {
    with_every_fuse(|jobs, ids| {
        assert_eq!(jobs.why(ids[3]), Some(Why::Ready));
        Vec::new()
    });
}

#[test]
fn a_claim_changes_nothing() {
    with_every_fuse(|jobs, _| {
        let picks = claim(jobs, None, 8, None);
        let done = picks.into_iter().map(|pick| jobs.complete(pick));
        done.map(|taken| taken.unwrap().job).collect()
    });
}

#[test]
fn what_ends_or_comes_back_compares_nothing() {
    let (mut jobs, ids, picks) = stage();
    FUSE.set(1);
    jobs.complete(picks[3]).unwrap();
    jobs.give_back(picks[5], Unclaim::At(at(5))).unwrap();
    jobs.give_back(picks[6], Unclaim::Failed).unwrap();
    jobs.set_limit(Scope::group_of(1, 1), Limit::AtMost(5))
        .unwrap();
    jobs.rekey(ids[20], &mut Fused(0)).unwrap();
    jobs.remove(ids[23]).unwrap();
    jobs.advance(at(9));
    jobs.drain(&Scope::Queue);
    FUSE.set(0);
    jobs.check();
}
