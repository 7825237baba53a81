//! SEMANTICS 2 and 3, sentence by sentence, as far as they are a queue's; the pitfalls under "Order
//! and groups" and "Priority, fairness, tiers"; and bad use.

mod queue_support;

use std::collections::BTreeMap;

use conversant::error::{Closed, OutOfRange, Stale, TierGoesDown};
use conversant::limit::{Bypass, Limit};
use conversant::queue::{LaneError, Queue, SendError, SendReason, TryReceive, Why};

use queue_support::{conversation, plain, serve, take, turn};

const TWO: Limit = Limit::AtMost(2);
const PAUSED: Limit = Limit::AtMost(0);

/// Why the only group of the only lane waits.
fn why<T>(queue: &Queue<T>) -> Why {
    queue.snapshot().lanes[0].groups[0].why
}

mod conversations {
    use super::*;

    #[test]
    fn delivered_in_send_order_whatever_the_number_of_readers() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send_all(0..10).unwrap();
        // Several readers that come while the first has its message get nothing out of turn.
        for n in 0..10 {
            let mine = take(&queue).unwrap();
            assert!((0..3).all(|_| take(&queue).is_none()));
            assert_eq!(mine.complete(), n);
        }
        assert!(take(&queue).is_none());
    }

    #[test]
    fn a_message_not_completed_is_delivered_again_and_first() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send_all(["a1", "a2", "a3"]).unwrap();
        take(&queue).unwrap().give_back();
        drop(take(&queue).unwrap());
        let again = take(&queue).unwrap();
        assert_eq!((*again, again.attempt()), ("a1", 3));
        again.complete();
        assert_eq!(serve(&queue), ["a2", "a3"]);
    }

    /// A group's age is that of its last delivery, also if that ends after its turn.
    #[test]
    fn what_became_ready_before_a_delivery_ended_goes_first() {
        let (queue, lane) = plain();
        let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
        one.send_all(["a1", "a2"]).unwrap();
        let first = take(&queue).unwrap();
        two.send("b1").unwrap();
        first.complete();
        assert_eq!(serve(&queue), ["b1", "a2"]);
    }

    #[test]
    fn a_redelivery_keeps_what_was_changed() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send(1).unwrap();
        *take(&queue).unwrap() += 1;
        assert_eq!(take(&queue).unwrap().complete(), 2);
    }

    #[test]
    fn with_a_limit_above_one_a_redelivery_may_follow_later_messages() {
        let (queue, lane) = plain();
        let one = conversation(&lane, TWO, 100);
        one.send_all(1..=4).unwrap();
        let first = take(&queue).unwrap();
        let second = take(&queue).unwrap();
        assert_eq!(second.complete(), 2);
        let third = take(&queue).unwrap();
        drop(first);
        // Its place is before all that waits.
        assert_eq!(take(&queue).unwrap().complete(), 1);
        assert_eq!(third.complete(), 3);
        assert_eq!(serve(&queue), [4]);
    }

    #[test]
    fn several_given_back_at_once_stand_by_number() {
        let (queue, lane) = plain();
        let one = conversation(&lane, Limit::Unlimited, 100);
        one.send_all(0..5).unwrap();
        let mut held: Vec<_> = (0..4).map(|_| take(&queue).unwrap()).collect();
        for place in [2, 0, 1, 0] {
            drop(held.remove(place));
        }
        assert_eq!(serve(&queue), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_end_refuses_sends_and_delivers_what_waits() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send(1).unwrap();
        one.end();
        one.end();
        let refused = one.send(2).unwrap_err();
        assert_eq!((refused.message, refused.reason), (2, SendReason::Ended));
        let group = one.group();
        drop(one);
        assert_eq!(queue.bump(group, 1), Ok(()), "its message waits");
        assert_eq!(serve(&queue), [1]);
        assert_eq!(
            queue.bump(group, 1),
            Err(Stale),
            "it ended after its last message"
        );
        assert!(queue.snapshot().lanes[0].groups.is_empty());
    }

    #[test]
    fn a_group_lives_until_its_last_handle_and_message() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::SERIAL, 100).unwrap();
        let id = group.id();
        let (a, b) = (group.conversation().unwrap(), group.conversation().unwrap());
        assert_eq!((a.group(), b.group()), (id, id));
        drop((group, a));
        assert_eq!(queue.bump(id, 7), Ok(()));
        b.send(1).unwrap();
        drop(b);
        let turn = turn(&queue).unwrap();
        drop(turn);
        let delivery = take(&queue).unwrap();
        assert_eq!(queue.bump(id, 7), Ok(()), "it is in flight");
        delivery.complete();
        assert_eq!(queue.bump(id, 7), Err(Stale));
    }

    #[test]
    fn a_turn_pins_its_group() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send(1).unwrap();
        let id = one.group();
        drop(one);
        let mut turn = turn(&queue).unwrap();
        turn.next().unwrap().complete();
        assert_eq!(queue.bump(id, 7), Ok(()));
        assert!(turn.next().is_none());
        drop(turn);
        assert_eq!(queue.bump(id, 7), Err(Stale));
    }

    #[test]
    fn a_lane_goes_with_its_last_group() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send(1).unwrap();
        drop(lane);
        assert!(queue.snapshot().lanes[0].ending);
        drop(one);
        assert_eq!(serve(&queue), [1]);
        assert!(queue.snapshot().lanes.is_empty());
    }

    #[test]
    fn conversations_of_one_group_share_its_order_and_its_lock() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::SERIAL, 100).unwrap();
        let (a, b) = (group.conversation().unwrap(), group.conversation().unwrap());
        for n in 0..6 {
            [&a, &b][n % 2].send(n).unwrap();
        }
        assert_eq!(group.waiting(), 6);
        let first = take(&queue).unwrap();
        assert!(take(&queue).is_none());
        drop(first);
        assert_eq!(serve(&queue), [0, 1, 2, 3, 4, 5]);
    }
}

