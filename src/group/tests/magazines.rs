//! Magazines and their depot, of sizes that only these tests use.

use std::cell::RefCell;

use crate::group::magazines::{BYTES, Memory, depot, get, put};
use crate::sync::{spawn, unmodelled_per_thread};

const BURST: usize = BYTES.len();
const HANDED: usize = BURST + 1;
const ENDED: usize = BURST + 2;
const TRIMMED: usize = BURST + 3;

fn take(size: usize, n: usize) -> Vec<Memory> {
    (0..n).map(|_| get(size)).collect()
}

fn give_back(size: usize, memory: impl IntoIterator<Item = Memory>) {
    memory.into_iter().for_each(|memory| put(size, memory));
}

fn kept_and_out(size: usize) -> (usize, usize) {
    let depot = depot(size).lock();
    (depot.full.iter().map(Vec::len).sum(), depot.out)
}

/// The depot may hold as many blocks as threads do, and eight magazines more.
#[test]
fn a_burst_is_given_back() {
    let mut blocks = take(BURST, 10_000);
    assert_eq!(kept_and_out(BURST), (0, 10_000));
    for left in [5_000, 1_000, 0] {
        give_back(BURST, blocks.drain(left..));
        let (kept, out) = kept_and_out(BURST);
        assert!(
            (left..=left + 64).contains(&out),
            "{out} with {left} in use"
        );
        assert_eq!(kept, (10_000 - out).min((8 + out / 32) * 32));
    }
    assert!(depot(BURST).lock().full.capacity() <= 4 * (8 + 2));
}

/// A thread that only takes blocks gets those that another thread only gives back.
#[test]
fn blocks_go_from_thread_to_thread() {
    let blocks = take(HANDED, 200);
    let reader = spawn(move || give_back(HANDED, blocks));
    reader.join().unwrap();
    let (kept, out) = kept_and_out(HANDED);
    assert!(kept >= 64, "{kept} kept");
    let _some = take(HANDED, 64);
    assert_eq!(kept_and_out(HANDED), (kept - 64, out + 64));
}

/// A thread that ends gives up its blocks. So it does with those that it takes and gives back at
/// its very end.
#[test]
fn a_thread_that_ends_counts_out_what_it_had() {
    struct Late(Option<Memory>);
    impl Drop for Late {
        fn drop(&mut self) {
            give_back(ENDED, take(ENDED, 3));
            give_back(ENDED, self.0.take());
        }
    }
    unmodelled_per_thread! {
        static LATE: RefCell<Late> = const { RefCell::new(Late(None)) };
    }
    let thread = spawn(|| {
        // The magazines are made after this value, and so are destroyed before it.
        LATE.with(|_| ());
        give_back(ENDED, take(ENDED, 100));
        LATE.with(|late| late.borrow_mut().0 = Some(get(ENDED)));
    });
    thread.join().unwrap();
    assert_eq!(kept_and_out(ENDED).1, 0);
}

/// The depot keeps blocks in proportion to those that threads hold; these go when the threads end.
#[test]
fn threads_that_end_leave_eight_magazines() {
    fn nested(threads: usize) {
        give_back(TRIMMED, take(TRIMMED, 64));
        match threads {
            0 => give_back(TRIMMED, take(TRIMMED, 4_000)),
            _ => spawn(move || nested(threads - 1)).join().unwrap(),
        }
    }
    nested(20);
    let (kept, out) = kept_and_out(TRIMMED);
    assert!(out <= 64 && kept <= (8 + 2) * 32, "{kept} kept, {out} out");
}
