//! What only the inside of a queue can see.

use super::submissions::{Posted, Submissions, Token};
use super::*;

const LONG: usize = Submissions::<u8>::LONG;

/// Whoever makes a list long is told, again and again.
#[test]
fn each_long_list_is_told_of() {
    let submissions = Submissions::<u8>::new();
    for posted in 1..=2 * LONG {
        let expected = match posted % LONG {
            0 => Posted::Long,
            _ => Posted::Kept,
        };
        let (ticket, told) = submissions.post(Token::bare(posted as u32, true));
        assert_eq!((ticket, told), (posted as u64, expected));
    }
}

/// While nobody receives, senders take it in.
#[test]
fn a_long_list_is_taken_in() {
    let queue = Queue::<u8>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let all: Vec<_> = (0..LONG).map(|_| lane.conversation().unwrap()).collect();
    let submissions = &queue.shared().submissions;
    for (n, conversation) in (1..).zip(&all) {
        conversation.send(0).unwrap();
        assert_eq!(submissions.has_some(), n < LONG);
    }
}
