//! What the policy lock of a queue protects, and how a group's place follows from its state.
//!
//! Invariants, at the end of each event:
//! 1. A group is in line if and only if its phase is Ready and no reader has claimed it. Then
//!    it has work and room, and no flag blocks it.
//! 2. In a lane with tiers, each group counts in the tier of its first message, unless it is
//!    poisoned; each message that has started counts too.
//! 3. `draining` is the number of groups in a closed queue that have something in flight or
//!    receivable.
//! 4. `groups` holds every group that has not ended.

use std::collections::BTreeMap;

use crate::error::{Closed, OutOfRange};
use crate::group::{
    BOUNDED, CLOSED, COUNTED, Group, GroupKey, LANE, Mailbox, NAMED, PEEKED, POISONED, Phase,
    STARTED, TIERED, UNPINNED, bound,
};
use crate::lanes::{Lane, LaneKey, Lanes};
use crate::limit::{Bypass, Limit};
use crate::ready::{Age, ReadyItem};
use crate::semaphore::Semaphore;
use crate::sync::{Arc, WakeArc};
use crate::wait::Waiters;

use super::bounds::check_waiting;
use super::named_waits::NamedWaits;
use super::refuse::NoMore;
use super::submissions::{FEW, MIXED, MOVED, Move, Submissions, Token};
use super::suspended::Suspended;
use super::units::Units;
use super::{GroupRef, Groups};

/// Is told what happens to a queue, under no lock.
pub(crate) trait Observer: Send + Sync {
    /// The queue was dropped. Called once.
    fn gone(&self) {}

    /// Idle groups may be forgotten.
    fn trim(&self) {}
}

/// Each claim uses `lanes` and `receives`: they come early, close to the lock.
#[repr(C)]
pub(super) struct State<T> {
    pub(super) lanes: Lanes<GroupRef<T>>,
    pub(super) groups: Groups<T>,
    /// Receives that wait for a turn of any group.
    pub(super) receives: Waiters<()>,
    /// Receives that wait for a group by name.
    pub(super) named: NamedWaits,
    pub(super) suspended: Suspended,
    /// Waits for a poisoned group.
    pub(super) watchers: Waiters<()>,
    /// Those that are told when the queue is gone.
    pub(super) observers: BTreeMap<u64, WakeArc<dyn Observer>>,
    pub(super) closed: bool,
    /// Dialogs put events into this queue, also once it is closed.
    pub(super) events: bool,
    pub(super) draining: u64,
    /// How many messages were sent to groups that have ended.
    pub(super) sent_to_ended: u64,
    /// Permits came back that a send waits for: serve them after the event.
    pub(super) serve: bool,
    /// The same for capacities of groups and lanes.
    pub(super) freed: Vec<Option<Arc<Semaphore>>>,
    /// The capacities of lanes, by their index.
    pub(super) lane_bounds: BTreeMap<u32, Arc<Semaphore>>,
    /// Messages that came back and nobody will ever receive: drop them after the event.
    pub(super) unwanted: Vec<T>,
    /// The other token list of the submissions, empty between events.
    buffer: Vec<Token<T>>,
    /// The other list of moves.
    moves: Vec<Move<T>>,
    /// What the submissions were last told about sleepers.
    pub(super) asleep: bool,
    /// Some lane has a cap: tokens may return units of it.
    pub(super) capped: bool,
    /// The common level of all groups so far; with a second level tokens may overtake.
    pub(super) level: Option<u8>,
}

impl<T> ReadyItem for GroupRef<T> {
    #[inline]
    fn hint(&self) {
        self.prefetch();
    }
}

fn groups_in<G>(lane: &Lane<G>) -> usize {
    lane.pins as usize - usize::from(!lane.ending)
}

const OF_LANES: &str = "a lane counts its groups";

impl<T> State<T> {
    pub(super) fn new(bypass: Bypass) -> Self {
        Self {
            lanes: Lanes::new(bypass),
            groups: Groups::new(),
            receives: Waiters::new(),
            named: NamedWaits::default(),
            suspended: Suspended::default(),
            watchers: Waiters::new(),
            observers: BTreeMap::new(),
            closed: false,
            events: false,
            draining: 0,
            sent_to_ended: 0,
            serve: false,
            freed: Vec::new(),
            lane_bounds: BTreeMap::new(),
            unwanted: Vec::new(),
            buffer: Vec::new(),
            moves: Vec::new(),
            asleep: false,
            capped: false,
            level: None,
        }
    }

    /// Refuses to make anything new in a closed queue.
    pub(super) fn open(&self) -> Result<(), Closed> {
        if self.closed { Err(Closed) } else { Ok(()) }
    }

