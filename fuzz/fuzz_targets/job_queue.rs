//! Any sequence of operations on a job queue, through its public interface, against the naive
//! queue of `tests/support/job_queue_model`, which follows the docs: the same results, counts,
//! snapshots and wake-ups.
#![no_main]

#[path = "../../tests/support/count.rs"]
mod count;
#[path = "../../tests/support/job_queue_model/mod.rs"]
mod job_queue_model;

use conversant_fuzz::mixed;
use libfuzzer_sys::fuzz_target;

use random::Random;

/// The numbers that a random run asks for.
mod random {
    pub(crate) struct Random(pub(crate) std::vec::IntoIter<u8>);

    impl Random {
        /// A number below `n` and below 256; 0 when the bytes are used up.
        pub(crate) fn below(&mut self, n: usize) -> usize {
            usize::from(self.0.next().unwrap_or(0)) % n
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let random = Random(mixed(bytes).into_iter());
    // An operation and the comparison after it read about eight numbers.
    job_queue_model::run(random, bytes.len() / 8);
});
