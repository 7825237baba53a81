//! A queue's policy lock, and what follows from each event under it.
//!
//! Protocol: each event is one [`Shared::with_state`]: lock, take in the submissions, change, wake
//! by the waking rule, unlock; then run the wakers and drop user values. Plain steps do not come
//! here: they take their group's lock and submit tokens.
//!
//! Order of locks: policy, group, submissions. A sender takes group, then submissions. No thread
//! holds two groups. Waiters for a capacity are served under none of these locks.
//!
//! Invariants:
//! 1. The waking rule: at the end of an event at least one receive is notified for each turn
//!    that could begin, or all waiting receives if they are fewer. Once the queue is finished,
//!    all are notified. Receives by name and waits for a poisoned group have their own rules.
//! 2. No user code runs under a lock: messages go in and come out as values, wakers go into the
//!    batch.
//! 3. While a receive sleeps, the submissions know it; a submitter then looks for whom to wake.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::{OutOfRange, Stale};
use crate::group::{Group, GroupKey, Guard, Mailbox, Names, Phase, Taken};
use crate::ready::Age;
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, MutexGuard, OnceLock, Ordering, Tally, panicking, unique,
};
use crate::wait::{Guarded, Panics, Session, WakeBatch};

use super::GroupRef;
use super::bounds;
use super::builder::Builder;
use super::capacity::Capacity;
use super::id::GroupId;
use super::state::State;
use super::submissions::{Posted, Submissions, Token};
use super::suspended::Suspended;

/// How many idle groups are kept by key, by default.
pub(crate) const KEPT_IDLE: usize = 1024;

pub(crate) struct Shared<T> {
    state: Guarded<State<T>>,
    pub(super) submissions: Submissions<T>,
    /// The groups that have not ended.
    pub(super) names: Names<T, Self>,
    pub(super) built: Builder<T>,
    pub(crate) capacity: Capacity,
    /// How many deliveries were not completed.
    pub(super) failures: Tally,
    /// How many of those were dropped.
    pub(super) dropped: Tally,
    /// Raised when a cap is set or a lane begins to count tiers: live turns then look at the
    /// state.
    pub(super) epoch: AtomicU64,
    /// Nobody receives any more.
    pub(super) gone: AtomicBool,
    /// Whether somebody may still receive this message; set if some messages become unwanted. A
    /// function of this crate, never of the user.
    pub(super) wanted: OnceLock<fn(&T) -> bool>,
    /// How many groups are kept by key.
    pub(super) kept: AtomicUsize,
    /// How many idle groups may stay: the sum of the bounds of all `Keyed`.
    pub(super) keep_idle: AtomicUsize,
    /// If more groups are kept than this, idle ones are forgotten: by the first bound when a
    /// receive finds nothing, by the second when a group is made.
    pub(super) trim_above: [AtomicUsize; 2],
    /// A number that no other queue has.
    pub(super) number: u64,
}

// User code runs under no lock, so its panics leave everything whole.
impl<T> UnwindSafe for Shared<T> {}
impl<T> RefUnwindSafe for Shared<T> {}

impl<T> Shared<T> {
    pub(super) fn new(built: Builder<T>) -> Result<Self, OutOfRange> {
        OutOfRange::check("quantum", built.quantum, 1, u32::MAX)?;
        built.retry.checked()?;
        let state = State::new(built.bypass);
        Ok(Self {
            names: state.groups.names(),
            state: Guarded::new(state),
            submissions: Submissions::new(),
            capacity: Capacity::new(built.capacity)?,
            built,
            failures: Tally::new(),
            dropped: Tally::new(),
            epoch: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            wanted: OnceLock::new(),
            kept: AtomicUsize::new(0),
            keep_idle: AtomicUsize::new(0),
            trim_above: Default::default(),
            number: unique(),
        })
    }

    /// The name of a group of this queue.
    pub(crate) fn id(&self, key: GroupKey) -> GroupId {
        let queue = self.number;
        GroupId { queue, key }
    }

    /// The group's key, if the group belongs to this queue.
    pub(crate) fn key(&self, id: GroupId) -> Result<GroupKey, Stale> {
        let ours = id.queue == self.number;
        ours.then_some(id.key).ok_or(Stale)
    }

