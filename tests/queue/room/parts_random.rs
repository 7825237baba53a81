//! Capacities of groups, a lane and a queue under random events, compared with lists.

use conversant::limit::Limit::{AtMost, Unlimited};
use conversant::queue::{Detached, Reserved};

use crate::queue_support::Random;

use super::*;

mod naive;
use naive::*;

/// A waiting send: for which level it waits, and what it has.
struct Waits<'a> {
    number: usize,
    group: usize,
    n: usize,
    stage: usize,
    has: Has,
    waiting: AllWait<'a, usize>,
    wakes_seen: usize,
    polled: bool,
}

impl Waits<'_> {
    /// The result of a poll according to the lists.
    fn expect(&mut self, naive: &mut Naive) -> Poll<Result<(), SendReason>> {
        let [_, lane, queue] = levels(self.group).map(|at| naive.levels[at].is_above(self.n));
        if !std::mem::replace(&mut self.polled, true) && (lane || queue) {
            return Poll::Ready(Err(SendReason::AboveCapacity));
        }
        while self.stage < 3 {
            let level = &mut naive.levels[levels(self.group)[self.stage]];
            let granted = level.granted.iter().any(|one| one.0.0 == self.number);
            if self.stage < 2 && level.limit.is_none() && !granted {
                self.stage += 1;
                continue;
            }
            match level.ask(self.number, self.n) {
                Answer::InLine => return Poll::Pending,
                Answer::AboveCapacity => {
                    naive.give_up(self.group, self.n, self.has);
                    return Poll::Ready(Err(SendReason::AboveCapacity));
                }
                Answer::Granted(time) if self.stage < 2 => self.has[self.stage] = Some(time),
                Answer::Granted(_) => {}
            }
            self.stage += 1;
        }
        naive.enter(self.group, self.n, self.has);
        Poll::Ready(Ok(()))
    }

    /// One poll; returns whether the wait is over.
    fn poll(&mut self, naive: &mut Naive) -> bool {
        let expected = self.expect(naive);
        let polled = self.waiting.poll();
        self.wakes_seen = self.waiting.wakes.count();
        naive.settle();
        match (polled, expected) {
            (Poll::Pending, Poll::Pending) => false,
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => true,
            (Poll::Ready(Err(error)), Poll::Ready(Err(reason))) => {
                assert_eq!((error.message.len(), error.reason), (self.n, reason));
                true
            }
            (polled, expected) => panic!("{polled:?}, and by the lists {expected:?}"),
        }
    }

    /// Whether it must have been notified since its last poll.
    fn is_told(&self, naive: &Naive) -> bool {
        let level = &naive.levels[levels(self.group)[self.stage]];
        // A wait that is not in the list any more was granted or refused, or is to look again.
        level.line.iter().all(|one| one.0 != self.number)
    }
}

struct World<'a> {
    queue: &'a Queue<usize>,
    lane: &'a Lane<usize>,
    to: &'a [Conversation<usize>],
    naive: Naive,
    waits: Vec<Waits<'a>>,
    hands: Vec<(usize, Detached<usize>)>,
    kept: Vec<(usize, Has, Reserved<'a, usize>)>,
    random: Random,
}

impl<'a> World<'a> {
    fn of(&self, group: conversant::queue::GroupId) -> usize {
        let found = self.to.iter().position(|to| to.group_id() == group);
        found.unwrap()
    }

    fn send(&mut self, number: usize) {
        let (group, n) = (self.random.below(GROUPS), 1 + self.random.below(2));
        let refusals = self.naive.refusals(group, n);
        let sent = match n {
            1 => self.to[group].send(number).map_err(|error| error.reason),
            n => {
                let sent = self.to[group].send_all(vec![number; n]);
                sent.map_err(|error| error.reason)
            }
        };
        is_one_of(sent.err(), &refusals);
        if refusals.is_empty() {
            self.naive.levels[QUEUE].held += n;
            self.naive.enter(group, n, [None, None]);
        }
    }

    fn wait(&mut self, number: usize) {
        let (group, n) = (self.random.below(GROUPS), 1 + self.random.below(3));
        let wait = self.to[group].send_all_wait(vec![number; n]);
        let (wakes, waker) = WakeCounter::new();
        let mut waits = Waits {
            number,
            group,
            n,
            stage: 0,
            has: [None, None],
            waiting: Waiting { wait, wakes, waker },
            wakes_seen: 0,
            polled: false,
        };
        if !waits.poll(&mut self.naive) {
            self.waits.push(waits);
        }
    }

    fn receive(&mut self) {
        let most = 1 + self.random.below(4);
        let Ok(mut turn) = self.queue.try_receive() else {
            return;
        };
        let group = self.of(turn.group_id());
        // The claim takes the first message out.
        self.naive.taken(group, 1);
        if self.random.below(3) == 0 {
            let Some(batch) = turn.next_batch(most) else {
                unreachable!("the first is there")
            };
            let (len, done) = (batch.len(), self.random.below(most + 1));
            self.naive.taken(group, len - 1);
            let done = batch.complete_up_to(done).len();
            self.naive.done(done);
            self.naive.back(group, len - done);
        } else {
            let one = turn.next().expect("the first is there");
            match self.random.below(4) {
                0 => {
                    one.give_back();
                    self.naive.back(group, 1);
                }
                1 => {
                    one.complete();
                    self.naive.done(1);
                }
                _ => self.hands.push((group, one.detach())),
            }
        }
    }

