//! What readers do to the groups of the model.

use super::model::{Item, Model, SideId, Word};

#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) group: usize,
    /// How many more messages the quantum allows.
    left: u32,
    /// Whether it holds a unit: not since it lent its unit to a detached delivery.
    unit: bool,
    /// Taken out and not asked for.
    first: Option<Item>,
}

/// What a turn gives next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    Something,
    /// The docs leave it open.
    Either,
}

impl Model {
    /// Takes out what fits. A group whose failed message is taken out goes on.
    pub(crate) fn take_out(&mut self, group: usize, fits: impl Fn(&Item) -> bool) -> Vec<Item> {
        let of = &mut self.groups[group];
        let (out, stay) = of.waiting.drain(..).partition(|item| fits(item));
        of.waiting = stay;
        let poison = of.poison;
        if poison.is_some_and(|key| of.waiting.iter().all(|item| item.key != key)) {
            self.go_on(group);
        }
        out
    }

    fn go_on(&mut self, group: usize) {
        let of = &mut self.groups[group];
        of.poison = None;
        of.waiting.iter_mut().for_each(|item| item.fails = 0);
        self.poisoned.retain(|&other| other != group);
    }

    pub(crate) fn resume(&mut self, group: usize) -> bool {
        let poisoned = self.groups[group].poison.is_some();
        if poisoned {
            self.go_on(group);
        }
        poisoned
    }

    /// Takes out the message that poisoned the group, unless it is looked at.
    pub(crate) fn take_failed(&mut self, group: usize) -> Option<Item> {
        let of = &self.groups[group];
        let key = of.poison.filter(|_| of.poison != of.looked)?;
        self.take_out(group, |item| item.key == key).pop()
    }

    /// Takes out all that waits in a group that nobody looks at.
    pub(crate) fn drain(&mut self, group: usize) -> Vec<Item> {
        let all = self.take_out(group, |_| true);
        self.reap(group);
        all
    }

    pub(crate) fn is_eligible(&self, group: usize) -> bool {
        let of = &self.groups[group];
        let held = of.turn || of.looked.is_some();
        let unit = of.limit.is_none_or(|most| of.units < most);
        of.alive && !of.waiting.is_empty() && !held && of.poison.is_none() && unit
    }

    /// Whether the docs leave open which event of the group comes first.
    pub(crate) fn is_tied(&self, group: usize) -> bool {
        let waiting = &self.groups[group].waiting;
        waiting.len() > 1 && waiting[0].is_tied(&waiting[1])
    }

    /// The first event that waits. Of several with equal places, that of `to`.
    pub(crate) fn first(&self, group: usize, to: SideId) -> Option<&Item> {
        let waiting = &self.groups[group].waiting;
        let place = waiting.first()?.place;
        waiting
            .iter()
            .find(|item| item.place == place && item.to == to)
    }

    /// Begins a turn of an eligible group, with an event of `to`, if that is known.
    pub(crate) fn begin_turn(&mut self, group: usize, to: Option<SideId>) -> Turn {
        let to = to.unwrap_or(self.groups[group].waiting[0].to);
        let first = Some(self.take(group, to));
        let of = &mut self.groups[group];
        (of.turn, of.bump) = (true, None);
        of.units += 1;
        Turn {
            group,
            left: self.quantum,
            unit: true,
            first,
        }
    }

    fn take(&mut self, group: usize, to: SideId) -> Item {
        let key = self.first(group, to).expect("this event is first").key;
        let of = &mut self.groups[group];
        let at = of.waiting.iter().position(|item| item.key == key);
        of.out += 1;
        of.waiting.remove(at.expect("it waits"))
    }

    pub(crate) fn next(&self, turn: &Turn) -> Next {
        let of = &self.groups[turn.group];
        let unit = |most| of.units < most;
        if turn.first.is_some() {
            return Next::Something;
        }
        if turn.left == 0 || of.waiting.is_empty() || of.poison.is_some() {
            return Next::Nothing;
        }
        match of.limit {
            Some(0) => Next::Nothing,
            // A debt: nothing is taken back.
            Some(most) if turn.unit && of.units > most => Next::Either,
            Some(most) if !turn.unit && !unit(most) => Next::Nothing,
            _ => Next::Something,
        }
    }

    /// The next event of the turn, which is one of `to`.
    pub(crate) fn give(&mut self, turn: &mut Turn, to: SideId) -> Item {
        turn.left -= 1;
        if !std::mem::replace(&mut turn.unit, true) {
            self.groups[turn.group].units += 1;
        }
        let first = turn.first.take();
        first.unwrap_or_else(|| self.take(turn.group, to))
    }

    /// The last event takes the turn's unit with it.
    pub(crate) fn detach(&mut self, turn: &mut Turn) {
        turn.unit = false;
    }

    pub(crate) fn end_turn(&mut self, turn: Turn) {
        let of = &mut self.groups[turn.group];
        of.units -= u32::from(turn.unit);
        of.turn = false;
        if let Some(item) = turn.first {
            // It was not delivered, so it has not failed.
            self.come_back(item, false);
        }
        self.reap(turn.group);
    }

    /// The reader has it, and [lets it go](Self::let_go) later.
    pub(crate) fn complete(&mut self, item: &Item, detached: bool) {
        let of = &mut self.groups[item.group];
        of.out -= 1;
        of.units -= u32::from(detached);
        self.reap(item.group);
    }

    pub(crate) fn let_go(&mut self, item: &Item) {
        if matches!(item.word, Word::End | Word::Error(_)) {
            self.end(item.to, Word::End);
        }
    }

    pub(crate) fn give_back(&mut self, mut item: Item, detached: bool, for_good: bool) {
        self.groups[item.group].units -= u32::from(detached);
        item.fails += 1;
        let fails = for_good || self.attempts.is_some_and(|most| item.fails >= most);
        self.come_back(item, fails);
    }

    fn come_back(&mut self, item: Item, fails: bool) {
        let (group, key) = (item.group, item.key);
        let of = &mut self.groups[group];
        of.out -= 1;
        if self.queues[of.queue].gone || self.dialogs[item.to.0][item.to.1].ended {
            self.reap(group);
            self.let_go(&item);
            return;
        }
        if fails && of.poison.is_none() {
            of.poison = Some(key);
            self.poisoned.push(group);
        }
        self.insert(item);
    }

    /// How often the message failed that poisoned a group.
    pub(crate) fn failed(&self, group: usize) -> u32 {
        let of = &self.groups[group];
        let failed = of.waiting.iter().find(|item| Some(item.key) == of.poison);
        failed.expect("what failed waits").fails
    }

    /// Looks at an event of `to`, the first of the group.
    pub(crate) fn look(&mut self, group: usize, to: SideId) -> Item {
        let item = self.first(group, to).expect("this event is first").clone();
        self.groups[group].looked = Some(item.key);
        item
    }

    pub(crate) fn end_look(&mut self, item: &Item) {
        let of = &mut self.groups[item.group];
        of.looked = None;
        if self.queues[of.queue].gone || self.side(item.to).ended {
            self.take_out(item.group, |other| other.key == item.key);
            self.let_go(item);
        }
        self.reap(item.group);
    }
}

impl Turn {
    pub(crate) fn holds_message(&self) -> bool {
        self.first.as_ref().is_some_and(Item::is_message)
    }
}