    /// Runs one event.
    pub(super) fn with_state<'a, R>(
        &'a self,
        change: impl FnOnce(&mut Session<'a, State<T>>) -> R,
    ) -> R {
        self.with_session(self.state.lock(), change)
    }

    fn with_session<'a, R>(
        &'a self,
        session: Session<'a, State<T>>,
        change: impl FnOnce(&mut Session<'a, State<T>>) -> R,
    ) -> R {
        // Declared before the session, so that it is dropped after it.
        let result;
        let mut session = session;
        session.collect(&self.submissions);
        result = change(&mut session);
        let serve = std::mem::take(&mut session.serve);
        let freed = (!session.freed.is_empty()).then(|| std::mem::take(&mut session.freed));
        let unwanted = std::mem::take(&mut session.unwanted);
        self.wake_due(session, 0);
        if serve {
            self.capacity.serve();
        }
        if let Some(freed) = freed {
            bounds::serve(freed);
        }
        drop(unwanted);
        result
    }

    /// Wakes by the waking rule. `submitted` turns could begin that are not taken in yet.
    pub(super) fn wake_due(&self, mut session: Session<'_, State<T>>, submitted: usize) {
        loop {
            session.repeat(|state, wakes| state.notify_due(submitted, wakes));
            // Invariant 3.
            let asleep = session.receives.waiting() > 0 || !session.named.is_empty();
            if asleep == session.asleep || self.submissions.sleep(asleep) {
                session.asleep = asleep;
                return;
            }
            // Something was submitted: take it in first.
            session.collect(&self.submissions);
        }
    }

    /// Makes a locked group with work ready by a token, if it has room: the plain case. `unit`:
    /// a unit of the lane's cap comes back with it.
    #[inline(always)]
    pub(super) fn submit(
        &self,
        group: &GroupRef<T>,
        mailbox: &mut Mailbox<T>,
        unit: bool,
    ) -> Posted {
        if !mailbox.enqueues_plainly() {
            let another = mailbox.has_room().then(|| group.another(mailbox));
            return self.submit_rarely(another, mailbox, unit);
        }
        let another = group.another(mailbox);
        mailbox.phase = Phase::Ready;
        let token = Token::of(Some(another), mailbox, unit);
        let (ticket, posted) = self.submissions.post(token);
        mailbox.ticket = ticket;
        posted
    }

    /// [`submit`](Self::submit) for a bumped group, or for one without room, which is `None`.
    #[cold]
    fn submit_rarely(
        &self,
        group: Option<GroupRef<T>>,
        mailbox: &mut Mailbox<T>,
        unit: bool,
    ) -> Posted {
        if group.is_none() {
            mailbox.phase = Phase::Blocked;
            mailbox.ticket = self.submissions.number();
            return self.return_unit(mailbox, unit);
        }
        mailbox.phase = Phase::Ready;
        let token = Token::of(group, mailbox, unit);
        self.submissions.post_bumped(token, mailbox)
    }

    /// Returns a unit of the lane's cap alone, if there is one.
    #[inline]
    pub(super) fn return_unit(&self, mailbox: &Mailbox<T>, unit: bool) -> Posted {
        if !unit {
            return Posted::Kept;
        }
        let token = Token::of(None, mailbox, unit);
        self.submissions.post(token).1
    }

