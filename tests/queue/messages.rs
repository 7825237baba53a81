//! Messages of every build: of no size, of 1 KiB, aligned to 128 bytes, in a box; with drops that
//! panic or call the queue. Whatever happens to a message, it comes out whole, and is dropped
//! exactly once.

mod anything;
mod edges;
mod panics;
mod reentrancy;
mod steps;

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// How many messages of each number have been made and not dropped.
    static ALIVE: RefCell<BTreeMap<usize, isize>> = const { RefCell::new(BTreeMap::new()) };
}

fn born(number: usize) {
    ALIVE.with_borrow_mut(|alive| *alive.entry(number).or_default() += 1);
}

fn gone(number: usize) {
    ALIVE.with_borrow_mut(|alive| {
        let left = alive.get_mut(&number).expect("it was made");
        *left -= 1;
        assert!(*left >= 0, "{number} was dropped twice");
        if *left == 0 {
            alive.remove(&number);
        }
    });
}

/// The numbers of the live messages.
fn alive() -> Vec<usize> {
    ALIVE.with_borrow(|alive| alive.keys().copied().collect())
}

/// A message of one build.
trait Build: Send + 'static {
    fn make(number: usize) -> Self;

    /// Its number, after a check that it is whole. `None` for a build without a size.
    fn number(&self) -> Option<usize>;
}

/// The number that a message of this build shows, to compare with.
fn number_of<M: Build>(number: usize) -> Option<usize> {
    (size_of::<M>() > 0).then_some(number)
}

struct Nothing;

impl Build for Nothing {
    fn make(_: usize) -> Self {
        born(0);
        Self
    }

    fn number(&self) -> Option<usize> {
        None
    }
}

impl Drop for Nothing {
    fn drop(&mut self) {
        gone(0);
    }
}

/// Without a size, but with an alignment.
#[repr(align(64))]
struct AlignedNothing;

impl Build for AlignedNothing {
    fn make(_: usize) -> Self {
        born(0);
        Self
    }

    fn number(&self) -> Option<usize> {
        assert!(std::ptr::from_ref(self).addr().is_multiple_of(64));
        None
    }
}

impl Drop for AlignedNothing {
    fn drop(&mut self) {
        gone(0);
    }
}

/// 1 KiB.
struct Big([u64; 128]);

impl Build for Big {
    fn make(number: usize) -> Self {
        born(number);
        Self([number as u64; 128])
    }

    fn number(&self) -> Option<usize> {
        assert!(self.0.iter().all(|&word| word == self.0[0]), "torn");
        Some(self.0[0] as usize)
    }
}

impl Drop for Big {
    fn drop(&mut self) {
        gone(self.number().unwrap());
    }
}

#[repr(align(128))]
struct Aligned(u32);

impl Build for Aligned {
    fn make(number: usize) -> Self {
        born(number);
        Self(number as u32)
    }

    fn number(&self) -> Option<usize> {
        assert!(std::ptr::from_ref(self).addr().is_multiple_of(128));
        Some(self.0 as usize)
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        gone(self.number().unwrap());
    }
}

/// The heap's own checks find a message that is dropped twice or not at all.
struct Boxed(Box<usize>);

impl Build for Boxed {
    fn make(number: usize) -> Self {
        born(number);
        Self(Box::new(number))
    }

    fn number(&self) -> Option<usize> {
        Some(*self.0)
    }
}

impl Drop for Boxed {
    fn drop(&mut self) {
        gone(*self.0);
    }
}

/// A byte: many fit where one message of another build does.
struct Small(u8);

impl Build for Small {
    fn make(number: usize) -> Self {
        let number = number % 256;
        born(number);
        Self(number as u8)
    }

    fn number(&self) -> Option<usize> {
        Some(usize::from(self.0))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        gone(usize::from(self.0));
    }
}

/// A module of one test for each build.
macro_rules! of_every_build {
    ($($test:ident),* $(,)?) => {
        $(mod $test {
            #[test]
            fn of_no_size() {
                super::$test::<crate::messages::Nothing>();
            }

            #[test]
            fn aligned_of_no_size() {
                super::$test::<crate::messages::AlignedNothing>();
            }

            #[test]
            fn of_a_byte() {
                super::$test::<crate::messages::Small>();
            }

            #[test]
            fn in_a_box() {
                super::$test::<crate::messages::Boxed>();
            }

            #[test]
            fn of_1_kib() {
                super::$test::<crate::messages::Big>();
            }

            #[test]
            fn aligned() {
                super::$test::<crate::messages::Aligned>();
            }
        })*
    };
}
use of_every_build;
