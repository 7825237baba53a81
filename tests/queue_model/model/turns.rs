//! Turns and deliveries.

use std::time::Duration;

use super::{Failure, Hold, Message, Model, Turn};

impl Model {
    pub fn begin(&mut self, group: usize) -> Turn {
        let g = &mut self.groups[group];
        g.hold = Some(Hold::Turn);
        let suspended = g.is_suspended();
        let may_begin = !suspended && g.units <= g.limit;
        let taken = may_begin
            .then(|| g.waiting.pop_first())
            .flatten()
            .map(|(_, first)| first);
        if taken.is_none() {
            let lane = g.lane;
            self.lanes[lane].started.pop();
            self.settle();
        }
        Turn {
            group,
            taken,
            quota: self.settings.quantum,
            unit: true,
        }
    }

    /// The message of the next delivery.
    pub fn next(&mut self, turn: &mut Turn) -> Option<Message> {
        self.take_for(turn).inspect(|_| turn.quota -= 1)
    }

    fn finish_swept(&mut self, group: usize) {
        if std::mem::take(&mut self.groups[group].swept) {
            self.finish(self.groups[group].lane, 0);
            self.settle();
        }
    }

    fn take_for(&mut self, turn: &mut Turn) -> Option<Message> {
        if let Some(first) = turn.taken.take() {
            return Some(first);
        }
        if turn.quota > 0 && !self.groups[turn.group].waiting.is_empty() {
            self.finish_swept(turn.group);
        }
        let g = &mut self.groups[turn.group];
        let lane = &mut self.lanes[g.lane];
        let own = u32::from(turn.unit);
        if turn.quota == 0 || g.waiting.is_empty() || !g.goes_on(lane, own) {
            return None;
        }
        let (tier, lane) = (g.waiting.first_key_value()?.1.tier, g.lane);
        if !self.may_start(lane, tier) {
            return None;
        }
        let g = &mut self.groups[turn.group];
        let lane = &mut self.lanes[g.lane];
        lane.started.push(tier);
        g.units += 1 - own;
        lane.units += 1 - own;
        turn.unit = true;
        let taken = g.waiting.pop_first().map(|(_, first)| first);
        self.settle();
        taken
    }

    /// More messages for a batch whose first one is taken.
    pub fn next_of_batch(&mut self, turn: &mut Turn, last: u64) -> Option<Message> {
        let g = &mut self.groups[turn.group];
        if !g.goes_on(&self.lanes[g.lane], 1) || self.lanes[g.lane].tiered {
            return None;
        }
        let next = g.waiting.first_entry()?;
        if turn.quota == 0 || *next.key() != last + 1 || next.get().failed > 0 {
            return None;
        }
        turn.quota -= 1;
        let next = next.remove();
        self.lanes[g.lane].started.push(next.tier);
        Some(next)
    }

    /// A message of a turn is completed.
    pub fn complete(&mut self, group: usize, message: &Message) {
        self.outstanding -= 1;
        self.finish(self.groups[group].lane, message.tier);
        self.settle();
    }

    /// A message of a turn is given back.
    pub fn fail(&mut self, group: usize, message: Message, how: &Failure) {
        self.come_back(group, message, how);
        self.finish_swept(group);
        self.settle();
    }

    fn come_back(&mut self, group: usize, mut message: Message, how: &Failure) {
        message.failed += 1;
        self.failed += 1;
        let at = self.tick();
        self.finish(self.groups[group].lane, message.tier);
        let g = &mut self.groups[group];
        let (number, failed) = (message.number, message.failed);
        g.waiting.insert(number, message);
        if g.poison.is_some() {
            return;
        }
        let (first, most) = self.settings.back_off;
        let pause = match how {
            Failure::ForGood => None,
            _ if failed >= self.settings.attempts => None,
            Failure::Pause(pause) => Some(*pause),
            Failure::ByRule => Some((first * 2_u32.pow((failed - 1).min(20))).min(most)),
        };
        match pause {
            None => {
                (g.poison, g.paused_until) = (Some((number, at)), None);
                g.reported = false;
            }
            Some(Duration::ZERO) => {}
            Some(pause) => {
                let date = self.now + pause;
                if g.paused_until.is_none_or(|(old, _)| old < date) {
                    g.paused_until = Some((date, at));
                }
            }
        }
    }

    pub fn put_back(&mut self, group: usize, message: Message) {
        self.finish(self.groups[group].lane, message.tier);
        self.groups[group].waiting.insert(message.number, message);
    }

    pub fn detach(&mut self, turn: &mut Turn) {
        turn.unit = false;
        self.groups[turn.group].detached += 1;
        self.finish_swept(turn.group);
    }

    /// The end of a detached delivery.
    pub fn end_detached(&mut self, group: usize, message: Message, back: Option<Failure>) {
        let was_ready = self.is_ready(group);
        match back {
            None => {
                self.outstanding -= 1;
                self.finish(self.groups[group].lane, message.tier);
            }
            Some(how) => self.come_back(group, message, &how),
        }
        let age = self.tick();
        let g = &mut self.groups[group];
        g.units -= 1;
        g.detached -= 1;
        self.lanes[g.lane].units -= 1;
        if !was_ready || g.poison.is_some() || g.paused_until.is_some() {
            g.age = age;
        }
        self.settle();
    }

    pub fn end(&mut self, turn: Turn) {
        if let Some(taken) = turn.taken {
            self.put_back(turn.group, taken);
        }
        let age = self.tick();
        self.finish_swept(turn.group);
        let g = &mut self.groups[turn.group];
        (g.hold, g.age) = (None, age);
        g.units -= u32::from(turn.unit);
        self.lanes[g.lane].units -= u32::from(turn.unit);
        self.settle();
    }
}
