//! Waits by name under random events: whenever a group could have a turn, or nothing comes from it
//! any more, one of its waits has been woken; or so many in its lane as there is room.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use conversant::limit::Limit;
use conversant::queue::{Conversation, Detached, Group, GroupId, Lane, NoTurn, Queue, Turn, Why};

use crate::queue_support::{Random, WakeCounter, poll};

type Wait = Pin<Box<dyn Future<Output = Result<Turn<'static, u32>, NoTurn>>>>;

struct Waiting {
    group: usize,
    wait: Wait,
    wakes: Arc<WakeCounter>,
    waker: Waker,
    seen: usize,
}

/// A group, and its handles while it lives.
type Member = (GroupId, Option<(Group<u32>, Conversation<u32>)>);

struct World {
    random: Random,
    queue: Queue<u32>,
    lanes: Vec<Lane<u32>>,
    groups: Vec<Member>,
    waiting: Vec<Waiting>,
    turns: Vec<Turn<'static, u32>>,
    detached: Vec<Detached<u32>>,
    now: Duration,
    /// How many waits got a turn.
    served: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let builder = Queue::builder().attempts(2).quantum(2);
        let queue = builder.back_off(Duration::from_millis(2), Duration::from_millis(2));
        let queue = queue.build().unwrap();
        let lane = |_| queue.lane(1, Limit::Unlimited).unwrap();
        let lanes: Vec<_> = (0..3).map(lane).collect();
        let group = |n: usize| {
            let group = lanes[n % 3].group(Limit::SERIAL, 100).unwrap();
            let conversation = group.conversation().unwrap();
            (group.id(), Some((group, conversation)))
        };
        Self {
            random: Random(seed),
            groups: (0..6).map(group).collect(),
            queue,
            lanes,
            waiting: Vec::new(),
            turns: Vec::new(),
            detached: Vec::new(),
            now: Duration::ZERO,
            served: 0,
        }
    }

    fn step(&mut self) {
        let n = self.random.below(6);
        match self.random.below(16) {
            0..3 => self.send(n),
            3 => self.wait(n),
            4..7 => self.poll(),
            7 => self.give_up(),
            8..11 => self.go_on(),
            11 => self
                .turns
                .extend(self.queue.try_receive().map(Turn::into_owned)),
            12 => self.end_detached(),
            13 => self.limit(n),
            14 => {
                let cap = self.random.below(3) as u32;
                self.lanes[n % 3].set_cap(cap).unwrap();
            }
            _ => self.rarely(n),
        }
    }

    /// In the third lane into a tier.
    fn send(&mut self, n: usize) {
        if let Some((_, conversation)) = &self.groups[n].1 {
            _ = match n % 3 {
                2 => conversation.send_in(self.random.below(3) as u32, 1),
                _ => conversation.send(1),
            };
        }
    }

    fn wait(&mut self, group: usize) {
        let (queue, id) = (self.queue.clone(), self.groups[group].0);
        let (wakes, waker) = WakeCounter::new();
        self.waiting.push(Waiting {
            group,
            wait: Box::pin(async move { queue.receive_from(id).await.map(Turn::into_owned) }),
            wakes,
            waker,
            seen: 0,
        });
        self.poll_at(self.waiting.len() - 1);
    }

    fn poll(&mut self) {
        if !self.waiting.is_empty() {
            let at = self.random.below(self.waiting.len());
            self.poll_at(at);
        }
    }

    fn poll_at(&mut self, at: usize) {
        let waiting = &mut self.waiting[at];
        match poll(&mut waiting.wait, &waiting.waker) {
            Poll::Pending => waiting.seen = waiting.wakes.count(),
            Poll::Ready(turn) => {
                self.served += usize::from(turn.is_ok());
                self.turns.extend(turn);
                drop(self.waiting.swap_remove(at));
            }
        }
    }

    fn give_up(&mut self) {
        if !self.waiting.is_empty() {
            let at = self.random.below(self.waiting.len());
            drop(self.waiting.swap_remove(at));
        }
    }

    /// A live turn takes its next message, or ends.
    fn go_on(&mut self) {
        if self.turns.is_empty() {
            return;
        }
        let at = self.random.below(self.turns.len());
        let Some(delivery) = self.turns[at].next() else {
            drop(self.turns.swap_remove(at));
            return;
        };
        match self.random.below(4) {
            0 => delivery.give_back(),
            1 => self.detached.push(delivery.detach()),
            _ => _ = delivery.complete(),
        }
    }

    fn end_detached(&mut self) {
        if let Some(detached) = self.detached.pop() {
            match self.random.below(3) {
                0 => detached.give_back(),
                _ => _ = detached.complete(),
            }
        }
    }

    fn limit(&mut self, n: usize) {
        if let Some((group, _)) = &self.groups[n].1 {
            group.set_limit(self.random.below(3) as u32).unwrap();
        }
    }

    fn rarely(&mut self, n: usize) {
        let id = self.groups[n].0;
        match self.random.below(12) {
            // Seldom, since not much happens afterwards.
            0 if self.random.below(8) == 0 => self.groups[n].1 = None,
            1 if self.random.below(8) == 0 => self.queue.close(),
            2 => _ = self.queue.drain(id),
            3..5 => _ = self.queue.resume(id),
            5..8 => {
                self.now += Duration::from_millis(1);
                self.queue.advance(self.now);
            }
            8 => drop(self.queue.try_peek(id)),
            9 => _ = self.queue.bump(id, 200),
            10 => self
                .turns
                .extend(self.queue.try_receive_from(id).map(Turn::into_owned)),
            _ => self.turns.clear(),
        }
    }

    fn check(&self) {
        let closed = self.queue.is_closed();
        let snapshot = self.queue.snapshot();
        let statuses = snapshot.lanes.iter().flat_map(|lane| &lane.groups);
        let statuses: BTreeMap<_, _> = statuses.map(|status| (status.id, status)).collect();
        let (mut counts, mut due) = ((0, 0), [(0, 0); 3]);
        for (n, (id, _)) in self.groups.iter().enumerate() {
            let waiting = self.waiting.iter().filter(|waiting| waiting.group == n);
            let (woken, asleep): (Vec<_>, Vec<_>) =
                waiting.partition(|waiting| waiting.wakes.count() > waiting.seen);
            counts = (counts.0 + asleep.len(), counts.1 + woken.len());
            let status = statuses.get(id);
            if !asleep.is_empty() {
                let status = status.expect("all would be woken");
                let over = status.waiting == 0 || status.why == Why::Poisoned;
                assert!(!(closed && over && status.in_flight == 0), "{status:?}");
            }
            if status.is_some_and(|status| status.why == Why::InLine) {
                let (told, untold) = &mut due[n % 3];
                *told += usize::from(!woken.is_empty());
                *untold += usize::from(woken.is_empty() && !asleep.is_empty());
            }
        }
        for (lane, (told, untold)) in self.lanes.iter().zip(due) {
            let mut all = snapshot.lanes.iter();
            let status = all.find(|status| status.number == lane.number());
            let status = status.expect("its handle lives");
            let Limit::AtMost(cap) = status.cap else {
                assert_eq!(untold, 0, "{status:?}");
                continue;
            };
            let room = cap.saturating_sub(status.in_flight) as usize;
            assert!(untold == 0 || told >= room, "{told}, {untold}: {status:?}");
        }
        let named = self.queue.counts().named;
        assert_eq!((named.waiting, named.notified), counts);
    }
}

#[test]
fn no_wait_sleeps_while_its_group_could_be_served() {
    let mut served = 0;
    for seed in 0..400 {
        let mut world = World::new(seed);
        for _ in 0..150 {
            world.step();
            world.check();
        }
        served += world.served;
    }
    assert!(served > 500, "{served} waits got a turn");
}
