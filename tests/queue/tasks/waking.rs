//! Which receives are woken, and what becomes of an unused wake-up.

use super::*;

#[test]
fn nothing_happens_before_the_first_poll() {
    let queue = Queue::<u8>::new();
    let receive = queue.receive();
    assert_eq!(receives(&queue), (0, 0));
    drop(receive);
}

#[test]
fn tasks_share_the_work_and_end_with_the_queue() {
    let queue = Queue::<usize>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversations: Vec<_> = (0..4).map(|_| lane.conversation().unwrap()).collect();
    let served = Mutex::new(Vec::new());
    let mut executor = Executor::new();
    for _ in 0..3 {
        executor.spawn(async {
            while let Ok(mut turn) = queue.receive().await {
                while let Some(delivery) = turn.next() {
                    served.lock().unwrap().push(delivery.complete());
                }
            }
        });
    }
    assert_eq!(executor.run(), 3);
    for n in 0..40 {
        conversations[n % 4].send(n).unwrap();
        if n % 5 == 0 {
            assert_eq!(executor.run(), 3);
        }
    }
    queue.close();
    assert_eq!(executor.run(), 0);
    drop(executor);
    let mut served = served.into_inner().unwrap();
    for n in 0..4 {
        assert!(served.iter().filter(|m| **m % 4 == n).is_sorted());
    }
    served.sort_unstable();
    assert!(served.into_iter().eq(0..40));
}

#[test]
fn one_wake_for_each_unit_of_eligible_work_the_longest_waiting_first() {
    let queue = Queue::new();
    let [a, b] = conversations(&queue);
    let mut waiting: Vec<_> = (0..4).map(|_| Waiting::new(&queue)).collect();
    a.send(1).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 0, 0, 0]);
    // More messages in the same group are not eligible.
    a.send_all([2, 3]).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 0, 0, 0]);
    b.send(4).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 1, 0, 0]);
    assert_eq!(receives(&queue), (2, 2));
    // The polls find them by rank, whatever the order of the polls.
    assert_eq!(waiting[1].got(), 1);
    // The end of the turn made the next message of `a` eligible: one more wake-up.
    assert_eq!(wake_counts(&waiting), [1, 1, 1, 0]);
    assert_eq!(waiting[0].got(), 4);
    assert_eq!(waiting[2].got(), 2);
    assert_eq!(wake_counts(&waiting), [1, 1, 1, 1]);
    assert_eq!(waiting[3].got(), 3);
    assert_eq!(receives(&queue), (0, 0));
}

#[test]
fn a_burst_wakes_as_many_as_there_are_turns() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::AtMost(0), 100).unwrap();
    let conversations: Vec<_> = (0..50).map(|_| lane.conversation().unwrap()).collect();
    group.conversation().unwrap().send_all([0; 100]).unwrap();
    lane.set_cap(Limit::AtMost(0)).unwrap();
    for conversation in &conversations {
        conversation.send(1).unwrap();
    }
    let mut waiting: Vec<_> = (0..100).map(|_| Waiting::new(&queue)).collect();
    // Paused and capped: none is woken. More room than a batch of wakers: all at once.
    assert_eq!(wake_counts(&waiting).iter().sum::<usize>(), 0);
    lane.set_cap(Limit::AtMost(40)).unwrap();
    assert_eq!(wake_counts(&waiting).iter().sum::<usize>(), 40);
    assert_eq!(receives(&queue), (60, 40));
    lane.set_cap(Limit::Unlimited).unwrap();
    assert_eq!(receives(&queue), (50, 50));
    group.set_limit(Limit::SERIAL).unwrap();
    assert_eq!(receives(&queue), (49, 51));
    let all = (0..51).filter(|_| waiting.remove(0).got() < 2).count();
    assert_eq!(all, 51);
    drop(waiting);
    // The remaining 49 took wake-ups for the rest of the paused group; they passed them on.
    assert_eq!(receives(&queue), (0, 0));
    assert_eq!(serve(&queue).len(), 99);
}

