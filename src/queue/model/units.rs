//! Units of caps that come back together, against readers that go to sleep. In models all lanes
//! have one word.

use super::receive_one;
use crate::limit::Limit;
use crate::queue::{Conversation, Lane, Queue, Turn};
use crate::sync::{explore, spawn};

/// A turn that has no more messages, and its conversation.
fn turn_of_one(queue: &Queue<u8>, lane: &Lane<u8>) -> (Turn<'static, u8>, Conversation<u8>) {
    let conversation = lane.conversation().unwrap();
    conversation.send(0).unwrap();
    let mut turn = queue.try_receive().unwrap().into_owned();
    turn.next().unwrap().complete();
    (turn, conversation)
}

fn all_units_are_back(queue: &Queue<u8>) {
    let lanes = queue.snapshot().lanes;
    assert!(lanes.iter().all(|lane| lane.in_flight == 0), "{lanes:?}");
}

/// Two turns of one lane end while a reader goes to sleep because of the cap. It is woken for a
/// unit, and neither unit is lost.
#[test]
fn two_ends_in_a_capped_lane_race_a_sleep() {
    explore("two_ends_in_a_capped_lane_race_a_sleep", Some(3), || {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::AtMost(2)).unwrap();
        let turns = [(); 2].map(|()| turn_of_one(&queue, &lane));
        let waits = lane.conversation().unwrap();
        waits.send(1).unwrap();
        let ends = turns.map(|(turn, stays)| {
            spawn(move || {
                drop(turn);
                stays
            })
        });
        assert_eq!(receive_one(&queue), Ok(1));
        let _stay = ends.map(|end| end.join().unwrap());
        all_units_are_back(&queue);
    });
}

/// Turns of two lanes end, and there is one word for both.
#[test]
fn ends_in_two_capped_lanes_race_a_sleep() {
    explore("ends_in_two_capped_lanes_race_a_sleep", Some(3), || {
        let queue = Queue::new();
        let lanes = [(); 2].map(|()| queue.lane(1, Limit::AtMost(1)).unwrap());
        let turns = lanes.each_ref().map(|lane| turn_of_one(&queue, lane));
        let waiting = lanes.each_ref().map(|lane| {
            let waits = lane.conversation().unwrap();
            waits.send(1).unwrap();
            waits
        });
        let ends = turns.map(|(turn, stays)| {
            spawn(move || {
                drop(turn);
                stays
            })
        });
        let found = [(); 2].map(|()| receive_one(&queue));
        assert_eq!(found, [Ok(1); 2]);
        let _stay = (waiting, ends.map(|end| end.join().unwrap()));
        all_units_are_back(&queue);
    });
}

/// What happened before a turn ended is visible to the thread that gets its unit, even if the token
/// was another turn's.
#[test]
fn a_unit_that_only_counted_brings_what_was_done_before_it() {
    // The effect is checked on the word alone: here turns meet in the policy lock.
    explore(
        "a_unit_that_only_counted_brings_what_was_done_before_it",
        None,
        || {
            use crate::queue::units::Units;
            use crate::sync::{Arc, AtomicBool, Ordering};
            let units = Arc::new(Units::default());
            let done = Arc::new(AtomicBool::new(false));
            assert!(units.give_back(0));
            let worker = spawn({
                let (units, done) = (units.clone(), done.clone());
                move || {
                    // Relaxed: the word orders it.
                    done.store(true, Ordering::Relaxed);
                    units.give_back(0)
                }
            });
            if units.take(0) == 1 {
                assert!(done.load(Ordering::Relaxed));
                assert!(!worker.join().unwrap());
            } else {
                assert!(worker.join().unwrap(), "who comes after tells again");
            }
        },
    );
}