mod admission {
    use super::*;

    #[test]
    fn arrival_is_never_blocked_by_the_lock_of_a_group() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send(1).unwrap();
        let mut turn = turn(&queue).unwrap();
        one.send(2).unwrap();
        turn.next().unwrap().complete();
        one.send(3).unwrap();
        assert_eq!(turn.next().unwrap().complete(), 2);
        assert_eq!(turn.next().unwrap().complete(), 3);
    }

    #[test]
    fn without_related_conversations_each_is_its_own_group() {
        let (queue, lane) = plain();
        let (a, b) = (lane.conversation().unwrap(), lane.conversation().unwrap());
        assert_ne!(a.group(), b.group());
        a.send('a').unwrap();
        b.send('b').unwrap();
        let held = take(&queue).unwrap();
        assert_eq!(take(&queue).unwrap().complete(), 'b');
        assert_eq!(held.complete(), 'a');
    }

    /// 12 items of one key and limit 1: exactly one, then none; and so for every limit.
    #[test]
    fn a_limit_of_messages_in_flight() {
        for n in [1, 2, 5] {
            let (queue, lane) = plain();
            let one = conversation(&lane, Limit::AtMost(n), 100);
            one.send_all(0..12).unwrap();
            let held: Vec<_> = std::iter::from_fn(|| take(&queue)).collect();
            assert!(held.iter().map(|d| **d).eq(0..n));
            assert_eq!(why(&queue), Why::Limit);
        }
        let (queue, lane) = plain();
        let one = conversation(&lane, Limit::Unlimited, 100);
        one.send_all(0..12).unwrap();
        let held: Vec<_> = std::iter::from_fn(|| take(&queue)).collect();
        assert_eq!(held.len(), 12);
    }

    #[test]
    fn lowering_a_limit_leaves_a_debt() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::AtMost(3), 100).unwrap();
        let one = group.conversation().unwrap();
        one.send_all(0..9).unwrap();
        let mut held: Vec<_> = std::iter::from_fn(|| take(&queue)).collect();
        assert_eq!(held.len(), 3);
        group.set_limit(Limit::SERIAL).unwrap();
        held.pop().unwrap().complete();
        assert!(take(&queue).is_none(), "two for a limit of one");
        held.pop().unwrap().complete();
        assert!(take(&queue).is_none(), "one for a limit of one");
        held.pop().unwrap().complete();
        held.push(take(&queue).unwrap());
        assert!(take(&queue).is_none());
        group.set_limit(TWO).unwrap();
        held.push(take(&queue).unwrap());
        assert!(take(&queue).is_none());
    }

    #[test]
    fn a_pause_keeps_the_age() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::SERIAL, 100).unwrap();
        let old = group.conversation().unwrap();
        let young = lane.conversation().unwrap();
        old.send("old").unwrap();
        young.send("young").unwrap();
        group.set_limit(PAUSED).unwrap();
        let snapshot = queue.snapshot();
        assert_eq!((snapshot.waiting, snapshot.eligible), (2, 1));
        group.set_limit(Limit::SERIAL).unwrap();
        assert_eq!(serve(&queue), ["old", "young"]);
    }

    #[test]
    fn a_cap_counts_the_whole_lane_and_is_exact() {
        let (queue, lane) = plain();
        lane.set_cap(TWO).unwrap();
        let conversations: Vec<_> = (0..4).map(|_| lane.conversation().unwrap()).collect();
        for (n, conversation) in conversations.iter().enumerate() {
            conversation.send(n).unwrap();
        }
        // A turn has its first unit, also before `next`.
        let one = turn(&queue).unwrap();
        let two = turn(&queue).unwrap();
        assert_eq!(queue.snapshot().lanes[0].in_flight, 2);
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Empty);
        let waits = queue.snapshot().lanes[0].groups[3].why;
        assert_eq!(waits, Why::Cap);
        lane.set_cap(Limit::AtMost(3)).unwrap();
        let three = take(&queue).unwrap();
        assert!(take(&queue).is_none());
        lane.set_cap(PAUSED).unwrap();
        drop((one, two, three));
        assert!(take(&queue).is_none());
        lane.set_cap(Limit::Unlimited).unwrap();
        // Who has been given back is the youngest.
        assert_eq!(serve(&queue), [3, 0, 1, 2]);
    }

    #[test]
    fn a_blocked_group_costs_the_others_nothing() {
        let (queue, lane) = plain();
        let blocked: Vec<_> = (0..100).map(|_| conversation(&lane, PAUSED, 255)).collect();
        for conversation in &blocked {
            conversation.send("never").unwrap();
            queue.bump(conversation.group(), 255).unwrap();
        }
        let free = conversation(&lane, Limit::SERIAL, 0);
        free.send("served").unwrap();
        assert_eq!(queue.snapshot().eligible, 1);
        assert_eq!(serve(&queue), ["served"]);
    }

    #[test]
    fn the_snapshot_says_why() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::SERIAL, 100).unwrap();
        let one = group.conversation().unwrap();
        assert_eq!(why(&queue), Why::Idle);
        one.send_all([1, 2]).unwrap();
        assert_eq!(why(&queue), Why::InLine);
        let mut held = turn(&queue).unwrap();
        assert_eq!(why(&queue), Why::Held);
        let delivery = held.next();
        drop(held);
        assert_eq!(why(&queue), Why::Limit);
        drop(delivery);
        group.set_limit(PAUSED).unwrap();
        assert_eq!(why(&queue), Why::Paused);
        group.set_limit(Limit::SERIAL).unwrap();
        lane.set_cap(PAUSED).unwrap();
        assert_eq!(why(&queue), Why::Cap);
        lane.set_cap(Limit::Unlimited).unwrap();
        let other = lane.conversation().unwrap();
        other.send_in(7, 3).unwrap();
        assert_eq!(queue.snapshot().lanes[0].groups[1].why, Why::Tier);
        assert_eq!(queue.snapshot().lanes[0].open_tier, Some(0));
    }
}

