//! The counts of a queue, compared with what its snapshot finds group by group.

use std::task::Waker;
use std::time::Duration;

use conversant::error::Stale;
use conversant::limit::Limit;
use conversant::queue::{Counts, Queue, Why};
use conversant::wait::WaitCounts;

use crate::queue_support::{Random, WakeCounter, conversation, plain, poll, take};

/// Every count agrees with what the snapshot shows.
fn check(queue: &Queue<u32>) -> Counts {
    let seen = queue.snapshot();
    let counts = queue.counts();
    assert_eq!(seen.counts, counts);
    let groups: Vec<_> = seen.lanes.iter().flat_map(|lane| &lane.groups).collect();
    let why = |why| groups.iter().filter(|group| group.why == why).count();
    assert_eq!(counts.groups, groups.len());
    // A cap lets fewer begin, and a wait by name keeps its group to itself.
    assert!(counts.eligible <= why(Why::InLine) as u64);
    assert_eq!(counts.poisoned, queue.poisoned().len());
    let outstanding = seen.waiting + seen.in_flight;
    assert!(counts.outstanding.is_none_or(|out| out == outstanding));
    let sent: u64 = groups.iter().map(|group| group.sent).sum();
    assert!(sent <= seen.sent);
    counts
}

#[test]
fn turns_and_failures_are_counted() {
    let queue = Queue::builder()
        .attempts(3)
        .back_off(Duration::from_secs(1), Duration::from_secs(1))
        .build()
        .unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let (bad, good) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    good.send(1).unwrap();
    bad.send(2).unwrap();
    assert_eq!(take(&queue).unwrap().complete(), 1);
    take(&queue).unwrap().give_back();
    let counts = check(&queue);
    assert_eq!((counts.turns, counts.failed, counts.dropped), (2, 1, 0));
    assert_eq!((counts.backing_off, counts.poisoned), (1, 0));
    queue.advance(Duration::from_secs(1));
    assert_eq!(check(&queue).backing_off, 0);
    drop(take(&queue));
    queue.advance(Duration::from_secs(2));
    take(&queue).unwrap().give_back();
    let counts = check(&queue);
    assert_eq!((counts.turns, counts.failed, counts.dropped), (4, 3, 1));
    assert_eq!((counts.backing_off, counts.poisoned), (0, 1));
    assert!(queue.resume(bad.group_id()).unwrap());
    assert_eq!(check(&queue).poisoned, 0);
    // Turns claimed by name, or many at once, count as well.
    drop(queue.try_receive_from(bad.group_id()).unwrap());
    good.send(3).unwrap();
    drop(queue.try_receive_many(2).unwrap());
    assert_eq!(check(&queue).turns, 7);
}

#[test]
fn what_was_sent_is_known_when_its_group_is_gone() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    for n in 1..=3 {
        let passing = lane.conversation().unwrap();
        passing.send_all([0, 1]).unwrap();
        take(&queue).unwrap().give_back();
        drop(take(&queue));
        passing.send_in(n, 2).unwrap();
        let seen = queue.snapshot();
        assert_eq!(seen.lanes[0].groups[0].sent, 3);
        assert_eq!(queue.drain(passing.group_id()).unwrap().len(), 3);
        drop(passing);
        let seen = queue.snapshot();
        assert_eq!((seen.counts.groups, seen.sent), (0, 3 * u64::from(n)));
    }
}