/// Each event that makes work eligible wakes a receive.
#[test]
fn every_event_that_makes_work_eligible_wakes_a_receive() {
    type Make = fn(&Queue<u8>) -> Box<dyn FnOnce()>;
    let makers: [(&str, Make); 9] = [
        ("a send", |queue| {
            let [a] = conversations(queue);
            Box::new(move || a.send(1).unwrap())
        }),
        ("a burst", |queue| {
            let [a] = conversations(queue);
            Box::new(move || a.send_all([1, 2]).unwrap())
        }),
        ("a limit", |queue| {
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            let group = lane.group(Limit::AtMost(0), 1).unwrap();
            group.conversation().unwrap().send(1).unwrap();
            Box::new(move || group.set_limit(Limit::SERIAL).unwrap())
        }),
        ("a cap", |queue| {
            let lane = queue.lane(1, Limit::AtMost(0)).unwrap();
            lane.conversation().unwrap().send(1).unwrap();
            Box::new(move || lane.set_cap(Limit::SERIAL).unwrap())
        }),
        ("a completion", |queue| {
            let [a] = conversations(queue);
            a.send_all([1, 2]).unwrap();
            let first = take(queue).unwrap();
            Box::new(move || _ = first.complete())
        }),
        ("a return", |queue| {
            let [a] = conversations(queue);
            a.send(1).unwrap();
            let first = take(queue).unwrap();
            Box::new(move || drop(first))
        }),
        ("the end of a turn", |queue| {
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            conversation(&lane, Limit::AtMost(2), 1)
                .send_all([1, 2])
                .unwrap();
            let mut turn = turn(queue).unwrap();
            std::mem::forget(turn.next().unwrap().detach());
            let turn = turn.into_owned();
            Box::new(move || drop(turn))
        }),
        ("a turn not used", |queue| {
            let [a] = conversations(queue);
            a.send(1).unwrap();
            let turn = turn(queue).unwrap().into_owned();
            Box::new(move || drop(turn))
        }),
        ("a tier", |queue| {
            let [a, b] = conversations(queue);
            a.send_in(0, 1).unwrap();
            let first = take(queue).unwrap();
            b.send_in(1, 2).unwrap();
            Box::new(move || _ = first.complete())
        }),
    ];
    for (name, make) in makers {
        let queue = Queue::new();
        let happen = make(&queue);
        let mut waiting = [Waiting::new(&queue), Waiting::new(&queue)];
        happen();
        assert_eq!(wake_counts(&waiting), [1, 0], "{name}");
        assert!(waiting[0].poll().is_ready(), "{name}");
    }
}

#[test]
fn a_woken_receive_that_finds_nothing_keeps_its_place() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting = [Waiting::new(&queue), Waiting::new(&queue)];
    a.send(1).unwrap();
    // Another reader is faster.
    assert_eq!(take(&queue).unwrap().complete(), 1);
    assert!(waiting[0].poll().is_pending());
    assert_eq!(receives(&queue), (2, 0));
    a.send(2).unwrap();
    assert_eq!(wake_counts(&waiting), [2, 0]);
    assert_eq!(waiting[0].got(), 2);
}

#[test]
fn a_notified_receive_that_is_dropped_passes_it_on() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting: Vec<_> = (0..3).map(|_| Waiting::new(&queue)).collect();
    a.send(1).unwrap();
    for expected in [[1, 0], [1, 0]] {
        assert_eq!(waiting[0].wakes.count(), 1);
        drop(waiting.remove(0));
        assert_eq!(wake_counts(&waiting), expected[..waiting.len()]);
    }
    assert_eq!(waiting[0].got(), 1);
    assert_eq!(receives(&queue), (0, 0));
}

/// A receive that leaves un-notified leaves nothing behind, and takes no other's wake-up.
#[test]
fn a_receive_that_is_dropped_leaves_no_trace() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting: Vec<_> = (0..3).map(|_| Waiting::new(&queue)).collect();
    drop(waiting.remove(1));
    assert_eq!(receives(&queue), (2, 0));
    a.send(1).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 0]);
    let idle = Queue::new();
    for _ in 0..1000 {
        drop(Waiting::new(&idle));
    }
    let out = idle.receive().wait_timeout(std::time::Duration::ZERO);
    assert!(matches!(out, Err(TimedOut)));
    assert_eq!(receives(&idle), (0, 0));
}

/// A task that is woken and never polled again loses its own grant. Every further turn wakes the
/// next task, and the snapshot names the sleeper.
#[test]
fn a_task_that_is_never_polled_again_loses_at_most_its_own_grant() {
    let queue = Queue::new();
    let [a, b, c] = conversations(&queue);
    let mut waiting: Vec<_> = (0..3).map(|_| Waiting::new(&queue)).collect();
    a.send(1).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 0, 0]);
    // The first is not polled. The second and third unit wake the others.
    b.send(2).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 1, 0]);
    assert_eq!(waiting[1].got(), 1);
    c.send(3).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 1, 1]);
    assert_eq!(waiting[2].got(), 2);
    // The one turn for which the sleeper was woken is left.
    assert_eq!((queue.counts().eligible, receives(&queue)), (1, (0, 1)));
    // A new waiter does not miss it: its first look finds it.
    assert_eq!(serve(&queue), [3]);
}

#[test]
fn a_receive_that_moves_to_another_task_is_woken_there() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut waiting = Waiting::new(&queue);
    let (wakes, waker) = WakeCounter::new();
    assert!(poll(&mut waiting.receive, &waker).is_pending());
    a.send(1).unwrap();
    assert_eq!((waiting.wakes.count(), wakes.count()), (0, 1));
    // Woken, polled with the first waker, and nothing is there any more: that waker counts now.
    take(&queue).unwrap().complete();
    assert!(waiting.poll().is_pending());
    a.send(2).unwrap();
    assert_eq!((waiting.wakes.count(), wakes.count()), (1, 1));
}

