//! SEMANTICS 1E on dialogs: bumps in-band, and each fault of the original removed. The figures E.1,
//! E.2, E.5 and E.6 are those of the example, in `priority_service_cli`.

use crate::queue_support;

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use conversant::dialog::{Dialogs, Endpoint, Event, Received};
use conversant::error::Stale;
use conversant::limit::{Bypass, Limit};
use conversant::queue::{Lane, Queue};

use queue_support::{WakeCounter, plain, poll, take, turn};

struct Service {
    dialogs: Dialogs<u8>,
    front: Lane<Received<u8>>,
    back: Queue<Received<u8>>,
    back_lane: Lane<Received<u8>>,
    front_queue: Queue<Received<u8>>,
}

impl Service {
    fn new(bypass: Bypass) -> Self {
        let (front_queue, front) = plain();
        let back = Queue::builder().bypass(bypass).build().unwrap();
        let back_lane = back.lane(1, Limit::Unlimited).unwrap();
        Self {
            dialogs: Dialogs::new(),
            front,
            back,
            back_lane,
            front_queue,
        }
    }

    fn begin(&self) -> Endpoint<u8> {
        self.dialogs.begin(&self.front, &self.back_lane).unwrap()
    }

    fn bump(&self, dialog: &Endpoint<u8>, level: u8) {
        self.back.bump(dialog.peer_group(), level).unwrap();
    }

    /// A dialog with a request that carries its own level, 0 for none.
    fn ask(&self, level: u8) -> Endpoint<u8> {
        let dialog = self.begin();
        if level > 0 {
            self.bump(&dialog, level);
        }
        dialog.send(level).unwrap();
        dialog
    }
}

fn number(received: &Received<u8>) -> u8 {
    match received.event {
        Event::Message(number) => number,
        _ => panic!("{received:?} is no message"),
    }
}

/// All waiting requests, in the order of service.
fn serve(queue: &Queue<Received<u8>>) -> Vec<u8> {
    let next = || take(queue).map(|delivery| (number(&delivery), delivery.complete()).0);
    std::iter::from_fn(next).collect()
}

#[test]
fn fault_two_readers_never_select_the_same_top_entry() {
    let service = Service::new(Bypass::default());
    for _ in 0..1_000 {
        let _dialogs: Vec<_> = [0, 0, 80, 0, 90, 0].map(|n| service.ask(n)).into();
        let start = Barrier::new(2);
        let taken = thread::scope(|scope| {
            let take_one = || {
                start.wait();
                let delivery = take(&service.back).unwrap();
                (number(&delivery), delivery.complete()).0
            };
            let readers = [scope.spawn(take_one), scope.spawn(take_one)];
            readers.map(|reader| reader.join().unwrap())
        });
        // The loser takes the next one, not unprioritised work.
        assert_eq!(BTreeSet::from(taken), BTreeSet::from([80, 90]));
        assert_eq!(serve(&service.back), [0; 4]);
        drop(_dialogs);
        while let Some(end) = take(&service.back) {
            end.complete();
        }
    }
    assert!(service.dialogs.is_empty());
}

#[test]
fn fault_a_waiting_reader_is_woken_by_what_is_bumped() {
    let service = Service::new(Bypass::default());
    let (wakes, waker) = WakeCounter::new();
    let mut receive = service.back.receive();
    assert!(poll(&mut receive, &waker).is_pending());
    let dialog = service.begin();
    // There is nothing yet that it could take.
    service.bump(&dialog, 7);
    assert_eq!(wakes.count(), 0);
    dialog.send(7).unwrap();
    assert_eq!(wakes.count(), 1);
    assert!(poll(&mut receive, &waker).is_ready());
}

