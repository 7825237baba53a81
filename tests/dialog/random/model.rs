//! What dialogs must do, in the plainest form: lists, on one thread, without regard to cost.

use std::collections::BTreeMap;

use conversant::dialog::Refused;

/// A side: its dialog, and which of the two.
pub(crate) type SideId = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Message(u32),
    End,
    /// With its code; `None` is the code of a peer that is gone.
    Error(Option<u32>),
    Timer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) to: SideId,
    pub(crate) word: Word,
    pub(crate) attempt: u32,
    /// Errors before all others, then by number.
    place: (bool, u32),
    group: usize,
    /// Its receipt ends its side.
    pub(crate) last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    Ended,
}

#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) phase: Phase,
    pub(crate) group: usize,
    timer: Option<(u64, u32)>,
}

#[derive(Debug)]
pub(crate) struct Group {
    queue: usize,
    limit: usize,
    pins: usize,
    waiting: Vec<Item>,
    in_flight: usize,
    last: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueState {
    /// The most messages that wait or are in flight, if there is such a bound.
    pub(crate) capacity: Option<u64>,
    pub(crate) closed: bool,
    pub(crate) gone: bool,
}

/// Why a send is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum No {
    Ended,
    PeerEnded,
    PeerGone,
    Full,
}

/// Why nothing is received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    Empty,
    Held,
    Limit,
    Stale,
    Closed,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) queues: [QueueState; 2],
    pub(crate) dialogs: Vec<[Side; 2]>,
    pub(crate) groups: BTreeMap<usize, Group>,
    /// The group of the live turn, and how many more messages it may take.
    pub(crate) turn: Option<(usize, u32)>,
    groups_made: usize,
    timers_set: u32,
    now: u64,
}

impl Model {
    /// A group with one pin.
    pub(crate) fn group(&mut self, queue: usize, limit: usize) -> usize {
        self.groups_made += 1;
        let group = Group {
            queue,
            limit,
            pins: 1,
            waiting: Vec::new(),
            in_flight: 0,
            last: 0,
        };
        self.groups.insert(self.groups_made, group);
        self.groups_made
    }

    /// Begins a dialog in these groups, or in new ones; false if one is gone or its queue closed.
    pub(crate) fn begin(&mut self, wanted: [Option<usize>; 2]) -> bool {
        if self.queues.iter().any(|queue| queue.closed) {
            return false;
        }
        let known = |group: &usize| self.groups.contains_key(group);
        if !wanted.iter().flatten().all(known) {
            return false;
        }
        let sides = [0, 1].map(|queue| {
            let group = wanted[queue].unwrap_or_else(|| self.group(queue, 1));
            if wanted[queue].is_some() {
                self.of(group).pins += 1;
            }
            Side {
                phase: Phase::Open,
                group,
                timer: None,
            }
        });
        self.dialogs.push(sides);
        true
    }

    pub(crate) fn side(&mut self, (dialog, side): SideId) -> &mut Side {
        &mut self.dialogs[dialog][side]
    }

    fn of(&mut self, group: usize) -> &mut Group {
        self.groups.get_mut(&group).expect("somebody keeps it")
    }

    fn holds_turn(&self, group: usize) -> bool {
        self.turn.is_some_and(|(held, _)| held == group)
    }

    fn reap(&mut self, group: usize) {
        if self.holds_turn(group) {
            return;
        }
        let idle = |g: &Group| g.pins == 0 && g.waiting.is_empty() && g.in_flight == 0;
        if self.groups.get(&group).is_some_and(idle) {
            self.groups.remove(&group);
        }
    }

    pub(crate) fn unpin(&mut self, group: usize) {
        self.of(group).pins -= 1;
        self.reap(group);
    }

    /// Waiting, in flight and groups of a queue.
    pub(crate) fn holds(&self, queue: usize) -> (u64, u64, usize) {
        let groups = || self.groups.values().filter(|group| group.queue == queue);
        let waiting = groups().map(|group| group.waiting.len()).sum::<usize>();
        let in_flight = groups().map(|group| group.in_flight).sum::<usize>();
        (waiting as u64, in_flight as u64, groups().count())
    }

    pub(crate) fn live(&self) -> usize {
        let live = |sides: &&[Side; 2]| sides.iter().any(|side| side.phase != Phase::Ended);
        self.dialogs.iter().filter(live).count()
    }

    pub(crate) fn refusal(&self, (dialog, side): SideId) -> Option<Refused> {
        let sides = &self.dialogs[dialog];
        match (sides[side].phase, sides[1 - side].phase) {
            (Phase::Ended, _) => Some(Refused::Ended),
            (_, Phase::Ended) => Some(Refused::PeerEnded),
            (Phase::Open, _) => None,
        }
    }

    fn put(&mut self, to: SideId, word: Word, last: bool) {
        let group = self.side(to).group;
        let of = self.of(group);
        of.last += 1;
        let place = (!matches!(word, Word::Error(_)), of.last);
        let item = Item {
            to,
            word,
            attempt: 0,
            place,
            group,
            last,
        };
        self.insert(item);
    }

    fn insert(&mut self, item: Item) {
        let waiting = &mut self.of(item.group).waiting;
        let at = waiting.partition_point(|other| other.place < item.place);
        waiting.insert(at, item);
    }

