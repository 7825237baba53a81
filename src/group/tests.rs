//! A mailbox against a sorted list: messages of every kind, taken out, put back,
//! drained and restored.

mod fifo;
mod magazines;

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Group, Mailbox, ODD, Phase, TIERED, Taken, ordinal};
use crate::lanes::Lanes;
use crate::limit::{Bypass, Limit};

std::thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// How many messages this thread has taken out, and how many groups it has listed: for tests that
/// an operation does not visit all.
pub(crate) fn steps() -> usize {
    STEPS.get()
}

pub(super) fn step() {
    STEPS.set(STEPS.get() + 1);
}

#[derive(Clone, Debug)]
enum Op {
    /// A send, this many tiers above the last one.
    Send(u32),
    PutFirst,
    Take,
    /// Which of the taken messages comes back, and whether it failed.
    PutBack(usize, bool),
    Done(usize),
    /// All are taken out, and put back except each `n`-th.
    Retract(usize),
    /// Each message whose number is divisible by this one plus 1 is taken out.
    TakeFitting(usize),
    StartAnew,
    CloseUp,
    Peek,
    EndPeek,
}

/// The place of a message: first those put first, then those sent, by number.
type Place = (bool, u64);

/// A waiting message: its tier, its attempts, and its value.
type Waiting = (u32, u32, u32);

struct Pair {
    group: Group<u32>,
    tiered: bool,
    waiting: BTreeMap<Place, Waiting>,
    taken: Vec<(Place, Taken<u32>)>,
    peeked: Option<(Place, Taken<u32>)>,
    sent: u64,
    fronts: u64,
    last_tier: u32,
    message: u32,
}

fn group<T>(flags: super::Flags) -> Group<T> {
    let mut lanes: Lanes<()> = Lanes::new(Bypass::default());
    let lane = lanes.add_lane(1, Limit::Unlimited).unwrap();
    Group::new(Mailbox::new(lane, Limit::SERIAL, 100, flags), false)
}

impl Pair {
    /// A group to which `sent` messages were sent before.
    fn new(tiered: bool, sent: u64) -> Self {
        let group = group(if tiered { TIERED } else { 0 });
        group.lock().set_number(sent + 1);
        Self {
            group,
            tiered,
            waiting: BTreeMap::new(),
            taken: Vec::new(),
            peeked: None,
            sent,
            fronts: 0,
            last_tier: 0,
            message: 0,
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send(up) => self.send(up),
            Op::PutFirst => self.put_first(),
            Op::Take if self.peeked.is_none() => {
                let taken = self.take();
                self.taken.extend(taken);
            }
            Op::PutBack(n, failed) if !self.taken.is_empty() => {
                let (place, mut taken) = self.taken.swap_remove(n % self.taken.len());
                taken.attempts += u32::from(failed);
                self.put_back(place, taken);
            }
            Op::Done(n) if !self.taken.is_empty() => {
                _ = self.taken.swap_remove(n % self.taken.len());
            }
            Op::Retract(n) => self.retract(n + 1),
            Op::TakeFitting(n) => self.take_fitting(n as u32 + 1),
            Op::StartAnew => {
                self.group.lock().reset_attempts();
                self.waiting.values_mut().for_each(|w| w.1 = 0);
                // As the queue does when the peek ends.
                let looked_at = self.peeked.iter_mut();
                looked_at.for_each(|(_, taken)| taken.attempts = 0);
            }
            Op::CloseUp => {
                let mut mailbox = self.group.lock();
                if mailbox.phase == Phase::Idle && self.peeked.is_none() {
                    mailbox.close_up();
                }
            }
            Op::Peek if self.peeked.is_none() => {
                self.peeked = self.take();
                let head = self.peeked.as_ref().map(|(_, taken)| taken.head());
                self.group.add_waiting(usize::from(head.is_some()));
                self.group.lock().rare().peeked = head;
            }
            Op::EndPeek => {
                self.group.lock().rare().peeked = None;
                if let Some((place, taken)) = self.peeked.take() {
                    self.group.remove_waiting(1);
                    self.put_back(place, taken);
                }
            }
            _ => {}
        }
        self.check();
    }