#[test]
fn the_end_wakes_all_at_the_moment_it_comes() {
    // More than a batch of wakers holds.
    let queue = Queue::new();
    let [a] = conversations(&queue);
    a.send_all([1, 2]).unwrap();
    let first = take(&queue).unwrap();
    let mut waiting: Vec<_> = (0..100).map(|_| Waiting::new(&queue)).collect();
    let woken = |waiting: &[Waiting<'_>]| wake_counts(waiting).iter().sum::<usize>();
    queue.close();
    assert_eq!(woken(&waiting), 0, "2 waits, and 1 may come back");
    first.complete();
    assert_eq!(woken(&waiting), 1, "2 can be had");
    let last = take(&queue).unwrap();
    assert!(waiting[0].poll().is_pending());
    assert_eq!(woken(&waiting), 1, "it may come back");
    drop(last);
    assert_eq!(woken(&waiting), 2);
    take(&queue).unwrap().complete();
    assert_eq!(receives(&queue), (0, 100));
    for mut waiting in waiting {
        assert!(matches!(waiting.poll(), Poll::Ready(Err(NoMore::Drained))));
    }
    assert_eq!(receives(&queue), (0, 0));
}

#[test]
fn a_shutdown_that_takes_the_last_message_wakes_all() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::AtMost(0)).unwrap();
    lane.conversation().unwrap().send(1).unwrap();
    let mut waiting: Vec<_> = (0..2).map(|_| Waiting::new(&queue)).collect();
    queue.close();
    assert_eq!(
        wake_counts(&waiting),
        [0, 0],
        "capped: they wait until it is resumed or shut down"
    );
    assert_eq!(queue.shutdown(), [1]);
    for waiting in &mut waiting {
        assert!(matches!(waiting.poll(), Poll::Ready(Err(NoMore::Drained))));
    }
}

#[test]
fn an_owned_receive_keeps_the_queue_alive() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let of = queue.clone();
    let mut receive = Box::pin(async move { of.receive().await.map(Turn::into_owned) });
    let (wakes, waker) = WakeCounter::new();
    assert!(poll(&mut receive, &waker).is_pending());
    drop(queue);
    a.send(1).unwrap();
    assert_eq!(wakes.count(), 1);
    let Poll::Ready(Ok(mut turn)) = poll(&mut receive, &waker) else {
        panic!("a turn");
    };
    drop(receive);
    assert_eq!(turn.next().unwrap().complete(), 1);
    assert!(a.send(2).is_err(), "the queue is gone");
}

/// SEMANTICS 1E: a receive that waited when the bump came takes the bumped group, whichever message
/// woke it.
#[test]
fn a_waiting_receive_takes_what_was_bumped() {
    let queue = Queue::new();
    let [a, b, c] = conversations(&queue);
    let mut waiting = [Waiting::new(&queue), Waiting::new(&queue)];
    // For a group in which nothing waits yet.
    queue.bump(c.group_id(), 7).unwrap();
    assert_eq!(wake_counts(&waiting), [0, 0]);
    a.send(1).unwrap();
    b.send(2).unwrap();
    c.send(3).unwrap();
    assert_eq!(wake_counts(&waiting), [1, 1]);
    assert_eq!(waiting[0].got(), 3);
    // After the wake-up, and before the poll.
    queue.bump(b.group_id(), 7).unwrap();
    assert_eq!(waiting[1].got(), 2);
    assert_eq!(serve(&queue), [1]);
}

#[test]
fn a_wait_for_many_takes_all_that_came_until_it_looked() {
    let queue = Queue::new();
    let [a, b, c] = conversations(&queue);
    let (wakes, waker) = WakeCounter::new();
    let mut many = queue.receive_many(2);
    assert!(poll(&mut many, &waker).is_pending());
    let mut single = Waiting::new(&queue);
    a.send(1).unwrap();
    b.send(2).unwrap();
    c.send(3).unwrap();
    assert_eq!((wakes.count(), single.wakes.count()), (1, 1));
    let Poll::Ready(Ok(turns)) = poll(&mut many, &waker) else {
        panic!("turns");
    };
    assert_eq!(turns.len(), 2);
    // One is left for the other receive, which had been notified.
    assert_eq!(receives(&queue), (0, 1));
    assert_eq!(single.got(), 3);
    drop(turns);
    assert_eq!(serve(&queue), [1, 2]);
}

#[test]
fn a_wait_for_many_that_is_dropped_passes_its_wake_up_on_and_ends_with_the_queue() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let (_wakes, waker) = WakeCounter::new();
    let of = queue.clone();
    let mut many = Box::pin(async move {
        let mut turns = of.receive_many(5).await?;
        Ok::<_, NoMore>(turns.next().map(Turn::into_owned))
    });
    assert!(poll(&mut many, &waker).is_pending());
    let mut single = Waiting::new(&queue);
    a.send(1).unwrap();
    assert_eq!(single.wakes.count(), 0);
    drop(many);
    assert_eq!(single.wakes.count(), 1);
    assert_eq!(single.got(), 1);
    let mut many = queue.receive_many(5);
    assert!(poll(&mut many, &waker).is_pending());
    queue.close();
    let Poll::Ready(Err(NoMore::Drained)) = poll(&mut many, &waker) else {
        panic!("closed");
    };
}
