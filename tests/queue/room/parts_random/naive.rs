//! The capacities as lists of who waits.

use super::*;

pub const GROUPS: usize = 3;
pub const LANE: usize = GROUPS;
pub const QUEUE: usize = GROUPS + 1;

/// The places in `Naive::levels` whose room a message of a group needs, in order.
pub const fn levels(group: usize) -> [usize; 3] {
    [group, LANE, QUEUE]
}

pub fn is_one_of(reason: Option<SendReason>, refusals: &[SendReason]) {
    let expected = reason.map_or(refusals.is_empty(), |reason| refusals.contains(&reason));
    assert!(expected, "{reason:?} is none of {refusals:?}");
}

/// A queued or granted wait: its number, and how many it asks for.
pub type InLine = (usize, usize);

#[derive(Default)]
pub struct Level {
    pub limit: Option<usize>,
    /// How often it began to have a capacity.
    pub times: usize,
    pub held: usize,
    pub line: Vec<InLine>,
    /// Grants that the waits have not seen yet, and in which of the level's times.
    pub granted: Vec<(InLine, usize)>,
    /// Refused because the limit fell below the number that they ask for.
    pub refused: Vec<usize>,
}

pub enum Answer {
    /// In which of the level's times.
    Granted(usize),
    InLine,
    AboveCapacity,
}

impl Level {
    pub fn is_above(&self, n: usize) -> bool {
        self.limit.is_some_and(|limit| limit > 0 && n > limit)
    }

    pub fn covers(&self, ahead: &[InLine], n: usize) -> bool {
        let ahead: usize = ahead.iter().map(|one| one.1).sum();
        self.limit
            .is_none_or(|limit| self.held + ahead + n <= limit)
    }

    pub fn admits(&self, n: usize) -> bool {
        self.covers(&self.line, n)
    }

    pub fn ask(&mut self, number: usize, n: usize) -> Answer {
        if let Some(at) = self.granted.iter().position(|one| one.0.0 == number) {
            return Answer::Granted(self.granted.remove(at).1);
        }
        let at = self.line.iter().position(|one| one.0 == number);
        if self.refused.contains(&number) || self.is_above(n) {
            return Answer::AboveCapacity;
        }
        let ahead = &self.line[..at.unwrap_or(self.line.len())];
        if self.covers(ahead, n) {
            self.held += n;
            self.line.retain(|one| one.0 != number);
            return Answer::Granted(self.times);
        }
        if at.is_none() {
            self.line.push((number, n));
        }
        Answer::InLine
    }

    /// The wait leaves the queue.
    pub fn leave(&mut self, number: usize) {
        self.line.retain(|one| one.0 != number);
        if let Some(at) = self.granted.iter().position(|one| one.0.0 == number) {
            let ((_, n), time) = self.granted.remove(at);
            self.give_up(n, Some(time));
        }
    }

    pub fn give_up(&mut self, n: usize, time: Option<usize>) {
        if time == Some(self.times) && self.limit.is_some() {
            self.held -= n;
        }
    }

    pub fn settle(&mut self) {
        while let Some(&(number, n)) = self.line.first()
            && self.covers(&[], n)
        {
            self.line.remove(0);
            self.held += n;
            self.granted.push(((number, n), self.times));
        }
    }

    pub fn set(&mut self, limit: Option<usize>, waiting: usize) {
        if self.limit.is_none() && limit.is_some() {
            self.times += 1;
            self.held = waiting;
        }
        self.limit = limit;
        if limit.is_none() {
            self.line.clear();
            self.refused.clear();
        }
        let above = |one: &InLine| limit.is_some_and(|limit| limit > 0 && one.1 > limit);
        let refused = self.line.extract_if(.., |one| above(one));
        self.refused.extend(refused.map(|one| one.0));
    }
}

/// What a wait has been granted of a group and its lane: in which of their times.
pub type Has = [Option<usize>; 2];

#[derive(Default)]
pub struct Naive {
    pub levels: [Level; GROUPS + 2],
    pub waiting: [usize; GROUPS],
}

impl Naive {
    pub fn settle(&mut self) {
        self.levels.iter_mut().for_each(Level::settle);
    }

    /// The reasons for which an immediate send may be refused. If both group and lane refuse it,
    /// either may be named.
    pub fn refusals(&self, group: usize, n: usize) -> Vec<SendReason> {
        let reasons = [
            SendReason::GroupFull,
            SendReason::LaneFull,
            SendReason::Full,
        ];
        let of = |which: usize| {
            let level = &self.levels[levels(group)[which]];
            match () {
                () if level.is_above(n) => Some(SendReason::AboveCapacity),
                () if !level.admits(n) => Some(reasons[which]),
                () => None,
            }
        };
        let parts: Vec<_> = [0, 1].into_iter().filter_map(of).collect();
        match parts.is_empty() {
            true => of(2).into_iter().collect(),
            false => parts,
        }
    }

    pub fn enter(&mut self, group: usize, n: usize, has: Has) {
        self.waiting[group] += n;
        for (which, time) in has.into_iter().enumerate() {
            let level = &mut self.levels[levels(group)[which]];
            if level.limit.is_some() && time != Some(level.times) {
                level.held += n;
            }
        }
    }

    /// Permits that are given up without a message.
    pub fn give_up(&mut self, group: usize, n: usize, has: Has) {
        for (which, time) in has.into_iter().enumerate() {
            self.levels[levels(group)[which]].give_up(n, time);
        }
    }

    pub fn granted(&self, group: usize) -> Has {
        [0, 1].map(|which| {
            let level = &self.levels[levels(group)[which]];
            level.limit.map(|_| level.times)
        })
    }

    pub fn taken(&mut self, group: usize, n: usize) {
        self.waiting[group] -= n;
        let granted = self.granted(group);
        self.give_up(group, n, granted);
        self.settle();
    }

    pub fn back(&mut self, group: usize, n: usize) {
        self.enter(group, n, [None, None]);
    }

    pub fn done(&mut self, n: usize) {
        self.levels[QUEUE].held -= n;
        self.settle();
    }

    pub fn set(&mut self, level: usize, limit: Option<usize>) {
        let waiting = match level {
            LANE => self.waiting.iter().sum(),
            group => self.waiting[group],
        };
        self.levels[level].set(limit, waiting);
        self.settle();
    }
}
