//! SEMANTICS 2 on dialogs, sentence by sentence, on one thread.

mod queue_support;

use std::time::Duration;

use conversant::dialog::{
    BeginError, Dialogs, Endpoint, Event, Fault, Received, Refused, Standing,
};
use conversant::error::{Closed, Stale};
use conversant::limit::Limit;
use conversant::queue::{Delivery, Lane, Queue};

use queue_support::{plain, take, turn};

type Side = Received<&'static str>;

/// Two queues, and dialogs between them.
struct World {
    dialogs: Dialogs<&'static str>,
    near: Queue<Side>,
    far: Queue<Side>,
    near_lane: Lane<Side>,
    far_lane: Lane<Side>,
}

impl World {
    fn new() -> Self {
        let ((near, near_lane), (far, far_lane)) = (plain(), plain());
        Self {
            dialogs: Dialogs::new(),
            near,
            far,
            near_lane,
            far_lane,
        }
    }

    fn pair(&self) -> (Endpoint<&'static str>, Endpoint<&'static str>) {
        let pair = self.dialogs.pair(&self.near_lane, &self.far_lane);
        pair.unwrap()
    }

    /// No dialog, no group, no message.
    fn is_clean(&self) -> bool {
        self.dialogs.is_empty() && holds(&self.near) == (0, 0, 0) && holds(&self.far) == (0, 0, 0)
    }
}

/// What waits, what is in flight, and how many groups there are.
fn holds(queue: &Queue<Side>) -> (u64, u64, usize) {
    let picture = queue.snapshot();
    let groups = picture.lanes.iter().map(|lane| lane.groups.len()).sum();
    (picture.waiting, picture.in_flight, groups)
}

fn fault(code: u32) -> Fault {
    Fault::new(code, "on purpose").unwrap()
}

/// The next event, completed and held.
fn next(queue: &Queue<Side>) -> Option<Side> {
    take(queue).map(Delivery::complete)
}

/// All events that can be had now; each is let go of before the next is taken.
fn events(queue: &Queue<Side>) -> Vec<Event<&'static str>> {
    std::iter::from_fn(|| Some(next(queue)?.event)).collect()
}

use Event::{End, Error, Message, Timer};

#[test]
fn both_ways_in_order_each_through_its_own_queue() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    near.send("b").unwrap();
    far.send("x").unwrap();
    assert_eq!(events(&world.far), [Message("a"), Message("b")]);
    assert_eq!(events(&world.near), [Message("x")]);
    near.end().unwrap();
    far.end().unwrap();
    assert!(world.is_clean());
}

#[test]
fn an_event_says_which_endpoint_it_came_to_so_that_the_answer_goes_back_on_its_dialog() {
    let world = World::new();
    let dialogs: Vec<_> = ["anna", "bert"]
        .into_iter()
        .map(|name| {
            let near = world.dialogs.begin(&world.near_lane, &world.far_lane);
            let near = near.unwrap();
            near.send(name).unwrap();
            near
        })
        .collect();
    // The last that asked is answered first.
    let mut asked: Vec<_> = std::iter::from_fn(|| next(&world.far)).collect();
    while let Some(question) = asked.pop() {
        let Message(name) = question.event else {
            panic!("{question:?}");
        };
        assert_eq!(
            question.endpoint().peer_group(),
            match name {
                "anna" => dialogs[0].group(),
                _ => dialogs[1].group(),
            }
        );
        question.endpoint().send(name).unwrap();
    }
    for (near, name) in dialogs.iter().zip(["anna", "bert"]) {
        let mut turn = world.near.try_receive_from(near.group()).unwrap();
        let answer = turn.next().unwrap().complete();
        assert_eq!(
            (&answer.event, answer.endpoint().id()),
            (&Message(name), near.id())
        );
        assert_eq!(answer.endpoint(), &**near);
    }
    drop(dialogs);
    assert_eq!(events(&world.far), [End, End]);
    assert!(world.is_clean());
}

#[test]
fn each_side_has_a_group_of_its_own() {
    let world = World::new();
    let (first, _first) = world.pair();
    let (second, _second) = world.pair();
    assert_ne!(first.peer_group(), second.peer_group());
    first.send("held").unwrap();
    second.send("free").unwrap();
    let mut held = turn(&world.far).unwrap();
    let delivery = held.next().unwrap();
    assert_eq!(delivery.event, Message("held"));
    // The other dialog is not kept by it.
    assert_eq!(events(&world.far), [Message("free")]);
    delivery.complete();
}

