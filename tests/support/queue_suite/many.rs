//! Many turns at once: those of as many receives, and all begun.

use conversant::limit::Limit;

use super::super::form::{Lane, NoMore, NoTurn, Queue, Turn};
use super::{TWO, conversation, plain, serve, take, turn};

/// Two lanes of weights 2 and 1, with groups of several levels.
fn filled(queue: &Queue<u32>) -> [Lane<u32>; 2] {
    let lanes = [2, 1].map(|weight| queue.lane(weight, Limit::Unlimited).unwrap());
    for (n, level) in [100, 200, 100, 0, 255, 100].into_iter().enumerate() {
        let one = conversation(&lanes[n % 2], TWO, level);
        let first = 10 * n as u32;
        one.send_all([first, first + 1]).unwrap();
        if n == 3 {
            queue.bump(one.group_id(), 7).unwrap();
        }
    }
    lanes
}

fn firsts(turns: Vec<Turn<'_, u32>>) -> Vec<u32> {
    let mut turns = turns;
    let firsts = turns.iter_mut().map(|turn| turn.next().unwrap().complete());
    firsts.collect()
}

#[test]
fn they_are_those_of_as_many_receives() {
    let (many, single) = (Queue::new(), Queue::new());
    let _lanes = [filled(&many), filled(&single)];
    let turns: Vec<_> = (0..6).map(|_| turn(&single).unwrap()).collect();
    let taken = many.try_receive_many(4).unwrap();
    assert_eq!(taken.len(), 4);
    let mut taken: Vec<_> = taken.collect();
    taken.extend(many.try_receive_many(2).unwrap());
    let taken = firsts(taken);
    assert_eq!(taken, firsts(turns));
    assert_eq!(taken, [40, 0, 30, 20, 10, 50]);
}

#[test]
fn as_many_turns_as_can_begin_and_none_if_none_is_asked_for() {
    let (queue, lane) = plain();
    assert_eq!(queue.try_receive_many(3).unwrap_err(), NoTurn::Empty);
    let all: Vec<_> = (0..5).map(|_| conversation(&lane, TWO, 100)).collect();
    for (n, one) in all.iter().enumerate() {
        one.send_all([n, n]).unwrap();
    }
    assert_eq!(queue.try_receive_many(0).unwrap().len(), 0);
    lane.set_cap(TWO).unwrap();
    let turns = queue.try_receive_many(usize::MAX).unwrap();
    assert_eq!(turns.len(), 2, "the cap");
    assert!(turn(&queue).is_none());
    drop(turns);
    lane.set_cap(Limit::Unlimited).unwrap();
    let turns = queue.try_receive_many(usize::MAX).unwrap();
    assert_eq!(turns.len(), 5, "one for each group");
    assert_eq!(queue.try_receive_many(3).unwrap_err(), NoTurn::Empty);
    queue.close();
    drop(turns);
    assert_eq!(serve(&queue).len(), 10);
    assert_eq!(
        queue.try_receive_many(3).unwrap_err(),
        NoTurn::Closed(NoMore::Drained)
    );
}

#[test]
fn a_dropped_wait_has_done_nothing() {
    let (queue, lane) = plain();
    let [a, b] = [(); 2].map(|()| lane.conversation().unwrap());
    a.send("a").unwrap();
    b.send("b").unwrap();
    let turns = queue.try_receive_many(2).unwrap();
    let counts = || {
        let snapshot = queue.snapshot();
        (snapshot.waiting, snapshot.in_flight)
    };
    // "A turn holds one unit from its claim to its end": before it begins
    // its message still waits.
    assert_eq!(counts(), (2, 2));
    let turns: Vec<_> = turns.collect();
    assert_eq!(counts(), (0, 2));
    drop(turns);
    let delivery = take(&queue).unwrap();
    assert_eq!((*delivery, delivery.attempt()), ("a", 1));
    drop(delivery);
    assert_eq!(serve(&queue), ["b", "a"]);
}

/// A group that comes to the front afterwards is behind the turns that have begun.
#[test]
fn they_have_begun_and_a_bump_comes_after_them() {
    let (queue, lane) = plain();
    let [a, b, c] = [(); 3].map(|()| lane.conversation().unwrap());
    a.send_all(["a1", "a2"]).unwrap();
    b.send_all(["b1", "b2"]).unwrap();
    c.send("c").unwrap();
    let mut turns: Vec<_> = queue.try_receive_many(2).unwrap().collect();
    queue.bump(b.group_id(), 9).unwrap();
    queue.bump(c.group_id(), 8).unwrap();
    assert_eq!(take(&queue).unwrap().complete(), "c", "b is held");
    let mut served = Vec::new();
    for turn in &mut turns {
        while let Some(delivery) = turn.next() {
            served.push(delivery.complete());
        }
    }
    assert_eq!(served, ["a1", "a2", "b1", "b2"]);
    // The bump is for a turn that has not begun.
    drop(turns);
    b.send("b3").unwrap();
    a.send("a3").unwrap();
    assert_eq!(serve(&queue), ["b3", "a3"]);
}

/// Each turn gets what arrives for its group while it is live, even if it was told before that
/// there is nothing.
#[test]
fn each_goes_on_with_what_comes() {
    let (queue, lane) = plain();
    let [a, b] = [(); 2].map(|()| lane.conversation().unwrap());
    a.send(1).unwrap();
    b.send(2).unwrap();
    let mut turns: Vec<_> = queue.try_receive_many(2).unwrap().collect();
    for (n, turn) in turns.iter_mut().enumerate() {
        assert_eq!(turn.next().unwrap().complete(), n + 1);
        assert!(turn.next().is_none());
    }
    b.send_all([3, 4]).unwrap();
    assert!(turns[0].next().is_none());
    assert_eq!(turns[1].next().unwrap().complete(), 3);
    a.send(5).unwrap();
    assert_eq!(turns[1].next().unwrap().complete(), 4);
    assert_eq!(turns[0].next().unwrap().complete(), 5);
    assert!(turns.iter_mut().all(|turn| turn.next().is_none()));
    drop(turns);
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
}
