//! A script of operations, read from bytes, and the results when a queue runs
//! it: over the crate's queue ([`over_crate`]) and over the oracle
//! ([`over_oracle`]). Both must see the same. The random tests and the fuzzer
//! share it.
//!
//! What holds of any queue the driver asserts by itself: order within a group,
//! limits and caps, nothing lost, nothing twice, exact counts.

mod over_crate;
#[allow(clippy::duplicate_mod, reason = "one driver over two forms")]
mod over_oracle;
mod script;

pub(crate) use script::{Script, Seen};

/// Runs a script over both forms, which must see the same.
pub(crate) fn compare(script: &Script) {
    let expected = over_oracle::run(script);
    let seen = over_crate::run(script);
    for (step, (expected, seen)) in expected.iter().zip(&seen).enumerate() {
        assert_eq!(seen, expected, "at step {step}: the crate, then the oracle");
    }
    assert_eq!(seen.len(), expected.len());
}