mod turns {
    use super::*;

    #[test]
    fn a_turn_never_mixes_groups_and_is_exclusive() {
        let (queue, lane) = plain();
        let a = conversation(&lane, Limit::Unlimited, 100);
        let b = conversation(&lane, Limit::Unlimited, 100);
        a.send_all(["a1", "a2"]).unwrap();
        b.send_all(["b1", "b2"]).unwrap();
        let mut first = turn(&queue).unwrap();
        let mut second = turn(&queue).unwrap();
        assert!(turn(&queue).is_none(), "both groups are held");
        assert_eq!((first.group(), second.group()), (a.group(), b.group()));
        let all = |turn: &mut conversant::queue::Turn<&'static str>| -> Vec<_> {
            std::iter::from_fn(|| turn.next().map(|d| d.complete())).collect()
        };
        assert_eq!(all(&mut second), ["b1", "b2"]);
        assert_eq!(all(&mut first), ["a1", "a2"]);
    }

    #[test]
    fn e4_all_waiting_messages_up_to_the_quantum() {
        let queue = Queue::builder().quantum(3).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let a = conversation(&lane, Limit::SERIAL, 100);
        let b = conversation(&lane, Limit::SERIAL, 100);
        a.send_all(0..5).unwrap();
        b.send_all(10..12).unwrap();
        let mut sizes = Vec::new();
        let mut served = Vec::new();
        while let Some(mut turn) = turn(&queue) {
            let before = served.len();
            while let Some(delivery) = turn.next() {
                served.push(delivery.complete());
            }
            assert!(turn.next().is_none());
            sizes.push(served.len() - before);
        }
        assert_eq!(served, [0, 1, 2, 10, 11, 3, 4]);
        assert_eq!(sizes, [3, 2, 2]);
    }

    #[test]
    fn the_default_quantum_is_16() {
        let (queue, lane) = plain();
        let one = conversation(&lane, Limit::Unlimited, 100);
        one.send_all(0..40).unwrap();
        let mut turn = turn(&queue).unwrap();
        let taken: Vec<_> = std::iter::from_fn(|| turn.next()).collect();
        assert_eq!(taken.len(), 16);
    }

    #[test]
    fn next_gives_nothing_while_no_unit_is_free_and_goes_on_when_one_is() {
        let (queue, lane) = plain();
        let one = conversation(&lane, TWO, 100);
        one.send_all(1..=3).unwrap();
        let mut turn = turn(&queue).unwrap();
        let first = turn.next().unwrap();
        let second = turn.next().unwrap();
        assert!(turn.next().is_none());
        assert_eq!(first.complete(), 1);
        assert_eq!(turn.next().unwrap().complete(), 3);
        assert_eq!(second.complete(), 2);
        assert!(turn.next().is_none(), "empty");
        one.send(4).unwrap();
        assert_eq!(turn.next().unwrap().complete(), 4);
    }

    #[test]
    fn a_next_that_gives_nothing_uses_up_nothing() {
        let queue = Queue::builder().quantum(2).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let one = lane.conversation().unwrap();
        one.send_all(1..=3).unwrap();
        let mut turn = turn(&queue).unwrap();
        let first = turn.next().unwrap();
        assert!((0..5).all(|_| turn.next().is_none()), "no unit is free");
        first.complete();
        assert_eq!(turn.next().unwrap().complete(), 2);
        assert!(turn.next().is_none(), "used up");
    }

    #[test]
    fn next_gives_nothing_against_the_cap_or_the_tier() {
        let (queue, lane) = plain();
        lane.set_cap(Limit::SERIAL).unwrap();
        let one = conversation(&lane, Limit::Unlimited, 100);
        one.send_all([1, 2]).unwrap();
        one.send_in(5, 3).unwrap();
        let mut turn = turn(&queue).unwrap();
        let first = turn.next().unwrap();
        assert!(turn.next().is_none(), "the cap");
        lane.set_cap(TWO).unwrap();
        let second = turn.next().unwrap();
        first.complete();
        assert!(
            turn.next().is_none(),
            "tier 0 is open until the second is done"
        );
        second.complete();
        assert_eq!(turn.next().unwrap().complete(), 3);
    }

    #[test]
    fn a_delivery_does_not_borrow_its_turn() {
        let (queue, lane) = plain();
        let one = conversation(&lane, TWO, 100);
        one.send_all(1..=3).unwrap();
        let mut turn_of_1 = turn(&queue).unwrap();
        let first = turn_of_1.next().unwrap();
        assert!(turn(&queue).is_none());
        drop(turn_of_1);
        // Ordered receipt, concurrent work.
        let second = take(&queue).unwrap();
        assert_eq!((*first, *second), (1, 2));
        assert!(turn(&queue).is_none(), "no unit is free");
        first.complete();
        assert_eq!(*take(&queue).unwrap(), 3);
        second.complete();
    }

    /// C.3: what is done while the turn is held is done in the order of receipt, since nobody else
    /// can receive from the group before the turn is dropped.
    #[test]
    fn the_protocol_of_system_c() {
        let (queue, lane) = plain();
        let one = conversation(&lane, Limit::Unlimited, 100);
        one.send_all(0..20).unwrap();
        let mut granted = Vec::new();
        let mut running = Vec::new();
        while let Some(mut turn) = turn(&queue) {
            let delivery = turn.next().unwrap();
            assert!(
                queue.try_receive().is_err(),
                "the next receive waits for this turn"
            );
            granted.push(*delivery);
            drop(turn);
            running.push(delivery);
        }
        assert!(granted.into_iter().eq(0..20));
        assert_eq!(running.len(), 20, "the work overlaps");
        running
            .into_iter()
            .for_each(|delivery| _ = delivery.complete());
    }

    #[test]
    fn a_turn_dropped_before_next_counts_no_attempt() {
        let (queue, lane) = plain();
        let one = conversation(&lane, TWO, 100);
        one.send_all([1, 2]).unwrap();
        for _ in 0..3 {
            drop(turn(&queue).unwrap());
        }
        let delivery = take(&queue).unwrap();
        assert_eq!((*delivery, delivery.attempt(), delivery.tier()), (1, 1, 0));
        drop(delivery);
        drop(turn(&queue).unwrap());
        assert_eq!(take(&queue).unwrap().attempt(), 2);
    }

    #[test]
    fn a_group_whose_turn_ends_is_the_youngest() {
        let queue = Queue::builder().quantum(1).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let (a, b) = (lane.conversation().unwrap(), lane.conversation().unwrap());
        a.send_all(["a1", "a2"]).unwrap();
        b.send_all(["b1", "b2"]).unwrap();
        assert_eq!(serve(&queue), ["a1", "b1", "a2", "b2"]);
        // 5 of A then 5 of B, claimed two at a time with limit 1.
        a.send_all(["a1"; 5]).unwrap();
        b.send_all(["b1"; 5]).unwrap();
        let pair = (take(&queue).unwrap(), take(&queue).unwrap());
        assert_eq!((*pair.0, *pair.1), ("a1", "b1"));
        assert!(take(&queue).is_none());
    }
}

