//! The members of a ready queue: groups, messages that are alone, and runs of these.

use crate::ready::ReadyItem;

use super::group::Place;

/// A member of a ready queue.
#[derive(Debug)]
pub(crate) enum Member<T> {
    /// A group, by index.
    Group(u32),
    /// A message without a group, and its place.
    Alone(Place, T),
    /// Several of these, which came one after the other.
    Run(Box<Run<T>>),
}

/// Messages with consecutive tickets.
#[derive(Debug)]
pub(crate) struct Run<T> {
    /// The last ticket.
    last: u64,
    /// The last message first. A message that is taken out of the middle leaves a gap.
    items: Vec<Option<T>>,
    waiting: usize,
    /// Whether a message of it may be marked.
    mark: bool,
}

impl<T> Run<T> {
    /// A run of at least one message. The first has this ticket.
    pub(super) fn new(first: u64, mut items: Vec<Option<T>>, mark: bool) -> Self {
        items.reverse();
        let waiting = items.len();
        Self {
            last: first + waiting as u64 - 1,
            items,
            waiting,
            mark,
        }
    }

    /// Whether a message of it may be marked.
    pub(super) fn mark(&self) -> bool {
        self.mark
    }

    /// The first ticket.
    pub(super) fn first(&self) -> u64 {
        self.last + 1 - self.items.len() as u64
    }

    /// How many messages wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// The waiting messages with their tickets.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let items = (self.first()..).zip(self.items.iter().rev());
        items.filter_map(|(ticket, item)| Some((ticket, item.as_ref()?)))
    }

    /// Adds the message whose ticket is before the first.
    pub(super) fn put_first(&mut self, item: T, mark: bool) {
        self.mark |= mark;
        self.items.push(Some(item));
        self.waiting += 1;
    }

    /// Takes the first message, with its ticket.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        let ticket = self.first();
        Some((ticket, self.pop_if(|_| true, |item| item)?))
    }

    /// Takes the first message if it `goes`, as what `part` makes of it.
    #[inline]
    pub(super) fn pop_if<R>(
        &mut self,
        goes: impl Fn(&T) -> bool,
        part: impl FnOnce(T) -> R,
    ) -> Option<R> {
        self.items.last()?.as_ref().filter(|item| goes(item))?;
        let item = part(self.items.pop()??);
        self.waiting -= 1;
        self.close_gap();
        Some(item)
    }

    /// The first place of a run is never a gap.
    #[inline]
    fn close_gap(&mut self) {
        while let [.., None] = self.items[..] {
            self.items.pop();
        }
    }

    /// Takes a message that is not the first.
    pub(super) fn take(&mut self, ticket: u64) -> Option<T> {
        let at = usize::try_from(self.last.checked_sub(ticket)?).ok()?;
        let (_, behind) = self.items.split_last_mut()?;
        let item = behind.get_mut(at)?.take()?;
        self.waiting -= 1;
        Some(item)
    }

    /// Splits off up to `most` messages from the front: those before the first gap, and before the
    /// first message that `goes` refuses.
    #[inline]
    pub(super) fn split(&mut self, most: usize, goes: Option<impl Fn(&T) -> bool>) -> Self {
        let whole = self.items.len();
        let next = &self.items[whole.saturating_sub(most)..];
        let waiting = match goes {
            None if self.waiting == whole => next.len(),
            goes => {
                let goes = |item: &T| goes.as_ref().is_none_or(|goes| goes(item));
                let next = next.iter().rev().map(Option::as_ref);
                next.take_while(|item| item.is_some_and(goes)).count()
            }
        };
        let items = match whole - waiting {
            0 => std::mem::take(&mut self.items),
            left => self.items.split_off(left),
        };
        let last = self.last - self.items.len() as u64;
        self.waiting -= waiting;
        self.close_gap();
        Self {
            last,
            items,
            waiting,
            mark: self.mark,
        }
    }

    /// The waiting messages with their tickets, from the last to the first.
    pub(super) fn into_last_first(self) -> impl Iterator<Item = (u64, T)> {
        let items = (0..).zip(self.items);
        items.filter_map(move |(n, item)| Some((self.last - n, item?)))
    }

    /// The waiting messages, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().rev().flatten()
    }
}

impl<T> ReadyItem for Member<T> {
    #[inline]
    fn split_first(&mut self) -> Option<(Self, u64)> {
        let Self::Run(run) = self else {
            return None;
        };
        if run.waiting == 1 {
            return None;
        }
        let (ticket, item) = run.pop()?;
        Some((Self::Alone(Place::new(ticket), item), run.first()))
    }
}

impl<T> Member<T> {
    /// Its messages without a group, with their places.
    pub(super) fn alone(&self) -> impl Iterator<Item = (Place, &T)> {
        let (one, run) = match self {
            Self::Alone(place, item) => (Some((*place, item)), None),
            Self::Run(run) => (None, Some(run)),
            Self::Group(_) => (None, None),
        };
        let run = run.into_iter().flat_map(|run| run.iter());
        let run = run.map(|(ticket, item)| (Place::new(ticket), item));
        one.into_iter().chain(run)
    }

    /// The message that is alone, or the only one of a run.
    #[inline]
    pub(super) fn into_alone(self) -> Option<(Place, T)> {
        match self {
            Self::Alone(place, item) => Some((place, item)),
            Self::Run(mut run) => {
                let (ticket, item) = run.pop()?;
                Some((Place::new(ticket), item))
            }
            Self::Group(_) => None,
        }
    }
}
