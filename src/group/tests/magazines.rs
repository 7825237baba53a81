//! Magazines and their depot, of sizes that only these tests use.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use crate::group::magazines::{Depot, Magazines, Pooled, get, pooled, put};
use crate::sync::{UnmodelledMutex, spawn, unmodelled_per_thread};

/// Memory of a size of its own, so that no other test takes from its depot.
macro_rules! sizes {
    ($($size:ident)+) => {
        $(
            struct $size(#[expect(dead_code)] [u8; 8]);
            pooled!($size, 32);
        )+
    };
}

sizes!(Burst Handed Ended);

fn take<B: Pooled>(n: usize) -> Vec<Box<MaybeUninit<B>>> {
    (0..n).map(|_| get()).collect()
}

fn kept_and_out<B: Pooled>() -> (usize, usize) {
    let depot = B::depot().lock();
    (depot.full.iter().map(Vec::len).sum(), depot.out)
}

/// As many as are out may stay in the depot, and eight magazines.
#[test]
fn a_burst_is_given_back() {
    let mut blocks = take::<Burst>(10_000);
    assert_eq!(kept_and_out::<Burst>(), (0, 10_000));
    for left in [5_000, 1_000, 0] {
        blocks.drain(left..).for_each(put);
        let (kept, out) = kept_and_out::<Burst>();
        assert!(
            (left..=left + 64).contains(&out),
            "{out} with {left} in use"
        );
        assert_eq!(kept, (10_000 - out).min((8 + out / 32) * 32));
    }
    assert!(Burst::depot().lock().full.capacity() <= 4 * (8 + 2));
}

/// Who only takes gets what another thread only gives back.
#[test]
fn blocks_go_from_thread_to_thread() {
    let blocks = take::<Handed>(200);
    let reader = spawn(move || blocks.into_iter().for_each(put));
    reader.join().unwrap();
    let (kept, out) = kept_and_out::<Handed>();
    assert!(kept >= 64, "{kept} kept");
    let _some = take::<Handed>(64);
    assert_eq!(kept_and_out::<Handed>(), (kept - 64, out + 64));
}

/// A thread that ends gives up what it has, also what it takes and gives back at
/// its very end.
#[test]
fn a_thread_that_ends_counts_out_what_it_had() {
    struct Late(Option<Box<MaybeUninit<Ended>>>);
    impl Drop for Late {
        fn drop(&mut self) {
            take::<Ended>(3).into_iter().for_each(put);
            self.0.take().into_iter().for_each(put);
        }
    }
    unmodelled_per_thread! {
        static LATE: RefCell<Late> = const { RefCell::new(Late(None)) };
    }
    let thread = spawn(|| {
        // Its magazines are made after this, so that they are gone before it.
        LATE.with(|_| ());
        take::<Ended>(100).into_iter().for_each(put);
        LATE.with(|late| late.borrow_mut().0 = Some(get()));
    });
    thread.join().unwrap();
    assert_eq!(kept_and_out::<Ended>().1, 0);
}
