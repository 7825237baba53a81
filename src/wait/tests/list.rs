//! `Waiters`: order, notifications, counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use proptest::prelude::*;

use super::super::{Ticket, Waiters, WakeBatch};
use super::{counting, heap};

/// Whether the waiter has a waker of this task, and so needs no cloned one.
fn waits_with<D: Default>(list: &mut Waiters<D>, ticket: Ticket, waker: &Waker) -> bool {
    list.enqueue(D::default(), &mut Some(ticket), waker, &mut None)
}

fn noop() -> Waker {
    Waker::noop().clone()
}

#[test]
fn the_longest_waiting_is_notified_first() {
    let mut list = Waiters::new();
    let mut wakes = WakeBatch::new();
    let tickets: Vec<_> = (0..5).map(|i| list.register(i, noop())).collect();
    for &ticket in &tickets {
        assert_eq!(list.notify_next(&mut wakes), Some(ticket));
    }
    assert_eq!(list.notify_next(&mut wakes), None);
    assert_eq!((list.waiting(), list.notified()), (0, 5));
}

#[test]
fn a_notified_waiter_that_gets_nothing_keeps_its_place() {
    let mut list = Waiters::new();
    let mut wakes = WakeBatch::new();
    let first = list.register((), noop());
    let second = list.register((), noop());
    assert_eq!(list.notify_next(&mut wakes), Some(first));
    assert!(list.is_notified(first));
    assert!(list.rewait(first, noop()).is_none());
    assert!(!list.is_notified(first));
    assert_eq!(list.notify_next(&mut wakes), Some(first));
    assert_eq!(list.notify_next(&mut wakes), Some(second));
}

#[test]
fn rewait_returns_the_waker_it_does_not_need() {
    let mut list = Waiters::new();
    let (old, new) = (counting(), counting());
    let ticket = list.register((), Waker::from(old.clone()));
    assert!(waits_with(&mut list, ticket, &Waker::from(old.clone())));
    let same = list.rewait(ticket, Waker::from(old.clone())).unwrap();
    same.wake();
    assert_eq!(old.count(), 1);
    let replaced = list.rewait(ticket, Waker::from(new.clone())).unwrap();
    assert!(replaced.will_wake(&Waker::from(old.clone())));
    drop(replaced);
    assert_eq!(Arc::strong_count(&old), 1);
    assert!(waits_with(&mut list, ticket, &Waker::from(new.clone())));
}

#[test]
fn removal_tells_what_was_left() {
    let mut list = Waiters::new();
    let mut wakes = WakeBatch::new();
    let (a, b) = (list.register('a', noop()), list.register('b', noop()));
    assert!(list.notify(b, &mut wakes));
    assert!(!list.notify(b, &mut wakes));
    let (a, b) = (list.remove(a).unwrap(), list.remove(b).unwrap());
    assert!(!a.was_notified && a.waker.is_some() && a.data == 'a');
    assert!(b.was_notified && b.waker.is_none() && b.data == 'b');
    assert!(list.is_empty());
}

#[test]
fn a_ticket_that_is_gone_opens_nothing() {
    let mut list = Waiters::new();
    let mut wakes = WakeBatch::new();
    let gone = list.register('a', noop());
    drop(list.remove(gone));
    // It reuses the slot of the waiter before it.
    let waker = Waker::from(counting());
    let here = list.register('b', waker.clone());
    assert!(gone < here);
    assert!(list.get(gone).is_none());
    assert!(!waits_with(&mut list, gone, &waker));
    assert!(!list.notify(gone, &mut wakes) && !list.is_notified(gone));
    assert!(list.remove(gone).is_none());
    assert!(waits_with(&mut list, here, &waker));
    assert_eq!((list.len(), list.waiting(), wakes.len()), (1, 1, 0));
}

/// All are notified and find nothing. The order leaves notified waiters on both sides of each.
/// Every waiter gets its old place again.
#[test]
fn waiters_that_are_polled_in_vain_keep_their_places() {
    let mut list = Waiters::new();
    let mut wakes = WakeBatch::new();
    let tickets: Vec<_> = (0..101).map(|i| list.register(i, noop())).collect();
    while list.notify_next(&mut wakes).is_some() {}
    for i in 0..101 {
        assert!(list.rewait(tickets[i * 37 % 101], noop()).is_none());
    }
    let waiting: Vec<_> = list.iter_waiting().map(|(ticket, _)| ticket).collect();
    assert_eq!(waiting, tickets);
}

#[test]
fn an_empty_list_has_given_its_memory_back() {
    let before = heap::held_by_this_thread();
    let mut list = Waiters::new();
    let tickets: Vec<_> = (0..1_000).map(|i| list.register(i, noop())).collect();
    let mut wakes = WakeBatch::new();
    while list.notify_next(&mut wakes).is_some() {}
    for &ticket in tickets.iter().step_by(2) {
        list.rewait(ticket, noop());
    }
    assert!(heap::held_by_this_thread() > before);
    for ticket in tickets {
        drop(list.remove(ticket));
    }
    drop(wakes);
    assert_eq!(heap::held_by_this_thread(), before);
    assert!(list.is_empty());
}

