//! Dialogs and their model together: the same after each step, and nothing left at the end.

use std::sync::Arc;
use std::time::Duration;

use conversant::dialog::{
    Dialogs, Endpoint, EndpointRef, Event, Fault, Received, Refused, SideGroup,
};
use conversant::limit::Limit;
use conversant::queue::{Delivery, Detached, Group, Lane, NoMore, NoTurn, Queue, Why};

use crate::random::model::{Item, Model, No, Nothing, SideId, Word};
use crate::random::operations::Operation;

/// A message, and a count of how many of them there are.
struct Note(u32, #[allow(dead_code, reason = "counted")] Arc<()>);

pub(crate) struct World {
    dialogs: Dialogs<Note>,
    queues: [Option<Queue<Received<Note>>>; 2],
    lanes: [Lane<Received<Note>>; 2],
    shared: [Group<Received<Note>>; 2],
    shared_in_model: [usize; 2],
    /// By dialog and side; owned until dropped.
    owners: Vec<[Option<Endpoint<Note>>; 2]>,
    sides: Vec<[EndpointRef<Note>; 2]>,
    in_flight: Vec<(Item, Detached<Received<Note>>)>,
    held: Vec<(Item, Received<Note>)>,
    turn: Option<conversant::queue::Turn<'static, Received<Note>>>,
    model: Model,
    now: Duration,
    sent: u32,
    notes: Arc<()>,
}

const UNLIMITED: usize = usize::MAX;
/// Deliveries of one turn.
const QUANTUM: u32 = 4;
/// The capacity of a bounded queue.
const CAPACITY: u32 = 5;

impl World {
    /// The far queue has a capacity, or none.
    pub(crate) fn new(bounded: bool) -> Self {
        let capacity = bounded.then_some(CAPACITY);
        let queues = [None, capacity].map(|capacity| {
            let builder = Queue::builder().attempts(Limit::Unlimited).quantum(QUANTUM);
            let capacity = capacity.map_or(Limit::Unlimited, Limit::AtMost);
            builder.capacity(capacity).build().unwrap()
        });
        let lanes = [0, 1].map(|n: usize| queues[n].lane(1, Limit::Unlimited).unwrap());
        let limits = [(Limit::AtMost(2), 2), (Limit::Unlimited, UNLIMITED)];
        let mut model = Model::default();
        model.queues[1].capacity = capacity.map(u64::from);
        let shared = [0, 1].map(|n| lanes[n].group(limits[n].0, 100).unwrap());
        let shared_in_model = [0, 1].map(|n| model.group(n, limits[n].1));
        Self {
            dialogs: Dialogs::new(),
            queues: queues.map(Some),
            lanes,
            shared,
            shared_in_model,
            owners: Vec::new(),
            sides: Vec::new(),
            in_flight: Vec::new(),
            held: Vec::new(),
            turn: None,
            model,
            now: Duration::ZERO,
            sent: 0,
            notes: Arc::new(()),
        }
    }

    /// The n-th side, if there is one.
    fn pick(&self, n: u8) -> Option<SideId> {
        let count = 2 * self.sides.len();
        let n = usize::from(n).checked_rem(count)?;
        Some((n / 2, n % 2))
    }

    fn at(&self, (dialog, side): SideId) -> &EndpointRef<Note> {
        &self.sides[dialog][side]
    }

    fn begin(&mut self, wanted: [u8; 2]) {
        let related = |n: usize| match wanted[n] {
            0 | 1 => None,
            other => self
                .sides
                .get(usize::from(other) - 2)
                .map(|sides| (other, sides[n].clone())),
        };
        let related = [related(0), related(1)];
        let side = |n: usize| match (&related[n], wanted[n]) {
            (Some((_, endpoint)), _) => SideGroup::from(endpoint),
            (None, 1) => SideGroup::from(&self.shared[n]),
            (None, _) => SideGroup::from(&self.lanes[n]),
        };
        let begun = self.dialogs.pair(side(0), side(1));
        let groups = [0, 1].map(|n| match (&related[n], wanted[n]) {
            (Some((other, _)), _) => Some(self.model.side((usize::from(*other) - 2, n)).group),
            (None, 1) => Some(self.shared_in_model[n]),
            (None, _) => None,
        });
        assert_eq!(begun.is_ok(), self.model.begin(groups));
        if let Ok((near, far)) = begun {
            self.sides.push([near.clone(), far.clone()]);
            self.owners.push([Some(near), Some(far)]);
        }
    }

    fn send(&mut self, id: SideId) {
        self.sent += 1;
        let sent = self.at(id).send(Note(self.sent, self.notes.clone()));
        let sent = sent.map_err(|refused| {
            assert_eq!(refused.message.0, self.sent);
            match refused.reason {
                Refused::Ended => No::Ended,
                Refused::PeerEnded => No::PeerEnded,
                Refused::Closed => No::PeerGone,
                Refused::Full => No::Full,
            }
        });
        assert_eq!(sent, self.model.send(id, self.sent));
    }

    fn receive(&mut self, id: SideId, keep: bool) {
        let Some(queue) = &self.queues[id.1] else {
            return;
        };
        let turn = queue.try_receive_from(self.at(id).group_id());
        let turn = turn.map(conversant::queue::Turn::into_owned);
        let expected = self.model.receive(id);
        let nothing = match turn {
            Ok(mut turn) => {
                let delivery = turn.next().expect("a turn begins with one").detach();
                let item = expected.unwrap_or_else(|no| panic!("{no:?}, but got {delivery:?}"));
                if keep {
                    self.model.turn = Some((self.model.side(id).group, QUANTUM - 1));
                    self.turn = Some(turn);
                }
                self.take(item, delivery);
                return;
            }
            Err(NoTurn::Empty) => Nothing::Empty,
            Err(NoTurn::Held) => Nothing::Held,
            Err(NoTurn::Blocked(Why::Limit)) => Nothing::Limit,
            Err(NoTurn::Stale) => Nothing::Stale,
            Err(NoTurn::Closed(NoMore::Drained)) => Nothing::Closed,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(expected, Err(nothing));
    }

    fn take(&mut self, item: Item, delivery: Detached<Received<Note>>) {
        let got = (word(&delivery.event), delivery.attempt());
        assert_eq!(got, (item.word, item.attempt + 1));
        assert_eq!(delivery.endpoint(), self.at(item.to));
        self.in_flight.push((item, delivery));
    }

    fn next(&mut self) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let next = turn.next().map(Delivery::detach);
        match (next, self.model.next()) {
            (Some(delivery), Some(item)) => self.take(item, delivery),
            (None, None) => {}
            (got, expected) => panic!("{got:?} for {expected:?}"),
        }
    }

    pub(crate) fn run(&mut self, operation: &Operation) {
        use Operation::*;
        match *operation {
            Begin(wanted) => self.begin(wanted),
            Advance(by) => {
                self.now += Duration::from_secs(by);
                let next = self.dialogs.advance(self.now);
                assert_eq!(next.map(|at| at.as_secs()), self.model.advance(by));
            }
            Complete(n, at_once) => self.complete(n, at_once),
            Turn(n) => {
                if let (Some(id), None) = (self.pick(n), &self.turn) {
                    self.receive(id, true);
                }
            }
            Next => self.next(),
            EndTurn => {
                self.turn = None;
                self.model.end_turn();
            }
            LetGo(n) => {
                if let Some((item, received)) = choose(&mut self.held, n) {
                    drop(received);
                    self.model.let_go(&item);
                }
            }
            GiveBack(n) => {
                if let Some((item, delivery)) = choose(&mut self.in_flight, n) {
                    delivery.give_back();
                    self.model.give_back(item);
                }
            }
            Close(which) => {
                if let Some(queue) = &self.queues[usize::from(which)] {
                    queue.close();
                    self.model.queues[usize::from(which)].closed = true;
                }
            }
            DropQueue(which) => {
                if let Some(queue) = self.queues[usize::from(which)].take() {
                    drop(queue);
                    self.model.drop_queue(usize::from(which));
                }
            }
            Send(n)
            | End(n)
            | EndWith(n, _)
            | DropEndpoint(n)
            | SetTimer(n, _)
            | ClearTimer(n)
            | Receive(n) => {
                if let Some(id) = self.pick(n) {
                    self.run_at(id, operation);
                }
            }
        }
    }

    fn run_at(&mut self, id: SideId, operation: &Operation) {
        use Operation::*;
        match *operation {
            Send(_) => self.send(id),
            End(_) => assert_eq!(self.at(id).end().is_ok(), self.model.end(id, Word::End)),
            EndWith(_, code) => {
                let ended = self.at(id).end_with(Fault::new(code, "at random").unwrap());
                assert_eq!(ended.is_ok(), self.model.end(id, Word::Error(Some(code))));
            }
            DropEndpoint(_) => {
                if self.owners[id.0][id.1].take().is_some() {
                    self.model.end(id, Word::End);
                }
            }
            SetTimer(_, after) => {
                let set = self.at(id).set_timer(Duration::from_secs(after));
                assert_eq!(set.is_ok(), self.model.set_timer(id, after));
            }
            ClearTimer(_) => assert_eq!(self.at(id).clear_timer().ok(), self.model.clear_timer(id)),
            _ => self.receive(id, false),
        }
    }

    fn complete(&mut self, n: u8, at_once: bool) {
        let Some((item, delivery)) = choose(&mut self.in_flight, n) else {
            return;
        };
        let received = delivery.complete();
        self.model.complete(&item);
        if at_once {
            drop(received);
            self.model.let_go(&item);
        } else {
            self.held.push((item, received));
        }
    }

    /// All that can be seen from outside.
    pub(crate) fn compare(&self) {
        assert_eq!(self.dialogs.len(), self.model.live());
        for (dialog, sides) in self.sides.iter().enumerate() {
            for (side, endpoint) in sides.iter().enumerate() {
                assert_eq!(endpoint.refusal(), self.model.refusal((dialog, side)));
            }
        }
        for (n, queue) in self.queues.iter().enumerate() {
            if let Some(queue) = queue {
                assert_eq!(holds(queue), self.model.holds(n));
            }
        }
    }

    /// Ends all, and receives the rest.
    pub(crate) fn finish(mut self) {
        self.run(&Operation::EndTurn);
        while !self.in_flight.is_empty() {
            self.complete(0, true);
            self.compare();
        }
        self.owners.clear();
        self.held.clear();
        for queue in self.queues.iter().flatten() {
            while let Ok(mut turn) = queue.try_receive() {
                while let Some(delivery) = turn.next() {
                    drop(delivery.complete());
                }
            }
        }
        assert!(self.dialogs.is_empty());
        assert_eq!(self.dialogs.advance(self.now), None);
        for side in self.sides.iter().flatten() {
            assert_eq!(side.refusal(), Some(Refused::Ended));
        }
        drop(self.shared);
        for queue in self.queues.iter().flatten() {
            assert_eq!(holds(queue), (0, 0, 0));
        }
        drop((self.sides, self.queues, self.lanes));
        // No message is kept anywhere.
        assert_eq!(Arc::strong_count(&self.notes), 1);
    }
}

fn choose<T>(among: &mut Vec<T>, n: u8) -> Option<T> {
    let at = usize::from(n).checked_rem(among.len())?;
    Some(among.remove(at))
}

fn word(event: &Event<Note>) -> Word {
    match event {
        Event::Message(note) => Word::Message(note.0),
        Event::End => Word::End,
        Event::Error(fault) => Word::Error((!fault.is_gone()).then(|| fault.code())),
        Event::Timer => Word::Timer,
        _ => panic!("an event that is new"),
    }
}

/// Messages that wait, messages in flight, and the number of groups.
fn holds(queue: &Queue<Received<Note>>) -> (u64, u64, usize) {
    let snapshot = queue.snapshot();
    let groups = snapshot.lanes.iter().map(|lane| lane.groups.len()).sum();
    (snapshot.waiting, snapshot.in_flight, groups)
}