mod closing {
    use super::*;

    #[test]
    fn senders_get_their_message_back_and_readers_finish() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::SERIAL, 100).unwrap();
        let one = group.conversation().unwrap();
        one.send_all([1, 2]).unwrap();
        assert!(!queue.is_closed());
        queue.close();
        queue.close();
        assert!(queue.is_closed());
        let refused = one.send(3).unwrap_err();
        assert_eq!((refused.message, refused.reason), (3, SendReason::Closed));
        let refused = one.send_all([4, 5]).unwrap_err();
        assert_eq!(refused.message, [4, 5]);
        assert_eq!(refused.reason, SendReason::Closed);
        assert_eq!(one.send_in(9, 6).unwrap_err().message, 6);
        assert_eq!(queue.lane(1, Limit::SERIAL).unwrap_err(), LaneError::Closed);
        assert_eq!(lane.group(Limit::SERIAL, 0).unwrap_err(), LaneError::Closed);
        assert_eq!(lane.conversation().unwrap_err(), Closed);
        assert_eq!(group.conversation().unwrap_err(), Closed);

        let first = take(&queue).unwrap();
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Empty);
        drop(first);
        let first = take(&queue).unwrap();
        assert_eq!((*first, first.attempt()), (1, 2));
        first.complete();
        let last = take(&queue).unwrap();
        assert_eq!(
            queue.try_receive().unwrap_err(),
            TryReceive::Empty,
            "it may come back"
        );
        last.complete();
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Closed);
        assert_eq!(queue.receive().wait().unwrap_err(), Closed);
    }

    #[test]
    fn shutdown_gives_all_that_waits_group_by_group() {
        let (queue, lane) = plain();
        let other = queue.lane(3, Limit::Unlimited).unwrap();
        let a = lane.conversation().unwrap();
        let b = conversation(&other, PAUSED, 0);
        let c = lane.conversation().unwrap();
        let groups = [a.group(), b.group(), c.group()];
        assert!(groups.is_sorted());
        for n in 1..=2 {
            c.send(30 + n).unwrap();
            b.send_in(n, 20 + n).unwrap();
            a.send(10 + n).unwrap();
        }
        queue.bump(c.group(), 255).unwrap();
        let held = take(&queue).unwrap();
        assert_eq!(queue.shutdown(), [11, 12, 21, 22, 32]);
        assert!(queue.is_closed());
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Empty);
        drop(held);
        assert_eq!(queue.shutdown(), [31]);
        assert_eq!(queue.shutdown(), []);
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Closed);
    }

    #[test]
    fn what_comes_back_after_a_shutdown_can_be_received() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send_all([1, 2]).unwrap();
        let mut turn = turn(&queue).unwrap();
        assert_eq!(queue.shutdown(), [2]);
        let first = turn.next().unwrap();
        assert!(turn.next().is_none());
        drop((turn, first));
        assert_eq!(serve(&queue), [1]);
    }

    /// Receives wait for a paused group after the close, until it is resumed or shut down.
    #[test]
    fn a_paused_group_outlives_the_close() {
        let (queue, lane) = plain();
        let group = lane.group(PAUSED, 100).unwrap();
        group.conversation().unwrap().send(1).unwrap();
        queue.close();
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Empty);
        assert_eq!(why(&queue), Why::Paused);
        group.set_limit(Limit::SERIAL).unwrap();
        assert_eq!(serve(&queue), [1]);
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Closed);
    }

    #[test]
    fn handles_outlive_the_queue() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::Unlimited, 100).unwrap();
        let one = group.conversation().unwrap();
        let message = |n: u8| std::rc::Rc::new(n);
        let waits = message(9);
        one.send_all([message(1), message(2), message(3), waits.clone()])
            .unwrap();
        let mut turn = turn(&queue).unwrap();
        let (first, second) = (turn.next().unwrap(), turn.next().unwrap());
        let third = take_of(&mut turn);
        drop(queue);
        assert_eq!(
            std::rc::Rc::strong_count(&waits),
            1,
            "what waited was dropped"
        );
        assert_eq!(*first.complete(), 1);
        let watch = std::rc::Rc::downgrade(&second);
        drop(second);
        assert!(watch.upgrade().is_none(), "what is given back is dropped");
        assert!(turn.next().is_none());
        assert_eq!(one.send(message(5)).unwrap_err().reason, SendReason::Closed);
        assert_eq!(lane.conversation().unwrap_err(), Closed);
        group.bump(3);
        group.set_level(3);
        group.set_limit(TWO).unwrap();
        assert_eq!(group.waiting(), 0);
        drop((one, group, lane));
        assert_eq!(*third.complete(), 3);
        drop(turn);
    }

    fn take_of<T>(turn: &mut conversant::queue::Turn<T>) -> conversant::queue::Delivery<T> {
        turn.next().unwrap()
    }

    /// A message that holds a handle of its own queue is no cycle once the queue is dropped.
    #[test]
    fn a_turn_left_when_the_queue_is_dropped_drops_its_message() {
        struct Reply {
            _to: conversant::queue::Conversation<Reply>,
            _alive: std::sync::Arc<()>,
        }
        let alive = std::sync::Arc::new(());
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        for _ in 0..2 {
            let reply = Reply {
                _to: lane.conversation().unwrap(),
                _alive: alive.clone(),
            };
            assert!(one.send(reply).is_ok());
        }
        let turn = turn(&queue).unwrap();
        drop(queue);
        assert_eq!(std::sync::Arc::strong_count(&alive), 2);
        drop(turn);
        assert_eq!(std::sync::Arc::strong_count(&alive), 1);
    }
}

