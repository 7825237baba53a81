//! What readers do.

use conversant::queue::{Delivery, NoMore, NoTurn, Queue, Turn, Why};

use super::groups::Next;
use super::model::{Item, SideId};
use super::world::{Got, World, choose, word};
use super::{Op, Then};

/// Ends a delivery, detached or not: its event if it is completed.
macro_rules! finish {
    ($delivery:expr, $then:expr) => {
        match $then {
            Then::Complete | Then::Keep | Then::Detach => Some($delivery.complete()),
            Then::GiveBack => {
                $delivery.give_back();
                None
            }
            Then::Drop => {
                drop($delivery);
                None
            }
            Then::FailForGood => {
                $delivery.fail_for_good();
                None
            }
        }
    };
}

impl World {
    pub(crate) fn read(&mut self, op: Op) {
        match op {
            Op::Receive { queue, asks } => self.receive(queue.into(), asks),
            Op::ReceiveFrom { side, asks } => {
                if let Some(id) = self.pick(side) {
                    self.receive_from(self.model.side(id).group, asks);
                }
            }
            Op::Next { turn, then } => self.next(turn, then),
            Op::EndTurn { turn } => {
                if let Some((in_model, turn)) = choose(&mut self.turns, turn) {
                    drop(turn);
                    self.model.end_turn(in_model);
                }
            }
            Op::Finish { detached, then } => {
                if let Some((item, delivery)) = choose(&mut self.in_flight, detached) {
                    let event = finish!(delivery, then);
                    self.finished(item, event, true, then);
                }
            }
            Op::LetGo { event } => {
                if let Some((item, event)) = choose(&mut self.held, event) {
                    drop(event);
                    self.model.let_go(&item);
                }
            }
            Op::EndLook => {
                if let Some((item, look)) = self.look.take() {
                    assert_eq!(word(&look.event), item.word);
                    drop(look);
                    self.model.end_look(&item);
                }
            }
            Op::Look { side } => self.at_group(side, Self::look_at),
            Op::Resume { side } => self.at_group(side, |world, queue, group| {
                let resumed = queue.resume(world.ids[group]);
                assert_eq!(resumed.is_ok(), world.model.groups[group].alive);
                let expected = resumed.is_ok() && world.model.resume(group);
                assert_eq!(resumed.unwrap_or(false), expected);
            }),
            Op::TakeFailed { side } => self.at_group(side, Self::take_failed),
            Op::Drain { side } => self.at_group(side, Self::drain),
            other => unreachable!("{other:?}"),
        }
    }

    /// If the queue of the side is still there.
    fn at_group(&mut self, side: u8, then: impl FnOnce(&mut Self, Queue<Got>, usize)) {
        let Some(id) = self.pick(side) else {
            return;
        };
        let group = self.model.side(id).group;
        if let Some(queue) = self.queues[self.model.groups[group].queue].clone() {
            then(self, queue, group);
        }
    }

    fn receive(&mut self, n: usize, asks: bool) {
        let Some(queue) = &self.queues[n] else {
            return;
        };
        let rank = |group: usize| {
            let of = &self.model.groups[group];
            // Of those with one bump the first goes first, whatever their standing levels.
            (of.bump, of.bump.map_or(of.level, |_| 0))
        };
        let groups = self.model.groups_of(n).map(|(group, _)| group);
        let eligible = groups.filter(|&group| self.model.is_eligible(group));
        let best = eligible.map(rank).max();
        match queue.try_receive().map(Turn::into_owned) {
            Ok(turn) => {
                let is_it = |&id: &_| id == turn.group_id();
                let group = self.ids.iter().position(is_it).expect("it was made");
                assert!(self.model.is_eligible(group));
                // Of those with one rank the first goes first; ages are not in the model.
                assert_eq!(Some(rank(group)), best);
                self.begin_turn(group, turn, asks);
            }
            Err(no) => {
                assert_eq!(best, None);
                let left = self.model.has_waiting(n);
                let expected = match (self.model.is_finished(n), left) {
                    (false, _) => NoTurn::Empty,
                    (true, false) => NoTurn::Closed(NoMore::Drained),
                    (true, true) => NoTurn::Closed(NoMore::OnlyPoisoned),
                };
                assert_eq!(no, expected);
            }
        }
    }

    fn receive_from(&mut self, group: usize, asks: bool) {
        let of = &self.model.groups[group];
        let Some(queue) = &self.queues[of.queue] else {
            return;
        };
        let no = match queue
            .try_receive_from(self.ids[group])
            .map(Turn::into_owned)
        {
            Ok(turn) => {
                assert!(self.model.is_eligible(group));
                return self.begin_turn(group, turn, asks);
            }
            Err(no) => no,
        };
        assert!(!self.model.is_eligible(group));
        let finished = self.model.is_finished(of.queue);
        let left = self.model.has_waiting(of.queue);
        let closed = self.model.queues[of.queue].closed;
        let held = of.turn || of.looked.is_some();
        let fits = match no {
            NoTurn::Stale => !of.alive,
            NoTurn::Held => of.alive && held,
            NoTurn::Empty => of.alive && !held && of.waiting.is_empty() && !finished,
            NoTurn::Blocked(Why::Poisoned) => !held && of.poison.is_some(),
            NoTurn::Blocked(Why::Paused) => !held && of.poison.is_none() && of.limit == Some(0),
            NoTurn::Blocked(Why::Limit) => {
                !held && of.poison.is_none() && of.limit.is_some_and(|most| most > 0)
            }
            // A poisoned group that goes on may bring ends for others, so nothing is final.
            NoTurn::Closed(NoMore::OnlyPoisoned) => {
                closed && of.poison.is_some() || finished && left
            }
            NoTurn::Closed(NoMore::Drained) => finished && !left,
            _ => false,
        };
        assert!(fits, "{no:?} of {of:?}");
    }

