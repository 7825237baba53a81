//! Peers, queues and endpoints that are gone.

use super::*;

#[test]
fn a_stale_handle_is_an_error_and_never_another_dialog() {
    let world = World::new();
    let (near, far) = world.pair();
    let (id, stale, group) = (near.id(), near.clone(), near.group_id());
    drop((near, far));
    assert!(world.is_clean());
    // A dialog in the same slots.
    let (near, _far) = world.pair();
    assert_ne!(near.id(), id);
    assert_ne!(near.group_id(), group);
    assert_eq!(stale.send("x").unwrap_err().reason, Refused::Ended);
    assert_eq!(stale.end(), Err(Stale));
    assert_eq!(stale.set_timer(Duration::ZERO), Err(Stale));
    assert_eq!(world.near.bump(group, 200), Err(Stale));
    assert_eq!(near.refusal(), None);
}

#[test]
fn closing_a_queue_refuses_messages_and_lets_the_end_through() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    world.far.close();
    let refused = near.send("late").unwrap_err();
    assert_eq!((refused.message, refused.reason), ("late", Refused::Closed));
    far.send("x").unwrap();
    assert_eq!(events(&world.near), [Message("x")]);
    near.end().unwrap();
    let mut turn = world.far.receive().wait().unwrap();
    assert_eq!(turn.next().unwrap().complete().event, Message("a"));
    drop(turn);
    let mut turn = world.far.receive().wait().unwrap();
    assert_eq!(turn.next().unwrap().complete().event, End);
    drop(turn);
    assert_eq!(world.far.receive().wait().err(), Some(NoMore::Drained));
    assert!(world.is_clean());
    let begun = world.dialogs.begin(&world.near_lane, &world.far_lane);
    assert_eq!(begun.err(), Some(Refused::Closed));
    assert!(world.is_clean());
}

#[test]
fn the_end_of_a_dialog_with_a_closed_queue_that_is_drained_is_the_end_of_both_sides() {
    for error in [false, true] {
        let world = World::new();
        let (near, far) = world.pair();
        world.far.close();
        match error {
            true => near.end_with(fault(1)).unwrap(),
            false => near.end().unwrap(),
        }
        assert_eq!(far.refusal(), Some(Refused::Ended));
        assert_eq!(world.far.receive().wait().err(), Some(NoMore::Drained));
        assert!(world.is_clean());
    }
}

/// An end may enter an empty group of a closed queue while the queue still has work.
#[test]
fn an_empty_side_of_a_closed_queue_is_not_drained_before_its_queue_is() {
    let world = World::new();
    let [(near, far), (busy, _far)] = [(); 2].map(|()| world.pair());
    busy.send("work").unwrap();
    world.far.close();
    let nothing = |far: &Endpoint<_>| world.far.try_receive_from(far.group_id()).err();
    assert_eq!(nothing(&far), Some(NoTurn::Empty));
    near.end().unwrap();
    let mut by_name = world.far.try_receive_from(far.group_id()).unwrap();
    assert_eq!(by_name.next().unwrap().complete().event, End);
    drop(by_name);
    assert_eq!(next(&world.far).unwrap().event, Message("work"));
    let drained = NoTurn::Closed(NoMore::Drained);
    assert_eq!(world.far.try_receive().err(), Some(drained));
}

/// A closed queue in which only a poisoned group is left tells its readers that nothing comes by
/// itself, so no other group gets anything, also if that group goes on.
#[test]
fn a_side_beside_a_poisoned_group_of_a_closed_queue_ends_with_its_peer() {
    let world = World::new();
    let [(near, far), (bad, bad_far)] = [(); 2].map(|()| world.pair());
    bad.send("bad").unwrap();
    let mut turn = world.far.try_receive().unwrap();
    turn.next().unwrap().fail_for_good();
    drop(turn);
    world.far.close();
    far.set_timer(Duration::ZERO).unwrap();
    assert_eq!(world.dialogs.advance(Duration::ZERO), None);
    near.end().unwrap();
    assert_eq!(far.refusal(), Some(Refused::Ended));
    bad.end().unwrap();
    assert_eq!(world.far.resume(bad_far.group_id()), Ok(true));
    let left = [(); 2].map(|()| next(&world.far).unwrap().event.clone());
    assert_eq!(left, [Message("bad"), End]);
    assert_eq!(world.far.receive().wait().err(), Some(NoMore::Drained));
    assert!(world.is_clean());
}

