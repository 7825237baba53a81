//! What dialogs must do, written from the public docs: plain lists, without regard to cost.

use conversant::dialog::{Fault, Refused};

/// A side: its dialog, and 0 or 1.
pub(crate) type SideId = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Message(u32),
    End,
    /// With its code.
    Error(u32),
    Timer,
}

/// An event of a side.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) key: u32,
    pub(crate) to: SideId,
    pub(crate) word: Word,
    /// How many of its deliveries failed.
    pub(crate) fails: u32,
    /// Errors are before all others. Those whose order the docs leave open have equal places.
    pub(crate) place: (bool, u32),
    pub(crate) group: usize,
}

#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) group: usize,
    pub(crate) ended: bool,
    timer: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) queue: usize,
    pub(crate) alive: bool,
    pub(crate) limit: Option<u32>,
    pub(crate) level: u8,
    pub(crate) bump: Option<u8>,
    pub(crate) capacity: Option<u32>,
    /// Handles, and sides that have not ended.
    pins: u32,
    pub(crate) waiting: Vec<Item>,
    /// Messages in flight.
    pub(crate) out: u32,
    /// Units of the limit in use.
    pub(crate) units: u32,
    /// A turn is live.
    pub(crate) turn: bool,
    /// The message that a look holds.
    pub(crate) looked: Option<u32>,
    /// The message that poisoned it.
    pub(crate) poison: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueState {
    pub(crate) capacity: Option<u32>,
    pub(crate) closed: bool,
    pub(crate) gone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    /// `None`: no limit.
    pub(crate) attempts: Option<u32>,
    pub(crate) quantum: u32,
    pub(crate) queues: [QueueState; 2],
    pub(crate) dialogs: Vec<[Side; 2]>,
    pub(crate) groups: Vec<Group>,
    /// Poisoned groups, in the order in which they were poisoned.
    pub(crate) poisoned: Vec<usize>,
    pub(crate) now: u64,
    last: u32,
}

impl Model {
    pub(crate) fn new(attempts: Option<u32>, quantum: u32) -> Self {
        Self {
            attempts,
            quantum,
            ..Self::default()
        }
    }

    fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// A group with one pin.
    pub(crate) fn group(&mut self, queue: usize, limit: Option<u32>) -> usize {
        self.groups.push(Group {
            queue,
            alive: true,
            limit,
            level: 100,
            bump: None,
            capacity: None,
            pins: 1,
            waiting: Vec::new(),
            out: 0,
            units: 0,
            turn: false,
            looked: None,
            poison: None,
        });
        self.groups.len() - 1
    }

    /// A dialog in these groups, which live. Each has a pin for it already.
    pub(crate) fn begin(&mut self, groups: [usize; 2]) {
        self.dialogs.push(groups.map(|group| Side {
            group,
            ended: false,
            timer: None,
        }));
    }

    pub(crate) fn pin(&mut self, group: usize) {
        self.groups[group].pins += 1;
    }

    pub(crate) fn unpin(&mut self, group: usize) {
        self.groups[group].pins -= 1;
        self.reap(group);
    }

    pub(crate) fn reap(&mut self, group: usize) {
        let of = &mut self.groups[group];
        let idle = of.waiting.is_empty() && of.out == 0 && of.looked.is_none();
        if of.pins == 0 && idle && !of.turn {
            of.alive = false;
        }
    }

    pub(crate) fn side(&self, (dialog, side): SideId) -> &Side {
        &self.dialogs[dialog][side]
    }

    pub(crate) fn of(&self, id: SideId) -> &Group {
        &self.groups[self.side(id).group]
    }

    pub(crate) fn groups_of(&self, queue: usize) -> impl Iterator<Item = (usize, &Group)> {
        let groups = self.groups.iter().enumerate();
        groups.filter(move |(_, group)| group.queue == queue && group.alive)
    }

    /// Messages that wait in a queue or are in flight.
    pub(crate) fn outstanding(&self, queue: usize) -> i64 {
        let held = |(_, group): (_, &Group)| group.waiting.len() as i64 + i64::from(group.out);
        self.groups_of(queue).map(held).sum()
    }

    pub(crate) fn has_waiting(&self, queue: usize) -> bool {
        self.groups_of(queue)
            .any(|(_, group)| !group.waiting.is_empty())
    }

    /// Nothing is in flight, and nothing waits except in poisoned groups.
    pub(crate) fn is_finished(&self, queue: usize) -> bool {
        let done = |group: &Group| group.waiting.is_empty() || group.poison.is_some();
        self.queues[queue].closed
            && self
                .groups_of(queue)
                .all(|(_, group)| group.units == 0 && done(group))
    }

    pub(crate) fn live(&self) -> usize {
        let live = |sides: &&[Side; 2]| sides.iter().any(|side| !side.ended);
        self.dialogs.iter().filter(live).count()
    }

    pub(crate) fn refusal(&self, (dialog, side): SideId) -> Option<Refused> {
        let sides = &self.dialogs[dialog];
        match (sides[side].ended, sides[1 - side].ended) {
            (true, _) => Some(Refused::Ended),
            (false, true) => Some(Refused::PeerEnded),
            (false, false) => None,
        }
    }

