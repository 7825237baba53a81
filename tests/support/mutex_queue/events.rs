//! What happens in the queue: each event changes one lane, and then settles it.

use std::cmp::Reverse;
use std::time::Duration;

use conversant::limit::Bypass;
use conversant::queue::Why;

use super::model::{Failure, Lane, Message, Model, Phase, Settings, Taken, room};

impl<T> Model<T> {
    /// Ends an event of this lane: its open tier, and whether it is in the ring.
    pub(super) fn settle(&mut self, lane: u64) {
        let Some(&Lane { open, weight, .. }) = self.lanes.get(&lane) else {
            return;
        };
        let lowest = self.lowest_waiting(lane);
        let stays = open.is_some() && lowest == open;
        if self.started_in(lane) == 0 && !stays {
            self.lanes.get_mut(&lane).expect("it was found").open = lowest;
        }
        let eligible = self.eligible_of(lane) > 0;
        let member = self.ring.iter().any(|&(member, _)| member == lane);
        if eligible && !member {
            self.ring.push_back((lane, weight));
        }
        if !eligible {
            self.ring.retain(|&(member, _)| member != lane);
        }
    }

    /// Claims the next group by rank, weight and bypass.
    pub(super) fn claim(&mut self) -> Option<u64> {
        let (lane, left) = *self.ring.front()?;
        let in_line = self.in_line(lane);
        let age = |group: &u64| self.groups[group].ready;
        let rank = |group: &u64| {
            let g = &self.groups[group];
            match g.bump {
                Some((level, when)) => (true, level, Reverse(when.max(g.ready))),
                None => (false, g.level, Reverse(g.ready)),
            }
        };
        let oldest = in_line.iter().copied().min_by_key(age)?;
        let mut chosen = in_line.iter().copied().max_by_key(rank)?;
        let overtaken = self.lanes[&lane].overtaken;
        if matches!(self.settings.bypass, Bypass::AtMost(most) if overtaken >= most) {
            chosen = oldest;
        }
        let l = self.lanes.get_mut(&lane)?;
        l.overtaken = if chosen == oldest { 0 } else { overtaken + 1 };
        match left {
            1 => {
                self.ring.rotate_left(1);
                self.ring.back_mut()?.1 = l.weight;
            }
            _ => self.ring.front_mut()?.1 -= 1,
        }
        self.hold(chosen);
        Some(chosen)
    }

    /// Claims this group, which is eligible.
    pub(super) fn claim_this(&mut self, group: u64) {
        let lane = self.groups[&group].lane;
        let in_line = self.in_line(lane);
        let oldest = in_line.iter().min_by_key(|&g| self.groups[g].ready);
        if oldest == Some(&group) {
            self.lanes.get_mut(&lane).expect("it has a group").overtaken = 0;
        }
        self.hold(group);
    }

    fn hold(&mut self, group: u64) {
        let g = self.group(group);
        (g.phase, g.hand) = (Phase::Claimed, g.head());
        let lane = g.lane;
        self.settle(lane);
    }

    /// Begins the turn of a claimed group: with the message for which it was
    /// claimed, if that is still there and may be taken.
    pub(super) fn begin(&mut self, group: u64) -> Option<Taken<T>> {
        let g = self.group(group);
        let same = g.hand.take().is_some_and(|tier| g.head() == Some(tier));
        (g.phase, g.bump) = (Phase::Live { unit: true }, None);
        let (lane, may_take) = (g.lane, same && g.may_take());
        let taken = may_take.then(|| self.pop(group));
        self.settle(lane);
        taken
    }

    /// The next message for the live turn of a group, if nothing forbids it. A turn whose unit went
    /// with a detached delivery takes another.
    pub(super) fn take(&mut self, group: u64) -> Option<Taken<T>> {
        let head = self.groups[&group].head()?;
        let g = self.group(group);
        g.swept = false;
        let (lane, phase, may_take) = (g.lane, g.phase, g.may_take());
        // The end of the message in hand may open another tier.
        self.settle(lane);
        let used = self.in_flight_of(lane);
        let cap = self.lanes[&lane].cap;
        let has_unit = phase == Phase::Live { unit: true };
        let within = room(cap, used - usize::from(has_unit)) > 0;
        if !may_take || !within || self.startable(lane) != Some(head) {
            return None;
        }
        self.group(group).phase = Phase::Live { unit: true };
        let taken = self.pop(group);
        self.settle(lane);
        Some(taken)
    }

