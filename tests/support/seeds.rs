//! Runs of a random test.

/// Runs with each seed from 0, and so many steps; with as many seeds as `CONVERSANT_SEEDS` says, or
/// else this many. A run that panics is named.
pub(crate) fn each(many: u64, run: fn(u64, usize)) {
    let runs = std::env::var("CONVERSANT_SEEDS").map_or(many, |n| n.parse().unwrap());
    for seed in 0..runs {
        let steps = if seed % 16 == 0 { 1_000 } else { 250 };
        let run = std::panic::catch_unwind(|| run(seed, steps));
        assert!(run.is_ok(), "seed {seed}");
    }
}
