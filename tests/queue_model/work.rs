//! The steps of readers: turns, deliveries, batches.

use conversant::queue::{Batch, NoTurn, Turn};

use super::model::{self, Failure, Message};
use super::pair::{Pair, failure, same};
use super::script::{Kind, Step};

/// A step while a delivery lives.
const INSIDE: [Kind; 16] = [
    Kind::Send,
    Kind::SendAll,
    Kind::Bump,
    Kind::Level,
    Kind::Limit,
    Kind::Cap,
    Kind::Advance,
    Kind::Resume,
    Kind::Drain,
    Kind::TakeFailed,
    Kind::EndDetached,
    Kind::ByName,
    Kind::Receive,
    Kind::EndPeek,
    Kind::Look,
    Kind::Poll,
];

impl<'q> Pair<'q> {
    pub fn receive(&mut self) -> Result<(), String> {
        let turn = self.queue.try_receive();
        let group = self.model.claim().ok_or_else(|| self.model.nothing());
        self.begin("receive", turn, group)
    }

    pub fn by_name(&mut self, group: usize) -> Result<(), String> {
        let turn = self.queue.try_receive_from(self.groups[group].id);
        let expected = self.model.claim_by_name(group).map(|()| group);
        self.begin("receive by name", turn, expected)
    }

    fn begin(
        &mut self,
        what: &str,
        turn: Result<Turn<'q, u32>, NoTurn>,
        group: Result<usize, NoTurn>,
    ) -> Result<(), String> {
        let shown = turn
            .as_ref()
            .map(|turn| turn.group_id())
            .map_err(Clone::clone);
        same(what, shown, group.map(|group| self.groups[group].id))?;
        if let (Ok(turn), Ok(group)) = (turn, group) {
            let begun = self.model.begin(group);
            self.turns.push((begun, turn));
        }
        Ok(())
    }

    pub fn receive_many(&mut self, args: [u32; 3]) -> Result<(), String> {
        let n = args[0] as usize % 5;
        let turns = self.queue.try_receive_many(n);
        let claimed: Vec<_> = (0..n).map_while(|_| self.model.claim()).collect();
        let count = turns
            .as_ref()
            .map(|turns| turns.len())
            .map_err(Clone::clone);
        let expected = match claimed.len() {
            0 if n > 0 => Err(self.model.nothing()),
            count => Ok(count),
        };
        same("many", count, expected)?;
        let Ok(mut turns) = turns else {
            return Ok(());
        };
        let begun = (args[1] as usize % 5).min(claimed.len());
        for &group in &claimed[..begun] {
            self.inside(args[2])?;
            let turn = turns.next().expect("it was counted");
            self.begin("one of many", Ok(turn), Ok(group))?;
        }
        self.inside(args[1] / 5)?;
        drop(turns);
        for &group in &claimed[begun..] {
            let turn = self.model.begin(group);
            self.model.end(turn);
        }
        Ok(())
    }

    fn inside(&mut self, arg: u32) -> Result<(), String> {
        let Some(&kind) = INSIDE.get(arg as usize % 32) else {
            return Ok(());
        };
        let args = [arg / 7, arg / 11, arg / 13];
        let at = |told| format!("inside, {kind:?}{args:?}: {told}");
        self.step(&Step { kind, args }).map_err(at)
    }

    pub fn end_turn(&mut self, arg: u32) -> Result<(), String> {
        if !self.turns.is_empty() {
            let (begun, turn) = self.turns.swap_remove(arg as usize % self.turns.len());
            match arg % 7 {
                0 => drop(turn.into_owned()),
                _ => drop(turn),
            }
            self.model.end(begun);
        }
        Ok(())
    }

    /// Serves a turn to its end; few messages fail.
    pub fn serve(&mut self, arg: u32) -> Result<(), String> {
        let before = self.turns.len();
        self.receive()?;
        if self.turns.len() == before {
            return Ok(());
        }
        let (mut begun, mut turn) = self.turns.pop().expect("there is one more");
        let mut left = arg;
        loop {
            let expected = self.model.next(&mut begun);
            let delivery = turn.next();
            let shown = delivery.as_ref().map(|delivery| **delivery);
            same(
                "message served",
                shown,
                expected.as_ref().map(|message| message.id),
            )?;
            let (Some(delivery), Some(message)) = (delivery, expected) else {
                break;
            };
            match left % 8 {
                7 => {
                    delivery.give_back();
                    self.model.fail(begun.group, message, &Failure::ByRule);
                    self.model.settle();
                }
                _ => {
                    delivery.complete();
                    self.model.complete(begun.group, &message);
                }
            }
            left /= 3;
        }
        drop(turn);
        self.model.end(begun);
        Ok(())
    }

