//! What a queue counts as it goes.

use crate::wait::WaitCounts;

use super::Queue;
use super::shared::Shared;
use super::state::State;

/// How much there is of what in a queue. See [`Queue::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Groups that have not ended.
    pub groups: usize,
    /// Turns that could begin now.
    pub eligible: u64,
    /// Turns that have begun so far.
    pub turns: u64,
    /// Deliveries so far that were not completed, but given back or dropped, also by a
    /// panic. Their messages are delivered again, but in a poisoned group.
    pub failed: u64,
    /// How many of them were dropped outside of a panic, neither completed nor given
    /// back in so many words: as when a `complete` was forgotten. A batch counts once.
    pub dropped: u64,
    /// Groups that are [poisoned](Queue::poisoned).
    pub poisoned: usize,
    /// Groups that pause after a failure.
    pub backing_off: usize,
    /// In a queue with a capacity: messages that wait or are in flight, and room that
    /// was given to those who have not sent yet.
    pub outstanding: Option<u64>,
    /// Receives in line for a turn.
    pub receives: WaitCounts,
    /// Receives that wait for a group by name.
    pub named: WaitCounts,
    /// Sends that wait for room. One that was given it keeps its own room from the
    /// others, and no more.
    pub sends: WaitCounts,
    /// How many permits these ask for: one for each message.
    pub asked: u64,
}

impl<T> Queue<T> {
    /// What the queue counts as it goes: cheap enough to be asked each second, however
    /// many groups there are.
    ///
    /// How many messages wait, are in flight or were sent is not among it: each group
    /// counts its own, and a sum of all would be a word that every thread changes with
    /// every message. [`snapshot`](Self::snapshot) sums them up, in O(groups). A queue
    /// with a [capacity](super::Builder::capacity) has such a word, and says what is
    /// [`outstanding`](Counts::outstanding).
    ///
    /// Cost: O(1) under the queue's lock, and a step for each lane with eligible work,
    /// for each group that is waited for by name, and for each send that was given room
    /// and has not looked.
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let anna = lane.conversation()?;
    /// anna.send("fails once")?;
    /// queue.try_receive()?.next().expect("a message").give_back();
    /// let counts = queue.counts();
    /// assert_eq!((counts.groups, counts.eligible), (1, 1));
    /// assert_eq!((counts.turns, counts.failed, counts.dropped), (1, 1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        let shared = self.shared();
        shared.with_state(|state| counts(shared, state))
    }
}

pub(super) fn counts<T>(shared: &Shared<T>, state: &State<T>) -> Counts {
    let poisoned = state.suspended.poisoned.len();
    let sends = shared.capacity.permits().map(|permits| permits.counts());
    Counts {
        groups: state.groups.len(),
        eligible: state.lanes.eligible(usize::MAX) as u64,
        turns: state.lanes.begun(),
        failed: shared.failures.get(),
        dropped: shared.dropped.get(),
        poisoned,
        backing_off: state.suspended.groups.len() - poisoned,
        outstanding: shared.capacity.outstanding(),
        receives: state.receives.counts(),
        named: WaitCounts::sum(state.named.values()),
        sends: sends.map_or_else(WaitCounts::default, |sends| sends.acquires),
        asked: sends.map_or(0, |sends| sends.asked),
    }
}