/// A send waits in one line at a time.
#[test]
fn sends_are_counted_where_they_wait_for_room() {
    let queue = Queue::<u32>::builder().capacity(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.set_capacity(1).unwrap();
    one.send(1).unwrap();
    let mut sending = one.send_wait(2);
    let waiting = || {
        let seen = queue.snapshot();
        let group = seen.lanes[0].groups[0].sends.waiting;
        (group, seen.counts.sends.waiting, seen.counts.asked)
    };
    assert!(poll(&mut sending, Waker::noop()).is_pending());
    assert_eq!(waiting(), (1, 0, 0));
    // Its message in flight leaves the group, and is still in the queue.
    let delivery = take(&queue).unwrap();
    assert!(poll(&mut sending, Waker::noop()).is_pending());
    assert_eq!(waiting(), (0, 1, 1));
    delivery.complete();
    assert!(poll(&mut sending, Waker::noop()).is_ready());
}

#[test]
fn sleepers_are_counted_where_they_sleep() {
    let queue = Queue::<u32>::builder().capacity(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    let waker = Waker::noop();
    let (mut any, mut by_name) = (queue.receive(), queue.receive_from(one.group_id()));
    assert!(poll(&mut any, waker).is_pending() && poll(&mut by_name, waker).is_pending());
    one.send(1).unwrap();
    let (mut full, mut two) = (one.send_wait(2), one.send_wait(3));
    let (_, wakes) = WakeCounter::new();
    assert!(poll(&mut full, &wakes).is_pending() && poll(&mut two, &wakes).is_pending());
    let counts = check(&queue);
    let sleeps = |waiting, notified| WaitCounts { waiting, notified };
    assert_eq!(
        (counts.receives, counts.named),
        (sleeps(1, 0), sleeps(0, 1))
    );
    assert_eq!(
        (counts.sends.waiting, counts.sends.notified, counts.asked),
        (2, 0, 2)
    );
    // The turn of a group that is waited for by name is counted there alone.
    assert_eq!(counts.eligible, 0);
    drop(by_name);
    assert_eq!(queue.counts().eligible, 1);
    assert_eq!(take(&queue).unwrap().complete(), 1);
    let counts = queue.counts();
    // The room that became free was given to the first.
    assert_eq!((counts.outstanding, counts.asked), (Some(1), 2));
    assert_eq!((counts.sends.waiting, counts.sends.notified), (1, 1));
}

/// The sums agree with a model, whatever is done.
#[test]
fn random_operations() {
    for seed in 0..100 {
        let mut random = Random(seed + 1);
        let capacity = if seed % 2 == 0 {
            Limit::AtMost(9)
        } else {
            Limit::Unlimited
        };
        let queue = Queue::builder()
            .attempts(2)
            .capacity(capacity)
            .build()
            .unwrap();
        let lane = queue.lane(1, Limit::AtMost(3)).unwrap();
        let mut all: Vec<_> = (0..3).map(|_| lane.conversation().unwrap()).collect();
        let (mut sent, mut done, mut failed) = (0, 0, 0);
        let mut detached = Vec::new();
        for _ in 0..200 {
            let at = random.below(3);
            match random.below(8) {
                0..=2 => sent += u64::from(all[at].send(0).is_ok()),
                3 => all[at] = lane.conversation().unwrap(),
                4 => done += u64::from(take(&queue).map(|m| m.complete()).is_some()),
                5 => failed += u64::from(take(&queue).map(|m| m.give_back()).is_some()),
                6 => detached.extend(take(&queue)),
                _ if random.below(2) == 0 => {
                    done += u64::from(detached.pop().map(|m| m.complete()).is_some());
                }
                _ => {
                    for poisoned in queue.poisoned() {
                        done += queue.drain(poisoned.group).unwrap().len() as u64;
                    }
                }
            }
            let counts = check(&queue);
            let seen = queue.snapshot();
            assert_eq!(seen.sent, sent);
            assert_eq!(seen.waiting + seen.in_flight, sent - done);
            assert_eq!(counts.failed, failed);
        }
    }
}

#[test]
fn groups_one_by_one_are_those_of_the_snapshot() {
    let (queue, lane) = plain();
    let mut random = Random(7);
    let mut groups: Vec<_> = (0..1_000)
        .map(|_| conversation(&lane, Limit::SERIAL, 0))
        .collect();
    // Gaps of all widths.
    groups.retain(|_| random.below(3) > 0);
    groups.drain(200..400);
    for group in groups.iter().step_by(7) {
        group.send(()).unwrap();
    }
    let seen = queue.snapshot();
    let one_by_one: Vec<_> = queue.groups().collect();
    assert_eq!(one_by_one, seen.lanes[0].groups);
    for group in &one_by_one {
        assert_eq!(queue.status(group.id).as_ref(), Ok(group));
    }
    // Groups that begin or end meanwhile may be missing; none is reported twice.
    let mut told = queue.groups();
    let first = told.next().unwrap();
    let ended = groups.pop().unwrap().group_id();
    groups.push(conversation(&lane, Limit::SERIAL, 0));
    let mut ids: Vec<_> = told.map(|group| group.id).collect();
    assert!(!ids.contains(&first.id) && !ids.contains(&ended));
    assert_eq!(queue.status(ended), Err(Stale));
    assert!(ids.len() + 2 >= groups.len());
    ids.dedup();
    assert!(ids.is_sorted() && ids.len() < groups.len());
    drop(groups);
    assert_eq!(queue.groups().filter(|group| group.waiting == 0).count(), 0);
}

#[test]
fn a_snapshot_tells_each_lane_by_its_number() {
    let queue = Queue::<u32>::new();
    let lanes = [3, 1, 2].map(|weight| queue.lane(weight, Limit::Unlimited).unwrap());
    let taken = queue.snapshot();
    for (lane, weight) in lanes.iter().zip([3, 1, 2]) {
        let told: Vec<_> = taken
            .lanes
            .iter()
            .filter(|told| told.number == lane.number())
            .map(|told| told.weight)
            .collect();
        assert_eq!(told, [weight]);
    }
}
