//! Turns and deliveries.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::super::form::{Delivery, Turn};
use super::{Driver, Held, Own, TURNS, at, has_room, remove};
use crate::queue_script::Seen;
use crate::queue_script::script::{InHand, Kind, Op};

/// How deeply operations are nested while they borrow a turn.
const DEPTH: usize = 4;

impl<'q> Driver<'q> {
    pub(super) fn receive(&mut self, op: &Op) {
        if self.held.len() >= TURNS {
            return;
        }
        let (turn, seen) = if op.kind == Kind::Receive {
            let eligible = self.looks.then(|| self.queue.counts().eligible > 0);
            let turn = self.queue.try_receive();
            assert!(eligible.is_none_or(|eligible| eligible == turn.is_ok()));
            let group = turn.as_ref().map(|turn| self.numbers[&turn.group_id()]);
            let seen = Seen::Turn(group.map_err(|e| *e));
            (turn.ok(), seen)
        } else {
            let Some(known) = at(&self.known, op.a) else {
                return;
            };
            let turn = self.queue.try_receive_from(known.id);
            let group = turn.as_ref().map(|turn| self.numbers[&turn.group_id()]);
            let seen = Seen::TurnFrom(group.map_err(|e| *e));
            (turn.ok(), seen)
        };
        self.log.push(seen);
        if let Some(turn) = turn {
            let held = self.hold(turn, true);
            self.check_limits(held.group);
            self.turns.push(held);
        }
    }

    /// Claims several turns; they begin with other operations in between, or never.
    pub(super) fn receive_many(&mut self, op: &Op) {
        if self.held.len() >= TURNS {
            return;
        }
        let turns = self.queue.try_receive_many(usize::from(op.b % 8));
        let seen = turns.as_ref().map(|turns| turns.len());
        self.log.push(Seen::Turns(seen.map_err(|e| *e)));
        let Ok(mut turns) = turns else {
            return;
        };
        self.claimed += turns.len();
        let wanted = usize::from(op.c / 4 % 8);
        for _ in 0..wanted.min(turns.len()) {
            self.run_nested(op.c % 4);
            let before = self.queue.snapshot().waiting;
            let turn = turns.next().expect("it is still to come");
            let has_first = before > self.queue.snapshot().waiting;
            self.claimed -= 1;
            let held = self.hold(turn, has_first);
            self.log.push(Seen::Began(held.group, has_first));
            self.turns.push(held);
        }
        self.claimed -= turns.len();
    }