    /// More messages for a turn that has a message in hand, to be lent as one: those that follow it
    /// without a gap and have not failed.
    pub(super) fn take_more(&mut self, group: u64, after: u64, most: usize) -> Vec<Taken<T>> {
        let g = self.group(group);
        let (lane, may_take) = (g.lane, g.may_take());
        let cap = self.lanes[&lane].cap;
        let within = room(cap, self.in_flight_of(lane).saturating_sub(1)) > 0;
        if self.lanes[&lane].tiered || !may_take || !within {
            return Vec::new();
        }
        let numbers = (after + 1..).take(most);
        let fresh = numbers.map_while(|number| {
            let (&first, message) = self.group(group).waiting.first_key_value()?;
            (first == number && message.attempts == 0).then(|| self.pop(group))
        });
        fresh.collect()
    }

    fn pop(&mut self, group: u64) -> Taken<T> {
        let g = self.group(group);
        let (number, message) = g.waiting.pop_first().expect("it waits");
        g.hand = g.hand.or(Some(message.tier));
        g.out += 1;
        Taken {
            group,
            number,
            message,
        }
    }

    /// Puts a message last into a group. If its tier is too low, returns the tier that it would go
    /// down from, and the message.
    pub(super) fn send(&mut self, group: u64, tier: Option<u32>, item: T) -> Result<(), (u32, T)> {
        let now = self.tick();
        let g = self.group(group);
        if tier.is_some_and(|tier| tier > 0) {
            let lane = g.lane;
            self.use_tiers(lane);
        }
        let g = self.group(group);
        let tier = tier.unwrap_or(g.last_tier);
        if tier < g.last_tier && !g.is_idle() {
            return Err((g.last_tier, item));
        }
        if g.waiting.is_empty() {
            g.ready = now;
        }
        g.last_tier = tier;
        g.last_number += 1;
        let attempts = 0;
        let message = Message {
            tier,
            attempts,
            item,
        };
        g.waiting.insert(g.last_number, message);
        let lane = g.lane;
        self.settle(lane);
        Ok(())
    }

    /// From now on tiers are in use. A live turn has a unit; until then nothing recorded the tier
    /// for which it uses the unit.
    fn use_tiers(&mut self, lane: u64) {
        let l = self.lanes.get_mut(&lane).expect("it has a group");
        if std::mem::replace(&mut l.tiered, true) {
            return;
        }
        for g in self.groups.values_mut().filter(|g| g.lane == lane) {
            g.swept = g.phase == Phase::Live { unit: true };
        }
        self.settle(lane);
    }

    /// The message in hand is detached, with the unit of its turn.
    pub(super) fn detach(&mut self, group: u64, tier: u32) {
        let g = self.group(group);
        (g.phase, g.hand, g.swept) = (Phase::Live { unit: false }, None, false);
        g.detached.push(tier);
    }

    /// `messages` messages of a live turn are completed.
    pub(super) fn complete(&mut self, group: u64, messages: usize) {
        let g = self.group(group);
        (g.hand, g.out) = (None, g.out - messages);
        let lane = g.lane;
        self.settle(lane);
    }

    /// A detached delivery is completed, or goes back to its place. Returns the message if it is
    /// completed, or if it could never be received.
    pub(super) fn end(&mut self, taken: Taken<T>, done: bool) -> Option<T> {
        let now = self.tick();
        let group = taken.group;
        let g = self.group(group);
        let tiers = &g.detached;
        let at = tiers.iter().position(|&tier| tier == taken.message.tier);
        let was_ready = g.is_ready();
        g.detached.swap_remove(at.expect("it is detached"));
        let item = if done {
            g.out -= 1;
            Some(taken.message.item)
        } else {
            self.put_back(taken)
        };
        let g = self.group(group);
        if !was_ready {
            g.ready = now;
        }
        let lane = g.lane;
        self.settle(lane);
        self.reap(group);
        item
    }

    /// A message goes back to its place; it is returned if it could never be received.
    fn put_back(&mut self, taken: Taken<T>) -> Option<T> {
        let gone = self.gone;
        let g = self.group(taken.group);
        g.out -= 1;
        if gone {
            return Some(taken.message.item);
        }
        g.waiting.insert(taken.number, taken.message);
        None
    }

