//! Numbers as limits, and how limits print.

use super::{Bypass, Limit};

#[test]
fn a_number_is_a_limit() {
    assert_eq!(Limit::from(3), Limit::AtMost(3));
    let shown = [Limit::AtMost(3), Limit::Unlimited].map(|limit| limit.to_string());
    assert_eq!(shown, ["at most 3", "unlimited"]);
    let shown = [Bypass::AtMost(3), Bypass::Unbounded].map(|bypass| bypass.to_string());
    assert_eq!(
        shown,
        ["overtaken at most 3 times", "overtaken without bound"]
    );
}
