//! Nothing polls: the count of sleeps that ended stands still while nothing
//! can start, and goes up by what is needed when something can.
//!
//! One test function in a binary of its own, since the count is the process's.
//! The workers are asleep, or about to be, when the status says that they
//! rest; no wake-up is under way then, for what wakes a worker takes it out of
//! that state, and it is counted before it says that it rests again. So the
//! count is exact once the status has been seen. It is compared after a long
//! run of yields beside a thread that is busy with something else: a polling
//! worker would have come round many times.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, Place, Scheduler, Task, Why};
use conversant::wait::wakeups;

/// Longer than any poll that could pass for one, and than this test.
const FOR_EVER: Duration = Duration::from_secs(100_000);

fn yields(n: u32) {
    (0..n).for_each(|_| thread::yield_now());
}

/// Something else that keeps a processor busy, so that yielding takes time.
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

/// All workers that there are rest, or run one of `busy` tasks; then nobody
/// wakes while nothing happens.
fn stands_still(scheduler: &Scheduler, busy: u32, when: &str) {
    until(|| {
        let workers = scheduler.workers();
        workers.busy == busy && workers.idle + workers.busy == workers.live
    });
    let before = wakeups();
    yields(2_000);
    for _ in 0..100 {
        // Looking is no event.
        assert_eq!(scheduler.status().workers.busy, busy);
    }
    assert_eq!(wakeups(), before, "somebody polls {when}");
}

/// A task that runs until it is told to end, by means that are not ours.
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

/// Brings as many workers as there can be, and lets them rest.
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

/// Waiting for a worker: nobody is woken for what cannot start.
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

/// As many wake-ups as tasks and ends of waits, not as there are sleepers.
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
    // For each task one worker, and we.
    assert!(woken <= 2 * TASKS, "{woken} wake-ups for {TASKS} tasks");
}

/// Many at one instant, and not more than can be begun: each worker that is needed
/// is woken once, the others rest on.
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