#[test]
fn a_related_group_is_shared_in_order_and_by_one_reader_at_a_time() {
    let world = World::new();
    let related = world.far_lane.group(Limit::SERIAL, 100).unwrap();
    let begin = || world.dialogs.begin(&world.near_lane, &related).unwrap();
    let (first, second) = (begin(), begin());
    drop(related);
    assert_eq!(first.peer_group(), second.peer_group());
    first.send("a1").unwrap();
    second.send("b1").unwrap();
    first.send("a2").unwrap();
    let mut one = turn(&world.far).unwrap();
    let delivery = one.next().unwrap();
    assert!(take(&world.far).is_none());
    delivery.complete();
    drop(one);
    // Ending one side drops what waits for it, and nothing of its neighbour's.
    let a = next(&world.far).map(|received| received.endpoint().clone());
    assert_eq!(a.map(|a| a.id().dialog()), Some(second.id().dialog()));
    drop((first, second));
    assert_eq!(events(&world.far), [Message("a2"), End, End]);
    assert!(world.is_clean());
}

#[test]
fn a_dialog_begins_in_the_group_of_an_endpoint() {
    let world = World::new();
    let (near, far) = world.pair();
    let (other, _other) = world.dialogs.pair(&world.near_lane, &far).unwrap();
    assert_eq!(other.peer_group(), near.peer_group());
    near.send("a").unwrap();
    other.send("b").unwrap();
    assert_eq!(events(&world.far), [Message("a"), Message("b")]);
    // Its group outlives the endpoint, while something else keeps it.
    let stale = far.detach();
    stale.end().unwrap();
    let third = world.dialogs.begin(&world.near_lane, &stale).unwrap();
    assert_eq!(third.peer_group(), other.peer_group());
    drop((near, other, _other, third));
    events(&world.far);
    assert!(world.is_clean());
    let begun = world.dialogs.begin(&world.near_lane, &stale);
    assert_eq!(begun.err(), Some(BeginError::Stale));
    assert!(world.is_clean());
}

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
    // Nobody would receive the answer.
    let refused = far.send("vain").unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        ("vain", Refused::PeerEnded)
    );
    assert_eq!(
        (near.standing(), far.standing()),
        (Standing::Ended, Standing::PeerEnded)
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
    assert_eq!(far.standing(), Standing::PeerEnded);
    assert_eq!(events(&world.far), [Message("a"), Message("b"), End]);
    // The end was let go of: the far side has ended too.
    assert_eq!(far.standing(), Standing::Ended);
    assert!(world.is_clean());
}

#[test]
fn who_holds_the_end_holds_the_side_open() {
    let world = World::new();
    let (near, far) = world.pair();
    near.end().unwrap();
    let end = next(&world.far).unwrap();
    assert_eq!(
        (world.dialogs.len(), far.standing()),
        (1, Standing::PeerEnded)
    );
    drop(end);
    assert_eq!(far.standing(), Standing::Ended);
    assert!(world.is_clean());
}

#[test]
fn an_error_overtakes_what_waits_on_its_dialog() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    near.send("b").unwrap();
    near.end_with(fault(7)).unwrap();
    let error = next(&world.far).unwrap();
    assert_eq!(error.event, Error(fault(7)));
    // What it overtook can be received while somebody holds it.
    assert_eq!(events(&world.far), [Message("a"), Message("b")]);
    drop(error);
    drop(far);
    assert!(world.is_clean());
}

#[test]
fn an_error_let_go_of_at_once_drops_what_it_overtook() {
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
        |both: &[Delivery<Side>]| -> Vec<_> { both.iter().map(|d| d.event.clone()).collect() };
    assert_eq!(codes(&both), [Error(fault(1)), Error(fault(2))]);
    // Back in the other order: to their places.
    both.into_iter().rev().for_each(Delivery::give_back);
    both = (0..2).map(|_| take(&world.far).unwrap()).collect();
    assert_eq!(codes(&both), [Error(fault(1)), Error(fault(2))]);
}