    pub(crate) fn send(&mut self, (dialog, side): SideId, message: u32) -> Result<(), No> {
        let sides = &self.dialogs[dialog];
        match (sides[side].phase, sides[1 - side].phase) {
            (Phase::Ended, _) => Err(No::Ended),
            (_, Phase::Ended) => Err(No::PeerEnded),
            _ if self.queues[1 - side].closed => Err(No::PeerGone),
            _ if self.is_full(1 - side) => Err(No::Full),
            _ => {
                self.put((dialog, 1 - side), Word::Message(message), false);
                Ok(())
            }
        }
    }

    fn is_full(&self, queue: usize) -> bool {
        let (waiting, in_flight, _) = self.holds(queue);
        let capacity = self.queues[queue].capacity;
        capacity.is_some_and(|most| waiting + in_flight >= most)
    }

    /// Whether a message put there will be received, even if the queue is full.
    fn hears(&self, queue: usize) -> bool {
        let QueueState { closed, gone, .. } = self.queues[queue];
        let (waiting, in_flight, _) = self.holds(queue);
        !gone && (!closed || waiting + in_flight > 0)
    }

    /// False if the side had ended.
    pub(crate) fn end(&mut self, (dialog, side): SideId, word: Word) -> bool {
        let peer = (dialog, 1 - side);
        let mine = self.side((dialog, side));
        if mine.phase == Phase::Ended {
            return false;
        }
        mine.phase = Phase::Ended;
        mine.timer = None;
        let group = mine.group;
        let told = self.side(peer).phase == Phase::Open;
        let heard = told && self.hears(1 - side);
        if heard {
            self.put(peer, word, true);
        }
        let of = self.of(group);
        of.waiting.retain(|item| item.to != (dialog, side));
        self.unpin(group);
        if told && !heard {
            self.end(peer, Word::End);
        }
        true
    }

    /// False if the side has ended.
    pub(crate) fn set_timer(&mut self, id: SideId, after: u64) -> bool {
        self.timers_set += 1;
        let timer = (self.now + after, self.timers_set);
        let side = self.side(id);
        if side.phase != Phase::Ended {
            side.timer = Some(timer);
        }
        side.phase != Phase::Ended
    }

    /// Whether one was set; nothing if the side has ended.
    pub(crate) fn clear_timer(&mut self, id: SideId) -> Option<bool> {
        let side = self.side(id);
        (side.phase != Phase::Ended).then(|| side.timer.take().is_some())
    }

    /// When the next timer is due.
    pub(crate) fn advance(&mut self, by: u64) -> Option<u64> {
        self.now += by;
        let mut set = Vec::new();
        for (dialog, sides) in self.dialogs.iter().enumerate() {
            for (side, state) in sides.iter().enumerate() {
                set.extend(state.timer.map(|timer| (timer, (dialog, side))));
            }
        }
        set.sort_unstable();
        let due = set.partition_point(|((at, _), _)| *at <= self.now);
        for &(_, id) in &set[..due] {
            self.side(id).timer = None;
            if self.hears(id.1) {
                self.put(id, Word::Timer, false);
            }
        }
        set.get(due).map(|((at, _), _)| *at)
    }

    /// From the group of this side.
    pub(crate) fn receive(&mut self, id: SideId) -> Result<Item, Nothing> {
        let (hears, key) = (self.hears(id.1), self.side(id).group);
        let group = self.groups.get_mut(&key).ok_or(Nothing::Stale)?;
        if !hears && group.waiting.is_empty() && group.in_flight == 0 {
            return Err(Nothing::Closed);
        }
        if self.turn.is_some_and(|(held, _)| held == key) {
            return Err(Nothing::Held);
        }
        if group.waiting.is_empty() {
            return Err(Nothing::Empty);
        }
        if group.in_flight >= group.limit {
            return Err(Nothing::Limit);
        }
        group.in_flight += 1;
        Ok(group.waiting.remove(0))
    }

    /// The next message of the live turn.
    pub(crate) fn next(&mut self) -> Option<Item> {
        let (key, left) = self.turn?;
        let group = self.of(key);
        if left == 0 || group.waiting.is_empty() || group.in_flight >= group.limit {
            return None;
        }
        group.in_flight += 1;
        let item = group.waiting.remove(0);
        self.turn = Some((key, left - 1));
        Some(item)
    }

    pub(crate) fn end_turn(&mut self) {
        if let Some((group, _)) = self.turn.take() {
            self.reap(group);
        }
    }

    /// It is completed, and the reader holds it: [`let_go`](Self::let_go) is next.
    pub(crate) fn complete(&mut self, item: &Item) {
        self.of(item.group).in_flight -= 1;
        self.reap(item.group);
    }

    pub(crate) fn let_go(&mut self, item: &Item) {
        if item.last {
            self.end(item.to, Word::End);
        }
    }

    pub(crate) fn give_back(&mut self, mut item: Item) {
        self.of(item.group).in_flight -= 1;
        item.attempt += 1;
        let wanted = !self.queues[item.to.1].gone && self.side(item.to).phase != Phase::Ended;
        if wanted {
            self.insert(item);
        } else {
            self.reap(item.group);
            self.let_go(&item);
        }
    }

    pub(crate) fn drop_queue(&mut self, queue: usize) {
        let state = &mut self.queues[queue];
        (state.closed, state.gone) = (true, true);
        let groups = self.groups.values_mut();
        for group in groups.filter(|group| group.queue == queue) {
            group.waiting.clear();
        }
        for dialog in 0..self.dialogs.len() {
            self.end((dialog, queue), Word::Error(None));
        }
        let keys: Vec<usize> = self.groups.keys().copied().collect();
        keys.into_iter().for_each(|group| self.reap(group));
    }
}
