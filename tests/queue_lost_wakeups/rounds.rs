//! The event of a round, and the queue of the event.

use std::hint::spin_loop;
use std::task::Poll;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::queue::{Conversation, Group, Lane, Queue};

use crate::queue_support::{Random, WakeCounter, poll};
use crate::receives::{Message, Receives};

use Message::{Complete, Fail, Hold};

const PAUSED: Limit = Limit::AtMost(0);

/// One queue from its beginning to its end. Between rounds all its groups are idle, and those that
/// can be paused are.
pub(crate) struct Life {
    queue: &'static Queue<Message>,
    receives: Receives,
    random: Random,
    all_queued: bool,
    /// How many polled waits are sometimes queued.
    waits: usize,
    backs_off: bool,
    now: Duration,
    plain: Vec<Conversation<Message>>,
    paused: (Group<Message>, Conversation<Message>),
    capped: (Lane<Message>, Conversation<Message>),
    low: Conversation<Message>,
    high: Conversation<Message>,
}

impl Life {
    /// With threads; if `all_queued`, each round begins when all are queued.
    pub(crate) fn new(threads: usize, all_queued: bool, seed: u64) -> Self {
        let mut random = Random(seed);
        let backs_off = random.below(2) == 0;
        let builder = Queue::builder();
        let builder = match backs_off {
            true => builder.back_off(Duration::from_secs(1), Duration::from_secs(1)),
            false => builder.attempts(Limit::AtMost(1)),
        };
        // Leaked, because its readers outlive a test that fails.
        let queue: &Queue<Message> = Box::leak(Box::new(builder.build().unwrap()));
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let capped = queue.lane(1, PAUSED).unwrap();
        let tiers = queue.lane(1, Limit::Unlimited).unwrap();
        let paused = lane.group(PAUSED, 100).unwrap();
        Self {
            receives: Receives::new(queue, threads),
            plain: (0..4).map(|_| lane.conversation().unwrap()).collect(),
            paused: (paused.conversation().map(|own| (paused, own))).unwrap(),
            capped: (capped.conversation().map(|own| (capped, own))).unwrap(),
            low: tiers.conversation().unwrap(),
            high: tiers.conversation().unwrap(),
            now: Duration::ZERO,
            queue,
            random,
            all_queued,
            waits: 1,
            backs_off,
        }
    }

    /// Without threads, with `waits` waits that the test polls.
    pub(crate) fn polled(waits: usize, seed: u64) -> Self {
        let mut life = Self::new(0, true, seed);
        life.waits = waits;
        life
    }

    pub(crate) fn round(&mut self) {
        match self.random.below(13) {
            0..=2 => self.message(),
            3 => self.bumped_message(),
            4 => self.two_messages(),
            5 => self.several_groups(),
            6 => self.cap_rises(),
            7 => self.limit_rises(),
            8 => self.completion(),
            9 => self.failure_is_over(),
            10 => self.tier_opens(),
            11 => self.peek_ends(),
            _ => self.named_gives_up(),
        }
    }

    /// Closes the queue in one of three ways; returns how many wake-ups that caused.
    pub(crate) fn end(mut self) -> u64 {
        self.ready();
        match self.random.below(3) {
            0 => self.close(),
            1 => {
                self.send(0, Hold);
                self.served(1);
                self.ready();
                self.close();
                self.complete_held();
            }
            _ => {
                self.paused.1.send(Complete).unwrap();
                self.close();
                self.ready();
                self.paused.0.set_limit(Limit::SERIAL).unwrap();
                self.served(1);
            }
        }
        let had_reason = self.receives.served() + self.receives.threads() as u64;
        self.receives.end();
        had_reason
    }

    fn close(&mut self) {
        self.receives.closed = true;
        self.queue.close();
    }

    fn message(&mut self) {
        self.ready();
        let at = self.random.below(4);
        self.send(at, Complete);
        self.served(1);
    }

