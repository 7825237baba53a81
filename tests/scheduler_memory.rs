//! Memory is given back: the allocator counts the live bytes of the whole
//! process. So this is the only test function of its binary.
//!
//! `CONVERSANT_FUTURES=1000000` sets the number of futures; the default is 50,000.

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, OnFailure, Place, Scheduler};

/// How many bytes may stay: for a chunk of each slab, a block of each list, and the
/// channels of the standard library.
const BOUND: i64 = 64 * 1024;

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            LIVE.fetch_add(layout.size() as i64, Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Waits until all tasks are done, and returns the live bytes while the workers
/// rest: a worker drops what it ran or skipped before it rests.
fn settled(scheduler: &Scheduler) -> i64 {
    loop {
        // `workers()` has a constant cost, so it does not hold up the workers.
        let workers = scheduler.workers();
        if workers.idle < workers.live {
            std::thread::yield_now();
            continue;
        }
        let status = scheduler.status();
        let quiet = status.waiting.is_empty() && status.running.is_empty();
        if quiet && status.workers.idle == status.workers.live {
            return LIVE.load(Relaxed);
        }
        std::thread::yield_now();
    }
}

fn comes_back(scheduler: &Scheduler, what: &str, n: u64, run: impl Fn(&Scheduler, u64)) {
    // A short run first: some memory is allocated on first use.
    run(scheduler, n / 100);
    let before = settled(scheduler);
    run(scheduler, n);
    let more = settled(scheduler) - before;
    assert!(more <= BOUND, "{what}: {more} bytes more");
}

fn short_lived_callers(scheduler: &Scheduler, n: u64) {
    for n in 0..n {
        let caller = scheduler.caller("brief", CallerOptions::default()).unwrap();
        let task = caller.exec(move || Ok::<_, ()>(n)).unwrap();
        if n % 64 == 0 {
            let group = caller.group(Limit::SERIAL, n as u8).unwrap();
            let place = Place::new().group(&group).tier(7).bump(3);
            let second = caller.exec_with(place, move || Err::<(), _>(n)).unwrap();
            second.detach();
        }
        drop(caller);
        task.detach();
    }
}

fn callers_that_live_at_once(scheduler: &Scheduler, n: u64) {
    let callers: Vec<_> = (0..n)
        .map(|_| {
            let caller = scheduler.caller("one", CallerOptions::default()).unwrap();
            caller.exec(|| Ok::<_, ()>(())).unwrap().detach();
            caller
        })
        .collect();
    drop(callers);
}

/// Handles of groups outlive the callers.
fn groups_that_outlive_their_callers(scheduler: &Scheduler, n: u64) {
    let caller = || scheduler.caller("one", CallerOptions::default()).unwrap();
    let groups: Vec<_> = (0..n)
        .map(|_| caller().group(Limit::SERIAL, 1).unwrap())
        .collect();
    drop(groups);
}

fn many_skipped_at_once(scheduler: &Scheduler, n: u64) {
    let options = CallerOptions {
        on_failure: OnFailure::SkipHigherTiers,
        ..CallerOptions::default()
    };
    let caller = scheduler.caller("careful", options).unwrap();
    let hold = scheduler.hold();
    caller.exec(|| Err::<(), _>(())).unwrap().detach();
    for _ in 0..n {
        let place = Place::new().tier(1);
        let task = caller.exec_with(place, || Ok::<_, ()>(()));
        task.unwrap().detach();
    }
    drop(hold);
    assert_eq!(caller.synchronize().wait().unwrap().skipped, n);
}

/// Both workers are busy until all tasks are submitted, so each task is posted by itself.
fn posted_while_all_are_busy(scheduler: &Scheduler, n: u64) {
    let options = CallerOptions::default();
    let caller = scheduler.caller("posts", options).unwrap();
    let group = caller.group(Limit::SERIAL, 100).unwrap();
    let meet = Arc::new(Barrier::new(3));
    for _ in 0..2 {
        let meet = Arc::clone(&meet);
        let busy = move || {
            meet.wait();
            meet.wait();
            Ok::<_, ()>(())
        };
        caller.exec_detached(Place::new(), busy).unwrap();
    }
    meet.wait();
    for n in 0..n {
        let place = Place::new().group(&group);
        let task = move || Ok::<_, ()>(n);
        caller.exec_detached(place, task).unwrap();
    }
    meet.wait();
}

fn waits_that_are_dropped(scheduler: &Scheduler, n: u64) {
    let caller = scheduler.caller("waits", CallerOptions::default()).unwrap();
    let hold = scheduler.hold();
    let mut task = caller.exec(|| Ok::<_, ()>(())).unwrap();
    for _ in 0..n {
        let none = task.outcome().wait_timeout(Duration::ZERO);
        assert!(none.is_err());
        let none = caller.synchronize().wait_timeout(Duration::ZERO);
        assert!(none.is_err());
    }
    drop(hold);
    task.outcome().wait().unwrap();
}

/// Is ready at its second poll; another thread wakes it.
struct Second(bool, Sender<Waker>);

impl Future for Second {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        self.1.send(cx.waker().clone()).unwrap();
        Poll::Pending
    }
}

/// Each future awaits twice; every third is cancelled, in any state.
fn futures(scheduler: &Scheduler, n: u64) {
    let (alarm, alarms) = std::sync::mpsc::channel::<Waker>();
    let wakes = std::thread::spawn(move || alarms.iter().for_each(Waker::wake));
    for chunk in 0..n / 100 {
        let caller = scheduler.caller("brief", CallerOptions::default()).unwrap();
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        for n in 0..100 {
            let place = match chunk % 2 {
                0 => Place::new(),
                _ => Place::new().group(&group),
            };
            let (first, second) = (Second(false, alarm.clone()), Second(false, alarm.clone()));
            let task = caller.spawn_with(place, async move {
                first.await;
                second.await;
                Ok::<_, ()>([n; 8])
            });
            let task = task.unwrap();
            if n % 3 == 0 {
                task.cancel();
            }
            task.detach();
        }
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!(summary.ok + summary.cancelled, 100);
    }
    drop(alarm);
    wakes.join().unwrap();
}

#[test]
fn memory_comes_back() {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    comes_back(&scheduler, "posted", 1000, posted_while_all_are_busy);
    comes_back(&scheduler, "brief callers", 30_000, short_lived_callers);
    comes_back(&scheduler, "callers", 20_000, callers_that_live_at_once);
    comes_back(&scheduler, "skipped", 30_000, many_skipped_at_once);
    comes_back(&scheduler, "dropped waits", 1000, waits_that_are_dropped);
    let said = std::env::var("CONVERSANT_FUTURES");
    let many = said.map_or(50_000, |n| n.parse().expect("a number of futures"));
    comes_back(&scheduler, "futures", many, futures);
    // A caller that never synchronizes leaks nothing, whether or not all its tasks wait
    // at once.
    let caller = scheduler.caller("endless", CallerOptions::default());
    let caller = caller.unwrap();
    comes_back(
        &scheduler,
        "callers beside one that stays",
        20_000,
        callers_that_live_at_once,
    );
    let groups = groups_that_outlive_their_callers;
    comes_back(&scheduler, "groups beside one caller", 20_000, groups);
    comes_back(&scheduler, "detached", 200_000, |_, n| {
        for n in 0..n {
            caller.exec(move || Ok::<_, ()>(n)).unwrap().detach();
        }
    });
    let summary = caller.synchronize().wait().unwrap();
    assert_eq!((summary.tasks, summary.ok), (202_000, 202_000));
    scheduler.shutdown(Default::default()).wait().unwrap();
}