    pub(crate) fn send(
        &mut self,
        id @ (dialog, side): SideId,
        message: u32,
    ) -> Result<(), Refused> {
        let peer = (dialog, 1 - side);
        let group = self.of(peer);
        let queue = self.queues[group.queue];
        let full = queue
            .capacity
            .is_some_and(|most| self.outstanding(group.queue) >= most.into());
        let group_full = group
            .capacity
            .is_some_and(|most| group.waiting.len() >= most as usize);
        match self.refusal(id) {
            Some(refused) => Err(refused),
            None if queue.closed => Err(Refused::Closed),
            None if full || group_full => Err(Refused::Full),
            None => {
                let number = self.number();
                self.put(peer, Word::Message(message), number);
                Ok(())
            }
        }
    }

    fn put(&mut self, to: SideId, word: Word, number: u32) {
        let key = self.number();
        let item = Item {
            key,
            to,
            word,
            fails: 0,
            place: (!matches!(word, Word::Error(_)), number),
            group: self.side(to).group,
        };
        self.insert(item);
    }

    pub(crate) fn insert(&mut self, item: Item) {
        let waiting = &mut self.groups[item.group].waiting;
        let at = waiting.partition_point(|other| other.place <= item.place);
        waiting.insert(at, item);
    }

    /// Whether an end, error or timer goes into the group.
    fn accepts(&self, group: usize) -> bool {
        let of = &self.groups[group];
        !self.queues[of.queue].gone && (!self.is_finished(of.queue) || of.poison.is_some())
    }

    /// False if the side had ended.
    pub(crate) fn end(&mut self, id: SideId, word: Word) -> bool {
        let number = self.number();
        self.end_at(id, word, number)
    }

    fn end_at(&mut self, id @ (dialog, side): SideId, word: Word, number: u32) -> bool {
        let peer = (dialog, 1 - side);
        let mine = &mut self.dialogs[dialog][side];
        if mine.ended {
            return false;
        }
        (mine.ended, mine.timer) = (true, None);
        let group = mine.group;
        let told = !self.side(peer).ended;
        let heard = told && self.accepts(self.side(peer).group);
        if heard {
            self.put(peer, word, number);
        }
        let looked = self.groups[group].looked;
        self.take_out(group, |item| item.to == id && Some(item.key) != looked);
        self.unpin(group);
        if told && !heard {
            self.end(peer, Word::End);
        }
        true
    }

    pub(crate) fn set_timer(&mut self, (dialog, side): SideId, after: u64) -> bool {
        let due = self.now + after;
        let side = &mut self.dialogs[dialog][side];
        side.timer = (!side.ended).then_some(due);
        !side.ended
    }

    /// Whether one was set; nothing if the side has ended.
    pub(crate) fn clear_timer(&mut self, (dialog, side): SideId) -> Option<bool> {
        let side = &mut self.dialogs[dialog][side];
        (!side.ended).then(|| side.timer.take().is_some())
    }

    /// When the next timer is due. Timers ring in the order in which they are due.
    pub(crate) fn advance(&mut self, to: u64) -> Option<u64> {
        self.now = self.now.max(to);
        loop {
            let ids = (0..self.dialogs.len()).flat_map(|dialog| [(dialog, 0), (dialog, 1)]);
            let ids: Vec<SideId> = ids.collect();
            let due = ids.iter().filter_map(|&id| self.side(id).timer).min()?;
            if due > self.now {
                return Some(due);
            }
            let number = self.number();
            for &id in ids
                .iter()
                .filter(|&&id| self.side(id).timer == Some(due))
                .collect::<Vec<_>>()
            {
                self.dialogs[id.0][id.1].timer = None;
                if self.accepts(self.side(id).group) {
                    self.put(id, Word::Timer, number);
                }
            }
        }
    }

    pub(crate) fn drop_queue(&mut self, queue: usize) {
        self.queues[queue].closed = true;
        self.queues[queue].gone = true;
        let number = self.number();
        for dialog in 0..self.dialogs.len() {
            for side in [0, 1] {
                if self.of((dialog, side)).queue == queue {
                    self.end_at((dialog, side), Word::Error(Fault::GONE), number);
                }
            }
        }
        for group in 0..self.groups.len() {
            if self.groups[group].queue == queue {
                let looked = self.groups[group].looked;
                self.take_out(group, |item| Some(item.key) != looked);
                self.reap(group);
            }
        }
    }

    /// Messages, not events, that exist.
    pub(crate) fn messages_waiting(&self) -> usize {
        let waiting = self.groups.iter().flat_map(|group| &group.waiting);
        waiting.filter(|item| item.is_message()).count()
    }
}

impl Item {
    /// Whether the docs leave open which of the two comes first.
    pub(crate) fn is_tied(&self, other: &Self) -> bool {
        self.place == other.place
    }

    pub(crate) fn is_message(&self) -> bool {
        matches!(self.word, Word::Message(_))
    }
}
