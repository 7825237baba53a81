//! How a side ends, and what the other sees.

use super::*;

#[test]
fn ending_a_side_takes_only_its_own_out_of_a_related_group() {
    let world = World::new();
    let related = world.far_lane.group(Limit::SERIAL, 100).unwrap();
    let pair = || world.dialogs.pair(&world.near_lane, &related).unwrap();
    let ((a, far_a), (b, far_b)) = (pair(), pair());
    for (n, end) in [&a, &b, &a, &b].into_iter().enumerate() {
        end.send(["a1", "b1", "a2", "b2"][n]).unwrap();
    }
    far_a.end().unwrap();
    assert_eq!(events(&world.far), [Message("b1"), Message("b2")]);
    assert_eq!(events(&world.near), [End]);
    drop((a, b, far_b, related));
    assert!(world.is_clean());
}

#[test]
fn after_end_sending_is_an_error_that_returns_the_message() {
    let world = World::new();
    let (near, far) = world.pair();
    near.end().unwrap();
    let refused = near.send("late").unwrap_err();
    assert_eq!((refused.message, refused.reason), ("late", Refused::Ended));
    // The answer could never be received.
    let refused = far.send("vain").unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        ("vain", Refused::PeerEnded)
    );
    assert_eq!(
        (near.refusal(), far.refusal()),
        (Some(Refused::Ended), Some(Refused::PeerEnded))
    );
}

#[test]
fn ending_drops_what_waits_to_be_received_by_the_side_that_ends() {
    let world = World::new();
    let (near, far) = world.pair();
    far.send("x").unwrap();
    far.send("y").unwrap();
    assert_eq!(holds(&world.near), (2, 0, 1));
    near.end().unwrap();
    assert_eq!(holds(&world.near), (0, 0, 0));
    assert_eq!(events(&world.far), [End]);
}

#[test]
fn a_half_closed_side_receives_what_was_sent_and_then_the_end_in_order() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    near.send("b").unwrap();
    near.end().unwrap();
    assert_eq!(far.refusal(), Some(Refused::PeerEnded));
    assert_eq!(events(&world.far), [Message("a"), Message("b"), End]);
    // The event of the end was dropped: the far side has ended too.
    assert_eq!(far.refusal(), Some(Refused::Ended));
    assert!(world.is_clean());
}

#[test]
fn who_holds_the_end_holds_the_side_open() {
    let world = World::new();
    let (near, far) = world.pair();
    near.end().unwrap();
    let end = next(&world.far).unwrap();
    assert_eq!(
        (world.dialogs.len(), far.refusal()),
        (1, Some(Refused::PeerEnded))
    );
    drop(end);
    assert_eq!(far.refusal(), Some(Refused::Ended));
    assert!(world.is_clean());
}

#[test]
fn ending_twice_is_stale_and_changes_nothing() {
    let world = World::new();
    let (near, far) = world.pair();
    near.end().unwrap();
    assert_eq!(near.end(), Err(Stale));
    assert_eq!(near.end_with(fault(1)), Err(Stale));
    drop(near);
    assert_eq!(events(&world.far), [End]);
    assert_eq!(far.end(), Err(Stale));
    assert!(world.is_clean());
}

#[test]
fn what_is_in_flight_when_its_side_ends_can_be_completed_and_does_not_come_back() {
    let world = World::new();
    let related = world.far_lane.group(Limit::AtMost(2), 100).unwrap();
    let (near, far) = world.dialogs.pair(&world.near_lane, &related).unwrap();
    drop(related);
    near.send("a").unwrap();
    near.send("b").unwrap();
    let (a, b) = (take(&world.far).unwrap(), take(&world.far).unwrap());
    far.end().unwrap();
    a.give_back();
    assert_eq!(holds(&world.far), (0, 1, 1));
    assert_eq!(b.complete().event, Message("b"));
    assert_eq!(events(&world.far), []);
    drop(near);
    assert!(world.is_clean());
}

#[test]
fn a_timer_may_follow_the_end() {
    let world = World::new();
    let (near, far) = world.pair();
    far.set_timer(Duration::from_secs(1)).unwrap();
    near.end().unwrap();
    let end = take(&world.far).unwrap().complete();
    assert_eq!(end.event, End);
    assert_eq!(world.dialogs.advance(Duration::from_secs(1)), None);
    assert_eq!(events(&world.far), [Timer]);
    drop((end, far));
    assert!(world.is_clean());
}

#[test]
fn what_a_turn_has_not_delivered_when_its_side_ends_does_not_come_back() {
    let world = World::new();
    let related = world.far_lane.group(Limit::SERIAL, 100).unwrap();
    let pair = || world.dialogs.pair(&world.near_lane, &related).unwrap();
    let ((a, far_a), (b, _far_b)) = (pair(), pair());
    a.send("a").unwrap();
    b.send("b").unwrap();
    let turn = turn(&world.far).unwrap();
    far_a.end().unwrap();
    drop(turn);
    assert_eq!(events(&world.far), [Message("b")]);
}

/// Alone in a group that others pin, and behind other sides' waiting messages.
#[test]
fn ending_drops_whatever_waits_for_its_side() {
    type Put = fn(&World, &Endpoint<&'static str>, &Endpoint<&'static str>);
    let puts: [Put; 4] = [
        |_, near, _| near.send("a").unwrap(),
        |_, near, _| near.end().unwrap(),
        |_, near, _| near.end_with(fault(1)).unwrap(),
        |world, _, far| {
            far.set_timer(Duration::ZERO).unwrap();
            world.dialogs.advance(Duration::ZERO);
        },
    ];
    for (n, put) in puts.iter().enumerate() {
        for (capacity, others) in [(None, 0), (None, 3), (Some(9), 0), (Some(9), 3)] {
            let mut world = World::new();
            if let Some(most) = capacity {
                let limited = Queue::builder().capacity(Limit::AtMost(most)).build();
                world.far = limited.unwrap();
                world.far_lane = world.far.lane(1, Limit::Unlimited).unwrap();
            }
            let group = world.far_lane.group(Limit::SERIAL, 100).unwrap();
            let pair = || world.dialogs.pair(&world.near_lane, &group).unwrap();
            let ((near, far), (other, _other)) = (pair(), pair());
            (0..others).for_each(|_| other.send("other").unwrap());
            put(&world, &near, &far);
            assert_eq!(holds(&world.far).0, others + 1, "{n}");
            far.end().unwrap();
            assert_eq!(holds(&world.far).0, others, "{n}");
        }
    }
}
