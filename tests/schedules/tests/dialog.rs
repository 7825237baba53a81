//! Dialogs under random schedules: whatever races, each side ends once and nothing is left.

use std::sync::Arc;
use std::time::Duration;

use conversant_schedules::dialog::{Dialogs, Endpoint, Event, Fault, Received, Refused};
use conversant_schedules::limit::Limit;
use conversant_schedules::queue::{Lane, Queue};
use shuttle::thread;

use crate::schedules;

type Notes = Queue<Received<u32>>;

struct World {
    dialogs: Arc<Dialogs<u32>>,
    near: Notes,
    far: Notes,
    lanes: [Lane<Received<u32>>; 2],
}

impl World {
    fn new() -> Self {
        let (near, far) = (Notes::new(), Notes::new());
        let lanes = [&near, &far].map(|queue| queue.lane(1, Limit::Unlimited).unwrap());
        Self {
            dialogs: Arc::new(Dialogs::new()),
            near,
            far,
            lanes,
        }
    }

    fn pair(&self) -> (Endpoint<u32>, Endpoint<u32>) {
        self.dialogs.pair(&self.lanes[0], &self.lanes[1]).unwrap()
    }

    fn assert_clean(&self) {
        assert!(self.dialogs.is_empty());
        for queue in [&self.near, &self.far] {
            let snapshot = queue.snapshot();
            assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
            assert!(snapshot.lanes.iter().all(|lane| lane.groups.is_empty()));
        }
    }
}

#[test]
fn both_sides_end_at_once() {
    schedules::explore(|| {
        let world = World::new();
        let (near, far) = world.pair();
        near.send(1).unwrap();
        far.send(2).unwrap();
        let ending = [(near, false), (far, true)].map(|(endpoint, error)| {
            thread::spawn(move || {
                _ = endpoint.send(3);
                let ended = match error {
                    true => endpoint.end_with(Fault::new(1, "at once").unwrap()),
                    false => endpoint.end(),
                };
                ended.unwrap();
            })
        });
        schedules::join(ending);
        world.assert_clean();
    });
}

/// A message or timer that comes while its side ends does not stay in the side's queue.
#[test]
fn sends_and_timers_against_the_end_of_their_side() {
    schedules::explore(|| {
        let world = World::new();
        let (near, far) = world.pair();
        far.set_timer(Duration::ZERO).unwrap();
        let sender = thread::spawn(move || {
            for n in 0..2 {
                if let Err(refused) = near.send(n) {
                    assert_eq!(refused.message, n);
                }
            }
            near
        });
        let dialogs = world.dialogs.clone();
        let clock = thread::spawn(move || dialogs.advance(Duration::ZERO));
        far.end().unwrap();
        assert_eq!(clock.join().unwrap(), None);
        drop((sender.join().unwrap(), far));
        world.assert_clean();
    });
}

/// A reader at each side: the questions are answered in order, the end comes after the last
/// answered question, and the queues can be closed.
#[test]
fn question_answer_and_end() {
    schedules::explore(|| {
        let world = World::new();
        let near = world
            .dialogs
            .begin(&world.lanes[0], &world.lanes[1])
            .unwrap();
        let far = world.far.clone();
        let server = thread::spawn(move || {
            let mut ends = 0;
            while ends == 0 {
                let mut turn = far.receive().wait().unwrap();
                while let Some(delivery) = turn.next() {
                    match delivery.event {
                        Event::Message(n) => delivery.endpoint().send(n + 10).unwrap(),
                        _ => ends += 1,
                    }
                    delivery.complete();
                }
            }
        });
        near.send(1).unwrap();
        near.send(2).unwrap();
        for expected in [11, 12] {
            let mut turn = world.near.receive().wait().unwrap();
            let answer = turn.next().unwrap().complete();
            assert_eq!(answer.event, Event::Message(expected));
        }
        near.end().unwrap();
        server.join().unwrap();
        world.assert_clean();
    });
}

/// A queue that is dropped tells the other side once, whatever that side does.
#[test]
fn a_dropped_queue_against_sends_and_ends() {
    schedules::explore(|| {
        let World {
            dialogs,
            near: queue,
            far,
            lanes,
        } = World::new();
        let (near, peer) = dialogs.pair(&lanes[0], &lanes[1]).unwrap();
        let dropper = thread::spawn(move || drop(far));
        let peer_of_timer = peer.clone();
        let setter = thread::spawn(move || _ = peer_of_timer.set_timer(Duration::ZERO));
        _ = near.send(1);
        schedules::join([dropper, setter]);
        assert_eq!(peer.refusal(), Some(Refused::Ended));
        let mut turn = queue.try_receive().unwrap();
        let told = turn.next().unwrap().complete();
        assert!(matches!(told.event, Event::Error(_) | Event::End));
        drop((told, near, turn));
        assert!(dialogs.is_empty());
        assert_eq!(queue.snapshot().waiting, 0);
    });
}
