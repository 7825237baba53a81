//! Nothing polls: the number of sleeps that ended does not change while no task can
//! start. When one can, it rises only by the wake-ups that are needed.
//!
//! This is the only test function of its binary, since the count is that of the process.
//! When the status says that a worker rests, the worker sleeps or is about to, and no
//! wake-up is in flight: a thread that wakes a worker takes it out of this state, and the
//! wake-up is counted before the worker rests again. So the count is exact once the status
//! was seen. It is compared after many yields, while another thread is busy: a polling
//! worker would have looked many times meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, Place, Scheduler, Task, Why};
use conversant::wait::wakeups;

/// Longer than this test, and than any interval of polling.
const FOR_EVER: Duration = Duration::from_secs(100_000);

fn yields(n: u32) {
    (0..n).for_each(|_| thread::yield_now());
}

/// Keeps a processor busy with other work, so that yielding takes time.
fn unrelated(stop: &AtomicBool) {
    let work = AtomicU64::new(1);
    while !stop.load(SeqCst) {
        let x = work.load(SeqCst);
        work.store(x.wrapping_mul(6_364_136_223_846_793_005) + 1, SeqCst);
    }
}

fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        thread::yield_now();
    }
}

/// Waits until `busy` workers run tasks and all others rest; then no thread wakes up
/// while nothing happens.
fn stands_still(scheduler: &Scheduler, busy: u32, when: &str) {
    until(|| {
        let workers = scheduler.workers();
        workers.busy == busy && workers.idle + workers.busy == workers.live
    });
    let before = wakeups();
    yields(2_000);
    for _ in 0..100 {
        // Reading the status is no event.
        assert_eq!(scheduler.status().workers.busy, busy);
    }
    assert_eq!(wakeups(), before, "somebody polls {when}");
}

/// A task that runs until a channel of `std` tells it to end.
fn held(caller: &Caller, place: Place<'_>) -> (Task<(), ()>, std::sync::mpsc::Sender<()>) {
    let (begins, began) = channel();
    let (go, may_go) = channel();
    let body = move || {
        begins.send(()).unwrap();
        may_go.recv().map_err(|_| ())
    };
    let task = caller.exec_with(place, body).unwrap();
    began.recv().unwrap();
    (task, go)
}

fn waits(caller: &Caller, place: Place<'_>) -> Task<(), ()> {
    caller.exec_with(place, || Ok(())).unwrap()
}

/// Starts as many workers as the maximum allows, and lets them rest.
fn warm_up(scheduler: &Scheduler, caller: &Caller) {
    let held: Vec<_> = (0..scheduler.workers().max)
        .map(|_| held(caller, Place::new()))
        .collect();
    for (mut task, go) in held {
        go.send(()).unwrap();
        task.outcome().wait().unwrap();
    }
    assert_eq!(scheduler.workers().live, scheduler.workers().max);
}

/// No worker is woken for tasks that cannot start.
fn blocked_work_wakes_nobody(scheduler: &Scheduler) {
    let options = CallerOptions {
        cap: Limit::AtMost(1),
        ..CallerOptions::default()
    };
    let capped = scheduler.caller("capped", options).unwrap();
    let (_running, go) = held(&capped, Place::new().tier(5));
    let before = wakeups();
    let _more: Vec<_> = (0..50)
        .map(|_| waits(&capped, Place::new().tier(5)))
        .collect();
    let status = scheduler.status();
    assert!(status.waiting.iter().all(|task| task.why == Why::Cap));
    stands_still(scheduler, 1, "while all that is ready is capped");
    let _higher: Vec<_> = (0..50)
        .map(|_| waits(&capped, Place::new().tier(6)))
        .collect();
    stands_still(scheduler, 1, "while a tier is closed");
    assert_eq!(wakeups(), before, "what cannot start woke somebody");

    let plain = scheduler.caller("plain", CallerOptions::default()).unwrap();
    let paused = plain.group(Limit::AtMost(0), 100).unwrap();
    let _paused: Vec<_> = (0..50)
        .map(|_| waits(&plain, Place::new().group(&paused)))
        .collect();
    paused.bump(9);
    stands_still(scheduler, 1, "while a group is paused");
    let hold = scheduler.hold();
    let _held: Vec<_> = (0..50).map(|_| waits(&plain, Place::new())).collect();
    stands_still(scheduler, 1, "while all is held");
    assert_eq!(wakeups(), before, "what cannot start woke somebody");
    drop(hold);
    paused.set_limit(Limit::Unlimited).unwrap();
    plain.synchronize().wait().unwrap();
    go.send(()).unwrap();
    assert_eq!(capped.synchronize().wait().unwrap().tasks, 101);
}

/// There are as many wake-ups as tasks and ends of waits, not as many as sleepers.
fn no_thundering_herd(scheduler: &Scheduler, caller: &Caller) {
    const TASKS: u64 = 200;
    stands_still(scheduler, 0, "before");
    let before = wakeups();
    for _ in 0..TASKS {
        let mut task = waits(caller, Place::new());
        task.outcome().wait().unwrap();
        until(|| scheduler.workers().idle == scheduler.workers().live);
    }
    let woken = wakeups() - before;
    // For each task: one worker, and this thread.
    assert!(woken <= 2 * TASKS, "{woken} wake-ups for {TASKS} tasks");
}

/// A batch of as many tasks as workers are needed: each of these workers is woken once;
/// the others do not wake up.
fn a_batch_wakes_whom_it_needs(scheduler: &Scheduler, caller: &Caller) {
    const NEEDED: u32 = 3;
    stands_still(scheduler, 0, "before a batch");
    let before = wakeups();
    let (begins, began) = channel();
    let ends: Vec<_> = (0..NEEDED).map(|_| channel::<()>()).collect();
    let (go, may_go): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    let tasks = may_go.into_iter().map(|may_go| {
        let begins = begins.clone();
        move || {
            begins.send(()).unwrap();
            may_go.recv().map_err(|_| ())
        }
    });
    let mut tasks = caller.exec_all(Place::new(), tasks).unwrap();
    (0..NEEDED).for_each(|_| began.recv().unwrap());
    stands_still(scheduler, NEEDED, "while a batch runs");
    let woken = wakeups() - before;
    assert!(woken <= u64::from(NEEDED), "{woken} were woken");
    go.iter().for_each(|go| go.send(()).unwrap());
    for task in &mut tasks {
        task.outcome().wait().unwrap();
    }
}

#[test]
fn nothing_polls() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let busy = scope.spawn(|| unrelated(&stop));
        let builder = Scheduler::builder().workers(4).idle(FOR_EVER);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            stands_still(&scheduler, 0, "before there is a worker");
            warm_up(&scheduler, &caller);
            stands_still(&scheduler, 0, "while workers are idle");
            blocked_work_wakes_nobody(&scheduler);
            no_thundering_herd(&scheduler, &caller);
            a_batch_wakes_whom_it_needs(&scheduler, &caller);
            stands_still(&scheduler, 0, "after it all");
            scheduler.shutdown(Default::default()).wait().unwrap();
        }));
        stop.store(true, SeqCst);
        busy.join().unwrap();
        told.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
