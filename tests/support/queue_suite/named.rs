//! Receives from a group by name: what they answer, and what they change.

use conversant::limit::{Bypass, Limit};

use super::super::form::{GroupId, Lane, NoMore, NoTurn, Queue, Turn, Why};
use super::{conversation, plain, serve, take};

type Texts = Queue<&'static str>;

fn first(mut turn: Turn<'_, &'static str>) -> &'static str {
    turn.next().unwrap().complete()
}

fn refused(queue: &Texts, group: GroupId) -> NoTurn {
    queue.try_receive_from(group).unwrap_err()
}

#[test]
fn held_empty_closed_and_stale_are_different_answers() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    let id = one.group_id();
    assert_eq!(refused(&queue, id), NoTurn::Empty);
    one.send("m").unwrap();
    let turn = queue.try_receive_from(id).unwrap();
    assert_eq!(turn.group_id(), id);
    assert_eq!(refused(&queue, id), NoTurn::Held);
    queue.close();
    assert_eq!(refused(&queue, id), NoTurn::Held);
    first(turn);
    assert_eq!(refused(&queue, id), NoTurn::Closed(NoMore::Drained));
    drop(one);
    assert_eq!(refused(&queue, id), NoTurn::Stale);
    let (other, _lane) = plain();
    assert_eq!(refused(&other, id), NoTurn::Stale);
}

#[test]
fn every_limit_holds_and_is_told() {
    let (queue, lane) = plain();
    let paused = lane.group(Limit::AtMost(0), 100).unwrap();
    let (one, two) = (paused.conversation().unwrap(), lane.conversation().unwrap());
    let blocked = |id| match refused(&queue, id) {
        NoTurn::Blocked(why) => why,
        other => panic!("{other}"),
    };
    one.send("m").unwrap();
    two.send_in(1, "tier 1").unwrap();
    assert_eq!(blocked(paused.id()), Why::Paused);
    assert_eq!(blocked(two.group_id()), Why::Tier);
    paused.set_limit(Limit::SERIAL).unwrap();
    lane.set_cap(Limit::AtMost(0)).unwrap();
    assert_eq!(blocked(paused.id()), Why::Cap);
    lane.set_cap(Limit::Unlimited).unwrap();
    let delivery = take(&queue).unwrap();
    one.send("n").unwrap();
    assert_eq!(blocked(paused.id()), Why::Limit);
    delivery.complete();
    assert_eq!(first(queue.try_receive_from(paused.id()).unwrap()), "n");
}

#[test]
fn it_uses_up_a_bump() {
    let (queue, lane) = plain();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    two.send("two").unwrap();
    one.send_all(["1", "2"]).unwrap();
    queue.bump(one.group_id(), 9).unwrap();
    assert_eq!(first(queue.try_receive_from(one.group_id()).unwrap()), "1");
    assert_eq!(serve(&queue), ["two", "2"]);
}

/// A lane with an old group at a low level, and many at a high one.
fn overtaking(queue: &Texts) -> (Lane<&'static str>, GroupId, Vec<GroupId>) {
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let mut groups = Vec::new();
    for (level, text) in [
        (0, "old"),
        (0, "older next"),
        (9, "a"),
        (9, "b"),
        (9, "c"),
        (9, "d"),
    ] {
        let one = conversation(&lane, Limit::SERIAL, level);
        one.send(text).unwrap();
        groups.push(one.group_id());
    }
    let old = groups.remove(0);
    (lane, old, groups)
}

#[test]
fn it_is_no_dispatch_and_resets_the_count_only_for_the_oldest() {
    let queue = Queue::builder().bypass(Bypass::AtMost(2)).build().unwrap();
    let (_lane, _, groups) = overtaking(&queue);
    assert_eq!(take(&queue).unwrap().complete(), "a");
    assert_eq!(first(queue.try_receive_from(groups[2]).unwrap()), "b");
    assert_eq!(serve(&queue), ["c", "old", "d", "older next"]);

    let queue = Queue::builder().bypass(Bypass::AtMost(2)).build().unwrap();
    let (_lane, old, _) = overtaking(&queue);
    assert_eq!(take(&queue).unwrap().complete(), "a");
    assert_eq!(first(queue.try_receive_from(old).unwrap()), "old");
    assert_eq!(serve(&queue), ["b", "c", "older next", "d"]);
}