    /// Why nothing more comes, if the queue is closed and nothing receivable is left. Suspended
    /// groups are then poisoned, since a back-off counts in `draining`.
    pub(super) fn no_more(&self) -> Option<NoMore> {
        let finished = self.closed && self.draining == 0;
        finished.then_some(match self.suspended.groups.is_empty() {
            true => NoMore::Drained,
            false => NoMore::OnlyPoisoned,
        })
    }

    /// Counts a new group in a lane.
    pub(super) fn add_to_lane(&mut self, lane: LaneKey, group: GroupKey) {
        self.lanes.add_group(lane);
        let lane = self.lanes.lane_mut(lane.index());
        lane.first_group = match groups_in(lane) {
            1 => group.0.index(),
            _ => lane.first_group.min(group.0.index()),
        };
    }

    /// The groups of a lane. Looks at all groups of the queue from the lane's first to its
    /// last.
    pub(super) fn groups_of(&self, lane: LaneKey) -> Vec<GroupRef<T>> {
        let (of, mut found) = (self.lanes.lane(lane.index()), Vec::new());
        let mut next = of.first_group;
        while found.len() < groups_in(of) {
            let page = self.groups.from(next, 1);
            next = page.last().expect(OF_LANES).key().0.index() + 1;
            let is_in = |group: &GroupRef<T>| group.lock().lane.key() == lane;
            found.extend(page.into_iter().filter(is_in));
        }
        found
    }

    /// Takes in the submissions, in their order.
    #[inline]
    pub(super) fn collect(&mut self, submissions: &Submissions<T>) {
        if submissions.has_some() {
            self.collect_some(submissions);
        }
    }

    fn collect_some(&mut self, submissions: &Submissions<T>) {
        let urgent = submissions.take(&mut self.buffer, &mut self.moves);
        if urgent & MIXED != 0 || self.capped {
            self.place_runs(&submissions.units);
            self.buffer.clear();
        } else if let Some(first) = self.buffer.first() {
            self.lanes.push_all(first.link, &mut self.buffer);
        }
        self.buffer.shrink_to(Submissions::<T>::LONG);
        if urgent & MOVED != 0 {
            self.make_moves();
        }
    }

    /// Takes in the tokens, those of one lane at a time.
    fn place_runs(&mut self, units: &Units) {
        let mut tokens = self.buffer.as_mut_slice();
        while let Some(first) = tokens.first() {
            let lane = first.link;
            if first.units > 0 {
                let back = u32::from(first.units) + units.take(lane);
                self.lanes.return_units(lane, back);
                self.lanes.update(lane);
            }
            let mut n = 1;
            if first.group.is_some() {
                let alike = |t: &&Token<T>| t.link == lane && t.units == 0 && t.group.is_some();
                n += tokens[1..].iter().take_while(alike).count();
                self.lanes.push_run(lane, &mut tokens[..n]);
            }
            tokens = &mut tokens[n..];
        }
    }

    /// Moves bumped groups to their places in line, unless they have been claimed.
    #[inline(never)]
    fn make_moves(&mut self) {
        for m in self.moves.drain(..) {
            let mut stood = |from| self.lanes.remove(m.lane, 0, from);
            if let Some(group) = m.group.or_else(|| stood(m.from)) {
                self.lanes.ready(m.lane, 0).insert(m.ticket, m.to, group);
                self.lanes.update(m.lane);
            }
        }
        self.moves.shrink_to(FEW);
    }

    /// Nothing is eligible: frees what long lists have left.
    pub(super) fn shrink(&mut self, submissions: &Submissions<T>) {
        if self.buffer.capacity() > FEW {
            self.buffer = Vec::new();
        }
        submissions.shrink();
    }

    /// A number after all tickets so far, which are all taken in.
    pub(super) fn mint(&mut self, submissions: &Submissions<T>) -> u64 {
        loop {
            if let Some(number) = submissions.mint() {
                return number;
            }
            self.collect_some(submissions);
        }
    }

    /// Takes a locked group out of line for a change. It is idle then, or still Ready if a
    /// reader has claimed it. What was submitted must have been taken in since it was locked.
    pub(super) fn dequeue(&mut self, mailbox: &mut Mailbox<T>) {
        if mailbox.phase == Phase::Ready {
            let (lane, tier) = (mailbox.lane.index(), mailbox.counted().unwrap_or(0));
            if let Some(group) = self.lanes.remove(lane, tier, mailbox.position()) {
                group.end(mailbox);
                mailbox.phase = Phase::Idle;
            }
        }
    }

    /// Whether a locked group is Ready and claimed.
    pub(super) fn is_claimed(&mut self, mailbox: &Mailbox<T>) -> bool {
        let (lane, tier) = (mailbox.lane.index(), mailbox.counted().unwrap_or(0));
        mailbox.phase == Phase::Ready && !self.lanes.contains(lane, tier, mailbox.position())
    }

