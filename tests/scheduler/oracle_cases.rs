//! The reference simulator against small cases computed by hand.

use crate::oracle;

use oracle::{Bypass, Options, Run, Task, bound, simulate};

/// `caller@arrival+duration`, then any of `^tier`, `=group`, `!bump`, in this order.
fn task(text: &str) -> Task {
    let (text, bump) = split(text, '!');
    let (text, group) = split(text, '=');
    let (text, tier) = split(text, '^');
    let (caller, times) = text.split_once('@').expect("a caller");
    let (arrive, duration) = times.split_once('+').expect("a duration");
    Task {
        caller: caller.to_owned(),
        tier: tier.map_or(0, |tier| tier.parse().expect("a tier")),
        group: group.map(str::to_owned),
        bump: bump.map(|bump| bump.parse().expect("a level")),
        arrive_ms: arrive.parse().expect("a time"),
        duration_ms: duration.parse().expect("a duration"),
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at)
        .map_or((text, None), |(text, rest)| (text, Some(rest)))
}

fn run(list: &str, options: &Options) -> Run {
    let tasks: Vec<Task> = list.split_whitespace().map(task).collect();
    let run = simulate(&tasks, options);
    assert_eq!(bound::verdict(&tasks, options, &run.events).broken, [""; 0]);
    run
}

/// Rows, from 1, in the order of dispatch.
fn order(list: &str, options: &Options) -> Vec<usize> {
    let order = run(list, options).order();
    order.into_iter().map(|row| row + 1).collect()
}

/// Reader, start, end.
fn table(list: &str, options: &Options) -> Vec<(usize, u64, u64)> {
    let rows = run(list, options).rows.into_iter();
    rows.map(|row| (row.reader, row.start_ms, row.end_ms))
        .collect()
}

fn bypass(bypass: Bypass) -> Options {
    Options {
        bypass,
        ..Options::readers(1)
    }
}

fn weights(weights: &[(&str, u32)]) -> Options {
    let named = weights.iter().map(|&(name, w)| (name.to_owned(), w));
    Options {
        weights: named.collect(),
        ..Options::readers(1)
    }
}

#[test]
fn weights_are_consecutive_turns() {
    let list = "a@0+1 a@0+1 a@0+1 a@0+1 b@0+1 b@0+1 b@0+1";
    assert_eq!(order(list, &weights(&[])), [1, 5, 2, 6, 3, 7, 4]);
    assert_eq!(order(list, &weights(&[("a", 2)])), [1, 2, 5, 3, 4, 6, 7]);
    assert_eq!(
        order(list, &weights(&[("a", 3), ("b", 2)])),
        [1, 2, 3, 5, 6, 4, 7]
    );
}

/// a has one turn left when it leaves the ring at 0; at 1 it comes back with two.
#[test]
fn who_leaves_the_ring_forfeits_its_turns() {
    let list = "a@0+1 b@0+1 b@0+1 b@0+1 a@1+1 a@1+1";
    assert_eq!(order(list, &weights(&[("a", 2)])), [1, 2, 5, 6, 3, 4]);
}

/// a is alone and goes to the tail at once; b joins behind it while a's first task runs.
#[test]
fn rotation_is_eager() {
    assert_eq!(
        order("a@0+10 a@0+10 b@5+10 a@5+10", &weights(&[])),
        [1, 2, 3, 4]
    );
}

/// At 10 reader 1 frees b and reader 2 frees a, so b joins the ring first.
#[test]
fn completions_come_in_reader_order() {
    let list = "b@0+10=x a@0+10=x a@0+10=x b@0+10=x c@10+1";
    assert_eq!(
        table(list, &Options::readers(2)),
        [
            (1, 0, 10),
            (2, 0, 10),
            (2, 10, 20),
            (1, 10, 20),
            (1, 20, 21)
        ]
    );
}

#[test]
fn a_cap_holds_and_its_caller_waits_outside_the_ring() {
    let mut options = Options::readers(4);
    options.cap = Some(2);
    assert_eq!(
        table("a@0+10 a@0+10 a@0+10 a@0+10 a@0+10", &options),
        [
            (1, 0, 10),
            (2, 0, 10),
            (1, 10, 20),
            (2, 10, 20),
            (1, 20, 30)
        ]
    );
    options.readers = 2;
    options.cap = Some(1);
    assert_eq!(
        table("a@0+10 a@0+10 b@0+3 b@0+3 c@4+2", &options),
        [(1, 0, 10), (1, 10, 20), (2, 0, 3), (2, 3, 6), (2, 6, 8)]
    );
}

#[test]
fn bounded_bypass() {
    let list = "a@0+1 a@0+1 a@0+1!9 a@0+1!8 a@0+1!7 a@0+1!6";
    assert_eq!(order(list, &bypass(Bypass::AtMost(0))), [1, 2, 3, 4, 5, 6]);
    assert_eq!(order(list, &bypass(Bypass::AtMost(1))), [3, 1, 4, 2, 5, 6]);
    assert_eq!(order(list, &bypass(Bypass::AtMost(2))), [3, 4, 1, 5, 6, 2]);
    assert_eq!(order(list, &bypass(Bypass::Unbounded)), [3, 4, 5, 6, 1, 2]);
}

/// Row 2 overtakes row 1; then a lower tier closes row 1's tier. The count is kept, so row 4 cannot
/// overtake row 3, which is the oldest by then.
#[test]
fn the_count_belongs_to_the_caller() {
    let list = "a@0+2^1 a@0+2^1!5 a@1+1 a@1+1!5 a@1+1";
    assert_eq!(order(list, &bypass(Bypass::AtMost(1))), [2, 3, 4, 5, 1]);
    assert_eq!(order(list, &bypass(Bypass::AtMost(2))), [2, 4, 3, 5, 1]);
}

