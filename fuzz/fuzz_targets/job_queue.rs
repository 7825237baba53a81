//! Any sequence of operations on a job queue, through its public interface, against the naive
//! queue of `tests/support/job_queue_model`, which follows the docs: the same results, counts,
//! snapshots and wake-ups.
#![no_main]

#[path = "../../tests/support/count.rs"]
mod count;
#[path = "../../tests/support/job_queue_model/mod.rs"]
mod job_queue_model;
#[path = "../../tests/support/random.rs"]
mod split_mix;

use libfuzzer_sys::fuzz_target;

use random::Random;

/// The numbers of a random run, each changed by a byte of the fuzzer.
mod random {
    use crate::split_mix;

    pub(crate) struct Random {
        numbers: split_mix::Random,
        bytes: std::vec::IntoIter<u8>,
    }

    impl From<&[u8]> for Random {
        fn from(bytes: &[u8]) -> Self {
            Self {
                numbers: split_mix::Random(0),
                bytes: bytes.to_vec().into_iter(),
            }
        }
    }

    impl Random {
        /// A number below `n` and below 256.
        pub(crate) fn below(&mut self, n: usize) -> usize {
            let byte = usize::from(self.bytes.next().unwrap_or(0));
            (self.numbers.below(256) ^ byte) % n
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    // An operation and the comparison after it read about eight numbers.
    job_queue_model::run(Random::from(bytes), bytes.len() / 8);
});
