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

    /// Behind `last`, or with it where both are alone: a run begins with its second task.
    #[cold]
    pub(super) fn join(
        last: Option<&mut Self>,
        caller: Key,
        placing: Placing,
        task: Waiting<Work>,
    ) -> Option<Self> {
        let new = Self::One(caller, placing, task);
        let first = last.filter(|last| last.is_alone(caller) && placing.is_alone());
        let Some(first) = first else {
            return Some(new);
        };
        let last = std::mem::replace(first, Self::Run(caller, Vec::with_capacity(32)));
        if let Self::Run(_, run) = first {
            run.extend([last, new].map(Self::into_task));
        }
        None
    }

    /// Whether it is one task of this caller, which is alone.
    fn is_alone(&self, caller: Key) -> bool {
        matches!(self, Self::One(of, placing, _) if *of == caller && placing.is_alone())
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
