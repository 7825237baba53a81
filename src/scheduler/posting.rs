//! Tasks that were posted, and what the state knows of the list where they are: see
//! `submissions`.

use crate::slab::Key;

use super::local_queue::Work;
use super::task_state::{Placing, Waiting};

/// What the state does not know.
pub(super) enum Posted {
    One(Key, Placing, Waiting<Work>),
    /// Tasks of one caller that are alone, one after the other.
    Run(Key, Vec<Option<Waiting<Work>>>),
}

impl Posted {
    /// The run that this is, if tasks of this caller that are alone may join it.
    #[inline]
    pub(super) fn run_of(&mut self, caller: Key) -> Option<&mut Vec<Option<Waiting<Work>>>> {
        match self {
            Self::Run(of, run) if *of == caller => Some(run),
            _ => None,
        }
    }

    /// Behind `last`, or with it where both are alone.
    #[cold]
    pub(super) fn join(
        last: Option<&mut Self>,
        caller: Key,
        placing: Placing,
        task: Waiting<Work>,
    ) -> Option<Self> {
        let alone = placing.is_alone();
        match last {
            Some(last @ Self::One(..)) if alone => Self::pair(last, caller, placing, task),
            _ => Some(Self::One(caller, placing, task)),
        }
    }

    /// A run begins with its second task.
    fn pair(last: &mut Self, caller: Key, placing: Placing, task: Waiting<Work>) -> Option<Self> {
        let new = Self::One(caller, placing, task);
        let is_first = match last {
            Self::One(of, placing, _) => *of == caller && placing.is_alone(),
            Self::Run(..) => false,
        };
        if !is_first {
            return Some(new);
        }
        let first = std::mem::replace(last, Self::Run(caller, Vec::with_capacity(32)));
        let Self::Run(_, run) = last else {
            return None;
        };
        run.extend([first, new].map(Self::into_task));
        None
    }

    fn into_task(self) -> Option<Waiting<Work>> {
        match self {
            Self::One(_, _, task) => Some(task),
            Self::Run(..) => None,
        }
    }
}

/// What the state knows of the list of submissions.
#[derive(Default)]
pub(super) struct Posting {
    /// Whether it is open.
    pub(super) open: bool,
    /// Whether it may have memory.
    pub(super) used: bool,
    /// Kept for its memory.
    pub(super) buffer: Vec<Posted>,
}
