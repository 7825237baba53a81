//! The edges of the state word; everything else is tested from outside, in
//! `tests/semaphore_*.rs`.

use super::word::{Put, Take, Word, countable};
use crate::limit::{Bypass, Limit};

const MOST: u32 = (1 << 29) - 1;

#[test]
fn bounds_are_clipped_to_what_the_word_counts() {
    for (asked, most) in [(0, 0), (MOST - 1, MOST - 1), (MOST, MOST), (u32::MAX, MOST)] {
        assert_eq!(countable(Bypass::AtMost(asked)), Bypass::AtMost(most));
    }
    assert_eq!(countable(Bypass::Unbounded), Bypass::Unbounded);
}

/// The count reaches its end and carries into nothing.
#[test]
fn the_last_overtaking() {
    let bypass = countable(Bypass::AtMost(u32::MAX));
    let word = Word::with_overtakings(5, MOST - 1);
    assert_eq!(word.take(1, bypass), Take::Taken);
    assert_eq!(
        (word.look().available(), word.look().overtakings()),
        (4, MOST)
    );
    assert_eq!(word.take(1, bypass), Take::NotNow);
    assert_eq!(word.put(1, bypass), Put::Serve);
    assert_eq!(
        (word.look().available(), word.look().overtakings()),
        (5, MOST)
    );
}

#[test]
fn unbounded_counts_nothing() {
    let word = Word::with_overtakings(2, 0);
    assert_eq!(word.take(1, Bypass::Unbounded), Take::Taken);
    assert_eq!(word.look().overtakings(), 0);
    assert_eq!(word.put(1, Bypass::Unbounded), Put::Done);
}

/// From the largest limit to the largest debt, and back: nothing spills into the
/// flags or out of them.
#[test]
fn available_has_the_whole_range() {
    let bypass = Bypass::AtMost(0);
    let word = Word::new(Limit::MAX);
    assert_eq!(word.take(Limit::MAX, bypass), Take::Taken);
    word.shift(-i64::from(Limit::MAX));
    assert_eq!(word.look().available(), -i64::from(Limit::MAX));
    assert_eq!(word.take(1, bypass), Take::NotNow);
    word.close();
    assert_eq!(word.put(Limit::MAX, bypass), Put::Done);
    assert_eq!(word.look().available(), 0);
    assert_eq!(word.look().overtakings(), 0);
    word.shift(i64::from(Limit::MAX));
    assert_eq!(word.look().available(), i64::from(Limit::MAX));
    assert!(word.look().is_closed() && !word.look().has_waiters());
    assert_eq!(word.take(1, bypass), Take::Closed);
}

/// Give-backs pass by those who have been told, but not at the bound.
#[test]
fn who_must_serve() {
    let bypass = Bypass::AtMost(2);
    let word = Word::new(1);
    assert_eq!(word.take(1, bypass), Take::Taken);
    assert_eq!(word.put(1, bypass), Put::Done);
    assert_eq!(word.take_or_wait(2, 0, bypass), Take::NotNow);
    assert_eq!(word.put(1, bypass), Put::Serve);
    word.all_told();
    assert_eq!(word.put(1, bypass), Put::Done);
    for _ in 0..2 {
        assert_eq!(word.take(1, bypass), Take::Taken);
    }
    assert_eq!(word.put(1, bypass), Put::Serve);
    assert_eq!(word.take(1, bypass), Take::NotNow);
    // Beyond what those in line ask for it is free.
    assert_eq!(word.take_behind(1, 1, bypass), Take::Taken);
    assert!(word.hand_over(1, false));
    assert_eq!(word.look().overtakings(), 0);
}
