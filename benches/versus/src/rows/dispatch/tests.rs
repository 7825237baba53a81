//! The checks can fail.

use std::time::Duration;

use parking_lot::Mutex;

use super::harness::Message;
use super::*;
use crate::contender::Contender;

const SMALL: Shape = Shape {
    conversations: 8,
    readers: READERS,
    batch: 4,
    many: false,
    hold: 0,
    submit: true,
    ordered: true,
};

/// A transport that changes the messages that it holds when they are received.
struct Broken(Mutex<Vec<Message>>, fn(&mut Vec<Message>));

impl Transport for Broken {
    fn send(&self, message: Message) {
        self.0.lock().push(message);
    }

    fn read(&self, reader: usize, log: &Log) {
        if reader == 0 {
            let mut all = std::mem::take(&mut *self.0.lock());
            (self.1)(&mut all);
            all.into_iter()
                .for_each(|message| log.serve(reader, message));
        }
    }

    fn stop(&self, _: usize) {}
}

fn outcome(damage: fn(&mut Vec<Message>)) -> Result<(), String> {
    let transport = Broken(Mutex::default(), damage);
    // Readers that return at once come after the sends only if the sends are timed alone.
    let mut harness = Harness::new(SMALL, |_| transport).time_out(Duration::from_secs(1));
    harness
        .run(400)
        .map(drop)
        .map_err(|error| error.to_string())
}

#[test]
fn what_is_not_harmed_passes() {
    assert_eq!(outcome(|_| {}), Ok(()));
}

#[test]
fn a_message_that_is_lost_is_caught() {
    let error = outcome(|all| _ = all.pop()).unwrap_err();
    assert_eq!(error, "399 of 400 messages were served");
}

#[test]
fn a_message_that_comes_twice_is_caught() {
    let error = outcome(|all| all.push(all[7])).unwrap_err();
    assert_eq!(error, "401 of 400 messages were served");
}

#[test]
fn one_twice_in_place_of_another_is_caught() {
    let error = outcome(|all| all[9] = all[8]).unwrap_err();
    assert!(error.contains("not the messages"), "{error}");
}

#[test]
fn a_changed_order_is_caught() {
    let error = outcome(|all| all.reverse()).unwrap_err();
    assert!(error.contains("out of order"), "{error}");
}

#[test]
fn every_contender_passes_a_short_run() {
    for submit in [false, true] {
        for (batch, many) in [(1, false), (4, false), (4, true)] {
            let shape = Shape {
                submit,
                batch,
                many,
                ..SMALL
            };
            for mut entry in contenders(shape) {
                for _ in 0..3 {
                    entry.contender.run(400).expect(&entry.name);
                }
            }
        }
    }
}

#[test]
fn every_contender_serves_many_readers() {
    let shape = Shape {
        readers: 5,
        batch: 1,
        submit: false,
        ..SMALL
    };
    for mut entry in growth::crowd(shape) {
        for _ in 0..3 {
            entry.contender.run(400).expect(&entry.name);
        }
    }
}

#[test]
fn a_batch_to_many_goes_by_one_call_to_conversations_drawn_for_each() {
    struct Batches(Mutex<Vec<Vec<Message>>>);

    impl Transport for Batches {
        fn send(&self, _: Message) {
            panic!("one by one");
        }

        fn send_many(&self, messages: &[Message]) {
            self.0.lock().push(messages.to_vec());
        }

        fn read(&self, reader: usize, log: &Log) {
            let batches = std::mem::take(&mut *self.0.lock());
            let differs = |batch: &&Vec<Message>| {
                let first = batch[0].conversation;
                batch.iter().any(|message| message.conversation != first)
            };
            assert!(batches.iter().all(|batch| batch.len() == 4));
            // All four go to the same of eight conversations once in 512 times.
            assert!(batches.iter().filter(differs).count() * 10 >= batches.len() * 9);
            let messages = batches.into_iter().flatten();
            messages.for_each(|message| log.serve(reader, message));
        }

        fn stop(&self, _: usize) {}
    }
    let many = Shape {
        many: true,
        ..SMALL
    };
    let mut harness = Harness::new(many, |_| Batches(Mutex::default()));
    harness.run(400).expect("in order");
}

#[test]
fn a_link_that_gives_another_message_is_caught() {
    struct Wrong(crossbeam_queue::SegQueue<latency::Note>);

    impl latency::Link for Wrong {
        fn send(&self, note: latency::Note) {
            self.0.push(note.next());
        }

        fn receive(&self) -> latency::Note {
            latency::Link::receive(&self.0)
        }
    }
    let link = Wrong(crossbeam_queue::SegQueue::new());
    let pause = Duration::ZERO;
    assert!(latency::Latency { link, pause }.run(10).is_err());
}