mod rank_and_fairness {
    use super::*;

    #[test]
    fn any_bump_is_ahead_of_any_standing_level() {
        let (queue, lane) = plain();
        let top = conversation(&lane, Limit::SERIAL, 255);
        let bumped = conversation(&lane, Limit::SERIAL, 0);
        top.send("standing 255").unwrap();
        bumped.send("bumped to 0").unwrap();
        queue.bump(bumped.group(), 0).unwrap();
        assert_eq!(queue.snapshot().lanes[0].groups[1].bump, Some(0));
        assert_eq!(serve(&queue), ["bumped to 0", "standing 255"]);
    }

    #[test]
    fn ties_go_to_the_later_of_bump_and_ready() {
        let (queue, lane) = plain();
        let [a, b, c] = [(); 3].map(|()| lane.group(Limit::SERIAL, 100).unwrap());
        let [a1, b1, c1] = [&a, &b, &c].map(|group| group.conversation().unwrap());
        // a is bumped first and ready last.
        a.bump(5);
        b1.send('b').unwrap();
        c1.send('c').unwrap();
        c.bump(5);
        b.bump(5);
        a1.send('a').unwrap();
        // To the level that it has it keeps its place.
        c.bump(5);
        assert_eq!(serve(&queue), ['c', 'b', 'a']);
    }

