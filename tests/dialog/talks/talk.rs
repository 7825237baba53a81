//! Messages and timers both ways, and the groups that they are in.

use std::thread;

use super::*;

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
                "anna" => dialogs[0].group_id(),
                _ => dialogs[1].group_id(),
            }
        );
        question.endpoint().send(name).unwrap();
    }
    for (near, name) in dialogs.iter().zip(["anna", "bert"]) {
        let mut turn = world.near.try_receive_from(near.group_id()).unwrap();
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
    // The other dialog is not blocked by it.
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
    // Ending one side drops the messages that wait for it, and none of the other dialog's.
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
    // Its group outlives the endpoint, while something else pins it.
    let stale = far.detach();
    stale.end().unwrap();
    let third = world.dialogs.begin(&world.near_lane, &stale).unwrap();
    assert_eq!(third.peer_group(), other.peer_group());
    drop((near, other, _other, third));
    events(&world.far);
    assert!(world.is_clean());
    let begun = world.dialogs.begin(&world.near_lane, &stale);
    assert_eq!(begun.err(), Some(Refused::Ended));
    assert!(world.is_clean());
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
    // Replaced, the timer is due at the new time only.
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
    // The timer ends with its own side; the end of the peer leaves it set.
    near.set_timer(seconds(2)).unwrap();
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
fn both_sides_in_one_queue() {
    let (queue, lane) = plain::<Side>();
    let dialogs = Dialogs::new();
    let (near, far) = dialogs.pair(&lane, &lane).unwrap();
    near.send("to far").unwrap();
    far.send("to near").unwrap();
    assert_eq!(events(&queue), [Message("to far"), Message("to near")]);
    drop(queue);
    assert_eq!(
        (near.refusal(), far.refusal()),
        (Some(Refused::Ended), Some(Refused::Ended))
    );
    assert!(dialogs.is_empty());
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

/// Threads cache permits of a large capacity. Ends that need no room leave a debt, which is paid
/// before anything is sent.
#[test]
fn no_thread_sends_past_a_debt() {
    let far = Queue::<Side>::builder().capacity(2048).build().unwrap();
    let far_lane = far.lane(1, Limit::Unlimited).unwrap();
    let (_near, near_lane) = plain::<Side>();
    let dialogs = Dialogs::new();
    let pair = || dialogs.pair(&near_lane, &far_lane).unwrap();
    let (near_end, _far_end) = pair();
    let others: Vec<_> = (0..40).map(|_| pair()).collect();
    // The first opens the thread's cache, the second puts 31 permits into it.
    near_end.send("a").unwrap();
    near_end.send("a").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (2..2017).for_each(|_| near_end.send("b").unwrap()));
    });
    assert_eq!(far.room(), Some(31));
    for (side, _) in &others {
        side.end().unwrap();
    }
    assert_eq!(far.room(), Some(-9));
    assert_eq!(near_end.send("c").unwrap_err().reason, Refused::Full);
    for room in -8..=1 {
        take(&far).unwrap().complete();
        assert_eq!(far.room(), Some(room));
        let sent = near_end.send("d");
        assert_eq!(sent.is_ok(), room > 0);
    }
}
