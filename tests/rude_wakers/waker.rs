//! Wakers that panic, when the test of their thread decides it.
//!
//! A waker is a number. A waker that is woken records its number, and panics after that.

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Wake,
    Clone,
    Drop,
}

/// Which of the next acts of a kind panic: the lowest bit decides about the next one, and the bits
/// rotate.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rudeness(pub(crate) [u32; 3]);

impl Rudeness {
    /// All acts of this kind.
    pub(crate) fn always(act: Act) -> Self {
        let mut rudeness = Self::default();
        rudeness.0[act as usize] = u32::MAX;
        rudeness
    }
}

thread_local! {
    static RUDENESS: Cell<[u32; 3]> = const { Cell::new([0; 3]) };
    static PANICS: Cell<u32> = const { Cell::new(0) };
    static CLONES: Cell<isize> = const { Cell::new(0) };
    static WOKEN: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

/// The payload of a waker's panic.
pub(crate) struct Rude(pub(crate) Act);

fn act(act: Act) {
    let mut rudeness = RUDENESS.get();
    let panics = rudeness[act as usize] & 1 == 1;
    rudeness[act as usize] = rudeness[act as usize].rotate_right(1);
    RUDENESS.set(rudeness);
    if panics {
        PANICS.set(PANICS.get() + 1);
        resume_unwind(Box::new(Rude(act)));
    }
}

const VTABLE: RawWakerVTable = RawWakerVTable::new(
    |number| {
        act(Act::Clone);
        CLONES.set(CLONES.get() + 1);
        RawWaker::new(number, &VTABLE)
    },
    |number| {
        CLONES.set(CLONES.get() - 1);
        wake(number.addr());
    },
    |number| wake(number.addr()),
    |_| {
        CLONES.set(CLONES.get() - 1);
        act(Act::Drop);
    },
);

fn wake(number: usize) {
    say_woken(number);
    act(Act::Wake);
}

/// The waker of this number. It counts as a clone.
pub(crate) fn rude(number: usize) -> Waker {
    CLONES.set(CLONES.get() + 1);
    // SAFETY: no function of the table looks behind the pointer.
    unsafe { Waker::from_raw(RawWaker::new(ptr::without_provenance(number), &VTABLE)) }
}

/// Runs `f` while wakers may panic.
pub(crate) fn while_rude<R>(rudeness: Rudeness, f: impl FnOnce() -> R) -> R {
    /// Ends the rudeness, also when `f` unwinds.
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            RUDENESS.set([0; 3]);
        }
    }
    let _ends = Ends;
    RUDENESS.set(rudeness.0);
    f()
}

/// How many wakers panicked since the last call.
pub(crate) fn take_panics() -> u32 {
    PANICS.take()
}

/// How many wakers this thread has.
pub(crate) fn wakers() -> isize {
    CLONES.get()
}

pub(crate) fn say_woken(number: usize) {
    WOKEN.with_borrow_mut(|woken| {
        if woken.len() <= number {
            woken.resize(number + 1, false);
        }
        woken[number] = true;
    });
}

/// Whether the waker of this number was woken since the last call.
pub(crate) fn take_woken(number: usize) -> bool {
    WOKEN.with_borrow_mut(|woken| woken.get_mut(number).is_some_and(std::mem::take))
}

pub(crate) fn is_woken(number: usize) -> bool {
    WOKEN.with_borrow(|woken| woken.get(number).is_some_and(|woken| *woken))
}