/// A reader that sleeps because the lane is full is woken for a group that was bumped meanwhile.
#[test]
fn fault_a_reader_that_waits_for_room_gets_what_was_bumped_meanwhile() {
    let service = Service::new(Bypass::default());
    service.back_lane.set_cap(Limit::AtMost(1)).unwrap();
    let _asking = [service.ask(0), service.ask(0)];
    let late = service.begin();
    late.send(9).unwrap();
    let running = take(&service.back).unwrap();
    let (wakes, waker) = WakeCounter::new();
    let mut receive = service.back.receive();
    assert!(poll(&mut receive, &waker).is_pending());
    service.bump(&late, 9);
    assert_eq!(wakes.count(), 0);
    running.complete();
    assert_eq!(wakes.count(), 1);
    let std::task::Poll::Ready(Ok(mut turn)) = poll(&mut receive, &waker) else {
        panic!("it was woken for nothing");
    };
    assert_eq!(turn.next().map(|next| number(&next)), Some(9));
}

#[test]
fn fault_a_bumped_but_locked_group_stalls_no_reader() {
    let service = Service::new(Bypass::default());
    let locked = service.ask(0);
    let _other = service.ask(0);
    let mut live = turn(&service.back).unwrap();
    let delivery = live.next().unwrap().detach();
    locked.send(255).unwrap();
    service.bump(&locked, 255);
    // The other reader passes it.
    let other = take(&service.back).unwrap();
    assert_eq!(number(&other), 0);
    assert!(take(&service.back).is_none());
    other.complete();
    // Without the lock, it is first.
    let _more = [service.ask(0), service.ask(200)];
    delivery.complete();
    drop(live);
    assert_eq!(serve(&service.back), [255, 200, 0]);
}

#[test]
fn fault_the_oldest_ages() {
    let service = Service::new(Bypass::AtMost(3));
    let _oldest = service.ask(0);
    let mut order = Vec::new();
    let mut asking = Vec::new();
    for _ in 0..8 {
        asking.push(service.ask(50));
        let next = take(&service.back).unwrap();
        order.push(number(&next));
        next.complete();
    }
    assert_eq!(order, [50, 50, 50, 0, 50, 50, 50, 50]);
}

#[test]
fn fault_a_bump_for_a_group_with_nothing_in_it_is_not_lost() {
    let service = Service::new(Bypass::default());
    let dialog = service.begin();
    service.bump(&dialog, 1);
    let _others = [service.ask(0), service.ask(0)];
    dialog.send(1).unwrap();
    assert_eq!(serve(&service.back), [1, 0, 0]);
    // The bump waits with its group, and ends with it.
    service.bump(&dialog, 9);
    let group = dialog.peer_group();
    drop(dialog);
    assert_eq!(service.back.bump(group, 9), Ok(()));
    assert!(matches!(
        take(&service.back).unwrap().complete().event,
        Event::End
    ));
    assert_eq!(service.back.bump(group, 9), Err(Stale));
}

#[test]
fn fault_no_bump_is_left_after_service() {
    for fails in [false, true] {
        let service = Service::new(Bypass::default());
        let dialog = service.ask(200);
        let first = take(&service.back).unwrap();
        assert_eq!(number(&first), 200);
        if fails {
            // A turn that fails uses the bump up, too.
            first.give_back();
        } else {
            first.complete();
            dialog.send(200).unwrap();
        }
        // A leftover bump would put it before this one.
        let _other = service.ask(1);
        let _younger = service.ask(0);
        assert_eq!(serve(&service.back), [1, 200, 0]);
    }
}

/// E.4, and an error: all waiting messages of the chosen group are handled before the reader moves
/// on, and the error goes ahead within its group only.
#[test]
fn e4_the_answers_go_back_on_the_dialogs_that_asked() {
    let service = Service::new(Bypass::default());
    let (a, b) = (service.ask(1), service.ask(2));
    a.send(11).unwrap();
    b.send(12).unwrap();
    let mut order = Vec::new();
    while let Some(mut turn) = turn(&service.back) {
        while let Some(delivery) = turn.next() {
            let asked = number(&delivery);
            delivery.endpoint().send(asked + 100).unwrap();
            order.push(asked);
            delivery.complete();
        }
    }
    assert_eq!(order, [2, 12, 1, 11]);
    for (dialog, expected) in [(&a, [101, 111]), (&b, [102, 112])] {
        let mut turn = service
            .front_queue
            .try_receive_from(dialog.group_id())
            .unwrap();
        for answer in expected {
            assert_eq!(
                turn.next().unwrap().complete().event,
                Event::Message(answer)
            );
        }
    }
}
