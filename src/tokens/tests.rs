//! What a poster is told.

use super::{Posted, Tokens};

const FULL: usize = Tokens::<u64>::FULL;

#[test]
fn each_list_full_of_posts_is_told_once() {
    let tokens = Tokens::<u64>::new();
    let told = (1..=3 * FULL).filter(|_| tokens.lock().post(0) == Posted::Full);
    assert_eq!(told.collect::<Vec<_>>(), [FULL, 2 * FULL, 3 * FULL]);
    let mut list = Vec::new();
    tokens.take(&mut list);
    assert_eq!(list.len(), 3 * FULL);
    // Many at once fill it, too.
    assert_eq!(tokens.lock().post_all(0..FULL as u64 - 1), Posted::Kept);
    assert_eq!(tokens.lock().post_all([0, 0, 0]), Posted::Full);
    assert_eq!(tokens.lock().post_all([0, 0, 0]), Posted::Kept);
}

#[test]
fn who_must_look_is_told_so_also_when_the_list_is_full() {
    let tokens = Tokens::<u64>::new();
    assert!(tokens.rest(true));
    assert_eq!(tokens.lock().post_all([0; FULL]), Posted::Look);
    assert!(!tokens.rest(true), "there is something to take in");
    assert!(tokens.rest(false));
    assert_eq!(tokens.lock().post(0), Posted::Kept);
    tokens.lock().close();
    assert_eq!(tokens.lock().post(0), Posted::Look);
    assert!(tokens.lock().is_closed());
}
