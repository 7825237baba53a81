//! The fifo against a deque: messages of every shape, each dropped once.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::group::fifo::Fifo;

#[derive(Clone, Debug)]
enum Op {
    Push(usize),
    PushAll(usize),
    PutFirst,
    Pop(usize),
    PopMany(usize),
    Shrink,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..6_usize).prop_map(Op::Push),
        1 => (60..200_usize).prop_map(Op::Push),
        4 => (0..40_usize).prop_map(Op::PushAll),
        1 => (60..200_usize).prop_map(Op::PushAll),
        4 => Just(Op::PutFirst),
        8 => (1..6_usize).prop_map(Op::Pop),
        4 => (0..40_usize).prop_map(Op::PopMany),
        1 => (60..200_usize).prop_map(Op::PopMany),
        1 => (60..200_usize).prop_map(Op::Pop),
        2 => Just(Op::Shrink),
    ]
}

/// A message that counts how many of its kind exist.
struct Counted<P> {
    number: u64,
    alive: Rc<Cell<i64>>,
    payload: P,
}

impl<P> Drop for Counted<P> {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
    }
}

fn play<P: Default>(ops: &[Op]) {
    let alive = Rc::new(Cell::new(0));
    let mut number = 0;
    let mut make = || {
        number += 1;
        alive.set(alive.get() + 1);
        let (alive, payload) = (alive.clone(), P::default());
        Counted {
            number,
            alive,
            payload,
        }
    };
    let (mut fifo, mut deque) = (Fifo::new(), VecDeque::new());
    for op in ops {
        match *op {
            Op::Push(n) => (0..n).for_each(|_| {
                let message = make();
                deque.push_back(message.number);
                fifo.push(message);
            }),
            Op::PushAll(n) => {
                let messages: Vec<_> = std::iter::repeat_with(&mut make).take(n).collect();
                deque.extend(messages.iter().map(|message| message.number));
                fifo.push_all(messages);
            }
            Op::PutFirst if fifo.has_place() => {
                let message = make();
                deque.push_front(message.number);
                fifo.put_first(message);
            }
            Op::PutFirst => {}
            Op::Pop(n) => (0..n).for_each(|_| {
                let popped: Option<Counted<P>> = fifo.pop();
                assert!(
                    popped
                        .as_ref()
                        .is_none_or(|m| (&raw const m.payload).is_aligned())
                );
                assert_eq!(popped.map(|message| message.number), deque.pop_front());
            }),
            Op::PopMany(n) => {
                let mut out = Vec::new();
                fifo.pop_many(n, &mut out);
                let numbers = out.iter().map(|message| message.number);
                assert!(deque.drain(..n.min(deque.len())).eq(numbers));
            }
            Op::Shrink => fifo.shrink(),
        }
        assert_eq!(fifo.is_empty(), deque.is_empty());
        assert_eq!(alive.get(), deque.len() as i64);
    }
    drop(fifo);
    assert_eq!(alive.get(), 0);
}

/// Plays `ops` with messages that the value itself can hold, or that it cannot.
fn numbers<T: Copy + PartialEq + std::fmt::Debug>(ops: &[Op], make: impl Fn(u64) -> T) {
    let (mut fifo, mut deque, mut number) = (Fifo::new(), VecDeque::new(), 0);
    for op in ops {
        match *op {
            Op::Push(n) => (0..n).for_each(|_| {
                number += 1;
                fifo.push(make(number));
                deque.push_back(make(number));
            }),
            Op::PushAll(n) => {
                let messages = number + 1..=number + n as u64;
                number += n as u64;
                fifo.push_all(messages.clone().map(&make).collect());
                deque.extend(messages.map(&make));
            }
            Op::PutFirst if fifo.has_place() => {
                number += 1;
                fifo.put_first(make(number));
                deque.push_front(make(number));
            }
            Op::PutFirst => {}
            Op::Pop(n) => (0..n).for_each(|_| assert_eq!(fifo.pop(), deque.pop_front())),
            Op::PopMany(n) => {
                let mut out = vec![make(0)];
                fifo.pop_many(n, &mut out);
                assert!(
                    deque
                        .drain(..n.min(deque.len()))
                        .eq(out.into_iter().skip(1))
                );
            }
            Op::Shrink => fifo.shrink(),
        }
        assert_eq!(fifo.is_empty(), deque.is_empty());
    }
    let rest: Vec<_> = std::iter::from_fn(|| fifo.pop()).collect();
    assert_eq!(deque, rest);
}

