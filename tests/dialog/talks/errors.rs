//! Errors, which overtake.

use super::*;

#[test]
fn an_error_overtakes_what_waits_on_its_dialog() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    near.send("b").unwrap();
    near.end_with(fault(7)).unwrap();
    let error = next(&world.far).unwrap();
    assert_eq!(error.event, Error(fault(7)));
    // The messages that it overtook can be received while it is held.
    assert_eq!(events(&world.far), [Message("a"), Message("b")]);
    drop(error);
    drop(far);
    assert!(world.is_clean());
}

#[test]
fn an_error_dropped_at_once_drops_what_it_overtook() {
    let world = World::new();
    let near = world
        .dialogs
        .begin(&world.near_lane, &world.far_lane)
        .unwrap();
    near.send("a").unwrap();
    near.end_with(fault(7)).unwrap();
    assert_eq!(events(&world.far), [Error(fault(7))]);
    assert!(world.is_clean());
}

#[test]
fn an_error_overtakes_while_a_turn_is_live_and_before_what_is_given_back() {
    for give_back in [false, true] {
        let world = World::new();
        let (near, _far) = world.pair();
        for message in ["a", "b", "c"] {
            near.send(message).unwrap();
        }
        let mut turn = turn(&world.far).unwrap();
        let in_flight = turn.next().unwrap();
        near.end_with(fault(1)).unwrap();
        let mut rest = vec![Message("b"), Message("c")];
        if give_back {
            in_flight.give_back();
            rest.insert(0, Message("a"));
        } else {
            in_flight.complete();
        }
        // In the same turn.
        let error = turn.next().unwrap().complete();
        assert_eq!(error.event, Error(fault(1)));
        drop(turn);
        assert_eq!(events(&world.far), rest);
    }
}

#[test]
fn an_error_that_is_given_back_stays_in_front() {
    let world = World::new();
    let (near, _far) = world.pair();
    near.send("a").unwrap();
    near.end_with(fault(1)).unwrap();
    for attempt in 1..=3 {
        let error = take(&world.far).unwrap();
        assert_eq!((&error.event, error.attempt()), (&Error(fault(1)), attempt));
        error.give_back();
    }
}

#[test]
fn errors_of_dialogs_in_one_group_keep_their_order() {
    let world = World::new();
    let related = world.far_lane.group(Limit::AtMost(4), 100).unwrap();
    let pair = || world.dialogs.pair(&world.near_lane, &related).unwrap();
    let ((a, _far_a), (b, _far_b)) = (pair(), pair());
    a.send("a").unwrap();
    a.end_with(fault(1)).unwrap();
    b.end_with(fault(2)).unwrap();
    let mut both: Vec<_> = (0..2).map(|_| take(&world.far).unwrap()).collect();
    let codes =
        |both: &[Detached<Side>]| -> Vec<_> { both.iter().map(|d| d.event.clone()).collect() };
    assert_eq!(codes(&both), [Error(fault(1)), Error(fault(2))]);
    // Given back in the other order: each returns to its place.
    both.into_iter().rev().for_each(Detached::give_back);
    both = (0..2).map(|_| take(&world.far).unwrap()).collect();
    assert_eq!(codes(&both), [Error(fault(1)), Error(fault(2))]);
}

#[test]
fn an_error_has_a_code_above_zero() {
    assert_eq!(Fault::new(0, "none").unwrap_err().least, 1);
    assert!(Fault::new(Fault::GONE, "reserved").is_err());
    let fault = Fault::new(Fault::GONE - 1, "last").unwrap();
    assert_eq!((fault.code(), fault.is_gone()), (Fault::GONE - 1, false));
    assert_eq!(
        Fault::new(1, "first").unwrap().to_string(),
        "error 1: first"
    );
}

#[test]
fn a_poisoned_group_goes_on_when_the_side_that_poisoned_it_ends() {
    let far = Queue::<Side>::builder()
        .attempts(Limit::AtMost(1))
        .build()
        .unwrap();
    let far_lane = far.lane(1, Limit::Unlimited).unwrap();
    let (_near, near_lane) = plain::<Side>();
    let related = far_lane.group(Limit::SERIAL, 100).unwrap();
    let dialogs = Dialogs::new();
    let pair = || dialogs.pair(&near_lane, &related).unwrap();
    let ((a, far_a), (b, far_b), (c, far_c)) = (pair(), pair(), pair());
    a.send("a1").unwrap();
    a.send("a2").unwrap();
    b.send("b1").unwrap();
    c.send("c1").unwrap();
    take(&far).unwrap().give_back();
    assert_eq!(far.poisoned().len(), 1);
    // The side of another dialog changes nothing.
    far_b.end().unwrap();
    assert_eq!(far.poisoned().len(), 1);
    far_a.end().unwrap();
    assert_eq!(far.poisoned(), []);
    assert_eq!(events(&far), [Message("c1")]);
    // Poisoned, and then empty: nothing is set aside forever.
    c.send("c2").unwrap();
    take(&far).unwrap().give_back();
    far_c.end().unwrap();
    assert_eq!((far.poisoned(), holds(&far)), (vec![], (0, 0, 1)));
    drop((a, b, c, related));
    assert_eq!(holds(&far), (0, 0, 0));
}