    pub fn next(&mut self, args: [u32; 3]) -> Result<(), String> {
        if self.turns.is_empty() {
            return Ok(());
        }
        let (mut begun, mut turn) = self.turns.swap_remove(args[0] as usize % self.turns.len());
        let group = begun.group;
        let delivery = turn.next();
        let expected = self.model.next(&mut begun);
        let shown = |m: &Message| (m.id, m.failed + 1);
        let got = delivery
            .as_ref()
            .map(|delivery| (**delivery, delivery.attempt()));
        same("message", got, expected.as_ref().map(shown))?;
        if let (Some(delivery), Some(message)) = (delivery, expected) {
            self.inside(args[2])?;
            let how = failure(args[1] / 10 % 6);
            match args[1] % 10 {
                0..4 => {
                    same("completed", delivery.complete(), message.id)?;
                    self.model.complete(group, &message);
                }
                4 | 5 => {
                    self.detached.push((group, message, delivery.detach()));
                    self.model.detach(&mut begun);
                }
                6 => {
                    drop(delivery);
                    self.model.dropped += 1;
                    self.model.fail(group, message, &Failure::ByRule);
                }
                _ => {
                    match &how {
                        Failure::ForGood => delivery.fail_for_good(),
                        Failure::Pause(pause) => delivery.give_back_after(*pause),
                        Failure::ByRule => delivery.give_back(),
                    }
                    self.model.fail(group, message, &how);
                }
            }
            self.model.settle();
        }
        self.turns.push((begun, turn));
        Ok(())
    }

    pub fn batch(&mut self, args: [u32; 3]) -> Result<(), String> {
        if self.turns.is_empty() {
            return Ok(());
        }
        let (mut begun, mut turn) = self.turns.swap_remove(args[0] as usize % self.turns.len());
        let n = 1 + args[1] as usize % 4;
        let batch = turn.next_batch(n);
        let expected = self.expect_batch(&mut begun, n);
        let shown = batch
            .as_ref()
            .map(|b| b.iter().copied().collect::<Vec<_>>());
        let ids = |all: &[Message]| all.iter().map(|m| m.id).collect::<Vec<_>>();
        same("batch", shown.unwrap_or_default(), ids(&expected))?;
        let end = |batch| self.end_batch(begun.group, batch, &expected, args);
        batch.map(end).transpose()?;
        self.turns.push((begun, turn));
        Ok(())
    }

    fn end_batch(
        &mut self,
        group: usize,
        batch: Batch<'_, u32>,
        expected: &[Message],
        args: [u32; 3],
    ) -> Result<(), String> {
        let ids = |all: &[Message]| all.iter().map(|m| m.id).collect::<Vec<_>>();
        same(
            "attempt of a batch",
            batch.attempt(),
            expected[0].failed + 1,
        )?;
        self.inside(args[2])?;
        let mut done = args[1] as usize / 4 % (expected.len() + 1);
        let completed = match args[2] % 3 {
            0 => {
                done = expected.len();
                batch.complete().collect()
            }
            1 => {
                done = 0;
                drop(batch);
                self.model.dropped += 1;
                Vec::new()
            }
            _ => batch.complete_up_to(done).collect(),
        };
        same("completed of a batch", completed, ids(&expected[..done]))?;
        for message in &expected[..done] {
            self.model.complete(group, message);
        }
        let back = &expected[done..];
        for message in back.iter().skip(1) {
            self.model.put_back(group, message.clone());
        }
        if let Some(first) = back.first() {
            self.model.fail(group, first.clone(), &Failure::ByRule);
        }
        self.model.settle();
        Ok(())
    }

    fn expect_batch(&mut self, begun: &mut model::Turn, n: usize) -> Vec<Message> {
        let mut expected: Vec<_> = self.model.next(begun).into_iter().collect();
        while let Some(last) = expected.last().filter(|_| expected.len() < n) {
            let last = last.number;
            match self.model.next_of_batch(begun, last) {
                Some(more) => expected.push(more),
                None => break,
            }
        }
        expected
    }

    pub fn end_detached(&mut self, which: u32, how: u32) -> Result<(), String> {
        if self.detached.is_empty() {
            return Ok(());
        }
        let which = which as usize % self.detached.len();
        let (group, message, delivery) = self.detached.swap_remove(which);
        same(
            "attempt of a detached",
            delivery.attempt(),
            message.failed + 1,
        )?;
        let failure = failure(how / 10 % 6);
        let back = match how % 10 {
            0..5 => {
                same("detached", delivery.complete(), message.id)?;
                None
            }
            5 => {
                drop(delivery);
                self.model.dropped += 1;
                Some(Failure::ByRule)
            }
            _ => {
                match &failure {
                    Failure::ForGood => delivery.fail_for_good(),
                    Failure::Pause(pause) => delivery.give_back_after(*pause),
                    Failure::ByRule => delivery.give_back(),
                }
                Some(failure)
            }
        };
        self.model.end_detached(group, message, back);
        Ok(())
    }
}