    /// A turn that has begun.
    pub(super) fn hold(&mut self, turn: Turn<'q, u32>, has_first: bool) -> Held<'q> {
        let group = self.numbers[&turn.group_id()];
        assert!(self.held.insert(group), "held");
        self.known[group].in_flight += 1;
        let waiting = &mut self.known[group].waiting;
        let first = has_first.then(|| waiting.pop_first().expect("something waits"));
        let own = Own { first, unit: true };
        Held { group, turn, own }
    }

    /// Checks that the units in flight, with one more for the next message, are within the limits.
    fn check_limits(&self, group: usize) {
        let known = &self.known[group];
        let of_lane = self.known.iter().filter(|k| k.lane == known.lane);
        let used: usize = of_lane.map(|known| known.in_flight).sum();
        let cap = self.caps[known.lane];
        assert!(has_room(cap, used - 1), "above the cap");
        let room = has_room(known.limit, known.in_flight - 1);
        assert!(room, "above the limit");
    }

    pub(super) fn own(&mut self, a: usize) {
        if let Some(Held { group, turn, own }) = remove(&mut self.turns, a) {
            let turn = turn.into_owned();
            self.turns.push(Held { group, turn, own });
        }
    }

    /// The messages that a turn gave are in hand.
    fn gave(&mut self, group: usize, own: &mut Own, given: &[u32]) {
        if given.is_empty() {
            return assert_eq!(own.first, None, "a turn begins with a delivery");
        }
        if !own.unit {
            self.known[group].in_flight += 1;
            own.unit = true;
        }
        if own.first.is_none() {
            self.check_limits(group);
        }
        for &message in given {
            let waiting = &mut self.known[group].waiting;
            let expected = own.first.take().or_else(|| waiting.pop_first());
            assert_eq!(expected, Some(message));
        }
    }

    /// Runs operations while something is borrowed.
    fn run_nested(&mut self, n: u8) {
        if self.depth < DEPTH {
            self.run_some(usize::from(n));
        }
    }

    pub(super) fn next(&mut self, op: &Op) {
        if let Some(mut held) = remove(&mut self.turns, op.a) {
            self.next_of(&mut held, op);
            self.turns.push(held);
        }
    }

    fn next_of(&mut self, held: &mut Held<'_>, op: &Op) {
        let group = held.group;
        let delivery = held.turn.next();
        let seen = delivery.as_ref().map(|delivery| InHand {
            group: self.numbers[&delivery.group_id()],
            message: **delivery,
            attempt: delivery.attempt(),
            tier: delivery.tier(),
        });
        self.log.push(Seen::Next(seen));
        let given = seen.map(|seen| seen.message);
        self.gave(group, &mut held.own, given.as_slice());
        if let Some(delivery) = delivery {
            let how = match op.c % 8 {
                3 => {
                    self.run_nested(1 + op.c / 8 % 8);
                    op.b % 7
                }
                how => how.min(6),
            };
            held.own.unit = self.end_borrowed(group, delivery, how);
        }
    }

    /// Ends a delivery in one of seven ways; returns whether its turn still has the unit.
    fn end_borrowed(&mut self, group: usize, delivery: Delivery<'_, u32>, how: u8) -> bool {
        let message = *delivery;
        match how {
            0 | 1 => {
                assert_eq!(delivery.complete(), message);
                self.log.push(Seen::Done(message));
                return true;
            }
            2 => delivery.give_back(),
            3 => panics(delivery),
            4 => delivery.give_back_after(pause(message)),
            5 => delivery.fail_for_good(),
            _ => {
                self.hands.push((group, delivery.detach()));
                return false;
            }
        }
        self.back(group, [message]);
        true
    }

    pub(super) fn next_batch(&mut self, op: &Op) {
        let Some(mut held) = remove(&mut self.turns, op.a) else {
            return;
        };
        let n = usize::from(op.b % 5);
        let group = held.group;
        let first = held.own.first;
        let batch = held.turn.next_batch(n);
        let given: Option<Vec<u32>> = batch.as_ref().map(|b| b.iter().copied().collect());
        self.log.push(Seen::Batch(given.clone()));
        if n > 0 || first.is_none() {
            self.gave(group, &mut held.own, given.as_deref().unwrap_or_default());
        }
        if let (Some(batch), Some(given)) = (batch, given) {
            assert_eq!(batch.len(), given.len());
            self.run_nested(op.c % 4);
            let done = match op.c / 4 % 4 {
                0 => batch.complete().collect(),
                1 => batch.complete_up_to(usize::from(op.c / 16)).collect(),
                2 => {
                    drop(batch);
                    Vec::new()
                }
                _ => {
                    panics(batch);
                    Vec::new()
                }
            };
            assert!(given.starts_with(&done));
            self.back(group, given[done.len()..].iter().copied());
            self.log.push(Seen::DoneAll(done));
        }
        self.turns.push(held);
    }

    /// Messages of a group wait again.
    fn back(&mut self, group: usize, messages: impl IntoIterator<Item = u32>) {
        for message in messages {
            let new = self.known[group].waiting.insert(message);
            assert!(new, "it waits twice");
        }
    }

    pub(super) fn drop_turn(&mut self, a: usize) {
        if let Some(Held { group, turn, own }) = remove(&mut self.turns, a) {
            drop(turn);
            self.held.remove(&group);
            self.known[group].in_flight -= usize::from(own.unit);
            self.back(group, own.first);
        }
    }

    pub(super) fn end(&mut self, op: &Op) {
        let Some((group, delivery)) = remove(&mut self.hands, op.a) else {
            return;
        };
        let message = *delivery;
        self.known[group].in_flight -= 1;
        if op.kind == Kind::Complete {
            assert_eq!(delivery.complete(), message);
            self.log.push(Seen::Done(message));
            return;
        }
        match op.b % 5 {
            0 => delivery.give_back(),
            1 => drop(delivery),
            2 => delivery.give_back_after(pause(message)),
            3 => delivery.fail_for_good(),
            _ => panics(delivery),
        }
        self.back(group, [message]);
    }
}

/// A pause that a delivery of this message names.
fn pause(message: u32) -> Duration {
    Duration::from_secs(u64::from(message % 4))
}

/// A handler that panics while it holds this.
fn panics<H>(held: H) {
    let handler = AssertUnwindSafe(move || {
        let _held = held;
        resume_unwind(Box::new("on purpose"));
    });
    assert!(catch_unwind(handler).is_err());
}
