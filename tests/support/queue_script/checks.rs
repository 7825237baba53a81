//! The checks after each step, and the ends of a script.

use std::collections::BTreeSet;

use conversant::limit::Limit;

use super::super::form::GroupStatus;
use super::Driver;
use crate::queue_script::Seen;
use crate::queue_script::script::{GroupShown, Kind, LaneShown, Op, Shown};

impl Driver<'_> {
    pub(super) fn poisoned(&self) -> Seen {
        let poisoned = self.queue.poisoned().into_iter();
        let mut all: Vec<_> = poisoned
            .map(|p| (self.numbers[&p.group], p.message, p.attempts, p.waiting))
            .collect();
        all.sort_unstable();
        Seen::Poisoned(all)
    }

    /// Takes out all waiting messages: group by group, each in order.
    pub(super) fn shut(&mut self) {
        let items = self.queue.shutdown();
        let mut expected: Vec<_> = Vec::new();
        for known in &mut self.known {
            expected.push(std::mem::take(&mut known.waiting));
        }
        let mut left = &items[..];
        while let Some(first) = left.first() {
            let group = expected.iter_mut().find(|group| group.contains(first));
            let group = std::mem::take(group.expect("it waits, and is given once"));
            let (mine, rest) = left.split_at(group.len());
            assert!(mine.iter().copied().eq(group));
            left = rest;
        }
        assert!(expected.iter().all(BTreeSet::is_empty), "left behind");
        let mut items = items;
        items.sort_unstable();
        self.log.push(Seen::Shut(items));
    }

    /// Compares the snapshot with what the driver knows.
    pub(super) fn look(&mut self) {
        let snapshot = self.queue.snapshot();
        let waiting: usize = self.known.iter().map(|known| known.waiting.len()).sum();
        let in_flight: usize = self.known.iter().map(|known| known.in_flight).sum();
        assert_eq!(snapshot.waiting, waiting as u64);
        assert_eq!(snapshot.in_flight, (in_flight + self.claimed) as u64);
        let mut lanes: Vec<_> = snapshot
            .lanes
            .into_iter()
            .map(|lane| LaneShown {
                groups: self.shown(lane.groups),
                weight: lane.weight,
                cap: lane.cap,
                in_flight: lane.in_flight,
                open: lane.open_tier,
                ending: lane.ending,
            })
            .collect();
        // Lanes have no names: lanes without groups can be told apart only by these fields.
        lanes.sort_by_key(|lane| {
            let first = lane.groups.first().map(|group| group.group);
            let cap = match lane.cap {
                Limit::AtMost(most) => u64::from(most),
                Limit::Unlimited => u64::MAX,
            };
            (first, lane.weight, cap)
        });
        self.log.push(Seen::After(Shown {
            closed: snapshot.closed,
            counts: (
                snapshot.waiting,
                snapshot.in_flight,
                snapshot.counts.eligible,
            ),
            lanes,
        }));
    }

    fn shown(&self, groups: Vec<GroupStatus>) -> Vec<GroupShown> {
        let of_group = |group: GroupStatus| GroupShown {
            group: self.numbers[&group.id],
            limit: group.limit,
            level: group.level,
            bump: group.bump,
            waiting: group.waiting,
            in_flight: group.in_flight,
            why: group.why,
        };
        let mut groups: Vec<_> = groups.into_iter().map(of_group).collect();
        groups.sort_by_key(|group| group.group);
        groups
    }

    /// Everything comes to an end, in one of four ways; nothing is left.
    pub(super) fn finish(&mut self, how: u8) {
        let op = |kind, c| Op {
            kind,
            a: 0,
            b: 0,
            c,
        };
        if how & 1 > 0 {
            self.queue.close();
        }
        if how & 2 > 0 {
            self.shut();
        }
        while !self.turns.is_empty() {
            self.drop_turn(0);
        }
        while !self.hands.is_empty() {
            self.end(&op(Kind::Complete, 0));
        }
        self.look();
        self.conversations.clear();
        self.lift();
        while let Ok(turn) = self.queue.try_receive() {
            let held = self.hold(turn, true);
            self.turns.push(held);
            self.next(&op(Kind::Next, 6));
            self.drop_turn(0);
            self.end(&op(Kind::Complete, 0));
        }
        self.log.push(self.poisoned());
        self.shut();
        self.groups.clear();
        self.lanes.clear();
        self.look();
        assert!(self.queue.snapshot().lanes.is_empty(), "state is left");
    }

    /// Lifts everything that can be lifted and keeps work waiting.
    fn lift(&mut self) {
        for number in 0..self.known.len() {
            _ = self.queue.resume(self.known[number].id);
        }
        for (lane, handle) in &self.lanes {
            handle.set_cap(Limit::Unlimited).unwrap();
            self.caps[*lane] = Limit::Unlimited;
        }
        for (number, group) in &self.groups {
            group.set_limit(Limit::Unlimited).unwrap();
            self.known[*number].limit = Limit::Unlimited;
        }
    }
}