#[test]
fn end_after_drain_receives_what_waits_and_can_answer() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    far.end_after_drain().unwrap();
    far.end_after_drain().unwrap();
    let refused = near.send("late").unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        ("late", Refused::PeerEnded)
    );
    assert_eq!(
        (near.standing(), far.standing()),
        (Standing::Open, Standing::Draining)
    );
    let question = next(&world.far).unwrap();
    question.endpoint().send("answer").unwrap();
    assert_eq!(events(&world.far), [End]);
    assert_eq!(far.standing(), Standing::Ended);
    assert_eq!(events(&world.near), [Message("answer"), End]);
    assert!(world.is_clean());
}

#[test]
fn end_after_drain_meets_the_peers_end_or_error() {
    for error in [false, true] {
        let world = World::new();
        let (near, far) = world.pair();
        near.send("a").unwrap();
        far.end_after_drain().unwrap();
        if error {
            near.end_with(fault(3)).unwrap();
            assert_eq!(events(&world.far), [Error(fault(3))]);
        } else {
            near.end().unwrap();
            // One end, not two.
            assert_eq!(events(&world.far), [Message("a"), End]);
        }
        assert_eq!(far.end_after_drain(), Err(Stale));
        assert!(world.is_clean());
    }
}

#[test]
fn a_timer_comes_to_its_own_side_when_it_is_due() {
    let world = World::new();
    let (near, far) = world.pair();
    let seconds = Duration::from_secs;
    assert_eq!(world.dialogs.advance(seconds(10)), None);
    near.set_timer(seconds(5)).unwrap();
    far.set_timer(seconds(3)).unwrap();
    near.send("a").unwrap();
    assert_eq!(world.dialogs.advance(seconds(12)), Some(seconds(13)));
    assert_eq!(events(&world.far), [Message("a")]);
    assert_eq!(world.dialogs.advance(seconds(13)), Some(seconds(15)));
    assert_eq!(events(&world.far), [Timer]);
    // Replaced, it is due at the new time only.
    near.set_timer(seconds(7)).unwrap();
    assert_eq!(world.dialogs.advance(seconds(19)), Some(seconds(20)));
    assert_eq!(events(&world.near), []);
    assert_eq!(world.dialogs.advance(seconds(20)), None);
    assert_eq!(events(&world.near), [Timer]);
    assert_eq!(near.clear_timer(), Ok(false));
    near.set_timer(seconds(1)).unwrap();
    assert_eq!(near.clear_timer(), Ok(true));
    assert_eq!(world.dialogs.advance(seconds(30)), None);
    assert_eq!(events(&world.near), []);
    // It goes with its side, and stays with a side that is told of the end.
    near.set_timer(seconds(1)).unwrap();
    far.set_timer(seconds(1)).unwrap();
    near.end().unwrap();
    assert_eq!(near.set_timer(seconds(1)), Err(Stale));
    assert_eq!(near.clear_timer(), Err(Stale));
    assert_eq!(world.dialogs.advance(seconds(31)), None);
    assert_eq!(events(&world.near), []);
    assert_eq!(events(&world.far), [End]);
    assert!(world.is_clean());
}

#[test]
fn a_timer_that_is_due_waits_like_a_message() {
    let world = World::new();
    let (near, far) = world.pair();
    far.send("a").unwrap();
    near.set_timer(Duration::ZERO).unwrap();
    assert_eq!(world.dialogs.advance(Duration::ZERO), None);
    far.send("b").unwrap();
    assert_eq!(events(&world.near), [Message("a"), Timer, Message("b")]);
}