    fn send(&mut self, up: u32) {
        let tier = match self.tiered {
            // An empty group may start again at a lower tier.
            true if self.waiting.is_empty() && self.taken.is_empty() => up,
            true => self.last_tier + up,
            false => 0,
        };
        (self.message, self.sent) = (self.message + 1, self.sent + 1);
        let message = self.message;
        self.last_tier = tier;
        self.waiting.insert((true, self.sent), (tier, 0, message));
        let mut mailbox = self.group.lock();
        if self.tiered {
            self.group
                .append_in(&mut mailbox, tier, [message].into_iter());
        } else {
            self.group.append(&mut mailbox, message);
        }
        assert_eq!(mailbox.last_tier(), self.last_tier);
    }

    fn put_first(&mut self) {
        (self.message, self.fronts) = (self.message + 1, self.fronts + 1);
        self.waiting
            .insert((false, self.fronts), (0, 0, self.message));
        self.group.add_waiting(1);
        self.group.lock().put_first(self.message);
    }

    fn take(&mut self) -> Option<(Place, Taken<u32>)> {
        let taken = self.group.take(&mut self.group.lock());
        let expected = self.waiting.pop_first();
        let seen = taken.as_ref().map(|t| (t.tier, t.attempts, t.message));
        assert_eq!(seen, expected.map(|(_, waiting)| waiting));
        Some((expected?.0, taken?))
    }

    fn put_back(&mut self, place: Place, taken: Taken<u32>) {
        let waiting = (taken.tier, taken.attempts, taken.message);
        self.waiting.insert(place, waiting);
        self.group.put_back(&mut self.group.lock(), taken);
    }

    fn retract(&mut self, nth: usize) {
        let mut mailbox = self.group.lock();
        let drained: Vec<_> = std::iter::from_fn(|| self.group.take(&mut mailbox)).collect();
        let seen = drained.iter().map(|t| (t.tier, t.attempts, t.message));
        assert!(seen.eq(self.waiting.values().copied()));
        let peeked = u32::from(self.peeked.is_some());
        assert_eq!((self.group.waiting(), mailbox.flags & ODD), (peeked, 0));
        let all = drained.into_iter().zip(std::mem::take(&mut self.waiting));
        let kept = all.enumerate().filter(|(n, _)| n % nth > 0);
        let (back, kept): (Vec<_>, Vec<_>) = kept.map(|(_, both)| both).unzip();
        let back = back.into_iter().rev();
        back.for_each(|taken| self.group.put_back(&mut mailbox, taken));
        self.waiting.extend(kept);
    }

    fn take_fitting(&mut self, divisor: u32) {
        let fits = |taken: &Taken<u32>| taken.message.is_multiple_of(divisor);
        let out = self.group.take_fitting(&mut self.group.lock(), fits);
        let mut expected = Vec::new();
        self.waiting.retain(|_, waiting| {
            let stays = !waiting.2.is_multiple_of(divisor);
            expected.extend((!stays).then_some(*waiting));
            stays
        });
        let seen = out.iter().map(|t| (t.tier, t.attempts, t.message));
        assert!(seen.eq(expected));
    }

    fn check(&self) {
        let mailbox = self.group.lock();
        let peeked = usize::from(self.peeked.is_some());
        assert_eq!(self.group.waiting() as usize, self.waiting.len() + peeked);
        assert_eq!(self.group.sent(&mailbox), self.sent + self.fronts);
        // `head` shows a message that is being peeked at, in its place.
        let looked_at = self.peeked.iter().map(|(place, taken)| {
            let head = taken.head();
            (*place, (head.tier, head.attempts))
        });
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|(&place, &(tier, attempts, _))| (place, (tier, attempts)));
        let expected = waiting.chain(looked_at).min();
        let expected = expected.map(|((_, number), (tier, attempts))| (number, tier, attempts));
        let head = mailbox.head();
        let seen = head.map(|head| (ordinal(head.place()), head.tier, head.attempts));
        assert_eq!(seen, expected);
        let odd = mailbox.rare.as_ref().map_or(0, |rare| rare.odd.len());
        assert_eq!(mailbox.flags & ODD != 0, odd > 0);
        assert_eq!(mailbox.plain.is_empty(), odd == self.waiting.len());
    }
}