#[test]
fn dropping_the_peers_queue_is_an_error_that_is_received() {
    let World {
        dialogs,
        near: queue,
        far: gone,
        near_lane,
        far_lane,
    } = World::new();
    let (near, far) = dialogs.pair(&near_lane, &far_lane).unwrap();
    near.send("a").unwrap();
    far.send("x").unwrap();
    far.set_timer(Duration::ZERO).unwrap();
    drop(gone);
    assert_eq!(far.refusal(), Some(Refused::Ended));
    assert_eq!(near.send("late").unwrap_err().reason, Refused::PeerEnded);
    let error = next(&queue).unwrap();
    let Error(fault) = &error.event else {
        panic!("{error:?}");
    };
    assert!(fault.is_gone());
    assert_eq!(events(&queue), [Message("x")]);
    drop(error);
    assert_eq!((dialogs.len(), holds(&queue)), (0, (0, 0, 0)));
    assert_eq!(dialogs.advance(Duration::ZERO), None);
    assert!(dialogs.begin(&near_lane, &far_lane).is_err());
}

#[test]
fn a_dropped_endpoint_ends_its_side_and_in_a_panic_with_an_error() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    drop(near);
    assert_eq!(events(&world.far), [Message("a"), End]);
    drop(far);
    let (near, far) = world.pair();
    near.send("a").unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _near = near;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    let error = next(&world.far).unwrap();
    assert!(matches!(&error.event, Error(fault) if fault.is_gone()));
    drop((error, far));
    assert!(world.is_clean());
}

#[test]
fn an_endpoint_dropped_inside_a_handler() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    near.send("b").unwrap();
    let mut turn = turn(&world.far).unwrap();
    let a = turn.next().unwrap();
    // The turn of its own group is live, and its own delivery in flight.
    drop(far);
    assert_eq!(near.refusal(), Some(Refused::PeerEnded));
    assert!(a.endpoint().send("answer").is_err());
    a.complete();
    assert!(turn.next().is_none());
    drop(turn);
    assert_eq!(events(&world.near), [End]);
    assert!(world.is_clean());
}

#[test]
fn a_detached_endpoint_ends_with_the_dialog_only() {
    let world = World::new();
    let (near, far) = world.pair();
    let far = far.detach();
    near.send("a").unwrap();
    assert_eq!(far.refusal(), None);
    assert_eq!(events(&world.far), [Message("a")]);
    drop(near);
    drop(far);
    assert_eq!(world.dialogs.len(), 1);
    assert_eq!(events(&world.far), [End]);
    assert!(world.is_clean());
}

/// A peek holds its message; if the message's side ends meanwhile it does not come back.
#[test]
fn a_peeked_message_of_an_ended_side_is_dropped_with_the_peek() {
    for poisoned in [false, true] {
        let far = Queue::<Side>::builder().attempts(Limit::AtMost(1)).build();
        let far = far.unwrap();
        let far_lane = far.lane(1, Limit::Unlimited).unwrap();
        let world = World::new();
        let related = far_lane.group(Limit::SERIAL, 100).unwrap();
        let (near, end) = world.dialogs.pair(&world.near_lane, &related).unwrap();
        near.send("a").unwrap();
        if poisoned {
            take(&far).unwrap().give_back();
        }
        near.send("b").unwrap();
        let look = far.try_peek(near.peer_group()).unwrap();
        near.end_with(fault(1)).unwrap();
        end.end().unwrap();
        assert_eq!((look.event.clone(), holds(&far).0), (Message("a"), 1));
        drop(look);
        assert_eq!((far.poisoned(), holds(&far)), (vec![], (0, 0, 1)));
        // The group works.
        let (near, _end) = world.dialogs.pair(&world.near_lane, &related).unwrap();
        near.send("c").unwrap();
        assert_eq!(events(&far), [Message("c")]);
        assert!(world.dialogs.len() == 1);
    }
}

/// An error that comes during a peek is placed before the message that is peeked at.
#[test]
fn an_error_overtakes_what_is_looked_at() {
    let world = World::new();
    let (near, _far) = world.pair();
    near.send("a").unwrap();
    let look = world.far.try_peek(near.peer_group()).unwrap();
    near.end_with(fault(1)).unwrap();
    drop(look);
    let error = next(&world.far).unwrap();
    assert_eq!(error.event, Error(fault(1)));
    assert_eq!(events(&world.far), [Message("a")]);
}

/// The messages of another side go on.
#[test]
fn a_peeked_message_that_poisons_leaves_no_poison_behind() {
    let far = Queue::<Side>::builder().attempts(Limit::AtMost(1)).build();
    let far = far.unwrap();
    let far_lane = far.lane(1, Limit::Unlimited).unwrap();
    let related = far_lane.group(Limit::SERIAL, 100).unwrap();
    let world = World::new();
    let pair = || world.dialogs.pair(&world.near_lane, &related).unwrap();
    let ((a, far_a), (b, _far_b)) = (pair(), pair());
    a.send("a").unwrap();
    b.send("b").unwrap();
    take(&far).unwrap().give_back();
    drop(far.try_peek(related.id()).unwrap());
    let look = far.try_peek(related.id()).unwrap();
    far_a.end().unwrap();
    assert_eq!(far.poisoned().len(), 1, "what is looked at waits");
    drop(look);
    assert_eq!(far.poisoned(), []);
    assert_eq!(events(&far), [Message("b")]);
}
