//! What stands where in a mailbox.

use super::*;
use crate::limit::Limit;

/// What is put first stands in tier 0, whatever was sent last.
#[test]
fn what_is_put_first_is_of_tier_0() {
    let mut mailbox = Mailbox::new(Limit::SERIAL, 100, TIERED);
    mailbox.append_in(3, 'c');
    for first in ['a', 'b'] {
        mailbox.put_first(first);
    }
    assert_eq!(
        (mailbox.head().map(|head| head.tier), mailbox.last_tier()),
        (Some(0), 3)
    );
    let all: Vec<_> = mailbox
        .drain()
        .into_iter()
        .map(|t| (t.tier, t.message))
        .collect();
    assert_eq!(all, [(0, 'a'), (0, 'b'), (3, 'c')]);
}