#[test]
fn bumps_by_level_then_age() {
    let options = bypass(Bypass::Unbounded);
    let list = "a@0+1 a@0+1!0 a@0+1!255 a@0+1!0 a@0+1!255";
    assert_eq!(order(list, &options), [3, 5, 2, 4, 1]);
}

/// Row 1 keeps the reader busy. Group g is bumped by row 2, h by row 3, then g again.
#[test]
fn a_second_bump() {
    let options = bypass(Bypass::Unbounded);
    let same = "a@0+9 a@1+1=g!5 a@2+1=h!5 a@3+1=g!5";
    assert_eq!(order(same, &options), [1, 2, 3, 4], "keeps its place");
    let other = "a@0+9 a@1+1=g!5 a@2+1=h!5 a@3+1=g!4";
    assert_eq!(order(other, &options), [1, 3, 2, 4], "replaces");
    let back = "a@0+9 a@1+1=g!5 a@2+1=h!5 a@3+1=g!4 a@4+1=g!5";
    assert_eq!(order(back, &options), [1, 3, 2, 4, 5], "and back again");
}

/// Row 3 bumps g while row 1 of g runs. At 9 g becomes ready: later than the bump, and later than
/// h's bump at the same level.
#[test]
fn ties_by_the_later_of_bump_and_ready() {
    let options = bypass(Bypass::Unbounded);
    let list = "a@0+9=g a@1+1=h a@2+1=g!5 a@3+1=h!5";
    assert_eq!(order(list, &options), [1, 2, 3, 4]);
    let earlier_in_time = "a@0+9=g a@1+1=g!5 a@2+1!5";
    assert_eq!(order(earlier_in_time, &options), [1, 3, 2]);
}

/// The bump of g's second row lets its first one go ahead, and is used up by it.
#[test]
fn a_bump_is_used_up_by_the_next_turn() {
    let options = bypass(Bypass::Unbounded);
    let list = "a@0+5 a@1+1 a@2+1=g a@3+1=g!7 a@3+1";
    assert_eq!(order(list, &options), [1, 3, 2, 5, 4]);
}

/// After its turn a group is behind the groups that became ready earlier.
#[test]
fn a_group_goes_back_in_line() {
    let list = "a@0+10=g a@0+10=g a@0+10 a@10+10";
    assert_eq!(
        order(list, &Options::readers(1)),
        [1, 3, 2, 4],
        "completions come before arrivals"
    );
    assert_eq!(
        table("a@0+10=g b@0+10=g a@0+10=g", &Options::readers(3)),
        [(1, 0, 10), (2, 0, 10), (1, 10, 20)],
        "two callers' groups of one name are two groups"
    );
}

/// The open tier drains, starts nothing new, and opens again afterwards.
#[test]
fn a_late_lower_tier_waits_for_one_drain() {
    let list = "a@0+10^2 a@0+20^2 a@0+10^2 a@5+4^1 a@5+4^1 b@12+3";
    assert_eq!(
        table(list, &Options::readers(2)),
        [
            (1, 0, 10),
            (2, 0, 20),
            (1, 24, 34),
            (1, 20, 24),
            (2, 20, 24),
            (1, 12, 15)
        ]
    );
    assert_eq!(
        order("a@0+10^7 a@0+10^7 a@10+10^3", &Options::readers(1)),
        [1, 3, 2],
        "arrives at the instant of the drain"
    );
    assert_eq!(
        order("a@0+10^4294967295 a@0+10", &Options::readers(1)),
        [2, 1],
        "nothing runs yet, so the lower tier opens at once"
    );
}

/// A caller that left the ring because its tier was closed joins again at the tail.
#[test]
fn a_closed_tier_costs_the_place_in_the_ring() {
    let list = "a@0+10^1 a@0+10^1 b@1+10 b@1+10 a@2+10";
    assert_eq!(order(list, &Options::readers(1)), [1, 3, 5, 4, 2]);
    let without = "a@0+10^1 a@0+10^1 b@1+10 b@1+10";
    assert_eq!(order(without, &Options::readers(1)), [1, 2, 3, 4]);
}

#[test]
fn zero_durations_complete_at_the_same_instant() {
    assert_eq!(
        table("a@0+0=g a@0+0=g a@0+5 a@0+0=g", &Options::readers(2)),
        [(1, 0, 0), (1, 0, 0), (2, 0, 5), (1, 0, 0)]
    );
    assert_eq!(
        table("a@0+0=g a@0+0=g a@0+5 a@0+5", &Options::readers(2)),
        [(1, 0, 0), (1, 5, 5), (2, 0, 5), (1, 0, 5)],
        "the second of g stands behind row 4"
    );
    assert_eq!(
        table("a@3+0^1 a@3+0^2 a@3+2^2 a@3+0^3", &Options::readers(2)),
        [(1, 3, 3), (1, 3, 3), (2, 3, 5), (1, 5, 5)]
    );
    let mut options = Options::readers(3);
    options.cap = Some(1);
    assert_eq!(
        table("a@0+0 a@0+0 b@0+1 b@0+1", &options),
        [(1, 0, 0), (1, 0, 0), (2, 0, 1), (1, 1, 2)]
    );
}

#[test]
fn no_tasks() {
    assert!(simulate(&[], &Options::readers(1)).rows.is_empty());
}