    #[test]
    fn a_bump_to_another_level_replaces_the_old_one() {
        let (queue, lane) = plain();
        let [a, b] = [(); 2].map(|()| lane.group(Limit::SERIAL, 100).unwrap());
        a.conversation().unwrap().send('a').unwrap();
        b.conversation().unwrap().send('b').unwrap();
        b.bump(9);
        a.bump(10);
        a.bump(8);
        assert_eq!(queue.snapshot().waiting, 2, "the length is what it was");
        assert_eq!(serve(&queue), ['b', 'a']);
    }

    /// Pending, held, idle, ended.
    #[test]
    fn a_bump_is_used_up_by_the_next_turn() {
        let (queue, lane) = plain();
        let group = lane.group(Limit::SERIAL, 100).unwrap();
        let bumped = group.conversation().unwrap();
        let other = lane.conversation().unwrap();
        // Idle: it waits with the group.
        group.bump(1);
        other.send("other 1").unwrap();
        bumped.send("bumped 1").unwrap();
        let first = take(&queue).unwrap();
        assert_eq!(*first, "bumped 1");
        // Even if that turn fails.
        drop(first);
        assert_eq!(take(&queue).unwrap().complete(), "other 1");
        // Held: it is for the next turn.
        let held = turn(&queue).unwrap();
        group.bump(1);
        other.send("other 2").unwrap();
        drop(held);
        assert_eq!(serve(&queue), ["bumped 1", "other 2"]);
        // Idle for good: it dies with the group, and a later one is not bumped.
        group.bump(1);
        let id = group.id();
        drop((group, bumped));
        assert_eq!(queue.bump(id, 1), Err(Stale));
        other.send("other 3").unwrap();
        let reused = lane.conversation().unwrap();
        reused.send("reused").unwrap();
        assert_eq!(queue.bump(id, 1), Err(Stale));
        assert_eq!(serve(&queue), ["other 3", "reused"]);
    }

    #[test]
    fn standing_levels_and_fifo_within_one() {
        let (queue, lane) = plain();
        let levels = [3, 255, 100, 3, 255, 0];
        let conversations = levels.map(|level| conversation(&lane, Limit::SERIAL, level));
        for (n, conversation) in conversations.iter().enumerate() {
            conversation.send(n).unwrap();
        }
        assert_eq!(serve(&queue), [1, 4, 2, 0, 3, 5]);
        let group = lane.group(Limit::SERIAL, 1).unwrap();
        group.conversation().unwrap().send(7).unwrap();
        conversations[2].send(2).unwrap();
        group.set_level(101);
        assert_eq!(serve(&queue), [7, 2]);
    }

    #[test]
    fn lanes_take_turns_by_weight() {
        let queue = Queue::new();
        let heavy = queue.lane(3, Limit::Unlimited).unwrap();
        let light = queue.lane(1, Limit::Unlimited).unwrap();
        let fill = |lane: &conversant::queue::Lane<char>, name: char| {
            let conversations: Vec<_> = (0..6).map(|_| lane.conversation().unwrap()).collect();
            for conversation in &conversations {
                conversation.send(name).unwrap();
            }
        };
        fill(&heavy, 'h');
        fill(&light, 'l');
        let order: String = serve(&queue).into_iter().collect();
        assert_eq!(order, "hhhlhhhlllll");
    }

