//! Capacities of groups and lanes together with tiers, dialogs and sends by key.

use std::time::Duration;

use super::*;

#[test]
fn tiers_and_capacities_go_together() {
    let (queue, _lane, wide) = full_group(3);
    take(&queue).unwrap().complete();
    wide.send_in(1, 7).unwrap();
    assert_eq!(reason(wide.send_in(1, 8)), SendReason::GroupFull);
    let down = TierGoesDown { last: 1, asked: 0 };
    take(&queue).unwrap().complete();
    assert_eq!(reason(wide.send_in(0, 8)), SendReason::TierGoesDown(down));
    let mut waits = all(&wide, [8, 9, 10]);
    assert_eq!(complete_one(&queue), 2);
    assert!(waits.poll().is_pending());
    assert_eq!(complete_one(&queue), 7);
    assert!(waits.is_sent());
    assert_eq!(serve(&queue), [8, 9, 10]);
    has_room(&wide, 3, SendReason::GroupFull);
}

/// Otherwise who comes behind them would wait for nothing.
#[test]
fn more_than_the_queue_can_ever_take_wait_for_no_group() {
    let (queue, lane) = bounded(2);
    let wide = lane.conversation().unwrap();
    wide.set_capacity(3).unwrap();
    wide.send(0).unwrap();
    let three = || {
        wide.send_all_wait([1, 2, 3])
            .or_return_after(Duration::ZERO)
    };
    assert_eq!(reason(three()), SendReason::AboveCapacity);
    assert_eq!(reason(wide.send_all([1, 2, 3])), SendReason::AboveCapacity);
    queue.close();
    assert_eq!(reason(three()), SendReason::Closed);
}

#[test]
fn more_than_the_lane_can_ever_take_wait_for_no_group() {
    let (_queue, lane) = bounded(9);
    let wide = lane.conversation().unwrap();
    wide.set_capacity(3).unwrap();
    lane.set_capacity(2).unwrap();
    wide.send(0).unwrap();
    let above = SendReason::AboveCapacity;
    assert_eq!(reason(wide.send_all([1, 2, 3])), above);
    let never = wide.send_all_wait([1, 2, 3]);
    assert_eq!(reason(never.or_return_after(Duration::ZERO)), above);
    // 0 is a pause: they wait.
    lane.set_capacity(0).unwrap();
    let mut waits = all(&wide, [1, 2, 3]);
    assert!(waits.poll().is_pending());
}

#[test]
fn dialogs_are_refused_but_never_their_ends() {
    let queue = Queue::new();
    let lane = queue.lane(1, Unlimited).unwrap();
    lane.set_capacity(1).unwrap();
    let dialogs = Dialogs::new();
    let (near, far) = dialogs.pair(&lane, &lane).unwrap();
    near.send(1).unwrap();
    assert_eq!(far.send(2).unwrap_err().reason, Refused::Full);
    near.end().unwrap();
    let in_flight: Vec<Detached<_>> = std::iter::from_fn(|| take(&queue)).collect();
    assert!(!in_flight.is_empty());
    drop(far);
}

#[test]
fn by_key_each_may_have_so_many() {
    let (queue, lane) = bounded(10);
    let orders = Keyed::new(lane).capacity_each(2).unwrap();
    for n in 0..2 {
        orders.send("dead", n).unwrap();
    }
    assert_eq!(reason(orders.send("dead", 9)), SendReason::GroupFull);
    let mut waits = [2, 3].map(|n| Waiting::of(orders.send_wait("dead", n)));
    orders.send("alive", 7).unwrap();
    assert_eq!(orders.group("dead").unwrap().waiting(), 2);
    orders.group("dead").unwrap().set_capacity(3).unwrap();
    assert_eq!(wake_counts(waits.each_ref()), [1, 0]);
    assert!(waits[0].is_sent());
    assert_eq!(serve(&queue), [0, 1, 2, 7]);
    assert!(waits[1].is_sent());
    assert_eq!(serve(&queue), [3]);
    // A changed key is remembered.
    assert!(orders.is_empty());
    assert_eq!(queue.counts().groups, 1, "and no other");
    for n in 0..3 {
        orders.send("dead", n).unwrap();
    }
    assert_eq!(reason(orders.send("dead", 9)), SendReason::GroupFull);
}

/// While they wait for the queue, sends by a key without a group hold their room in the key's
/// capacity all the same.
#[test]
fn those_who_wait_by_key_do_not_pass_its_capacity_together() {
    let (queue, lane, wide) = full::<u32>(3);
    let orders = Keyed::new(lane).capacity_each(1).unwrap();
    let mut waits = [7, 8].map(|n| Waiting::of(orders.send_wait("anna", n)));
    assert_eq!(sends(&queue), (1, 0, 1));
    assert!(orders.is_empty(), "what is idle but waited for stays");
    let mut more = Waiting::of(orders.send_wait("anna", 9));
    assert_eq!(queue.drain(wide.group_id()).unwrap().len(), 3);
    assert_eq!(waits.each_mut().map(Waiting::is_sent), [true, false]);
    assert_eq!(reason(orders.send("anna", 5)), SendReason::GroupFull);
    assert_eq!(serve(&queue), [7]);
    assert_eq!((waits[1].is_sent(), more.is_sent()), (true, false));
    queue.close();
    assert_eq!(more.refused(), (9, SendReason::Closed));
    assert_eq!(serve(&queue), [8]);
    let refused = orders.send_wait("bert", 1).wait().unwrap_err();
    assert_eq!((refused.message, refused.reason), (1, SendReason::Closed));
    drop((waits, more));
    assert_eq!((orders.len(), queue.counts().groups), (0, 1));
}

/// Existing groups get the capacity too, and are forgotten when they are idle.
#[test]
fn by_key_those_made_before_have_it_and_are_forgotten() {
    let queue = Queue::new();
    let lane = queue.lane(1, Unlimited).unwrap();
    let orders = Keyed::new(lane).keep_idle(0);
    (0..100).for_each(|key| orders.send(key, 1).unwrap());
    orders.group(99).unwrap().set_capacity(5).unwrap();
    let orders = orders.capacity_each(1).unwrap();
    let refused = orders.send(7, 2).unwrap_err();
    assert_eq!(refused.reason, SendReason::GroupFull);
    // The setting of the one key stays.
    orders.send(99, 1).unwrap();
    orders.group(99).unwrap().set_capacity(1).unwrap();
    assert_eq!(serve(&queue).len(), 101);
    assert!(orders.is_empty());
    assert_eq!(queue.counts().groups, 0);
}