fn op() -> impl Strategy<Value = Op> {
    let n = || 0..9_usize;
    prop_oneof![
        12 => prop::sample::select(vec![0_u32, 0, 0, 1, 3]).prop_map(Op::Send),
        1 => Just(Op::PutFirst),
        10 => Just(Op::Take),
        6 => (n(), any::<bool>()).prop_map(|(n, failed)| Op::PutBack(n, failed)),
        4 => n().prop_map(Op::Done),
        1 => n().prop_map(Op::Retract),
        1 => n().prop_map(Op::TakeFitting),
        1 => Just(Op::StartAnew),
        1 => Just(Op::CloseUp),
        1 => Just(Op::Peek),
        1 => Just(Op::EndPeek),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_sorted_list(tiered in any::<bool>(), far in any::<bool>(), ops in vec(op(), 1..300)) {
        // The numbers will soon need more than 32 bits.
        let sent = if far { u64::from(u32::MAX) - 3 } else { 0 };
        let mut pair = Pair::new(tiered, sent);
        ops.iter().for_each(|op| pair.apply(op));
        pair.apply(&Op::EndPeek);
        while !pair.waiting.is_empty() {
            pair.apply(&Op::Take);
        }
        pair.apply(&Op::Take);
    }
}

/// In this group tiers come into use while plain messages wait.
#[test]
fn tiers_come_after_what_is_plain() {
    let group = group(0);
    let mut mailbox = group.lock();
    for message in [1, 2] {
        group.append(&mut mailbox, message);
    }
    let first = group.take(&mut mailbox).unwrap();
    mailbox.flags |= TIERED;
    for (tier, message) in [(0, 3), (1, 4), (1, 5)] {
        group.append_in(&mut mailbox, tier, [message].into_iter());
    }
    group.put_back(&mut mailbox, first);
    let all = std::iter::from_fn(|| group.take(&mut mailbox));
    let all: Vec<_> = all
        .map(|t| (ordinal(t.place()), t.tier, t.message))
        .collect();
    assert_eq!(all, [(1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 1, 4), (5, 1, 5)]);
}

#[test]
fn what_was_never_looked_at_goes_back_as_plain() {
    let group = group(0);
    let mut mailbox = group.lock();
    (0..3).for_each(|message| group.append(&mut mailbox, message));
    for _ in 0..3 {
        let taken = group.take(&mut mailbox).unwrap();
        group.put_back(&mut mailbox, taken);
    }
    assert!(mailbox.rare.is_none() && mailbox.flags == 0);
    let mut failed = group.take(&mut mailbox).unwrap();
    failed.attempts = 1;
    group.put_back(&mut mailbox, failed);
    assert_eq!(mailbox.flags, ODD);
    let again = group.take(&mut mailbox).unwrap();
    assert_eq!((again.attempts, again.message, mailbox.flags), (1, 0, 0));
    mailbox.close_up();
    assert!(mailbox.rare.is_none());
}

/// Messages put first are in tier 0, whatever the tier of the last send.
#[test]
fn what_is_put_first_is_of_tier_0() {
    let group = group(TIERED);
    let mut mailbox = group.lock();
    group.append_in(&mut mailbox, 3, ['c'].into_iter());
    group.add_waiting(2);
    for first in ['a', 'b'] {
        mailbox.put_first(first);
    }
    assert_eq!(
        (mailbox.head().map(|head| head.tier), mailbox.last_tier()),
        (Some(0), 3)
    );
    let all = std::iter::from_fn(|| group.take(&mut mailbox));
    let all: Vec<_> = all.map(|t| (t.tier, t.message)).collect();
    assert_eq!(all, [(0, 'a'), (0, 'b'), (3, 'c')]);
}

/// A group that is full of sent messages has room for those that come back.
#[test]
fn a_full_group_takes_back_what_is_out() {
    const MANY: usize = Limit::MAX as usize;
    let group = group(0);
    let mut mailbox = group.lock();
    group.append(&mut mailbox, 'a');
    let taken = group.take(&mut mailbox).unwrap();
    group.add_sent(MANY - 1);
    group.append(&mut mailbox, 'b');
    for more in [1, MANY, usize::MAX] {
        let send = || group.add_sent(more);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(send));
        assert!(refused.is_err() && group.waiting() == Limit::MAX);
    }
    group.put_back(&mut mailbox, taken);
    assert_eq!(group.waiting(), Limit::MAX + 1);
    let first = group.take(&mut mailbox).map(|first| first.message);
    assert_eq!((first, group.waiting()), (Some('a'), Limit::MAX));
}