/// Most waiters leave, first or last ones first; some stay.
#[test]
fn a_list_that_becomes_short_gives_memory_back() {
    for stays in [0..3, 500..503, 9_997..10_000] {
        let before = heap::held_by_this_thread();
        let mut list = Waiters::new();
        let tickets: Vec<_> = (0..10_000).map(|i| list.register(i, noop())).collect();
        for (i, &ticket) in tickets.iter().enumerate() {
            if !stays.contains(&i) {
                drop(list.remove(ticket));
            }
        }
        drop(tickets);
        assert!(heap::held_by_this_thread() - before < 5_000);
        let mut wakes = WakeBatch::new();
        assert!(list.notify_up_to(2, &mut wakes));
        let left: Vec<_> = list.iter().map(|(_, &data)| data as usize).collect();
        assert!(left.into_iter().eq(stays.clone()), "{stays:?}");
        assert_eq!(list.waiting(), 1);
    }
}

#[test]
fn a_small_list_allocates_once() {
    let before = heap::held_by_this_thread();
    let mut list = Waiters::new();
    let mut held = None;
    for _ in 0..3 {
        let tickets = [0; 8].map(|data: u64| list.register(data, noop()));
        let now = heap::held_by_this_thread();
        assert_eq!(now, *held.get_or_insert(now));
        for ticket in tickets {
            drop(list.remove(ticket));
        }
        assert_eq!(heap::held_by_this_thread(), now);
    }
    assert!((1..1_000).contains(&(heap::held_by_this_thread() - before)));
}

/// Waiters that come and go behind a long waiting one leave no empty places.
#[test]
fn a_long_wait_keeps_nothing_of_the_others() {
    let mut list = Waiters::new();
    let _long = list.register(0, noop());
    let before = heap::held_by_this_thread();
    for i in 1..10_000 {
        let [one, other] = [i, -i].map(|data| list.register(data, noop()));
        assert_eq!(list.remove(one).map(|left| left.data), Some(i));
        assert_eq!(list.remove(other).map(|left| left.data), Some(-i));
    }
    assert!(heap::held_by_this_thread() - before < 2_000);
    assert_eq!((list.len(), list.waiting()), (1, 1));
}

#[derive(Clone, Debug)]
enum Step {
    Register,
    NotifyNext,
    Notify(usize),
    Rewait(usize),
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Register),
        2 => Just(Step::NotifyNext),
        1 => (0..8usize).prop_map(Step::Notify),
        2 => (0..8usize).prop_map(Step::Rewait),
        2 => (0..8usize).prop_map(Step::Remove),
    ]
}

proptest! {
    /// Compares with one ordered map of notified marks.
    #[test]
    fn agrees_with_a_map_of_marks(steps in proptest::collection::vec(step(), 0..60)) {
        let mut list = Waiters::new();
        let mut oracle: BTreeMap<Ticket, (u32, bool)> = BTreeMap::new();
        let mut wakes = WakeBatch::new();
        let mut woken = 0;
        let next = |oracle: &mut BTreeMap<Ticket, (u32, bool)>| {
            let (&ticket, entry) = oracle.iter_mut().find(|(_, entry)| !entry.1)?;
            entry.1 = true;
            Some(ticket)
        };
        for (n, step) in (0u32..).zip(steps) {
            let pick = |i: usize| oracle.keys().copied().nth(i);
            match step {
                Step::Register => {
                    let ticket = list.register(n, noop());
                    prop_assert!(oracle.keys().all(|&earlier| earlier < ticket));
                    oracle.insert(ticket, (n, false));
                }
                Step::NotifyNext => {
                    let expected = next(&mut oracle);
                    woken += usize::from(expected.is_some());
                    prop_assert_eq!(list.notify_next(&mut wakes), expected);
                }
                Step::Notify(i) => if let Some(ticket) = pick(i) {
                    let entry = oracle.get_mut(&ticket).unwrap();
                    woken += usize::from(!entry.1);
                    prop_assert_eq!(list.notify(ticket, &mut wakes), !entry.1);
                    entry.1 = true;
                },
                Step::Rewait(i) => if let Some(ticket) = pick(i) {
                    let entry = oracle.get_mut(&ticket).unwrap();
                    prop_assert_eq!(list.rewait(ticket, noop()).is_some(), !entry.1);
                    entry.1 = false;
                },
                Step::Remove(i) => if let Some(ticket) = pick(i) {
                    let (data, marked) = oracle.remove(&ticket).unwrap();
                    let removed = list.remove(ticket).unwrap();
                    prop_assert_eq!((removed.data, removed.was_notified), (data, marked));
                },
            }
            prop_assert_eq!(wakes.len(), woken);
            let expected: Vec<_> = oracle.iter().map(|(&t, e)| (t, e.0)).collect();
            let all: Vec<_> = list.iter().map(|(t, &d)| (t, d)).collect();
            prop_assert_eq!(&all, &expected);
            let expected_waiting = oracle.iter().filter(|(_, e)| !e.1).map(|(&t, e)| (t, e.0));
            let waiting: Vec<_> = list.iter_waiting().map(|(t, &d)| (t, d)).collect();
            prop_assert_eq!(list.waiting(), waiting.len());
            prop_assert_eq!(waiting, expected_waiting.collect::<Vec<_>>());
            prop_assert_eq!(list.front().map(|(t, &d)| (t, d)), expected.first().copied());
            prop_assert_eq!(list.notified(), oracle.values().filter(|e| e.1).count());
            prop_assert_eq!(list.len(), oracle.len());
            for (&ticket, &(data, marked)) in &oracle {
                prop_assert_eq!(list.is_notified(ticket), marked);
                prop_assert_eq!(list.get(ticket), Some(&data));
            }
        }
    }
}
