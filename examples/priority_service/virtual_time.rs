//! The run in virtual time: one thread plays the clients, the front end and the
//! readers of the back end, and the clock jumps from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use conversant::dialog::{Event, Received};
use conversant::queue::{Detached, Turn};

use crate::Options;
use crate::clients::Clients;
use crate::report::Outcome;
use crate::service::{Note, Service, conclude};

/// A reader of the back end.
#[derive(Default)]
struct Reader {
    turn: Option<Turn<'static, Received<Note>>>,
    work: Option<Detached<Received<Note>>>,
    served: Vec<u32>,
}

struct Play<'a> {
    options: &'a Options,
    service: Service,
    clients: Clients,
    readers: Vec<Reader>,
    now: Duration,
    /// When which reader is done; ties in the order in which they began.
    done: BinaryHeap<Reverse<(Duration, usize, usize)>>,
    order: Vec<u32>,
    /// When the first timer is due.
    alarm: Option<Duration>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let mut play = Play {
        options,
        service: Service::new(options),
        clients: Clients::default(),
        readers: (0..options.readers).map(|_| Reader::default()).collect(),
        now: Duration::ZERO,
        done: BinaryHeap::new(),
        order: Vec::new(),
        alarm: None,
    };
    play.open();
    play.go_on();
    Outcome {
        order: play.order,
        readers: play.readers.into_iter().map(|r| r.served).collect(),
        left: play.service.left(),
        clients: play.clients,
        took: Some(play.now),
    }
}

impl Play<'_> {
    /// All requests are sent at time 0, and the readers take their first ones.
    fn open(&mut self) {
        let last = self.options.requests - 1;
        let second = self.options.second_after.min(last);
        for number in 0..=last {
            let patience = self.options.patience;
            self.clients.ask(&self.service, number, patience);
            self.pass_on();
            if number == 0 {
                self.take(0);
            }
            if number >= second {
                self.take_all();
            }
        }
        for &number in &self.options.cancel {
            self.clients.cancel(number);
        }
        self.alarm = self.service.dialogs.advance(self.now);
        self.pass_on();
    }

    fn go_on(&mut self) {
        while let Some(&Reverse((at, _, reader))) = self.done.peek() {
            match self.alarm {
                Some(alarm) if alarm < at => {
                    self.now = alarm;
                    self.alarm = self.service.dialogs.advance(alarm);
                    self.pass_on();
                }
                _ => {
                    self.now = at;
                    self.done.pop();
                    if let Some(work) = self.readers[reader].work.take() {
                        conclude(self.options, &work);
                        work.complete();
                    }
                    self.pass_on();
                    self.take(reader);
                }
            }
            self.take_all();
        }
        self.alarm = self.service.dialogs.advance(self.now);
        self.pass_on();
    }

    /// Front end and clients take no time.
    fn pass_on(&mut self) {
        let Service { front, clients, .. } = &self.service;
        loop {
            let (mut relayed, mut heard) = (front.try_receive().ok(), clients.try_receive().ok());
            while let Some(delivery) = relayed.as_mut().and_then(Turn::next) {
                self.service.relay(delivery);
            }
            while let Some(delivery) = heard.as_mut().and_then(Turn::next) {
                self.clients.hear(delivery);
            }
            if relayed.is_none() && heard.is_none() {
                break;
            }
        }
    }

    fn take_all(&mut self) {
        for reader in 0..self.readers.len() {
            self.take(reader);
        }
    }

    /// An idle reader takes its next request, of its turn or of the next turn.
    fn take(&mut self, number: usize) {
        let reader = &mut self.readers[number];
        while reader.work.is_none() {
            let Some(turn) = &mut reader.turn else {
                match self.service.back.try_receive() {
                    Ok(turn) => reader.turn = Some(turn.into_owned()),
                    Err(_) => break,
                }
                continue;
            };
            let Some(delivery) = turn.next() else {
                reader.turn = None;
                continue;
            };
            match delivery.event {
                Event::Message(Note::Request { number: asked, .. }) => {
                    reader.served.push(asked);
                    // The work goes on while this thread does other things.
                    reader.work = Some(delivery.detach());
                    let at = self.now + Duration::from_secs(self.options.work);
                    self.done.push(Reverse((at, self.order.len(), number)));
                    self.order.push(asked);
                }
                // The client is gone, or everything is sent: nothing to do.
                _ => _ = delivery.complete(),
            }
        }
    }
}
