//! What happens in the queue: each event changes one lane, and then settles it.

use std::cmp::Reverse;
use std::time::Duration;

use conversant::limit::Bypass;
use conversant::queue::Why;

use super::model::{Lane, Message, Model, Settings, Taken, room};

impl<T> Model<T> {
    /// Ends an event of this lane: its open tier, and whether it is in the ring.
    pub(super) fn settle(&mut self, lane: u64) {
        let Some(&Lane { open, weight, .. }) = self.lanes.get(&lane) else {
            return;
        };
        let lowest = self.lowest_waiting(lane);
        let stays = open.is_some() && lowest == open;
        if self.in_flight_of(lane) == 0 && !stays {
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

    /// The next turn by rank, weight and bypass.
    pub(super) fn begin(&mut self) -> Option<Taken<T>> {
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
        Some(self.hold(chosen))
    }

    /// A turn of this group, which is in line.
    pub(super) fn begin_of(&mut self, group: u64) -> Taken<T> {
        let lane = self.groups[&group].lane;
        let in_line = self.in_line(lane);
        let oldest = in_line.iter().min_by_key(|&g| self.groups[g].ready);
        if oldest == Some(&group) {
            self.lanes.get_mut(&lane).expect("it has a group").overtaken = 0;
        }
        self.hold(group)
    }

    fn hold(&mut self, group: u64) -> Taken<T> {
        let g = self.group(group);
        (g.held, g.bump) = (true, None);
        self.pop(group)
    }

    /// One more for the live turn of a group, if nothing above forbids it.
    pub(super) fn take(&mut self, group: u64) -> Option<Taken<T>> {
        (self.above(group) == Why::InLine).then(|| self.pop(group))
    }

    fn pop(&mut self, group: u64) -> Taken<T> {
        let g = self.group(group);
        let (number, message) = g.waiting.pop_first().expect("it is in line");
        g.in_flight.push(message.tier);
        let lane = g.lane;
        self.settle(lane);
        Taken {
            group,
            number,
            message,
        }
    }

    /// Puts a message last into a group; what it would go down from, and the
    /// message, if its tier does.
    pub(super) fn send(&mut self, group: u64, tier: Option<u32>, item: T) -> Result<(), (u32, T)> {
        let now = self.tick();
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

    /// A message in flight is done, or given back: then it is put to its place.
    /// Returns it if it is done, or if nobody would ever receive it.
    pub(super) fn end(&mut self, taken: Taken<T>, done: bool) -> Option<T> {
        let now = self.tick();
        let done = done || self.gone;
        let g = self.group(taken.group);
        let at = g
            .in_flight
            .iter()
            .position(|&tier| tier == taken.message.tier);
        let was_ready = g.is_ready();
        g.in_flight.swap_remove(at.expect("it is in flight"));
        let item = match done {
            true => Some(taken.message.item),
            false => {
                g.waiting.insert(taken.number, taken.message);
                None
            }
        };
        if !was_ready {
            g.ready = now;
        }
        let lane = g.lane;
        self.settle(lane);
        self.reap(taken.group);
        item
    }

    /// A delivery was not completed.
    pub(super) fn fail(&mut self, mut taken: Taken<T>) -> Option<T> {
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
            if room(allowed, attempts as usize) == 0 {
                g.resting = None;
                g.poisoned = Some((taken.number, attempts));
            } else {
                let doubled = first.saturating_mul(1 << (attempts - 1).min(31));
                let until = now.saturating_add(doubled.min(most));
                if until > now && g.resting.is_none_or(|(earlier, _)| earlier < until) {
                    g.resting = Some((until, set));
                }
            }
        }
        self.end(taken, false)
    }

    pub(super) fn end_turn(&mut self, group: u64) {
        let now = self.tick();
        let g = self.group(group);
        (g.held, g.ready) = (false, now);
        let lane = g.lane;
        self.settle(lane);
        self.reap(group);
    }

    /// Lets a group go on; false if nothing kept it aside.
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

    /// A group that nobody pins ends after its last message, and its lane with
    /// its last group.
    fn reap(&mut self, group: u64) {
        let g = &self.groups[&group];
        let lane = g.lane;
        if g.pins == 0 && g.is_idle() && !g.held {
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
