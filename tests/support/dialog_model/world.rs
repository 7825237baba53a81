//! Dialogs and their model together: the same after each step, and nothing left at the end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use conversant::dialog::{
    Dialogs, Endpoint, EndpointRef, Event, Fault, Received, Refused, SideGroup,
};
use conversant::limit::{Bypass, Limit};
use conversant::queue::{Detached, Group, GroupId, Lane, Peek, Queue, Turn};

use super::groups;
use super::model::{Item, Model, SideId, Word};
use super::{Op, Set, Settings, Spot};

/// A message, and a count of how many of them there are.
pub(crate) struct Note(pub u32, #[expect(dead_code, reason = "counted")] Arc<()>);

/// What the queues hold.
pub(crate) type Got = Received<Note>;

/// Where a side is to be: in a group of its own of a queue, or in a group of the model.
enum Place {
    Own(usize),
    In(usize, Group<Got>),
    With(usize, EndpointRef<Note>),
}

pub(crate) struct World {
    /// Until they are dropped: then no timer rings.
    pub(crate) dialogs: Option<Dialogs<Note>>,
    pub(crate) queues: [Option<Queue<Got>>; 2],
    pub(crate) lanes: [Lane<Got>; 2],
    /// Groups that sides may share, and their places in the model.
    pub(crate) shared: [Option<Group<Got>>; 2],
    /// Of all groups ever made.
    pub(crate) ids: Vec<GroupId>,
    pub(crate) owners: Vec<[Option<Endpoint<Note>>; 2]>,
    /// A far side that nobody owns is known once it has received something.
    pub(crate) sides: Vec<[Option<EndpointRef<Note>>; 2]>,
    pub(crate) turns: Vec<(groups::Turn, Turn<'static, Got>)>,
    pub(crate) in_flight: Vec<(Item, Detached<Got>)>,
    pub(crate) held: Vec<(Item, Got)>,
    pub(crate) look: Option<(Item, Peek<Got>)>,
    pub(crate) model: Model,
    sent: u32,
    pub(crate) notes: Arc<()>,
}

fn number(limit: Option<u8>) -> Option<u32> {
    limit.map(|limit| u32::from(limit % 4))
}

pub(crate) fn limit(most: Option<u32>) -> Limit {
    most.map_or(Limit::Unlimited, Limit::AtMost)
}

pub(crate) fn choose<T>(among: &mut Vec<T>, n: u8) -> Option<T> {
    let at = usize::from(n).checked_rem(among.len())?;
    Some(among.remove(at))
}

impl World {
    pub(crate) fn new(settings: &Settings) -> Self {
        let attempts = Some(u32::from(settings.attempts % 4)).filter(|&most| most > 0);
        let quantum = u32::from(settings.quantum % 4) + 1;
        let mut model = Model::new(attempts, quantum);
        let queues = [0, 1].map(|n| {
            let capacity = settings.capacities[n].map(|most| u32::from(most % 8));
            model.queues[n].capacity = capacity;
            let builder = Queue::builder().attempts(limit(attempts)).quantum(quantum);
            let builder = builder.bypass(Bypass::Unbounded).capacity(limit(capacity));
            builder.build().expect("in range")
        });
        let lanes = queues
            .each_ref()
            .map(|queue| queue.lane(1, Limit::Unlimited));
        let lanes = lanes.map(|lane| lane.expect("in range"));
        let shared = [0, 1].map(|n| {
            let most = number(settings.limits[n]);
            model.group(n, most);
            lanes[n].group(limit(most), 100).expect("in range")
        });
        Self {
            dialogs: Some(Dialogs::new()),
            queues: queues.map(Some),
            lanes,
            ids: shared.iter().map(Group::id).collect(),
            shared: shared.map(Some),
            owners: Vec::new(),
            sides: Vec::new(),
            turns: Vec::new(),
            in_flight: Vec::new(),
            held: Vec::new(),
            look: None,
            model,
            sent: 0,
            notes: Arc::new(()),
        }
    }

    /// The n-th side, if there is one.
    pub(crate) fn pick(&self, n: u8) -> Option<SideId> {
        let n = usize::from(n).checked_rem(2 * self.sides.len())?;
        Some((n / 2, n % 2))
    }

    /// The n-th side, if there is one and it is known.
    fn known(&self, n: u8) -> Option<(SideId, EndpointRef<Note>)> {
        let id = self.pick(n)?;
        Some((id, self.sides[id.0][id.1].clone()?))
    }

    pub(crate) fn run(&mut self, op: Op) {
        match op {
            Op::Begin { sides, owned } => self.begin(sides, owned),
            Op::Advance { by } => {
                let to = self.model.now.saturating_add_signed(by.into());
                if let Some(dialogs) = &self.dialogs {
                    let next = dialogs.advance(Duration::from_secs(to));
                    assert_eq!(next, self.model.advance(to).map(Duration::from_secs));
                }
            }
            Op::Drop { side, panics } => self.drop_owner(side, panics),
            Op::Detach { side } => {
                if let Some((dialog, side)) = self.pick(side)
                    && let Some(owner) = self.owners[dialog][side].take()
                {
                    let side = owner.detach();
                    assert_eq!(self.side_of(&side).0, dialog);
                }
            }
            Op::Send { side }
            | Op::End { side }
            | Op::EndWith { side, .. }
            | Op::SetTimer { side, .. }
            | Op::ClearTimer { side } => {
                if let Some((id, side)) = self.known(side) {
                    self.run_at(id, &side, op);
                }
            }
            Op::Group { side, set } => self.set(side, set),
            Op::Close { queue, rare: 0 } => {
                let n = usize::from(queue);
                self.queues[n].iter().for_each(Queue::close);
                self.model.queues[n].closed = true;
            }
            Op::DropQueue { queue, rare: 0 } => {
                let n = usize::from(queue);
                if self.queues[n].take().is_some() {
                    self.model.drop_queue(n);
                }
            }
            Op::Shutdown { queue, rare: 0 } => self.shutdown(queue.into()),
            Op::DropDialogs { rare: 0 } => self.dialogs = None,
            Op::DropShared { queue, rare: 0 } => {
                let n = usize::from(queue);
                if self.shared[n].take().is_some() {
                    self.model.unpin(n);
                }
            }
            Op::Close { .. } | Op::DropQueue { .. } | Op::Shutdown { .. } => {}
            Op::DropShared { .. } | Op::DropDialogs { .. } => {}
            read => self.read(read),
        }
    }

    fn run_at(&mut self, id: SideId, side: &EndpointRef<Note>, op: Op) {
        match op {
            Op::Send { .. } => {
                self.sent += 1;
                let sent = side.send(Note(self.sent, self.notes.clone()));
                let sent = sent.map_err(|refused| {
                    assert_eq!(refused.message.0, self.sent);
                    refused.reason
                });
                assert_eq!(sent, self.model.send(id, self.sent));
            }
            Op::End { .. } => assert_eq!(side.end().is_ok(), self.model.end(id, Word::End)),
            Op::EndWith { code, .. } => {
                let code = u32::from(code) + 1;
                let ended = side.end_with(Fault::new(code, "at random").expect("in range"));
                assert_eq!(ended.is_ok(), self.model.end(id, Word::Error(code)));
            }
            Op::SetTimer { after, .. } => {
                let set = side.set_timer(Duration::from_secs(after.into()));
                assert_eq!(set.is_ok(), self.model.set_timer(id, after.into()));
            }
            Op::ClearTimer { .. } => {
                assert_eq!(side.clear_timer().ok(), self.model.clear_timer(id));
            }
            _ => unreachable!(),
        }
    }

    fn place(&self, spot: Spot) -> Option<Place> {
        Some(match spot {
            Spot::Own { queue } => Place::Own(queue.into()),
            Spot::Shared { queue } => {
                let group = self.shared[usize::from(queue)].clone()?;
                Place::In(queue.into(), group)
            }
            Spot::With { side } => {
                let (id, side) = self.known(side)?;
                Place::With(self.model.side(id).group, side)
            }
        })
    }

    fn begin(&mut self, spots: [Spot; 2], owned: bool) {
        let Some(dialogs) = &self.dialogs else {
            return;
        };
        let [Some(near), Some(far)] = spots.map(|spot| self.place(spot)) else {
            return;
        };
        let places = [near, far];
        let [near, far] = places.each_ref().map(|place| match place {
            Place::Own(queue) => SideGroup::from(&self.lanes[*queue]),
            Place::In(_, group) => SideGroup::from(group),
            Place::With(_, side) => SideGroup::from(side),
        });
        let begun = match owned {
            true => dialogs.pair(near, far).map(|(near, far)| (near, Some(far))),
            false => dialogs.begin(near, far).map(|near| (near, None)),
        };
        self.begun(places, begun);
    }

    fn begun(
        &mut self,
        places: [Place; 2],
        begun: Result<(Endpoint<Note>, Option<Endpoint<Note>>), Refused>,
    ) {
        let (mut closed, mut stale) = (false, false);
        for place in &places {
            let queue = match *place {
                Place::Own(queue) => queue,
                Place::In(group, _) | Place::With(group, _) => {
                    stale |= !self.model.groups[group].alive;
                    self.model.groups[group].queue
                }
            };
            closed |= self.model.queues[queue].closed;
        }
        let (near, far) = match begun {
            Ok(begun) => begun,
            Err(Refused::Closed) => return assert!(closed),
            Err(refused) => return assert!(stale && refused == Refused::Ended),
        };
        assert!(!closed && !stale);
        let ids = [near.group_id(), near.peer_group()];
        let groups = [0, 1].map(|n| match places[n] {
            Place::In(group, _) | Place::With(group, _) => {
                self.model.pin(group);
                assert_eq!(ids[n], self.ids[group]);
                group
            }
            Place::Own(queue) => {
                assert!(!self.ids.contains(&ids[n]), "a name that was used before");
                self.ids.push(ids[n]);
                self.model.group(queue, Some(1))
            }
        });
        self.model.begin(groups);
        let dialog = near.id().dialog();
        let known = |sides: &[Option<_>; 2]| sides[0].as_ref().map(EndpointRef::id);
        assert!(
            self.sides
                .iter()
                .all(|sides| known(sides).expect("begun").dialog() != dialog)
        );
        let reference = |side: &Endpoint<Note>| EndpointRef::clone(side);
        self.sides
            .push([Some(reference(&near)), far.as_ref().map(reference)]);
        self.owners.push([Some(near), far]);
    }

    /// Which side this is. It is known from now on.
    pub(crate) fn side_of(&mut self, side: &EndpointRef<Note>) -> SideId {
        let number = side.id().dialog();
        let is_it = |sides: &[Option<EndpointRef<Note>>; 2]| {
            sides[0]
                .as_ref()
                .is_some_and(|near| near.id().dialog() == number)
        };
        let dialog = self.sides.iter().position(is_it).expect("it was begun");
        let n = usize::from(self.sides[dialog][0].as_ref() != Some(side));
        let known = self.sides[dialog][n].get_or_insert_with(|| side.clone());
        assert!(known == side);
        (dialog, n)
    }

    fn drop_owner(&mut self, side: u8, panics: bool) {
        let Some(id) = self.pick(side) else {
            return;
        };
        let Some(owner) = self.owners[id.0][id.1].take() else {
            return;
        };
        if panics {
            let dropped = catch_unwind(AssertUnwindSafe(move || {
                let _owner = owner;
                resume_unwind(Box::new(()))
            }));
            assert!(dropped.is_err());
            self.model.end(id, Word::Error(Fault::GONE));
        } else {
            drop(owner);
            self.model.end(id, Word::End);
        }
    }

    fn set(&mut self, side: u8, set: Set) {
        let Some(id) = self.pick(side) else {
            return;
        };
        let at = self.model.side(id).group;
        let of = &mut self.model.groups[at];
        let Some(queue) = &self.queues[of.queue] else {
            return;
        };
        let group = queue.group(self.ids[at]);
        assert_eq!(group.is_ok(), of.alive);
        let Ok(group) = group else {
            return;
        };
        match set {
            Set::Bump(level) => {
                group.bump(level);
                of.bump = Some(level);
            }
            Set::Level(level) => {
                group.set_level(level);
                of.level = level;
            }
            Set::Limit(most) => {
                of.limit = number(most);
                group.set_limit(limit(of.limit)).expect("in range");
            }
            Set::Capacity(most) => {
                of.capacity = number(most);
                group.set_capacity(limit(of.capacity)).expect("in range");
            }
        }
    }
}

pub(crate) fn word(event: &Event<Note>) -> Word {
    match event {
        Event::Message(note) => Word::Message(note.0),
        Event::End => Word::End,
        Event::Error(fault) => Word::Error(fault.code()),
        Event::Timer => Word::Timer,
        _ => unreachable!("a new kind of event"),
    }
}
