//! How often a task asks the allocator, from its submission to when it waits for a worker: once,
//! posted or not. One test function in a binary of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};

use conversant::scheduler::{Caller, CallerOptions, Place, Scheduler, Task};

struct Counting;

static BLOCKS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TASKS: u64 = 400;
/// Lists that grow.
const FEW: u64 = 40;
/// So many blocks of detached tasks are kept when nothing is there any more.
const KEPT: u64 = 64;

/// How many blocks `submit` takes, while the only worker does nothing, beside those of the lists.
fn blocks(caller: &Caller, submit: impl FnOnce()) -> u64 {
    let (busy, go): (Task<(), ()>, Sender<()>) = {
        let ((begins, begun), (go, goes)) = (channel(), channel::<()>());
        let busy = caller.exec(move || {
            begins.send(()).unwrap();
            goes.recv().unwrap();
            Ok(())
        });
        begun.recv().unwrap();
        (busy.unwrap(), go)
    };
    let before = BLOCKS.load(Relaxed);
    submit();
    let blocks = BLOCKS.load(Relaxed) - before;
    go.send(()).unwrap();
    busy.detach();
    caller.synchronize().wait().unwrap();
    blocks
}

#[test]
fn a_task_is_one_block_of_memory() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let caller = |name| scheduler.caller(name, CallerOptions::default()).unwrap();
    let mut kept = Vec::with_capacity(4 * TASKS as usize);
    // In tiers no task is posted.
    for (name, place) in [("posted", Place::new()), ("not", Place::new().tier(1))] {
        let caller = caller(name);
        caller.exec_with(place, || Ok::<_, ()>(0)).unwrap().detach();
        let detached = || {
            for n in 0..TASKS {
                caller.exec_detached(place, move || Ok::<_, ()>(n)).unwrap();
            }
        };
        let first = blocks(&caller, detached);
        assert!(first <= TASKS + FEW, "{name}, detached: {first}");
        let again = blocks(&caller, detached);
        let used_again = if name == "posted" { KEPT } else { 0 };
        assert!(
            again <= TASKS - used_again + FEW,
            "{name}, detached again: {again}"
        );
        let awaited = blocks(&caller, || {
            for n in 0..TASKS {
                kept.push(caller.exec_with(place, move || Ok::<_, ()>(n)).unwrap());
            }
        });
        assert!(awaited <= TASKS + FEW, "{name}, awaited: {awaited}");
    }
}
