//! What can be seen after each step, and what must be left at the end.

use std::sync::Arc;
use std::time::Duration;

use conversant::dialog::{EndpointRef, Refused};
use conversant::limit::Limit;

use super::Op;
use super::world::{World, limit};

impl World {
    /// All that can be seen from outside.
    pub(crate) fn compare(&self) {
        let live = self
            .dialogs
            .iter()
            .all(|dialogs| dialogs.len() == self.model.live());
        assert!(live, "another number of dialogs");
        for (dialog, sides) in self.sides.iter().enumerate() {
            for (n, side) in sides.iter().enumerate() {
                let side = side.as_ref().map(EndpointRef::refusal);
                assert!(side.is_none_or(|refusal| refusal == self.model.refusal((dialog, n))));
            }
        }
        (0..2).for_each(|n| self.compare_queue(n));
        let held = self.held.iter().map(|(item, _)| item);
        let in_flight = self.in_flight.iter().map(|(item, _)| item);
        let taken = self.turns.iter().filter(|(turn, _)| turn.holds_message());
        let messages = held.chain(in_flight).filter(|item| item.is_message());
        let messages = messages.count() + taken.count() + self.model.messages_waiting();
        assert_eq!(Arc::strong_count(&self.notes) - 1, messages);
    }

    fn compare_queue(&self, n: usize) {
        let Some(queue) = &self.queues[n] else {
            return;
        };
        let snapshot = queue.snapshot();
        let model = &self.model;
        assert_eq!(snapshot.closed, model.queues[n].closed);
        let room = |most| i64::from(most) - model.outstanding(n);
        assert_eq!(queue.room(), model.queues[n].capacity.map(room));
        let groups = snapshot.lanes.iter().flat_map(|lane| &lane.groups);
        let mut found: Vec<_> = groups.collect();
        found.sort_by_key(|group| self.ids.iter().position(|&id| id == group.id));
        let mut expected = model.groups_of(n);
        for group in found {
            let (at, of) = expected.next().expect("a group that should be gone");
            assert_eq!(group.id, self.ids[at]);
            let counts = (group.waiting, group.in_flight);
            assert_eq!(counts, (of.waiting.len(), of.units));
            assert_eq!((group.level, group.bump), (of.level, of.bump));
            assert_eq!(
                (group.limit, group.capacity),
                (limit(of.limit), limit(of.capacity))
            );
        }
        assert!(expected.next().is_none(), "a group is missing");
        let poisoned: Vec<_> = queue.poisoned();
        let poisoned = poisoned
            .iter()
            .map(|group| (group.group, group.attempts, group.waiting));
        let in_queue = model
            .poisoned
            .iter()
            .filter(|&&at| model.groups[at].queue == n);
        let expected = in_queue.map(|&at| {
            (
                self.ids[at],
                model.failed(at),
                model.groups[at].waiting.len(),
            )
        });
        assert!(poisoned.eq(expected));
    }

    /// Ends all, and receives the rest.
    pub(crate) fn finish(mut self) {
        while !self.turns.is_empty() {
            self.run(Op::EndTurn { turn: 0 });
            self.compare();
        }
        self.run(Op::EndLook);
        while !self.in_flight.is_empty() {
            let then = super::Then::Complete;
            self.run(Op::Finish { detached: 0, then });
            self.compare();
        }
        self.owners.clear();
        self.held.clear();
        for near in self.sides.iter().flat_map(|sides| &sides[0]) {
            // A detached side does not end with its owner.
            _ = near.end();
        }
        for (n, queue) in self.queues.iter().enumerate() {
            let Some(queue) = queue else {
                continue;
            };
            for (at, _) in self.model.groups_of(n) {
                // Some are gone by now.
                if let Ok(group) = queue.group(self.ids[at]) {
                    group.set_limit(Limit::Unlimited).expect("in range");
                    _ = queue.resume(self.ids[at]);
                }
            }
        }
        // What one end does may be seen in the other queue.
        for queue in self.queues.iter().flatten().cycle().take(4) {
            while let Ok(mut turn) = queue.try_receive() {
                while let Some(delivery) = turn.next() {
                    drop(delivery.complete());
                }
            }
        }
        if let Some(dialogs) = &self.dialogs {
            assert!(dialogs.is_empty());
            assert_eq!(dialogs.advance(Duration::MAX), None);
        }
        let refusals = self
            .sides
            .iter()
            .flatten()
            .flatten()
            .map(EndpointRef::refusal);
        assert!(
            refusals
                .into_iter()
                .all(|refusal| refusal == Some(Refused::Ended))
        );
        self.shared = [None, None];
        for queue in self.queues.iter().flatten() {
            let snapshot = queue.snapshot();
            let groups: usize = snapshot.lanes.iter().map(|lane| lane.groups.len()).sum();
            assert_eq!((snapshot.waiting, snapshot.in_flight, groups), (0, 0, 0));
        }
        drop((self.sides, self.queues, self.lanes));
        assert_eq!(Arc::strong_count(&self.notes), 1, "a message is kept");
    }
}
