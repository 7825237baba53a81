//! Dialogs between threads, and with wakers and messages that call back or panic.

use crate::queue_support;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use conversant::dialog::{
    Dialogs, Endpoint, EndpointId, EndpointRef, Event, Fault, Received, Refused,
};
use conversant::queue::{Delivery, Lane, Queue};

use queue_support::{WakeCounter, plain, poll, take};

type Side<M> = (Queue<Received<M>>, Lane<Received<M>>);

fn holds<M: Send>(queue: &Queue<Received<M>>) -> (u64, u64, usize) {
    let snapshot = queue.snapshot();
    let groups = snapshot.lanes.iter().map(|lane| lane.groups.len()).sum();
    (snapshot.waiting, snapshot.in_flight, groups)
}

const NOTHING: (u64, u64, usize) = (0, 0, 0);

/// Runs this function when it is woken.
struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

#[test]
fn both_sides_end_at_once() {
    let ((near, near_lane), (far, far_lane)): (Side<u32>, Side<u32>) = (plain(), plain());
    let dialogs = Dialogs::new();
    for round in 0..2_000 {
        let (a, b) = dialogs.pair(&near_lane, &far_lane).unwrap();
        a.send(round).unwrap();
        b.send(round).unwrap();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for endpoint in [a, b] {
                scope.spawn(|| {
                    start.wait();
                    match round % 3 {
                        0 => drop(endpoint),
                        1 => endpoint.end().unwrap(),
                        _ => endpoint
                            .end_with(Fault::new(1, "at once").unwrap())
                            .unwrap(),
                    }
                });
            }
        });
        assert!(dialogs.is_empty());
        assert_eq!((holds(&near), holds(&far)), (NOTHING, NOTHING));
    }
}

/// Each question is answered on its dialog, in its order, whatever the readers do, even if it is
/// given back once; and when all is done nothing is left.
#[test]
fn many_dialogs_and_readers_on_both_sides() {
    const DIALOGS: usize = 40;
    const QUESTIONS: u64 = 50;
    let ((near, near_lane), (far, far_lane)): (Side<u64>, Side<u64>) = (plain(), plain());
    let dialogs = Dialogs::new();
    let answers = Mutex::new(HashMap::<EndpointId, Vec<u64>>::new());
    let ended = AtomicUsize::new(0);
    let begin = || dialogs.begin(&near_lane, &far_lane).unwrap();
    let asking: Vec<_> = (0..DIALOGS).map(|_| begin()).collect();
    let answer = |delivery: Delivery<Received<u64>>| match delivery.event {
        Event::Message(number) if number % 7 == 0 && delivery.attempt() == 1 => {
            delivery.give_back();
        }
        Event::Message(number) => {
            delivery.endpoint().send(number).unwrap();
            delivery.complete();
        }
        _ => drop(delivery.complete()),
    };
    let hear = |delivery: Delivery<Received<u64>>| {
        let Event::Message(number) = delivery.event else {
            panic!("the far side never ends first");
        };
        let id = delivery.endpoint().id();
        answers.lock().unwrap().entry(id).or_default().push(number);
        if number == QUESTIONS - 1 {
            delivery.endpoint().end().unwrap();
            if ended.fetch_add(1, Ordering::SeqCst) == DIALOGS - 1 {
                near.close();
                far.close();
            }
        }
        delivery.complete();
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| read(&far, answer));
            scope.spawn(|| read(&near, hear));
        }
        for number in 0..QUESTIONS {
            for endpoint in &asking {
                endpoint.send(number).unwrap();
            }
        }
    });
    let answers = answers.into_inner().unwrap();
    for endpoint in &asking {
        assert!(answers[&endpoint.id()].iter().copied().eq(0..QUESTIONS));
    }
    assert!(dialogs.is_empty());
    assert_eq!((holds(&near), holds(&far)), (NOTHING, NOTHING));
}

fn read<M: Send>(queue: &Queue<Received<M>>, handle: impl Fn(Delivery<Received<M>>)) {
    while let Ok(mut turn) = queue.receive().wait() {
        while let Some(delivery) = turn.next() {
            handle(delivery);
        }
    }
}

/// Sends that race the peer's end are refused with their message, received, or dropped by the end;
/// none is left in a queue.
#[test]
fn sends_against_the_peers_end() {
    let ((near, near_lane), (far, far_lane)): (Side<Arc<()>>, Side<Arc<()>>) = (plain(), plain());
    let dialogs = Dialogs::new();
    let token = Arc::new(());
    for _ in 0..1_000 {
        let (a, b) = dialogs.pair(&near_lane, &far_lane).unwrap();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                while a.send(token.clone()).is_ok() {}
            });
            start.wait();
            b.end().unwrap();
        });
        drop((a, b));
        assert!(dialogs.is_empty());
        assert_eq!((holds(&near), holds(&far)), (NOTHING, NOTHING));
        assert_eq!(Arc::strong_count(&token), 1);
    }
}

type Act = fn(&Endpoint<u32>, &Endpoint<u32>, &Dialogs<u32>);

/// All operations that put an event into the far side's queue.
const ACTS: [Act; 4] = [
    |near, _, _| near.send(1).unwrap(),
    |near, _, _| near.end().unwrap(),
    |near, _, _| near.end_with(Fault::new(1, "here").unwrap()).unwrap(),
    |_, far, dialogs| {
        far.set_timer(Duration::ZERO).unwrap();
        dialogs.advance(Duration::ZERO);
    },
];

