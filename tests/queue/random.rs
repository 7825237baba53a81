//! Random operations on a queue, compared with the oracle: the same deliveries in the same order,
//! the same refusals, the same counts, and nothing left at the end.

use crate::queue_script;

use proptest::prelude::*;

use queue_script::Script;

/// Four times as many cases as `PROPTEST_CASES` says: they are short.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases * 4,
        max_shrink_iters: 4_000,
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_crate_and_the_oracle_see_the_same(
        settings in prop::array::uniform6(any::<u8>()),
        ops in prop::collection::vec(prop::array::uniform4(any::<u8>()), 0..400),
    ) {
        let bytes = [&settings[..], ops.as_flattened()].concat();
        let script = Script::read(&bytes).expect("there are settings");
        queue_script::compare(&script);
    }
}
