//! Dialogs do at random what plain lists do.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::dialog_model::compare;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn dialogs_do_what_lists_do(script in vec(any::<u8>(), 0..2_000)) {
        compare(&script).expect("any bytes are a script");
    }
}
