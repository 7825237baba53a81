//! What a queue does for its observers: dialogs, whose sides are its conversations, and sends
//! by key, which keep idle groups.
//!
//! Protocol: an observer decides under its own lock. While it holds that lock, it takes the
//! group's or the policy lock to send or to put an event in place; then, still under the
//! queue's lock, it releases its own. So events come in the order of the decisions, and no
//! waker runs under either lock.

use crate::error::Closed;
use crate::group::{Admitted, POISONED, Phase, Reach, Taken};
use crate::limit::Limit;
use crate::ready::Age;
use crate::sync::{Arc, Mutex, Ordering, WakeArc, unique};
use crate::wait::Panics;

use super::GroupRef;
use super::handles::Conversation;
use super::id::GroupId;
use super::refuse::SendError;
use super::shared::Shared;
use super::state::Observer;

/// Tells `H`, which holds a lock, the place of the group's last message, even if the send was
/// refused: then it is the place of another message.
struct Placed<'a, T, H: FnMut(u64)>(H, &'a GroupRef<T>);

impl<T, H: FnMut(u64)> Drop for Placed<'_, T, H> {
    fn drop(&mut self) {
        self.0(self.1.last_place(&self.1.lock()));
    }
}

/// Limit, level, capacity and pins of a group, if no message of it waits or is in flight.
pub(crate) fn if_idle<T>(group: &GroupRef<T>) -> Option<((Limit, u8, Limit), u32)> {
    let mut mailbox = group.lock();
    let idle = mailbox.phase == Phase::Idle && mailbox.detached() == 0;
    let made = (mailbox.limit(), mailbox.lane.level(), mailbox.own_bound().0);
    idle.then(|| (made, mailbox.pins()))
}

impl<T> Shared<T> {
    /// Registers an observer by a number that no other has; false if the queue is gone. `events`:
    /// the observer puts events into the queue.
    pub(crate) fn register(
        &self,
        number: u64,
        observer: &WakeArc<impl Observer + 'static>,
        events: bool,
    ) -> bool {
        self.with_state(|state| {
            state.events |= events;
            // Relaxed: decided under the policy lock.
            let gone = self.gone.load(Ordering::Relaxed);
            if !gone {
                state.observers.insert(number, observer.clone());
            }
            !gone
        })
    }

    /// Unregisters an observer, if it is registered, and drops it. Under no lock.
    pub(crate) fn unregister(&self, number: u64) {
        let observer = self.with_state(|state| state.observers.remove(&number));
        drop(observer);
    }

    /// Changes an observer's bound of idle groups to `groups`; it was `before`.
    pub(crate) fn keep_idle(&self, groups: usize, before: usize) {
        // Relaxed: hints.
        let more = groups.wrapping_sub(before);
        let old = self.keep_idle.fetch_add(more, Ordering::Relaxed);
        for above in &self.trim_above {
            above.store(old.wrapping_add(more), Ordering::Relaxed);
        }
    }

    /// One more group is kept, by a pin of its observer's.
    pub(crate) fn keep(&self) {
        // Relaxed: a hint when to trim.
        self.kept.fetch_add(1, Ordering::Relaxed);
    }

    /// `groups` groups are no longer kept.
    pub(crate) fn let_go(&self, groups: usize) {
        self.kept.fetch_sub(groups, Ordering::Relaxed);
    }

    /// Makes observers forget idle groups, if many are kept. `makes`: one more group was made;
    /// otherwise a receive has found nothing. Under no lock.
    #[cold]
    pub(crate) fn trim(&self, makes: bool) {
        let relaxed = Ordering::Relaxed; // Hints.
        let trim_above = &self.trim_above[usize::from(makes)];
        let (kept, most) = (self.kept.load(relaxed), trim_above.load(relaxed));
        // Only one thread trims at a time.
        let raised = || trim_above.compare_exchange(most, 2 * kept, relaxed, relaxed);
        if kept <= most || raised().is_err() {
            return;
        }
        let all: Vec<_> = self.with_state(|state| state.observers.values().cloned().collect());
        // If the drop of a key panics, the others trim too, and the bounds are set.
        let mut panics = Panics::default();
        for observer in all {
            panics.contain(move || observer.trim());
        }
        // What is left is busy: it may double before the next trim.
        let (few, kept) = (self.keep_idle.load(relaxed), self.kept.load(relaxed));
        let above = few.max(2 * kept);
        // A receive that finds nothing trims after a burst, and resets the senders' bound, too.
        let of_both = &self.trim_above[usize::from(makes)..];
        of_both.iter().for_each(|most| most.store(above, relaxed));
        panics.resume();
    }
}

