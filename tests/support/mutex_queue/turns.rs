//! Turns, and what they deliver.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::model::{Failure, Taken};
use super::{GroupId, Shared, id, locked};

/// Claimed groups whose turns begin one by one.
pub(crate) struct Turns<'q, T> {
    pub(super) shared: Shared<T>,
    pub(super) claimed: std::vec::IntoIter<u64>,
    pub(super) of: PhantomData<&'q ()>,
}

impl<'q, T> Iterator for Turns<'q, T> {
    type Item = Turn<'q, T>;

    fn next(&mut self) -> Option<Turn<'q, T>> {
        let group = self.claimed.next()?;
        Some(Turn::begin(&self.shared, group))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.claimed.size_hint()
    }
}

impl<T> ExactSizeIterator for Turns<'_, T> {}

impl<T> Drop for Turns<'_, T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

pub(crate) struct Turn<'q, T> {
    live: Live<T>,
    of: PhantomData<&'q ()>,
}

/// A turn, borrowed or owned.
struct Live<T> {
    shared: Shared<T>,
    group: u64,
    /// In hand, or to be delivered next.
    taken: Option<Taken<T>>,
    left: u32,
}

impl<T> Turn<'_, T> {
    pub(super) fn begin(shared: &Shared<T>, group: u64) -> Self {
        let begin = |model: &mut super::Model<T>| (model.begin(group), model.settings.quantum);
        let (taken, left) = locked(shared, begin);
        let shared = shared.clone();
        let live = Live {
            shared,
            group,
            taken,
            left,
        };
        let of = PhantomData;
        Self { live, of }
    }

    pub(crate) fn group_id(&self) -> GroupId {
        id(&self.live.shared, self.live.group)
    }

    #[allow(clippy::should_implement_trait, reason = "as the crate's")]
    pub(crate) fn next(&mut self) -> Option<Delivery<'_, T>> {
        let live = &mut self.live;
        let how = Failure::ByRule;
        live.has_next().then_some(Delivery { live, how })
    }

    pub(crate) fn next_batch(&mut self, n: usize) -> Option<Batch<'_, T>> {
        let live = &mut self.live;
        if n == 0 || !live.has_next() {
            return None;
        }
        let most = (n - 1).min(live.left as usize);
        let after = live.taken().number;
        let rest = locked(&live.shared, |model| {
            model.take_more(live.group, after, most)
        });
        live.left -= rest.len() as u32;
        Some(Batch { live, rest })
    }

    pub(crate) fn into_owned(self) -> Turn<'static, T> {
        let of = PhantomData;
        let live = self.live;
        Turn { live, of }
    }
}

impl<T> Live<T> {
    /// Has the next message in hand, if there is one.
    fn has_next(&mut self) -> bool {
        if self.left > 0 && self.taken.is_none() {
            self.taken = locked(&self.shared, |model| model.take(self.group));
        }
        let has = self.left > 0 && self.taken.is_some();
        self.left -= u32::from(has);
        has
    }

    fn taken(&self) -> &Taken<T> {
        self.taken.as_ref().expect(IN_HAND)
    }

    fn complete(&mut self, messages: usize) -> T {
        let taken = self.taken.take().expect(IN_HAND);
        locked(&self.shared, |model| model.complete(self.group, messages));
        taken.message.item
    }
}

impl<T> Drop for Live<T> {
    fn drop(&mut self) {
        let (group, taken) = (self.group, self.taken.take());
        drop(locked(&self.shared, |model| model.end_turn(group, taken)));
    }
}

const IN_HAND: &str = "it is in hand";

pub(crate) struct Delivery<'t, T> {
    live: &'t mut Live<T>,
    how: Failure,
}