    /// Messages of a live turn go back to their places, without an attempt counted.
    pub(super) fn give_back(&mut self, group: u64, all: Vec<Taken<T>>) -> Vec<T> {
        let back = all.into_iter().filter_map(|taken| self.put_back(taken));
        let unwanted = back.collect();
        let lane = self.group(group).lane;
        self.settle(lane);
        unwanted
    }

    /// A delivery that is still with its turn was not completed.
    pub(super) fn fail(&mut self, mut taken: Taken<T>, how: Failure) -> Option<T> {
        self.failed(&mut taken, how);
        let g = self.group(taken.group);
        (g.hand, g.swept) = (None, false);
        let lane = g.lane;
        let unwanted = self.put_back(taken);
        self.settle(lane);
        unwanted
    }

    /// A detached delivery was not completed.
    pub(super) fn fail_detached(&mut self, mut taken: Taken<T>, how: Failure) -> Option<T> {
        self.failed(&mut taken, how);
        self.end(taken, false)
    }

    /// Counts the attempt, and sets the group aside if necessary.
    fn failed(&mut self, taken: &mut Taken<T>, how: Failure) {
        let attempts = taken.message.attempts + 1;
        taken.message.attempts = attempts;
        let (now, set) = (self.now, self.tick());
        let Settings {
            attempts: allowed,
            first,
            most,
            ..
        } = self.settings;
        let gone = self.gone;
        let g = self.group(taken.group);
        if !gone && g.poisoned.is_none() {
            if how == Failure::ForGood || room(allowed, attempts as usize) == 0 {
                g.resting = None;
                g.poisoned = Some((taken.number, attempts));
            } else {
                let doubled = first.saturating_mul(1 << (attempts - 1).min(31));
                let pause = match how {
                    Failure::Pause(pause) => pause,
                    _ => doubled.min(most),
                };
                let until = now.saturating_add(pause);
                if until > now && g.resting.is_none_or(|(earlier, _)| earlier < until) {
                    g.resting = Some((until, set));
                }
            }
        }
    }

    /// A turn ends, with the messages that it has not delivered.
    pub(super) fn end_turn(&mut self, group: u64, first: Option<Taken<T>>) -> Option<T> {
        let now = self.tick();
        let unwanted = first.and_then(|taken| self.put_back(taken));
        let g = self.group(group);
        (g.phase, g.hand, g.swept) = (Phase::Free, None, false);
        g.ready = now;
        let lane = g.lane;
        self.settle(lane);
        self.reap(group);
        unwanted
    }

    /// Lets a group go on; false if it was not set aside.
    pub(super) fn resume(&mut self, group: u64) -> bool {
        let now = self.tick();
        let g = self.group(group);
        let rested = g.resting.take().is_some();
        let poisoned = g.poisoned.take().is_some();
        if poisoned {
            g.ready = now;
            g.waiting.values_mut().for_each(|m| m.attempts = 0);
        }
        let lane = g.lane;
        self.settle(lane);
        rested || poisoned
    }

    pub(super) fn drain(&mut self, group: u64) -> Vec<T> {
        let messages = std::mem::take(&mut self.group(group).waiting);
        self.resume(group);
        self.reap(group);
        messages.into_values().map(|message| message.item).collect()
    }

    pub(super) fn advance(&mut self, now: Duration) -> Option<Duration> {
        self.now = self.now.max(now);
        loop {
            let resting = self.groups.iter();
            let first = resting.filter_map(|(&group, g)| Some((g.resting?, group)));
            let ((until, _), group) = first.min()?;
            if until > self.now {
                return Some(until);
            }
            self.resume(group);
        }
    }

    pub(super) fn unpin(&mut self, group: u64) {
        self.group(group).pins -= 1;
        self.reap(group);
    }

    /// A group that nothing pins ends after its last message, and its lane with its last group.
    fn reap(&mut self, group: u64) {
        let g = &self.groups[&group];
        let lane = g.lane;
        if g.pins == 0 && g.is_idle() && g.phase == Phase::Free {
            self.groups.remove(&group);
            self.reap_lane(lane);
        }
    }

    pub(super) fn reap_lane(&mut self, lane: u64) {
        if self.lanes[&lane].ending && self.groups.values().all(|g| g.lane != lane) {
            self.lanes.remove(&lane);
        }
    }
}
