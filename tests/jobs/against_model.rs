//! Random operations on a job queue and on a naive one, which was written from the docs alone:
//! each result, count and snapshot, and each wake-up, is compared.

mod checks;
mod driver;
mod ends;
mod jobs;
mod naive;
mod pushes;
mod steps;
mod views;
mod waits;

#[test]
fn agrees_with_a_naive_queue() {
    let runs = std::env::var("CONVERSANT_SEEDS").map_or(120, |n| n.parse().unwrap());
    for seed in 0..runs {
        let steps = if seed % 16 == 0 { 1_000 } else { 250 };
        let run = std::panic::catch_unwind(|| steps::run(seed, steps));
        assert!(run.is_ok(), "seed {seed}");
    }
}