    fn begin_turn(&mut self, group: usize, turn: Turn<'static, Got>, asks: bool) {
        // If the order of the first two is open, it must be seen which of them it is.
        if asks || self.model.is_tied(group) {
            let mut turn = turn;
            let Some(delivery) = turn.next().map(Delivery::detach) else {
                panic!("a turn begins with an event");
            };
            let to = self.side_of(delivery.endpoint());
            let mut in_model = self.model.begin_turn(group, Some(to));
            let item = self.model.give(&mut in_model, to);
            self.check(&item, to, &delivery, delivery.attempt());
            self.model.detach(&mut in_model);
            self.in_flight.push((item, delivery));
            self.turns.push((in_model, turn));
        } else {
            let in_model = self.model.begin_turn(group, None);
            self.turns.push((in_model, turn));
        }
    }

    fn check(&self, item: &Item, to: SideId, got: &Got, attempt: u32) {
        assert_eq!((item.to, item.word), (to, word(&got.event)));
        assert_eq!(attempt, item.fails + 1);
    }

    fn next(&mut self, n: u8, then: Then) {
        let Some((mut in_model, mut turn)) = choose(&mut self.turns, n) else {
            return;
        };
        let expected = self.model.next(&in_model);
        match turn.next() {
            None => assert_ne!(expected, Next::Something),
            Some(delivery) => {
                assert_ne!(expected, Next::Nothing);
                let to = self.side_of(delivery.endpoint());
                let item = self.model.give(&mut in_model, to);
                self.check(&item, to, &delivery, delivery.attempt());
                if let Then::Detach = then {
                    self.model.detach(&mut in_model);
                    self.in_flight.push((item, delivery.detach()));
                } else {
                    let event = finish!(delivery, then);
                    self.finished(item, event, false, then);
                }
            }
        }
        self.turns.push((in_model, turn));
    }

    fn finished(&mut self, item: Item, event: Option<Got>, detached: bool, then: Then) {
        match event {
            Some(event) => self.completed(item, event, detached, then),
            None => {
                let for_good = matches!(then, Then::FailForGood);
                self.model.give_back(item, detached, for_good);
            }
        }
    }

    fn completed(&mut self, item: Item, event: Got, detached: bool, then: Then) {
        self.model.complete(&item, detached);
        assert_eq!(word(&event.event), item.word);
        if let Then::Keep = then {
            self.held.push((item, event));
        } else {
            drop(event);
            self.model.let_go(&item);
        }
    }

    fn look_at(&mut self, queue: Queue<Got>, group: usize) {
        if self.look.is_some() {
            return;
        }
        let of = &self.model.groups[group];
        match queue.try_peek(self.ids[group]) {
            Ok(look) => {
                assert!(!of.turn && !of.waiting.is_empty());
                let to = self.side_of(look.endpoint());
                let item = self.model.look(group, to);
                self.check(&item, to, &look, look.attempts() + 1);
                self.look = Some((item, look));
            }
            Err(NoTurn::Held) => assert!(of.turn),
            Err(NoTurn::Empty) => assert!(of.alive && of.waiting.is_empty()),
            Err(NoTurn::Stale) => assert!(!of.alive),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn take_failed(&mut self, queue: Queue<Got>, group: usize) {
        let taken = queue.take_failed(self.ids[group]);
        assert_eq!(taken.is_ok(), self.model.groups[group].alive);
        let expected = self.model.take_failed(group);
        match (taken.ok().flatten(), expected) {
            (None, None) => {}
            (Some(event), Some(item)) => self.took(event, &item),
            (taken, expected) => panic!("{taken:?} for {expected:?}"),
        }
    }

    /// Not during a look: the docs do not say how the failures of what is looked at count then.
    fn drain(&mut self, queue: Queue<Got>, group: usize) {
        if self.model.groups[group].looked.is_some() {
            return;
        }
        let drained = queue.drain(self.ids[group]);
        assert_eq!(drained.is_ok(), self.model.groups[group].alive);
        let left = self.model.drain(group);
        self.took_all(drained.unwrap_or_default(), left);
    }

    /// Not during a look, as above.
    pub(crate) fn shutdown(&mut self, n: usize) {
        let Some(queue) = &self.queues[n] else {
            return;
        };
        let groups = self.model.groups_of(n);
        let mut groups: Vec<usize> = groups.map(|(group, _)| group).collect();
        let looked = |&group: &usize| self.model.groups[group].looked.is_some();
        if groups.iter().any(looked) {
            return;
        }
        let events = queue.shutdown();
        self.model.queues[n].closed = true;
        groups.sort_by_key(|&group| self.ids[group]);
        let left = groups.iter().flat_map(|&group| self.model.drain(group));
        let left = left.collect();
        self.took_all(events, left);
    }

    /// All that waited was taken out; the events are dropped one after the other.
    fn took_all(&mut self, events: Vec<Got>, mut left: Vec<Item>) {
        assert_eq!(events.len(), left.len());
        for event in events {
            let to = self.side_of(event.endpoint());
            let at = left.iter().position(|item| item.to == to);
            // The first of this side, and before it only those whose order is open.
            let at = at.expect("it waits");
            assert!(left[0].is_tied(&left[at]));
            let item = left.remove(at);
            self.took(event, &item);
        }
    }

    fn took(&mut self, event: Got, item: &Item) {
        assert_eq!(
            (self.side_of(event.endpoint()), word(&event.event)),
            (item.to, item.word)
        );
        drop(event);
        self.model.let_go(item);
    }
}
