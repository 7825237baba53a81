//! What a live turn may have without the policy lock.
//!
//! A claim takes the turn's first message, and deals the turn a hand: the
//! messages behind it, up to the quantum, with so much room of the group's
//! limit. From then on the turn takes them and its deliveries are done under
//! the hand's own lock, which nobody else wants; the books hear of it all at
//! once. A turn that was dealt all that its group had asks the arrivals whether
//! something came; if not, it knows that there is nothing.
//!
//! State: the messages, the room, how much had been taken in when they were
//! dealt, and the account of what was taken and done since, under one small
//! mutex a turn.
//!
//! Protocol: the policy lock may be held when a hand's is taken, never the
//! other way round. Every event that asks what waits or is in flight, or that
//! changes a limit, calls in all live hands first ([`Books::call_in`]), and
//! takes in the posts after that; so it sees all that was done before it, in
//! hands and posts alike. Claims, and what makes groups, need not: a live hand
//! is of a held group, in a lane without a cap, in a queue without tiers, and
//! decides nothing for anybody else.
//!
//! Invariants:
//! 1. A hand is live exactly if it is in `Books::hands`; the books count what
//!    a live hand keeps as waiting, and what it took or finished since it was
//!    dealt not at all.
//! 2. Once a turn is over its hand changes no more, until its end, which is
//!    posted, is taken in. So nobody who sleeps waits for what a hand does, and
//!    what is done after the end of a turn comes after it for the books, too.
//! 3. While a hand is live its group gets messages by posts only: all else
//!    that changes the group is an event.
//! 4. No hand is dealt while the queue is closed, has a capacity, or has ever
//!    used tiers, nor while somebody waits by name, nor to a group that is set
//!    aside, above its limit or in a capped lane; those who change that call in
//!    all hands first.

use crate::backlog::{Account, Claim, Dealt};
use crate::dispatch::GroupKey;
use crate::slab::{Key, Slab};
use crate::sync::{Arc, Mutex};

use super::posts::Post;
use super::room::Holder;
use super::shared::{Books, Shared};

/// A turn's hand, which its deliveries share.
pub(super) struct Hand<T> {
    pub(super) shared: Arc<Shared<T>>,
    pub(super) group: GroupKey,
    /// Who received the turn.
    pub(super) holder: Holder,
    held: Mutex<Held<T>>,
}

struct Held<T> {
    /// Where it stands among the live ones.
    live: Option<Key>,
    /// The turn is over: what is done from now on is done after its end.
    over: bool,
    dealt: Dealt<T>,
    /// Of the group's stripe, when it was dealt.
    taken_in: usize,
    account: Account,
}

/// What a hand has for its turn.
pub(super) enum Play<T> {
    Message(Claim<T>),
    /// Nothing, and the group has nothing either.
    Nothing,
    /// Nothing: ask the books.
    Ask,
}

/// The live hands of a queue.
pub(super) type Hands<T> = Slab<Arc<Hand<T>>>;

impl<T> Hand<T> {
    pub(super) fn new(shared: &Arc<Shared<T>>, group: GroupKey, holder: Holder) -> Arc<Self> {
        Arc::new(Self {
            shared: shared.clone(),
            group,
            holder,
            held: Mutex::new(Held {
                live: None,
                over: false,
                dealt: Dealt::nothing(),
                taken_in: 0,
                account: Account::default(),
            }),
        })
    }

    /// The next message, if the hand is live and has one and room for it.
    pub(super) fn play(&self) -> Play<T> {
        let mut held = self.held.lock();
        if held.live.is_none() {
            return Play::Ask;
        }
        if let Some(claim) = held.dealt.take(self.group) {
            held.account.taken += 1;
            return Play::Message(claim);
        }
        let came = self.shared.arrivals.of(self.group) != held.taken_in;
        if came || !held.dealt.is_all_taken() {
            return Play::Ask;
        }
        Play::Nothing
    }

    /// A delivery is done; false if the books must be told.
    pub(super) fn done(&self) -> bool {
        let mut held = self.held.lock();
        let kept = held.live.is_some() && !held.over;
        if kept {
            held.dealt.room += 1;
            held.account.done += 1;
        }
        kept
    }

    /// The turn is over, its first message handed out.
    pub(super) fn end(hand: &Arc<Self>) {
        let mut held = hand.held.lock();
        held.over = true;
        // Under the hand's lock: who finds it over posts after this.
        let posted = hand.shared.tokens.lock().post(Post::End(hand.clone()));
        drop(held);
        hand.shared.posted(posted);
    }
}

impl<T> Books<T> {
    /// Deals a live turn's hand, that is not live, up to so many messages.
    pub(super) fn deal(&mut self, hand: &Arc<Hand<T>>, most: u32) {
        if self.closed || hand.shared.bounded || !self.named.is_empty() {
            return;
        }
        let Some(dealt) = self.backlog.deal(hand.group, most) else {
            return;
        };
        let mut held = hand.held.lock();
        debug_assert!(held.live.is_none());
        held.dealt = dealt;
        held.taken_in = self.taken_in.of(hand.group);
        held.account = Account::default();
        held.live = Some(self.hands.insert(hand.clone()));
    }

    /// Calls in one hand, if it is live.
    pub(super) fn call_in_one(&mut self, hand: &Hand<T>) {
        let mut held = hand.held.lock();
        if let Some(place) = held.live.take() {
            let dealt = std::mem::replace(&mut held.dealt, Dealt::nothing());
            let account = held.account;
            drop(held);
            self.hands.remove(place);
            self.backlog.settle_up(hand.group, dealt, account);
        }
    }

    /// Calls in all hands.
    pub(super) fn call_in(&mut self) {
        let hands: Vec<_> = self.hands.iter().map(|(_, hand)| hand.clone()).collect();
        for hand in hands {
            self.call_in_one(&hand);
        }
    }
}