    fn bumped_message(&mut self) {
        self.ready();
        let (at, level) = (self.random.below(4), self.random.below(256) as u8);
        self.queue.bump(self.plain[at].group_id(), level).unwrap();
        self.send(at, Complete);
        self.served(1);
    }

    /// The second turn begins when the first is over.
    fn two_messages(&mut self) {
        self.ready();
        let at = self.random.below(4);
        self.plain[at].send_all([Complete, Complete]).unwrap();
        self.served(2);
    }

    fn several_groups(&mut self) {
        self.ready();
        let groups = 1 + self.random.below(4);
        (0..groups).for_each(|at| self.send(at, Complete));
        self.served(groups as u64);
    }

    fn cap_rises(&mut self) {
        self.capped.1.send(Complete).unwrap();
        self.ready();
        let cap = [Limit::SERIAL, Limit::AtMost(7), Limit::Unlimited];
        let cap = cap[self.random.below(3)];
        self.capped.0.set_cap(cap).unwrap();
        self.served(1);
        self.capped.0.set_cap(PAUSED).unwrap();
    }

    /// Sometimes bumped before, which changes nothing.
    fn limit_rises(&mut self) {
        self.paused.1.send(Complete).unwrap();
        if self.random.below(2) == 0 {
            self.paused.0.bump(self.random.below(256) as u8);
        }
        self.ready();
        self.paused.0.set_limit(Limit::SERIAL).unwrap();
        self.served(1);
        self.paused.0.set_limit(PAUSED).unwrap();
    }

    fn completion(&mut self) {
        self.ready();
        let at = self.random.below(4);
        self.send(at, Hold);
        self.served(1);
        self.send(at, Complete);
        self.ready();
        self.complete_held();
        self.served(1);
    }

    /// A poisoned group is resumed, or a back-off ends.
    fn failure_is_over(&mut self) {
        self.ready();
        let at = self.random.below(4);
        self.send(at, Fail);
        self.served(1);
        self.ready();
        if self.backs_off {
            self.now += Duration::from_secs(1);
            assert_eq!(self.queue.advance(self.now), None);
        } else {
            assert!(self.queue.resume(self.plain[at].group_id()).unwrap());
        }
        self.served(1);
    }

    fn tier_opens(&mut self) {
        self.ready();
        self.low.send_in(0, Hold).unwrap();
        self.served(1);
        self.high.send_in(1, Complete).unwrap();
        self.ready();
        self.complete_held();
        self.served(1);
    }

    fn peek_ends(&mut self) {
        let (group, conversation) = &self.paused;
        conversation.send(Complete).unwrap();
        let peek = self.queue.try_peek(group.id()).unwrap();
        group.set_limit(Limit::SERIAL).unwrap();
        self.ready();
        drop(peek);
        self.served(1);
        self.paused.0.set_limit(PAUSED).unwrap();
    }

    /// A wait by name is notified of its message, and does not take it.
    fn named_gives_up(&mut self) {
        let at = self.random.below(4);
        let (wakes, waker) = WakeCounter::new();
        let mut named = self.queue.receive_from(self.plain[at].group_id());
        assert!(matches!(poll(&mut named, &waker), Poll::Pending));
        self.send(at, Complete);
        assert_eq!(wakes.count(), 1);
        self.ready();
        drop(named);
        self.served(1);
    }

    fn send(&self, at: usize, message: Message) {
        self.plain[at].send(message).unwrap();
    }

    fn complete_held(&self) {
        let held = self.receives.tally.held.lock().unwrap().take();
        held.expect("it was received").complete();
    }

    /// All receives are queued, or are about to be.
    fn ready(&mut self) {
        if self.receives.threads() == 0 || self.random.below(4) == 0 {
            while self.receives.polled() < self.waits {
                self.receives.queue_one();
            }
        }
        if self.all_queued {
            self.receives.wait_for_all();
        }
        // From those that still spin to those that sleep.
        if self.receives.threads() > 0 {
            (0..self.random.below(400)).for_each(|_| spin_loop());
        }
    }

    fn served(&mut self, turns: u64) {
        self.receives.expect(turns, &mut self.random);
    }
}
