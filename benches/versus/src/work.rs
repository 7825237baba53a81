//! Work of a known length, and random numbers.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// Works for about this many nanoseconds, if it has a processor to itself; longer otherwise.
#[inline]
pub fn work(nanoseconds: u64) {
    if nanoseconds > 0 {
        steps((nanoseconds * steps_in_64_us()) >> 16);
    }
}

/// A chain in which each step needs the one before.
#[inline(never)]
fn steps(count: u64) {
    let mut x = black_box(3_u64);
    for _ in 0..count {
        x = x.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 1;
    }
    black_box(x);
}

/// The fastest of many short trials, so that other jobs do not count.
fn steps_in_64_us() -> u64 {
    static STEPS: OnceLock<u64> = OnceLock::new();
    *STEPS.get_or_init(|| {
        const TRIAL: u64 = 100_000;
        let trial = |_| {
            let start = Instant::now();
            steps(TRIAL);
            start.elapsed().as_nanos() as u64
        };
        let best = (0..64).map(trial).min().unwrap_or(1);
        (TRIAL << 16) / best.max(1)
    })
}

/// A small generator of random numbers, the same in every run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(
            seed.wrapping_mul(2)
                .wrapping_add(1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
        )
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}