#[test]
fn ending_twice_is_stale_and_changes_nothing() {
    let world = World::new();
    let (near, far) = world.pair();
    near.end().unwrap();
    assert_eq!(near.end(), Err(Stale));
    assert_eq!(near.end_with(fault(1)), Err(Stale));
    assert_eq!(near.end_after_drain(), Err(Stale));
    drop(near);
    assert_eq!(events(&world.far), [End]);
    assert_eq!(far.end(), Err(Stale));
    assert!(world.is_clean());
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
fn a_stale_handle_is_an_error_and_never_another_dialog() {
    let world = World::new();
    let (near, far) = world.pair();
    let (id, stale, group) = (near.id(), near.clone(), near.group());
    drop((near, far));
    assert!(world.is_clean());
    // A dialog in the same places.
    let (near, _far) = world.pair();
    assert_ne!(near.id(), id);
    assert_ne!(near.group(), group);
    assert_eq!(stale.send("x").unwrap_err().reason, Refused::Ended);
    assert_eq!(stale.end(), Err(Stale));
    assert_eq!(stale.set_timer(Duration::ZERO), Err(Stale));
    assert_eq!(world.near.bump(group, 200), Err(Stale));
    assert_eq!(near.standing(), Standing::Open);
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
fn closing_a_queue_refuses_messages_and_lets_the_end_through() {
    let world = World::new();
    let (near, far) = world.pair();
    near.send("a").unwrap();
    world.far.close();
    let refused = near.send("late").unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        ("late", Refused::PeerGone)
    );
    far.send("x").unwrap();
    assert_eq!(events(&world.near), [Message("x")]);
    near.end().unwrap();
    let a = world.far.receive().wait().unwrap().next().unwrap();
    assert_eq!(a.complete().event, Message("a"));
    let end = world.far.receive().wait().unwrap().next().unwrap();
    assert_eq!(end.complete().event, End);
    assert_eq!(world.far.receive().wait().err(), Some(Closed));
    assert!(world.is_clean());
    let begun = world.dialogs.begin(&world.near_lane, &world.far_lane);
    assert_eq!(begun.err(), Some(BeginError::Closed));
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
        assert_eq!(far.standing(), Standing::Ended);
        assert_eq!(world.far.receive().wait().err(), Some(Closed));
        assert!(world.is_clean());
    }
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
    assert_eq!(far.standing(), Standing::Ended);
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
fn both_sides_in_one_queue() {
    let (queue, lane) = plain::<Side>();
    let dialogs = Dialogs::new();
    let (near, far) = dialogs.pair(&lane, &lane).unwrap();
    near.send("to far").unwrap();
    far.send("to near").unwrap();
    assert_eq!(events(&queue), [Message("to far"), Message("to near")]);
    drop(queue);
    assert_eq!(
        (near.standing(), far.standing()),
        (Standing::Ended, Standing::Ended)
    );
    assert!(dialogs.is_empty());
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
    assert_eq!(near.standing(), Standing::PeerEnded);
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
    assert_eq!(far.standing(), Standing::Open);
    assert_eq!(events(&world.far), [Message("a")]);
    drop(near);
    drop(far);
    assert_eq!(world.dialogs.len(), 1);
    assert_eq!(events(&world.far), [End]);
    assert!(world.is_clean());
}

#[test]
fn a_full_queue_gives_the_message_back_and_takes_the_end() {
    let far = Queue::<Side>::builder()
        .capacity(Limit::AtMost(1))
        .build()
        .unwrap();
    let far_lane = far.lane(1, Limit::Unlimited).unwrap();
    let (near, near_lane) = plain::<Side>();
    let dialogs = Dialogs::new();
    let (near_end, far_end) = dialogs.pair(&near_lane, &far_lane).unwrap();
    near_end.send("a").unwrap();
    let refused = near_end.send("b").unwrap_err();
    assert_eq!((refused.message, refused.reason), ("b", Refused::Full));
    far_end.set_timer(Duration::ZERO).unwrap();
    dialogs.advance(Duration::ZERO);
    near_end.end().unwrap();
    assert_eq!(events(&far), [Message("a"), Timer, End]);
    assert_eq!(
        (dialogs.len(), holds(&near), holds(&far)),
        (0, (0, 0, 0), (0, 0, 0))
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
    let ((a, far_a), (b, far_b)) = (pair(), pair());
    a.send("a1").unwrap();
    a.send("a2").unwrap();
    b.send("b1").unwrap();
    take(&far).unwrap().give_back();
    assert_eq!(far.poisoned().len(), 1);
    // The side of another dialog changes nothing.
    far_b.end().unwrap();
    assert_eq!(far.poisoned().len(), 1);
    far_a.end().unwrap();
    assert_eq!(far.poisoned(), []);
    assert_eq!(holds(&far), (0, 0, 1));
    drop((a, b, related));
    assert_eq!(holds(&far), (0, 0, 0));
}
