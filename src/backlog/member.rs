//! Who stands in line: a group, a message that is alone, or several of these that came one
//! after the other.

use std::vec::IntoIter;

use crate::ready::Stands;

use super::group::Place;

/// Who stands in line.
#[derive(Debug)]
pub(crate) enum Member<T> {
    /// A group, by index.
    Group(u32),
    /// A message that is alone, and its place.
    Alone(Place, T),
    /// Several of these.
    Run(Box<Run<T>>),
}

/// Messages with tickets one after the other.
#[derive(Debug)]
pub(crate) struct Run<T> {
    /// The ticket of the first.
    pub(super) first: u64,
    pub(super) items: IntoIter<Option<T>>,
    waiting: usize,
}

impl<T> Run<T> {
    pub(super) fn new(first: u64, items: Vec<Option<T>>) -> Self {
        let waiting = items.len();
        let items = items.into_iter();
        Self {
            first,
            items,
            waiting,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// All that wait, each with its ticket.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let items = (self.first..).zip(self.items.as_slice());
        items.filter_map(|(ticket, item)| Some((ticket, item.as_ref()?)))
    }

    /// Takes the first, with its ticket.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        let item = self.items.next()??;
        let ticket = self.first;
        self.first += 1;
        self.waiting -= 1;
        self.close_gap();
        Some((ticket, item))
    }

    /// By the invariant.
    #[inline]
    fn close_gap(&mut self) {
        while let [None, ..] = self.items.as_slice() {
            self.items.next();
            self.first += 1;
        }
    }

    /// Takes one that is not the first.
    pub(super) fn take(&mut self, ticket: u64) -> Option<T> {
        let at = ticket.checked_sub(self.first).filter(|&at| at > 0)?;
        let items = self.items.as_mut_slice();
        let item = items.get_mut(usize::try_from(at).ok()?)?.take()?;
        self.waiting -= 1;
        Some(item)
    }

    /// Takes so many from the front, up to the first that `goes` refuses or that has left its
    /// place, but not the last; what `of` makes of each and its ticket.
    #[inline]
    pub(super) fn take_first<P>(
        &mut self,
        n: usize,
        goes: impl Fn(&T) -> bool,
        of: impl Fn(u64, T) -> P,
    ) -> Vec<P> {
        let next = self.items.as_slice().iter().take(n.min(self.waiting - 1));
        let next = next.take_while(|item| item.as_ref().is_some_and(&goes));
        let n = next.count();
        let taken = (self.first..).zip(self.items.by_ref().take(n));
        let taken = taken.map(|(ticket, item)| of(ticket, item.expect("it waits")));
        let taken = taken.collect();
        (self.first, self.waiting) = (self.first + n as u64, self.waiting - n);
        self.close_gap();
        taken
    }
}

impl<T> Stands for Member<T> {
    #[inline]
    fn split_first(&mut self) -> Option<(Self, u64)> {
        let Self::Run(run) = self else {
            return None;
        };
        if run.waiting == 1 {
            return None;
        }
        let (ticket, item) = run.pop()?;
        Some((Self::Alone(Place::new(ticket), item), run.first))
    }
}

impl<T> Member<T> {
    /// All of it that is alone, each with its place.
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

    /// What is alone, or the only one of a run.
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