/// A few messages at the end of a full block move to its beginning; many go into a larger block.
#[test]
fn a_full_block_makes_room() {
    let mut fifo = Fifo::new();
    (1..=7).for_each(|n: u64| fifo.push(n));
    assert_eq!(fifo.tail.places(), 6);
    (1..=5).for_each(|n| assert_eq!(fifo.pop(), Some(n)));
    (8..=11).for_each(|n| fifo.push(n));
    assert_eq!(fifo.tail.places(), 6);
    (6..=7).for_each(|n| assert_eq!(fifo.pop(), Some(n)));
    fifo.push(12);
    assert_eq!(fifo.tail.places(), 24);
    let rest: Vec<u64> = std::iter::from_fn(|| fifo.pop()).collect();
    assert_eq!(rest, [8, 9, 10, 11, 12]);
}

/// A fifo that needed a large block gets one at once the next time, until it does not need it.
#[test]
fn a_large_block_comes_at_once_where_it_was_needed() {
    let mut fifo = Fifo::new();
    for (messages, places) in [(2, 2), (4, 6), (9, 24), (2, 24), (3, 2), (40, 24), (2, 24)] {
        (0..messages).for_each(|n: u64| fifo.push(n));
        assert_eq!(fifo.tail.places(), places, "{messages} messages");
        (0..messages).for_each(|n| assert_eq!(fifo.pop(), Some(n)));
        fifo.shrink();
    }
}

/// A fifo that never has many messages at once gets no larger blocks, however many go through.
#[test]
fn blocks_are_larger_only_behind_many() {
    let mut fifo = Fifo::new();
    fifo.push(0_u64);
    for _ in 0..1000 {
        (0..30).for_each(|n| fifo.push(n));
        assert_eq!(fifo.tail.places(), 24);
        (0..30).for_each(|_| assert!(fifo.pop().is_some()));
    }
    (0..17 * 24).for_each(|n| fifo.push(n));
    assert_eq!(fifo.tail.places(), 192);
    (0..16 * 24).for_each(|_| assert!(fifo.pop().is_some()));
    (0..192).for_each(|n| fifo.push(n));
    assert_eq!(fifo.tail.places(), 24, "behind one block");
}

/// Goes through blocks of each size, which are left half-used, for messages of each shape.
#[test]
fn agrees_with_a_deque_of_many() {
    use Op::{Pop, PopMany, Push, PushAll, PutFirst, Shrink};
    let ops = [
        [Push(700), Pop(1), PutFirst, PopMany(300)],
        [PushAll(5000), Pop(1), PutFirst, Pop(3000)],
        [Push(3), PushAll(600), PutFirst, Pop(1)],
        [PopMany(10_000), PushAll(9), PopMany(8), Push(30)],
        [Pop(100), Shrink, Push(2), PutFirst],
    ]
    .concat();
    numbers(&ops, |_| ());
    numbers(&ops, |n| n as u8);
    numbers(&ops, |n| [n as u8; 3]);
    numbers(&ops, |n| n as u16);
    numbers(&ops, |n| [n as u32; 3]);
    numbers(&ops, |n| [n as u8; 16]);
    numbers(&ops, u128::from);
    numbers(&ops, |n| [n as u8; 17]);
    numbers(&ops, |n| [n; 3]);
    numbers(&ops, |n| [n as u16; 50]);
    numbers(&ops, |n| [n as u32; 1024]);
    numbers(&ops, |n| Aligned([n as u8; 3]));
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(128))]
struct Aligned(#[allow(dead_code)] [u8; 3]);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_deque(ops in vec(op(), 1..200)) {
        numbers(&ops, |_| ());
        numbers(&ops, |n| n as u8);
        numbers(&ops, |n| n);
        numbers(&ops, |n| (n, n as u32));
        numbers(&ops, |n| [n as u32; 3]);
        numbers(&ops, |n| [n; 9]);
    }

    #[test]
    fn drops_each_message_once(ops in vec(op(), 1..60)) {
        play::<()>(&ops);
        play::<[u64; 16]>(&ops);
        play::<Aligned>(&ops);
    }
}

/// Small messages that own memory.
#[test]
fn what_is_in_the_value_itself_is_dropped() {
    let owner = Rc::new(());
    let mut fifo = Fifo::new();
    for _ in 0..3 {
        fifo.push(owner.clone());
    }
    drop(fifo.pop());
    assert_eq!(Rc::strong_count(&owner), 3);
    drop(fifo);
    assert_eq!(Rc::strong_count(&owner), 1);
}

#[test]
fn a_panic_in_one_drop_loses_no_other() {
    struct Bomb(Rc<Cell<u32>>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert_ne!(self.0.get(), 3, "the third");
        }
    }
    let dropped = Rc::new(Cell::new(0));
    let mut fifo = Fifo::new();
    (0..100).for_each(|_| fifo.push(Bomb(dropped.clone())));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(fifo))).is_err());
    assert_eq!(dropped.get(), 100);
}

/// The size of the value, for messages of any size.
#[test]
fn takes_25_bytes() {
    assert_eq!(size_of::<Fifo<[u32; 3]>>(), 25);
    assert_eq!(size_of::<Fifo<[u64; 30]>>(), 25);
}