    /// Within (active tenants x quantum).
    #[test]
    fn a_backlog_of_100_000_does_not_hold_up_a_single_item() {
        let queue = Queue::builder().quantum(5).build().unwrap();
        let lanes = [(); 3].map(|()| queue.lane(1, Limit::Unlimited).unwrap());
        for lane in &lanes[..2] {
            lane.conversation()
                .unwrap()
                .send_all(vec![0; 50_000])
                .unwrap();
        }
        let single = lanes[2].conversation().unwrap();
        single.send(1).unwrap();
        let mut served = 0;
        'served: while let Some(mut turn) = turn(&queue) {
            while let Some(delivery) = turn.next() {
                served += 1;
                if delivery.complete() == 1 {
                    break 'served;
                }
            }
        }
        assert!(served <= 3 * 5, "after {served}");
        // Within a lane: bounded bypass, though the group stands lowest.
        let low = conversation(&lanes[0], Limit::SERIAL, 0);
        low.send(2).unwrap();
        let turns = (1..)
            .find(|_| take(&queue).unwrap().complete() == 2)
            .unwrap();
        assert!(turns <= 2 * (65 + 1), "after {turns} turns");
    }

    #[test]
    fn the_oldest_is_overtaken_at_most_k_times_in_a_row() {
        for k in [0, 1, 5] {
            let queue = Queue::builder().bypass(Bypass::AtMost(k)).build().unwrap();
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            let low = conversation(&lane, Limit::SERIAL, 0);
            let high: Vec<_> = (0..8)
                .map(|_| conversation(&lane, Limit::SERIAL, 9))
                .collect();
            low.send_all([0; 3]).unwrap();
            for conversation in &high {
                conversation.send_all([1; 9]).unwrap();
            }
            let order: Vec<_> = std::iter::from_fn(|| Some(take(&queue)?.complete())).collect();
            assert_eq!(order.iter().position(|&n| n == 0), Some(k as usize));
        }
    }

    #[test]
    fn a_thousand_of_equal_priority_are_strictly_fifo() {
        let (queue, lane) = plain();
        let conversations: Vec<_> = (0..1000).map(|_| lane.conversation().unwrap()).collect();
        for round in 0..2 {
            for n in 0..1000 {
                conversations[n * 7 % 1000].send(n + round).unwrap();
            }
            assert!(serve(&queue).into_iter().eq(round..1000 + round));
        }
    }
}

mod tiers {
    use super::*;

    /// Tier 0 runs, nothing of it waits, tier 1 waits: it must not start; and once tier 0 has
    /// drained it runs without anything else happening.
    #[test]
    fn a_running_tier_keeps_the_next_closed() {
        let (queue, lane) = plain();
        let (a, b) = (lane.conversation().unwrap(), lane.conversation().unwrap());
        a.send_in(0, "low").unwrap();
        let low = take(&queue).unwrap();
        b.send_in(1, "high").unwrap();
        let snapshot = queue.snapshot();
        assert_eq!(
            (snapshot.eligible, snapshot.lanes[0].open_tier),
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
}

mod pitfalls {
    use super::*;

    /// An arrival that races the last completion: it runs, and nothing is stranded.
    #[test]
    fn arrivals_around_the_last_completion() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send(1).unwrap();
        let mut held = turn(&queue).unwrap();
        let delivery = held.next().unwrap();
        one.send(2).unwrap();
        delivery.complete();
        drop(held);
        let second = take(&queue).unwrap();
        second.complete();
        one.send(3).unwrap();
        assert_eq!(serve(&queue), [3]);
        assert_eq!(queue.snapshot().waiting, 0);
    }

    #[test]
    fn the_same_key_in_two_queues_is_independent() {
        let (queue, lane) = plain();
        let (other, other_lane) = plain();
        let (a, b) = (
            lane.conversation().unwrap(),
            other_lane.conversation().unwrap(),
        );
        a.send(1).unwrap();
        b.send(2).unwrap();
        let held = take(&queue).unwrap();
        assert_eq!(take(&other).unwrap().complete(), 2);
        // A name of one means nothing to the other.
        assert_ne!(a.group(), b.group());
        assert_eq!(other.bump(a.group(), 1), Err(Stale));
        assert_eq!(held.complete(), 1);
    }

    #[test]
    fn a_panicking_handler_frees_its_group() {
        let (queue, lane) = plain();
        lane.set_cap(Limit::SERIAL).unwrap();
        let one = lane.conversation().unwrap();
        one.send_all([1, 2]).unwrap();
        let handler = std::panic::AssertUnwindSafe(|| {
            let mut turn = turn(&queue).unwrap();
            let _delivery = turn.next().unwrap();
            panic!("on purpose");
        });
        assert!(std::panic::catch_unwind(handler).is_err());
        let snapshot = queue.snapshot();
        assert_eq!((snapshot.in_flight, snapshot.eligible), (0, 1));
        let again = take(&queue).unwrap();
        assert_eq!((*again, again.attempt()), (1, 2));
        again.complete();
        assert_eq!(serve(&queue), [2]);
    }

    #[test]
    fn distinct_groups_leave_nothing_behind() {
        let (queue, lane) = plain();
        for n in 0..10_000 {
            lane.conversation().unwrap().send(n).unwrap();
            if n % 3 > 0 {
                take(&queue).unwrap().complete();
            }
        }
        assert_eq!(serve(&queue).len(), 3334);
        let snapshot = queue.snapshot();
        assert!(snapshot.lanes[0].groups.is_empty());
        assert_eq!(
            (snapshot.waiting, snapshot.in_flight, snapshot.eligible),
            (0, 0, 0)
        );
    }

    #[test]
    fn arrival_after_an_idle_drain_runs_and_at_the_close_is_a_clean_error() {
        let (queue, lane) = plain();
        let one = lane.conversation().unwrap();
        one.send(1).unwrap();
        assert_eq!(serve(&queue), [1]);
        one.send(2).unwrap();
        assert_eq!(serve(&queue), [2]);
        queue.close();
        assert_eq!(one.send(3).unwrap_err().message, 3);
        assert_eq!(queue.try_receive().unwrap_err(), TryReceive::Closed);
    }
}

mod bad_use {
    use super::*;