#[test]
fn a_waker_may_call_its_dialog() {
    let ((near, near_lane), (far, far_lane)): (Side<u32>, Side<u32>) = (plain(), plain());
    let dialogs = Dialogs::<u32>::new();
    for act in ACTS {
        let (a, b) = dialogs.pair(&near_lane, &far_lane).unwrap();
        let both = (a.clone(), b.clone());
        let waker = Waker::from(Arc::new(Calls(move || {
            for endpoint in [&both.0, &both.1] {
                _ = endpoint.refusal();
                _ = endpoint.send(7);
                _ = endpoint.set_timer(Duration::from_secs(9));
                _ = endpoint.clear_timer();
            }
        })));
        let mut receive = far.receive();
        assert!(poll(&mut receive, &waker).is_pending());
        act(&a, &b, &dialogs);
        assert!(poll(&mut receive, &waker).is_ready());
        drop((a, b));
        assert!(dialogs.is_empty());
    }
    assert_eq!((holds(&near), holds(&far)), (NOTHING, NOTHING));
}

#[test]
fn a_waker_may_panic_and_the_side_has_ended_all_the_same() {
    let ((near, near_lane), (far, far_lane)): (Side<u32>, Side<u32>) = (plain(), plain());
    let dialogs = Dialogs::new();
    let (a, b) = dialogs.pair(&near_lane, &far_lane).unwrap();
    b.send(1).unwrap();
    let waker = Waker::from(Arc::new(Calls(|| panic!("on purpose"))));
    let mut receive = far.receive();
    assert!(poll(&mut receive, &waker).is_pending());
    a.end().unwrap();
    assert_eq!((a.refusal(), holds(&near)), (Some(Refused::Ended), NOTHING));
    let (_, quiet) = WakeCounter::new();
    assert!(poll(&mut receive, &quiet).is_ready());
    drop((receive, b));
    assert!(dialogs.is_empty());
    assert_eq!(holds(&far), NOTHING);
}

/// A message whose drop calls its own dialog.
struct Clings(Option<EndpointRef<Clings>>, bool);

impl Drop for Clings {
    fn drop(&mut self) {
        if let Some(endpoint) = self.0.take() {
            _ = endpoint.refusal();
            _ = endpoint.send(Clings(None, false));
            _ = endpoint.end();
            assert!(!self.1, "on purpose");
        }
    }
}

#[test]
fn messages_that_are_dropped_may_call_their_dialog_or_panic() {
    let ((near, near_lane), (far, far_lane)): (Side<Clings>, Side<Clings>) = (plain(), plain());
    let dialogs = Dialogs::new();
    for panics in [false, true] {
        let (a, b) = dialogs.pair(&near_lane, &far_lane).unwrap();
        for _ in 0..3 {
            b.send(Clings(Some(a.clone()), panics)).unwrap();
        }
        let ended = catch_unwind(AssertUnwindSafe(|| a.end()));
        assert_eq!(ended.is_err(), panics);
        assert_eq!(holds(&near), NOTHING);
        assert!(matches!(take(&far).unwrap().complete().event, Event::End));
        drop((a, b));
        assert!(dialogs.is_empty());
        assert_eq!(holds(&far), NOTHING);
    }
}

/// The first turn drops a message that was sent on and has outlived its side.
#[test]
fn turns_that_nobody_asked_for_all_end_though_a_message_panics() {
    let ((_near, near_lane), (far, far_lane)): (Side<Clings>, Side<Clings>) = (plain(), plain());
    let dialogs = Dialogs::new();
    let pair = || dialogs.pair(&near_lane, &far_lane).unwrap();
    let ((a, b), (c, _d)) = (pair(), pair());
    a.send(Clings(Some(a.clone()), true)).unwrap();
    let event = take(&far).unwrap().complete();
    b.end().unwrap();
    let again = far_lane.conversation().unwrap();
    assert!(again.send(event).is_ok());
    c.send(Clings(None, false)).unwrap();
    let turns = far.try_receive_many(2).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(turns))).is_err());
    assert!(take(&far).is_some(), "the other group is in line again");
}

/// Each kind of event wakes a sleeping reader.
#[test]
fn every_event_wakes_a_reader() {
    let ((_near, near_lane), (far, far_lane)): (Side<u32>, Side<u32>) = (plain(), plain());
    let dialogs = Dialogs::<u32>::new();
    for act in ACTS {
        let (a, b) = dialogs.pair(&near_lane, &far_lane).unwrap();
        let (wakes, waker) = WakeCounter::new();
        let mut receive = far.receive();
        assert!(poll(&mut receive, &waker).is_pending());
        act(&a, &b, &dialogs);
        assert_eq!(wakes.count(), 1);
        let event = take(&far);
        drop((receive, a, b, event));
        assert!(dialogs.is_empty());
    }
}

/// A queue that is dropped while the peer ends, sends and rings: no side stays open.
#[test]
fn a_queue_dropped_at_once_with_the_end() {
    for round in 0..500 {
        let ((near, near_lane), (far, far_lane)): (Side<u32>, Side<u32>) = (plain(), plain());
        let dialogs = Dialogs::new();
        let (a, b) = dialogs.pair(&near_lane, &far_lane).unwrap();
        let b = b.detach();
        b.set_timer(Duration::ZERO).unwrap();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                drop(far);
            });
            start.wait();
            _ = a.send(round);
            dialogs.advance(Duration::ZERO);
            if round % 2 == 0 {
                a.end().unwrap();
            }
        });
        assert_eq!(b.refusal(), Some(Refused::Ended));
        drop(a);
        assert!(dialogs.is_empty());
        assert_eq!(holds(&near), NOTHING);
    }
}
