//! How much memory many tiers take, and how much is left afterwards.

use super::waiting;

/// Each tier comes and goes in between, at the front, or at the back.
fn tiers() -> Vec<u32> {
    (0..1_000).map(|n| n * 617 % 1_000).collect()
}

#[test]
fn a_burst_is_given_back_as_its_tiers_are_done() {
    let mut tiers = waiting(&tiers());
    for left in (1..1_000).rev() {
        let open = tiers.open().unwrap();
        tiers.start(open);
        tiers.finish(open);
        let kept = tiers.others.capacity();
        assert!(kept <= 64 || kept <= 4 * left, "{kept} for {left}");
    }
    assert_eq!(tiers.others.capacity(), 0, "one tier is outstanding");
}

#[test]
fn a_burst_is_given_back_as_its_tiers_are_cancelled() {
    let order = tiers();
    let mut tiers = waiting(&order);
    for (tier, left) in order.into_iter().zip((0..1_000_usize).rev()) {
        tiers.leave(tier);
        let kept = tiers.others.capacity();
        assert!(kept <= 64 || kept <= 4 * left, "{kept} for {left}");
    }
    assert!(tiers.is_empty() && tiers.others.capacity() == 0);
}
