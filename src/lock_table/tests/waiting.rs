//! The queue as a plain value, against a list in which every step is the rule itself. There is
//! hardly room between positions here, so all get new ones again and again.

use proptest::prelude::*;

use super::super::queue::{Queue, Request};
use super::Mode;
use crate::slab::{Key, Slab};

const OWNERS: usize = 12;

#[derive(Default)]
struct List(Vec<Request>);

impl List {
    fn place(&self, held: Option<Mode>) -> usize {
        let waits_for = |held: Mode| self.0.iter().position(|r| !r.mode.compatible(held));
        held.and_then(waits_for).unwrap_or(self.0.len())
    }

    fn fits_behind(&self, place: usize, mode: Mode) -> bool {
        self.0[..place].iter().all(|r| r.mode.compatible(mode))
    }

    fn position(&self, owner: Key) -> Option<usize> {
        self.0.iter().position(|r| r.owner == owner)
    }

    /// The first that can be granted while these modes are granted.
    fn next(&self, granted: &[Mode]) -> Option<Request> {
        let goes = |&at: &usize| {
            let mode = self.0[at].mode;
            self.fits_behind(at, mode) && granted.iter().all(|g| g.compatible(mode))
        };
        let at = (0..self.0.len()).find(goes)?;
        Some(self.0[at])
    }
}

fn compare(queue: &Queue, list: &List, granted: &[Mode]) {
    assert_eq!(queue.in_order(), list.0);
    assert_eq!(
        (queue.len(), queue.is_empty()),
        (list.0.len(), list.0.is_empty())
    );
    let fits = |request: Request| granted.iter().all(|g| g.compatible(request.mode));
    assert_eq!(queue.next(fits), list.next(granted));
    for mode in Mode::ALL {
        for held in Mode::ALL.map(Some).into_iter().chain([None]) {
            let passes = list.fits_behind(list.place(held), mode);
            assert_eq!(queue.lets_pass(mode, held), passes);
        }
    }
    for (at, one) in list.0.iter().enumerate() {
        let position = queue.position(one.owner).unwrap();
        let mut ahead: Vec<_> = queue.conflicting(one.mode, 0..position).collect();
        ahead.sort_unstable();
        let conflicting = list.0[..at].iter().filter(|r| !r.mode.compatible(one.mode));
        let mut expected: Vec<_> = conflicting.map(|r| r.owner).collect();
        expected.sort_unstable();
        assert_eq!(ahead, expected);
        for (other_at, other) in list.0.iter().enumerate() {
            let mode = (other_at < at).then_some(other.mode);
            assert_eq!(queue.ahead_of(one.owner, other.owner), mode);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 100 } else { 5_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_queue_is_the_list(
        steps in prop::collection::vec(
            (0..OWNERS, prop::sample::select(Mode::ALL.to_vec()), prop::option::of(0..6usize)),
            1..60,
        ),
        granted in prop::collection::vec(prop::sample::select(Mode::ALL.to_vec()), 0..3),
    ) {
        let mut slab = Slab::new();
        let owners: Vec<Key> = (0..OWNERS).map(|_| slab.insert(())).collect();
        let (mut queue, mut list) = (Queue::default(), List::default());
        for (owner, mode, held) in steps {
            let owner = owners[owner];
            if let Some(at) = list.position(owner) {
                list.0.remove(at);
                queue.remove(owner);
            } else {
                let held = held.map(|held| Mode::ALL[held]);
                let request = Request { owner, mode };
                list.0.insert(list.place(held), request);
                queue.insert(request, held);
            }
            compare(&queue, &list, &granted);
        }
    }
}

/// Why only the first of each mode has to be looked at.
#[test]
fn a_mode_that_conflicts_with_a_weaker_one_conflicts_with_itself() {
    for asked in Mode::ALL {
        let weaker = Mode::ALL.into_iter().filter(|held| asked.covers(*held));
        if weaker.into_iter().any(|held| !held.compatible(asked)) {
            assert!(!asked.compatible(asked), "{asked}");
        }
    }
}