    fn finish(&mut self) {
        if self.hands.is_empty() {
            return;
        }
        let at = self.random.below(self.hands.len());
        let (group, hand) = self.hands.swap_remove(at);
        if self.random.below(3) == 0 {
            drop(hand);
            self.naive.back(group, 1);
        } else {
            hand.complete();
            self.naive.done(1);
        }
    }

    fn reserve(&mut self, number: usize) {
        if self.kept.is_empty() || self.random.below(2) == 0 {
            let group = self.random.below(GROUPS);
            let refusals = self.naive.refusals(group, 1);
            let reserved = self.to[group].try_reserve();
            is_one_of(reserved.as_ref().err().copied(), &refusals);
            if let Ok(reserved) = reserved {
                let has = self.naive.granted(group);
                for (which, _) in has.iter().enumerate().filter(|(_, has)| has.is_some()) {
                    self.naive.levels[levels(group)[which]].held += 1;
                }
                self.naive.levels[QUEUE].held += 1;
                self.kept.push((group, has, reserved));
            }
            return;
        }
        let at = self.random.below(self.kept.len());
        let (group, has, reserved) = self.kept.swap_remove(at);
        if self.random.below(2) == 0 {
            reserved.send(number).unwrap();
            self.naive.enter(group, 1, has);
        } else {
            drop(reserved);
            self.naive.give_up(group, 1, has);
            self.naive.done(1);
        }
    }

    fn set(&mut self) {
        let limit = [None, Some(0), Some(1), Some(2), Some(4), Some(6)][self.random.below(6)];
        let capacity = limit.map_or(Unlimited, |limit| AtMost(limit as u32));
        let level = self.random.below(GROUPS + 1);
        match level {
            LANE => self.lane.set_capacity(capacity).unwrap(),
            group => self.to[group].set_capacity(capacity).unwrap(),
        }
        self.naive.set(level, limit);
    }

    fn take_out(&mut self) {
        let group = self.random.below(GROUPS);
        let id = self.to[group].group_id();
        if self.random.below(2) == 0 {
            drop(self.queue.try_peek(id));
            return;
        }
        let n = self.queue.drain(id).unwrap().len();
        assert_eq!(n, self.naive.waiting[group]);
        self.naive.taken(group, n);
        self.naive.done(n);
    }

    fn step(&mut self, number: usize) {
        match self.random.below(16) {
            0 | 1 => self.send(number),
            2..=4 => self.wait(number),
            5..=7 => self.receive(),
            8 | 9 => self.finish(),
            10 => self.reserve(number),
            11 => self.set(),
            12 if self.random.below(4) == 0 => self.take_out(),
            13 if !self.waits.is_empty() => {
                let gone = self.waits.remove(self.random.below(self.waits.len()));
                for level in levels(gone.group) {
                    self.naive.levels[level].leave(gone.number);
                }
                self.naive.give_up(gone.group, gone.n, gone.has);
                drop(gone);
            }
            _ if !self.waits.is_empty() => {
                let at = self.random.below(self.waits.len());
                if self.waits[at].poll(&mut self.naive) {
                    self.waits.remove(at);
                }
            }
            _ => {}
        }
        self.naive.settle();
        for (to, waiting) in self.to.iter().zip(self.naive.waiting) {
            assert_eq!(self.queue.waiting_in(to.group_id()), Ok(waiting));
        }
        for one in &self.waits {
            let told = one.waiting.wakes.count() > one.wakes_seen;
            assert!(told || !one.is_told(&self.naive), "{} sleeps", one.number);
        }
    }

    /// Lets every wait go on at the end.
    fn end(&mut self) {
        self.kept.clear();
        self.hands.clear();
        self.lane.set_capacity(Unlimited).unwrap();
        for to in self.to {
            to.set_capacity(Unlimited).unwrap();
        }
        while !self.waits.is_empty() {
            let before = self.waits.len();
            serve(self.queue);
            self.waits.retain_mut(|one| !one.waiting.is_sent());
            assert!(self.waits.len() < before, "one is stuck");
        }
        serve(self.queue);
        assert_eq!(held(self.queue), 0);
        for to in self.to {
            to.set_capacity(2).unwrap();
            to.send_all([1, 2]).unwrap();
            assert_eq!(to.send(3).unwrap_err().reason, SendReason::GroupFull);
            serve(self.queue);
        }
    }
}

#[test]
fn as_lists_have_it() {
    for seed in 0..400 {
        // Without a capacity of the queue most sends take another path.
        let most = (seed % 2 == 0).then_some(8);
        let builder = Queue::builder().capacity(most.map_or(Unlimited, AtMost));
        let queue = builder.attempts(Unlimited).build().unwrap();
        let lane = queue.lane(1, Unlimited).unwrap();
        let to: Vec<_> = (0..GROUPS)
            .map(|_| conversation(&lane, Unlimited, 100))
            .collect();
        // From now on waits look again.
        to[0].set_capacity(Unlimited).unwrap();
        let mut world = World {
            queue: &queue,
            lane: &lane,
            to: &to,
            naive: Naive::default(),
            waits: Vec::new(),
            hands: Vec::new(),
            kept: Vec::new(),
            random: Random(seed),
        };
        world.naive.levels[QUEUE].limit = most.map(|most| most as usize);
        (0..300).for_each(|number| world.step(number));
        world.end();
    }
}