impl<T> Delivery<'_, T> {
    pub(crate) fn group_id(&self) -> GroupId {
        id(&self.live.shared, self.live.group)
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.live.taken().message.attempts + 1
    }

    pub(crate) fn tier(&self) -> u32 {
        self.live.taken().message.tier
    }

    pub(crate) fn complete(self) -> T {
        self.live.complete(1)
    }

    pub(crate) fn give_back(self) {}

    pub(crate) fn give_back_after(mut self, pause: Duration) {
        self.how = Failure::Pause(pause);
    }

    pub(crate) fn fail_for_good(mut self) {
        self.how = Failure::ForGood;
    }

    pub(crate) fn detach(self) -> Detached<T> {
        let taken = self.live.taken.take().expect(IN_HAND);
        let shared = self.live.shared.clone();
        let tier = taken.message.tier;
        locked(&shared, |model| model.detach(taken.group, tier));
        let taken = Some(taken);
        let how = Failure::ByRule;
        Detached { shared, taken, how }
    }
}

impl<T> Deref for Delivery<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.live.taken().message.item
    }
}

impl<T> DerefMut for Delivery<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.live.taken.as_mut().expect(IN_HAND).message.item
    }
}

impl<T> Drop for Delivery<'_, T> {
    fn drop(&mut self) {
        if let Some(taken) = self.live.taken.take() {
            let how = self.how;
            drop(locked(&self.live.shared, |model| model.fail(taken, how)));
        }
    }
}

pub(crate) struct Batch<'t, T> {
    live: &'t mut Live<T>,
    rest: Vec<Taken<T>>,
}

impl<T> Batch<'_, T> {
    #[allow(clippy::len_without_is_empty, reason = "as the crate's")]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.live.taken.is_some()) + self.rest.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let all = self.live.taken.iter().chain(&self.rest);
        all.map(|taken| &taken.message.item)
    }

    pub(crate) fn complete(self) -> std::vec::IntoIter<T> {
        let all = self.len();
        self.complete_up_to(all)
    }

    pub(crate) fn complete_up_to(mut self, n: usize) -> std::vec::IntoIter<T> {
        let n = n.min(self.len());
        if n == 0 {
            return Vec::new().into_iter();
        }
        let mut done = vec![self.live.complete(n)];
        done.extend(self.rest.drain(..n - 1).map(|taken| taken.message.item));
        done.into_iter()
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        let mut rest = std::mem::take(&mut self.rest).into_iter();
        let Some(failed) = self.live.taken.take().or_else(|| rest.next()) else {
            return;
        };
        let (shared, group) = (&self.live.shared, self.live.group);
        let rest = rest.collect();
        drop(locked(shared, |model| model.give_back(group, rest)));
        drop(locked(shared, |model| model.fail(failed, Failure::ByRule)));
    }
}

pub(crate) struct Detached<T> {
    shared: Shared<T>,
    taken: Option<Taken<T>>,
    how: Failure,
}

impl<T> Detached<T> {
    pub(crate) fn group_id(&self) -> GroupId {
        id(&self.shared, self.taken().group)
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.taken().message.attempts + 1
    }

    pub(crate) fn tier(&self) -> u32 {
        self.taken().message.tier
    }

    pub(crate) fn complete(mut self) -> T {
        let taken = self.taken.take().expect(IN_HAND);
        let done = locked(&self.shared, |model| model.end(taken, true));
        done.expect("what is done is handed out")
    }

    pub(crate) fn give_back(self) {}

    pub(crate) fn give_back_after(mut self, pause: Duration) {
        self.how = Failure::Pause(pause);
    }

    pub(crate) fn fail_for_good(mut self) {
        self.how = Failure::ForGood;
    }

    fn taken(&self) -> &Taken<T> {
        self.taken.as_ref().expect(IN_HAND)
    }
}

impl<T> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.taken().message.item
    }
}

impl<T> DerefMut for Detached<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.taken.as_mut().expect(IN_HAND).message.item
    }
}

impl<T> Drop for Detached<T> {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            let (shared, how) = (&self.shared, self.how);
            drop(locked(shared, |model| model.fail_detached(taken, how)));
        }
    }
}

/// As bare as possible: so that errors can be unwrapped.
macro_rules! debug {
    ($($handle:ident $(<$life:lifetime>)?)*) => {$(
        impl<T> fmt::Debug for $handle<$($life,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($handle)).finish_non_exhaustive()
            }
        }
    )*};
}

debug!(Turns<'_> Turn<'_> Delivery<'_> Batch<'_> Detached);