    /// The state, for a claim; it sees what was posted before the claim.
    #[inline]
    pub(super) fn lock_to_claim(&self) -> MutexGuard<'_, State<T>> {
        let mut state = self.state.lock_plain();
        if self.submissions.is_urgent() || !state.lanes.has_eligible() {
            state.collect(&self.submissions);
        }
        state
    }

    /// Does what a submission asks for.
    #[inline]
    pub(crate) fn posted(&self, posted: Posted) {
        if posted != Posted::Kept {
            self.look(posted);
        }
    }

    #[cold]
    fn look(&self, posted: Posted) {
        let session = match posted {
            Posted::Look => Some(self.state.lock()),
            _ => self.state.try_lock(),
        };
        let Some(session) = session else {
            return;
        };
        // Without a cap each token is of a group whose turn could begin. It can stay where it is
        // until the receive that is woken takes it in: so the cache lines of the lanes do not move
        // to the sender and back.
        let plain = posted == Posted::Look && !session.capped;
        match plain.then(|| self.submissions.tokens()).flatten() {
            Some(tokens) => self.wake_due(session, tokens),
            None => self.with_session(session, |_| ()),
        }
    }

    /// If the epoch has changed, look at the cap.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        // Relaxed: a hint, decided under the lock.
        self.epoch.load(Ordering::Relaxed)
    }

    /// Reads the state, unless somebody holds the lock.
    pub(super) fn try_read<R>(&self, read: impl FnOnce(&mut State<T>) -> R) -> Option<R> {
        let mut session = self.state.try_lock()?;
        session.collect(&self.submissions);
        Some(read(&mut session))
    }

    /// Changes a group under both locks, then puts it where it now belongs.
    pub(super) fn change_group<R>(
        &self,
        state: &mut State<T>,
        group: &GroupRef<T>,
        change: impl FnOnce(&mut State<T>, &mut Mailbox<T>) -> (R, Age),
    ) -> R {
        let mut mailbox = self.lock_group(state, group);
        state.dequeue(&mut mailbox);
        let (result, age) = change(state, &mut mailbox);
        state.place(&self.submissions, group, &mut mailbox, age);
        result
    }

    /// [`change_group`](Self::change_group) as an event of its own.
    pub(super) fn with_group<R>(
        &self,
        group: &GroupRef<T>,
        change: impl FnOnce(&mut State<T>, &mut Mailbox<T>) -> (R, Age),
    ) -> R {
        self.with_state(|state| self.change_group(state, group, change))
    }

    /// `messages` are gone, within an event; waiters for room are served at its end.
    pub(super) fn free(&self, state: &mut State<T>, messages: usize) {
        state.serve |= self.capacity.put(messages);
    }

    /// Locks a group, then takes in what was submitted before: the group's own token cannot
    /// come later.
    pub(super) fn lock_group<'g>(
        &self,
        state: &mut State<T>,
        group: &'g Group<T>,
    ) -> Guard<'g, Mailbox<T>> {
        let mailbox = group.lock();
        state.collect(&self.submissions);
        mailbox
    }

    /// Counts a message that was not done, and its attempt.
    pub(super) fn failed(&self, mut taken: Taken<T>) -> Taken<T> {
        self.failures.count();
        taken.attempts = taken.attempts.saturating_add(1);
        taken
    }

    /// Gives a dropped delivery of this group back, and then reports it, also if the drop of an
    /// unwanted message panics. Runs user code, so under no lock.
    #[cold]
    pub(super) fn dropped(&self, group: GroupKey, give_back: impl FnOnce()) {
        let mut panics = Panics::default();
        panics.contain(give_back);
        panics.contain(|| self.report_dropped(group));
        panics.resume();
    }

    /// Reports that a delivery of this group was dropped and has gone back, unless a panic
    /// drops it.
    fn report_dropped(&self, group: GroupKey) {
        if panicking() {
            return;
        }
        self.dropped.count();
        if let Some(on_dropped) = &self.built.on_dropped {
            on_dropped(self.id(group));
        }
    }

    /// Whether anybody will ever receive this message.
    pub(super) fn wants(&self, message: &T) -> bool {
        // Relaxed: read under the group's lock, which those who end this take afterwards.
        let gone = self.gone.load(Ordering::Relaxed);
        !gone && self.wanted.get().is_none_or(|wanted| wanted(message))
    }
}

impl<T> State<T> {
    /// How many receives must be notified.
    fn due(&self, submitted: usize) -> usize {
        let all = self.receives.len();
        if self.no_more().is_some() {
            return all;
        }
        self.lanes.eligible(all) + submitted
    }

    /// Notifies waiters by the waking rules; false if the batch is full and more are due.
    #[inline]
    fn notify_due(&mut self, submitted: usize, wakes: &mut WakeBatch) -> bool {
        let Suspended { timers, dates, .. } = &mut self.suspended;
        dates.update(|| timers.next(), wakes);
        (self.receives.is_empty() || self.receives.notify_up_to(self.due(submitted), wakes))
            && (self.named.is_empty() || self.notify_named(wakes))
            && (self.watchers.is_empty() || self.notify_watchers(wakes))
    }
}
