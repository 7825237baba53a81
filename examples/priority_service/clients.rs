//! The clients: who asked, and the outcome.

use std::collections::HashMap;
use std::time::Duration;

use conversant::dialog::{Endpoint, EndpointId, Event, Fault, Received};
use conversant::queue::Delivery;

use crate::service::{FAILED, HUNG_UP, Note, Service};

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    Failed,
    Cancelled,
    GaveUp,
}

#[derive(Default)]
pub(crate) struct Clients {
    asking: HashMap<EndpointId, (u32, Endpoint<Note>)>,
    answered: Vec<u32>,
    /// In the order in which they became known.
    pub(crate) fates: Vec<(u32, Fate)>,
    /// What went wrong.
    pub(crate) wrong: Vec<String>,
}

impl Clients {
    pub(crate) fn ask(&mut self, service: &Service, number: u32, patience: Option<u64>) {
        let endpoint = service.ask(number);
        if let Some(seconds) = patience {
            let set = endpoint.set_timer(Duration::from_secs(seconds));
            set.expect("it has just begun");
        }
        self.asking.insert(endpoint.id(), (number, endpoint));
    }

    /// Whether no client waits any more.
    pub(crate) fn are_done(&self) -> bool {
        self.asking.is_empty()
    }

    /// Hangs up, if there is no answer yet.
    pub(crate) fn cancel(&mut self, number: u32) {
        let found = self.asking.iter().find(|(_, asked)| asked.0 == number);
        if let Some(id) = found.map(|(&id, _)| id) {
            self.hang_up(id, Fate::Cancelled);
        }
    }

    fn hang_up(&mut self, id: EndpointId, fate: Fate) {
        let Some((number, endpoint)) = self.asking.remove(&id) else {
            return;
        };
        let fault = Fault::new(HUNG_UP, format!("the client of {number} hung up"));
        let ended = endpoint.end_with(fault.expect("the code is in range"));
        self.fates.push((number, fate));
        if ended.is_err() {
            self.wrong.push(format!("{number} had ended before"));
        }
    }

    /// One event that came to a client.
    pub(crate) fn hear(&mut self, delivery: Delivery<Received<Note>>) {
        let event = delivery.complete();
        let id = event.endpoint().id();
        let Some(&(number, _)) = self.asking.get(&id) else {
            self.wrong.push(format!("an event for nobody: {event:?}"));
            return;
        };
        match &event.event {
            Event::Message(Note::Answer { number: answer }) if *answer == number => {
                self.answered.push(number);
            }
            Event::Timer => self.hang_up(id, Fate::GaveUp),
            Event::End if self.answered.contains(&number) => self.settle(id, Fate::Answered),
            Event::Error(fault) if fault.code() == FAILED => self.settle(id, Fate::Failed),
            other => {
                self.wrong.push(format!("{number} heard {other:?}"));
                self.asking.remove(&id);
            }
        }
    }

    fn settle(&mut self, id: EndpointId, fate: Fate) {
        if let Some((number, _)) = self.asking.remove(&id) {
            self.fates.push((number, fate));
        }
    }
}
