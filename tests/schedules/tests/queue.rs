//! A queue under random schedules: senders, two readers, bumps, waits for room, a close.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use conversant_schedules::limit::Limit;
use conversant_schedules::queue::{Conversation, GroupId, Queue, SendReason};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::schedules;

/// What the readers saw of each group.
#[derive(Default)]
struct Seen {
    held: HashSet<GroupId>,
    served: HashMap<GroupId, Vec<u32>>,
}

const EACH: u32 = 3;

fn send_all(queue: &Queue<u32>, conversation: &Conversation<u32>, level: u8) {
    for message in 0..EACH {
        conversation.send(message).expect("the queue is open");
        if message == 1 {
            // Stale is only for names of groups that are gone; this group is pinned.
            queue
                .bump(conversation.group_id(), level)
                .expect("it is pinned");
        }
    }
}

/// Serves turns until the queue is closed and empty; gives one delivery back.
fn read(queue: &Queue<u32>, seen: &Mutex<Seen>, mut give_back: bool) {
    while let Ok(mut turn) = queue.receive().wait() {
        let group = turn.group_id();
        assert!(seen.lock().unwrap().held.insert(group), "held twice");
        while let Some(delivery) = turn.next() {
            thread::yield_now();
            if std::mem::take(&mut give_back) {
                delivery.give_back();
                continue;
            }
            let message = *delivery;
            seen.lock()
                .unwrap()
                .served
                .entry(group)
                .or_default()
                .push(message);
            delivery.complete();
        }
        assert!(seen.lock().unwrap().held.remove(&group));
        drop(turn);
    }
}

fn conversations() {
    let queue = Queue::builder().quantum(2).build().unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let readers = [false, true].map(|give_back| {
        let (queue, seen) = (queue.clone(), seen.clone());
        thread::spawn(move || read(&queue, &seen, give_back))
    });
    let lane = queue.lane(1, Limit::AtMost(2)).unwrap();
    let senders = [1, 2].map(|level| {
        let (queue, conversation) = (queue.clone(), lane.conversation().unwrap());
        thread::spawn(move || send_all(&queue, &conversation, level))
    });
    schedules::join(senders);
    queue.close();
    schedules::join(readers);

    let seen = seen.lock().unwrap();
    assert_eq!(seen.served.len(), 2);
    let in_order: Vec<u32> = (0..EACH).collect();
    assert!(seen.served.values().all(|served| *served == in_order));
    drop(lane);
    let left = queue.snapshot();
    assert!(left.lanes.is_empty(), "{left:?}");
}

#[test]
fn two_senders_two_readers_bump_close() {
    schedules::explore(conversations);
}

/// A close after the last send wakes every reader, at whatever moment it comes.
#[test]
fn close_wakes_all() {
    schedules::explore(|| {
        let queue = Queue::<u32>::new();
        let readers = [(), ()].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || assert!(queue.receive().wait().is_err()))
        });
        queue.close();
        schedules::join(readers);
    });
}

/// Three senders wait for room in a queue of two places, one of them for both at once. There are
/// two readers, one of which gives a delivery back. With `early`, the close does not wait for the
/// senders: they get the messages back that it cut off.
fn senders_wait_for_room(early: bool) {
    let queue = Queue::builder().capacity(Limit::AtMost(2)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let readers = [false, true].map(|give_back| {
        let (queue, seen) = (queue.clone(), seen.clone());
        thread::spawn(move || read(&queue, &seen, give_back))
    });
    let senders = [1, 2, 3].map(|kind| {
        let conversation = lane.conversation().unwrap();
        thread::spawn(move || {
            let (group, mut sent) = (conversation.group_id(), Vec::new());
            let first = match kind {
                1 => conversation.send_all_wait([0, 1]).wait().map_err(|back| {
                    assert_eq!(back.message, [0, 1]);
                    back.reason
                }),
                2 => conversation.send_wait(0).wait().map_err(|back| {
                    assert_eq!(back.message, 0);
                    back.reason
                }),
                _ => match conversation.send_wait(0).or_return_after(Duration::ZERO) {
                    Err(late) if late.reason == SendReason::TimedOut => {
                        let again = conversation.send_wait(late.message).wait();
                        again.map_err(|back| back.reason)
                    }
                    sent => sent.map_err(|back| back.reason),
                },
            };
            match first {
                Ok(()) if kind == 1 => sent.extend([0, 1]),
                Ok(()) => sent.push(0),
                Err(reason) => assert!(early && reason == SendReason::Closed),
            }
            let last = sent.len() as u32;
            if conversation.send_wait(last).wait().is_ok() {
                sent.push(last);
            }
            (group, sent)
        })
    });
    if early {
        queue.close();
    }
    let sent = senders.map(|sender| sender.join().unwrap());
    queue.close();
    schedules::join(readers);
    let seen = seen.lock().unwrap();
    for (group, sent) in sent {
        assert!(early || sent.len() >= 2);
        assert_eq!(seen.served.get(&group).cloned().unwrap_or_default(), sent);
    }
    let left = queue.snapshot();
    assert_eq!((left.waiting, left.in_flight), (0, 0));
    assert_eq!(
        (
            left.counts.sends.waiting,
            left.counts.sends.notified,
            left.counts.asked
        ),
        (0, 0, 0)
    );
}

#[test]
fn three_senders_wait_for_two_places() {
    schedules::explore(|| senders_wait_for_room(false));
}

#[test]
fn a_close_ends_senders_that_wait() {
    schedules::explore(|| senders_wait_for_room(true));
}

/// Several readers and two bumps at once: no first entry is taken twice, and a reader that comes
/// after a bump finds it honoured.
#[test]
fn readers_and_bumps_take_the_best() {
    schedules::explore(|| {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        // Only a turn keeps another reader away: there is room for all, and each has a level of its
        // own.
        let levels = [104, 103, 102, 101, 100];
        let groups = levels.map(|level| lane.group(Limit::Unlimited, level).unwrap());
        for group in &groups {
            group.conversation().unwrap().send_all([1, 2, 3]).unwrap();
        }
        let names = groups.each_ref().map(|group| group.id());
        let done = Arc::new(Mutex::new(Vec::new()));
        let bumpers = [3, 4].map(|at| {
            let (queue, done, name) = (queue.clone(), done.clone(), names[at]);
            thread::spawn(move || {
                queue.bump(name, 200).unwrap();
                done.lock().unwrap().push(name);
            })
        });
        let turns = Arc::new(Mutex::new(Vec::new()));
        let readers = [(); 3].map(|()| {
            let (queue, done, turns) = (queue.clone(), done.clone(), turns.clone());
            thread::spawn(move || {
                let bumped = done.lock().unwrap().clone();
                let turn = queue.try_receive().unwrap().into_owned();
                turns.lock().unwrap().push((turn, bumped));
            })
        });
        schedules::join(readers);
        schedules::join(bumpers);
        let turns = turns.lock().unwrap();
        let taken: Vec<_> = turns.iter().map(|(turn, _)| turn.group_id()).collect();
        let others: HashSet<_> = taken.iter().collect();
        assert_eq!(others.len(), 3, "one was taken twice: {taken:?}");
        for (turn, bumped) in turns.iter() {
            // No reader takes an unbumped group ahead of a bump that it knew of.
            let honoured = bumped.iter().all(|name| taken.contains(name));
            assert!(honoured || names[3..].contains(&turn.group_id()));
        }
        // In order of level, apart from the bumped groups.
        let highest = names[..3].iter().map(|name| taken.contains(name));
        assert!(highest.is_sorted_by(|a, b| a >= b), "{taken:?}");
    });
}
