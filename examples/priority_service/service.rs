//! The front end and the back end, for any threads that read for them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use conversant::dialog::{Dialogs, Endpoint, EndpointId, EndpointRef, Event, Fault, Received};
use conversant::limit::{Bypass, Limit};
use conversant::queue::{Delivery, Lane, Queue};

use crate::Options;

/// The messages of the dialogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// Has its own level, if it is to be served first.
    Request {
        number: u32,
        level: Option<u8>,
    },
    Answer {
        number: u32,
    },
}

pub(crate) type Notes = Queue<Received<Note>>;

/// The error of a request whose work failed.
pub(crate) const FAILED: u32 = 5;
/// The error of a client that hangs up.
pub(crate) const HUNG_UP: u32 = 6;

pub(crate) struct Service {
    pub(crate) dialogs: Dialogs<Note>,
    /// Where the clients' answers come in.
    pub(crate) clients: Notes,
    pub(crate) front: Notes,
    pub(crate) back: Notes,
    client: Lane<Received<Note>>,
    front_lane: Lane<Received<Note>>,
    back_lane: Lane<Received<Note>>,
    /// For each of the front end's endpoints, the one it is paired with.
    pairs: Mutex<HashMap<EndpointId, EndpointRef<Note>>>,
}

/// What a service without work still holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) dialogs: usize,
    pub(crate) pairs: usize,
    pub(crate) messages: u64,
    pub(crate) groups: usize,
}

impl Service {
    pub(crate) fn new(options: &Options) -> Self {
        let bypass = Bypass::AtMost(options.bypass);
        let queue = || Queue::builder().build().expect("the defaults are in range");
        let (clients, front): (Notes, Notes) = (queue(), queue());
        let back: Notes = Queue::builder().bypass(bypass).build().expect("as above");
        let lane = |queue: &Notes| queue.lane(1, Limit::Unlimited).expect("it is open");
        Self {
            dialogs: Dialogs::new(),
            client: lane(&clients),
            front_lane: lane(&front),
            back_lane: lane(&back),
            clients,
            front,
            back,
            pairs: Mutex::default(),
        }
    }

    /// A client's request, on a dialog of its own.
    pub(crate) fn ask(&self, number: u32) -> Endpoint<Note> {
        let begun = self.dialogs.begin(&self.client, &self.front_lane);
        let client = begun.expect("both queues are open");
        let urgent = number > 0 && number.is_multiple_of(10);
        let level = urgent.then(|| u8::try_from(number).unwrap_or(u8::MAX));
        let sent = client.send(Note::Request { number, level });
        sent.expect("the front end is open");
        client
    }

    /// The front end: handles one event of a client's dialog, or of the paired dialog with the
    /// back end. The two share a group, so one reader at a time handles a pair.
    pub(crate) fn relay(&self, delivery: Delivery<Received<Note>>) {
        let from = delivery.endpoint();
        match &delivery.event {
            Event::Message(Note::Request { level, .. }) => self.forward(from, *level, &delivery),
            Event::Message(answer) => {
                if let Some(client) = self.partner(from) {
                    // Refused if the client hangs up: the back end is told.
                    _ = client.send(*answer);
                }
            }
            Event::End => {
                if let Some(partner) = self.part(from) {
                    // Stale if it has ended too.
                    _ = partner.end();
                }
            }
            Event::Error(fault) => {
                if let Some(partner) = self.part(from) {
                    _ = partner.end_with(fault.clone());
                }
            }
            // A timer, of which there are none.
            _ => {}
        }
        delivery.complete();
    }

    /// Opens a dialog with the back end for a request.
    fn forward(&self, client: &EndpointRef<Note>, level: Option<u8>, request: &Received<Note>) {
        let begun = self.dialogs.begin(client, &self.back_lane);
        let back = begun.expect("the back end is closed after the front end");
        let Event::Message(request) = &request.event else {
            return;
        };
        if let Some(level) = level {
            // Bumped before the request is there, so that no reader takes it unbumped.
            let bumped = self.back.bump(back.peer_group(), level);
            bumped.expect("the dialog keeps its group");
        }
        let sent = back.send(*request);
        sent.expect("the back end is open");
        let back = back.detach();
        let mut pairs = self.pairs();
        pairs.insert(client.id(), back.clone());
        pairs.insert(back.id(), client.clone());
    }

    fn pairs(&self) -> MutexGuard<'_, HashMap<EndpointId, EndpointRef<Note>>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn partner(&self, endpoint: &EndpointRef<Note>) -> Option<EndpointRef<Note>> {
        self.pairs().get(&endpoint.id()).cloned()
    }

    /// Removes a pairing. Returns the other endpoint.
    fn part(&self, endpoint: &EndpointRef<Note>) -> Option<EndpointRef<Note>> {
        let mut pairs = self.pairs();
        let partner = pairs.remove(&endpoint.id())?;
        pairs.remove(&partner.id());
        Some(partner)
    }

    pub(crate) fn left(&self) -> Left {
        let mut left = Left {
            dialogs: self.dialogs.len(),
            pairs: self.pairs().len() / 2,
            ..Left::default()
        };
        for queue in [&self.clients, &self.front, &self.back] {
            let snapshot = queue.snapshot();
            left.messages += snapshot.waiting + snapshot.in_flight;
            let groups = snapshot.lanes.iter().map(|lane| lane.groups.len());
            left.groups += groups.sum::<usize>();
        }
        left
    }
}

/// The back end has done its work on a request: the answer goes back on the dialog that asked.
pub(crate) fn conclude(options: &Options, request: &Received<Note>) {
    let asking = request.endpoint();
    if let Event::Message(Note::Request { number, .. }) = request.event {
        if options.fail.contains(&number) {
            let fault = Fault::new(FAILED, format!("the work on {number} failed"));
            _ = asking.end_with(fault.expect("the code is in range"));
        } else {
            // Refused and stale if the client has hung up.
            _ = asking.send(Note::Answer { number });
            _ = asking.end();
        }
    }
}
