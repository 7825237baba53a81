//! One tier of a lane is open at a time.

use conversant::error::TierGoesDown;
use conversant::limit::Limit;

use super::super::form::SendReason;
use super::{plain, serve, take};

/// Tier 0 runs and has nothing waiting, tier 1 waits: tier 1 must not start. When tier 0 has
/// drained, tier 1 runs without anything else happening.
#[test]
fn a_running_tier_keeps_the_next_closed() {
    let (queue, lane) = plain();
    let (a, b) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    a.send_in(0, "low").unwrap();
    let low = take(&queue).unwrap();
    b.send_in(1, "high").unwrap();
    let snapshot = queue.snapshot();
    assert_eq!(
        (snapshot.counts.eligible, snapshot.lanes[0].open_tier),
        (0, Some(0))
    );
    assert!(take(&queue).is_none());
    low.complete();
    assert_eq!(serve(&queue), ["high"]);
}

#[test]
fn a_message_given_back_keeps_its_tier_open() {
    let (queue, lane) = plain();
    let (a, b) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    a.send_in(0, "low").unwrap();
    b.send_in(1, "high").unwrap();
    let low = take(&queue).unwrap();
    assert_eq!(low.tier(), 0);
    drop(low);
    assert_eq!(serve(&queue), ["low", "high"]);
}

#[test]
fn a_late_lower_tier_drains_the_open_one_first() {
    let (queue, lane) = plain();
    let [a, b, c] = [(); 3].map(|()| lane.conversation().unwrap());
    a.send_in(5, "high 1").unwrap();
    b.send_in(5, "high 2").unwrap();
    let running = take(&queue).unwrap();
    c.send_in(2, "low").unwrap();
    assert!(take(&queue).is_none(), "the open tier drains");
    running.complete();
    assert_eq!(serve(&queue), ["low", "high 2"]);
}

#[test]
fn tiers_of_other_lanes_are_their_own() {
    let (queue, lane) = plain();
    let other = queue.lane(1, Limit::Unlimited).unwrap();
    let a = lane.conversation().unwrap();
    let b = other.conversation().unwrap();
    a.send_in(0, "low").unwrap();
    b.send_in(1, "high").unwrap();
    let held = take(&queue).unwrap();
    assert_eq!(*held, "low");
    assert_eq!(take(&queue).unwrap().complete(), "high");
}

#[test]
fn within_a_group_tiers_do_not_go_down() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_in(3, "a").unwrap();
    let down = SendReason::TierGoesDown(TierGoesDown { last: 3, asked: 2 });
    let refused = one.send_in(2, "b").unwrap_err();
    assert_eq!((refused.message, refused.reason), ("b", down));
    let held = take(&queue).unwrap();
    assert_eq!(
        one.send_in(2, "b").unwrap_err().reason,
        down,
        "it is in flight"
    );
    held.complete();
    one.send_in(2, "b").unwrap();
    // `send` goes into the last tier.
    one.send("c").unwrap();
    let held = take(&queue).unwrap();
    held.complete();
    assert_eq!(take(&queue).unwrap().tier(), 2);
}