    /// Puts a locked group that is out of line where it belongs after a change, with all that
    /// follows: tiers, the count of a closed queue, its end.
    pub(super) fn place(
        &mut self,
        submissions: &Submissions<T>,
        group: &GroupRef<T>,
        mailbox: &mut Mailbox<T>,
        age: Age,
    ) {
        let lane = mailbox.lane.index();
        if mailbox.flags & NAMED != 0 {
            self.named.mark(group.key());
        }
        if mailbox.flags & BOUNDED != 0 {
            self.freed.extend(mailbox.count_waiting(group.waiting()));
        }
        self.count_head(mailbox);
        if matches!(mailbox.phase, Phase::Idle | Phase::Blocked) {
            self.enqueue(submissions, group, mailbox, age);
        } else if age == Age::New && mailbox.flags & PEEKED != 0 {
            mailbox.ticket = self.mint(submissions);
        }
        self.count_closed(group, mailbox);
        let idle = mailbox.phase == Phase::Idle && mailbox.detached() == 0;
        self.lanes.update(lane);
        if idle && mailbox.flags & UNPINNED != 0 {
            mailbox.phase = Phase::Ended;
            self.sent_to_ended += group.sent(mailbox);
            self.groups.remove(group, mailbox);
            if self.lanes.remove_group(mailbox.lane.key()) {
                self.lane_bounds.remove(&lane);
            }
        } else if idle {
            mailbox.close_up();
        }
    }

    fn enqueue(
        &mut self,
        submissions: &Submissions<T>,
        group: &GroupRef<T>,
        mailbox: &mut Mailbox<T>,
        age: Age,
    ) {
        if group.waiting() == 0 {
            mailbox.rest_idle();
            return;
        }
        if age == Age::New {
            mailbox.ticket = self.mint(submissions);
        }
        if !mailbox.may_take() || mailbox.flags & NAMED != 0 {
            mailbox.phase = Phase::Blocked;
            return;
        }
        mailbox.phase = Phase::Ready;
        let lane = mailbox.lane.index();
        let tier = mailbox.counted().unwrap_or(0);
        let another = group.another(mailbox);
        let (level, bump) = (mailbox.lane.level(), mailbox.bump());
        let ready = self.lanes.ready(lane, tier);
        ready.join(age, mailbox.ticket, level, bump, another);
    }

    /// Keeps invariant 2.
    pub(super) fn count_head(&mut self, mailbox: &mut Mailbox<T>) {
        if mailbox.flags & TIERED == 0 || mailbox.flags & STARTED != 0 {
            return;
        }
        let head = mailbox.head().filter(|_| mailbox.flags & POISONED == 0);
        let head = head.map(|head| head.tier);
        let counted = std::mem::replace(&mut mailbox.rare().counted, head);
        self.lanes.change_head(mailbox.lane.index(), counted, head);
    }

    /// Keeps invariant 3.
    pub(super) fn count_closed(&mut self, group: &Group<T>, mailbox: &mut Mailbox<T>) {
        if mailbox.flags & CLOSED == 0 {
            return;
        }
        let waits = group.waiting() > 0 && mailbox.flags & POISONED == 0;
        // A ready group waits, or is claimed.
        let busy = waits || mailbox.units(mailbox.phase == Phase::Ready) > 0;
        if busy != (mailbox.flags & COUNTED != 0) {
            mailbox.flags ^= COUNTED;
            match busy {
                true => self.draining += 1,
                false => self.draining -= 1,
            }
        }
    }

    /// Changes the capacity of a lane. `finish_change` must follow for what it returns. An error
    /// has changed nothing.
    pub(super) fn change_lane(
        &mut self,
        lane: LaneKey,
        capacity: Limit,
    ) -> Result<Option<Arc<Semaphore>>, OutOfRange> {
        let index = lane.index();
        let (old, groups) = match (self.lane_bounds.get(&index).cloned(), capacity) {
            (None, Limit::Unlimited) => return Ok(None),
            (Some(old), Limit::AtMost(_)) => return Ok(Some(old)),
            (old, _) => (old, self.groups_of(lane)),
        };
        let bounds = &mut self.lane_bounds;
        let (new, changed) = match old {
            Some(_) => (None, bounds.remove(&index)),
            None => {
                check_waiting(groups.iter().map(|group| u64::from(group.waiting())).sum())?;
                // Let nobody in before all waiting messages are counted.
                let new = bound(0);
                bounds.insert(index, Arc::clone(&new));
                (Some(Arc::clone(&new)), Some(new))
            }
        };
        for group in groups {
            let mut mailbox = group.lock();
            _ = mailbox.set_bound(group.waiting(), LANE, new.clone());
        }
        Ok(changed)
    }
}
