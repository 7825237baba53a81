//! The check can fail.

use super::*;

#[test]
fn permits_that_do_not_limit_are_caught() {
    let shape = Shape {
        threads: 2,
        permits: 1,
        hold: 20_000,
    };
    let peer = FetchPair(AtomicI64::new(1));
    assert!(Shared { peer, shape }.check().is_err());
}

#[test]
fn a_permit_that_is_missing_is_caught() {
    let shape = Shape {
        threads: 1,
        permits: 2,
        hold: 0,
    };
    let peer = Spin(AtomicI64::new(1));
    assert!(Shared { peer, shape }.run(10).is_err());
}