    const HUGE: Limit = Limit::AtMost(Limit::MAX + 1);

    fn out_of_range(what: &'static str, asked: u32, least: u32, most: u32) -> OutOfRange {
        OutOfRange {
            what,
            asked,
            least,
            most,
        }
    }

    #[test]
    fn numbers_out_of_range_change_nothing() {
        let huge = out_of_range("limit", Limit::MAX + 1, 0, Limit::MAX);
        let queue = Queue::new();
        let weight = |asked| LaneError::OutOfRange(out_of_range("weight", asked, 1, 1_000_000));
        assert_eq!(queue.lane(0, TWO).unwrap_err(), weight(0));
        assert_eq!(queue.lane(1_000_001, TWO).unwrap_err(), weight(1_000_001));
        assert_eq!(
            queue.lane(1, HUGE).unwrap_err(),
            LaneError::OutOfRange(huge)
        );
        assert!(queue.snapshot().lanes.is_empty());

        let lane = queue.lane(1, TWO).unwrap();
        assert_eq!(
            lane.group(HUGE, 0).unwrap_err(),
            LaneError::OutOfRange(huge)
        );
        assert_eq!(lane.set_cap(HUGE), Err(huge));
        let group = lane.group(TWO, 0).unwrap();
        assert_eq!(group.set_limit(HUGE), Err(huge));
        let snapshot = queue.snapshot();
        assert_eq!(snapshot.lanes[0].cap, TWO);
        assert_eq!(snapshot.lanes[0].groups[0].limit, TWO);
        group.conversation().unwrap().send(1).unwrap();
        group.set_limit(Limit::AtMost(Limit::MAX)).unwrap();
        assert_eq!(serve(&queue), [1]);

        let none = Queue::<u8>::builder().quantum(0).build().unwrap_err();
        assert_eq!(none, out_of_range("quantum", 0, 1, u32::MAX));
    }

    #[test]
    fn stale_names() {
        let (queue, lane) = plain::<u8>();
        let mut seen = BTreeMap::new();
        for _ in 0..1000 {
            let one = lane.conversation().unwrap();
            let id = one.group();
            assert_eq!(seen.insert(id, ()), None, "a name is given once");
            drop(one);
            assert_eq!(queue.bump(id, 1), Err(Stale));
        }
    }

    #[test]
    fn errors_speak_and_compare() {
        let error = SendError {
            message: 1,
            reason: SendReason::Ended,
        };
        assert_eq!(error.to_string(), "not sent: the conversation has ended");
        assert_eq!(format!("{error:?}"), "SendError { reason: Ended, .. }");
        assert_eq!(error, error.clone());
        assert_eq!(SendReason::Closed.to_string(), "closed");
        assert_eq!(LaneError::Closed.to_string(), "closed");
        assert_eq!(TryReceive::Empty.to_string(), "nothing is eligible");
        let boxed: Box<dyn std::error::Error> = Box::new(error);
        assert!(boxed.source().is_none());
    }

    /// From a thread that holds nothing, and from a `Debug` that runs inside the queue's callers.
    #[test]
    fn debug_shows_and_never_blocks() {
        let (queue, lane) = plain();
        let group = lane.group(TWO, 0).unwrap();
        let one = group.conversation().unwrap();
        one.send_all([1, 2]).unwrap();
        let mut turn = turn(&queue).unwrap();
        let delivery = turn.next().unwrap();
        let shown = format!("{queue:?}");
        assert_eq!(
            shown,
            "Queue { closed: false, waiting: 1, in_flight: 1, .. }"
        );
        for shown in [
            format!("{lane:?}"),
            format!("{group:?}"),
            format!("{one:?}"),
            format!("{turn:?}"),
            format!("{delivery:?}"),
            format!("{:?}", queue.receive()),
            format!("{:?}", Queue::<u8>::builder()),
        ] {
            assert!(shown.contains('{'), "{shown}");
        }
    }
}