/// A conversation that can be ended by reference.
pub(crate) struct Side<T> {
    shared: Arc<Shared<T>>,
    group: GroupRef<T>,
    /// The number of its observer.
    number: u64,
    /// `None` once it has ended.
    conversation: Mutex<Option<Conversation<T>>>,
}

impl<T> Side<T> {
    /// From now on the queue drops what comes back and is not `wanted`, which must be the
    /// same for all sides in one queue.
    pub(crate) fn new(conversation: Conversation<T>, wanted: fn(&T) -> bool) -> Self {
        let shared = conversation.pin.shared();
        _ = shared.wanted.set(wanted);
        Self {
            shared,
            group: GroupRef::clone(&conversation.pin),
            number: unique(),
            conversation: Mutex::new(Some(conversation)),
        }
    }

    pub(crate) fn group(&self) -> GroupId {
        self.shared.id(self.group.key())
    }

    /// One more conversation in the same group. The group may be kept by something else after
    /// this side has ended. `None` if the group is gone.
    pub(crate) fn beside(&self) -> Result<Option<Conversation<T>>, Closed> {
        self.shared.with_state(|state| {
            state.open()?;
            let mut mailbox = self.group.lock();
            if mailbox.phase == Phase::Ended {
                return Ok(None);
            }
            let pin = state.groups.pin(&self.group, &mut mailbox, &self.shared);
            Ok(Some(Conversation { pin }))
        })
    }

    /// Sends a message. The caller knows that this has not ended. `held`, which has a lock, is told
    /// the message's place, or one behind it, and then dropped, before any waker runs.
    pub(crate) fn send_holding(
        &self,
        message: T,
        held: impl FnMut(u64),
    ) -> Result<(), SendError<T>> {
        let (group, queue) = (&self.group, || &*self.shared);
        Shared::send_holding(group, queue, message, Placed(held, group))
    }

    /// Registers its observer, to be told when the queue is dropped; false if the queue is gone.
    pub(crate) fn join(&self, observer: &WakeArc<impl Observer + 'static>) -> bool {
        self.shared.register(self.number, observer, true)
    }

    /// Unregisters its observer. Under no lock.
    pub(crate) fn part(&self) {
        self.shared.unregister(self.number);
    }

    /// Puts an event last in the group, or with `first` before all that waits there, regardless of
    /// the capacity; `held` is as in [`send_holding`](Self::send_holding). A closed queue takes it
    /// too while it may still be received; otherwise the event is returned.
    pub(crate) fn put(&self, event: T, first: bool, held: impl FnMut(u64)) -> Result<(), T> {
        let (shared, group) = (&self.shared, &self.group);
        shared.with_state(|state| {
            let mut held = held;
            let poisoned = group.lock().flags & POISONED != 0;
            let gone = shared.gone.load(Ordering::Relaxed);
            if gone || state.no_more().is_some() && !poisoned {
                return Err(event);
            }
            state.serve |= shared.capacity.take_past();
            if first {
                shared.change_group(state, group, |_, mailbox| {
                    let rises = mailbox.phase == Phase::Idle && group.waiting() == 0;
                    group.add_waiting(1);
                    held(mailbox.put_first(event));
                    ((), if rises { Age::New } else { Age::Same })
                });
            } else {
                let past = &mut Admitted::default();
                let sent = shared.put(state, (group, None), [event], past);
                debug_assert!(sent.is_ok(), "the last tier does not go down");
                held(group.last_place(&group.lock()));
            }
            Ok(())
        })
    }

    /// Ends this side, of which nothing is wanted any more. Returns what waits of it, to be dropped
    /// under no lock; does not search if nothing waits within its `reach`. Unregisters its
    /// observer, and ends the conversation.
    pub(crate) fn leave(&self, reach: Reach) -> Vec<T> {
        let (shared, group) = (&self.shared, &self.group);
        let (taken, observer) = shared.with_state(|state| {
            let observer = state.observers.remove(&self.number);
            let fits = |taken: &Taken<T>| !shared.wants(&taken.message);
            let waits = group.lock().has_within(reach);
            let taken = match waits {
                true => shared.take_out(state, group, false, fits),
                false => Vec::new(),
            };
            (taken, observer)
        });
        drop(observer);
        let conversation = self.conversation.lock().take();
        drop(conversation);
        taken
    }
}
