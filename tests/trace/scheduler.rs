//! A scheduler sends events for each task if its log does; for bumps, pauses and waits in any case.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use conversant::error::Stalled;
use conversant::scheduler::{
    Builder, Caller, CallerOptions, How, OutcomeError, Place, Reason, Scheduler, SyncError, Task,
    Tracing, Verdict,
};

use super::recorder::Recorder;

/// A scheduler whose workers' events the recorder gets, and its only caller.
fn events_of(recorder: &Recorder, builder: Builder) -> (Scheduler, Caller) {
    let recorder = recorder.clone();
    let builder = builder.on_thread_start(move |_| forget(recorder.listen()));
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    (scheduler, caller)
}

fn one() -> Builder {
    Scheduler::builder().workers(1)
}

fn ok() -> Result<(), ()> {
    Ok(())
}

#[test]
fn each_task_is_told_by_the_log() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (scheduler, caller) = events_of(&recorder, one().log(Tracing));
    let group = caller.group(1, 100).unwrap();
    let place = Place::new().tier(2).group(&group).label("a label");
    let task = caller.exec_with(place, || Err::<(), _>("no file")).unwrap();
    let who = format!(
        "task=1 caller=main label=a label tier=2 group={}",
        group.id()
    );
    task.detach();
    scheduler.shutdown(How::Drain).wait().unwrap();
    let told = [
        format!("TRACE scheduler queued {who}"),
        format!("TRACE scheduler started {who} worker=1 waited"),
        format!("TRACE scheduler ended {who} worker=1 ran ending=failed"),
    ];
    assert_eq!(recorder.events(), told);
}

#[test]
fn what_is_not_there_is_left_out() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (scheduler, caller) = events_of(&recorder, one().log(Tracing));
    caller.set_cap(0).unwrap();
    let task = caller.exec(ok).unwrap();
    assert!(task.cancel());
    scheduler.shutdown(How::Drain).wait().unwrap();
    let who = "task=1 caller=main tier=0";
    let told = [
        format!("TRACE scheduler queued {who}"),
        format!("TRACE scheduler ended {who} ending=cancelled"),
    ];
    assert_eq!(recorder.events(), told);
}

#[test]
fn a_subscriber_that_panics_is_counted_and_the_task_runs() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    recorder.then(|_| panic!("a subscriber's"));
    let (scheduler, caller) = events_of(&recorder, one().log(Tracing));
    let mut task = caller.exec(ok).unwrap();
    assert_eq!(task.outcome().wait().unwrap().verdict.ok(), Some(()));
    assert_eq!(scheduler.status().log_lost, 3);
}

#[test]
fn bumps_and_pauses_are_told_without_a_log() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (scheduler, caller) = events_of(&recorder, one());
    let group = caller.group(1, 100).unwrap();
    group.set_limit(0).unwrap();
    let task = caller.exec_with(Place::new().group(&group), ok).unwrap();
    group.bump(3);
    caller.bump(&task, 4).unwrap();
    let told = [
        format!("DEBUG scheduler blocked group={} why=paused", group.id()),
        format!("DEBUG scheduler bumped group={} level=3", group.id()),
        "DEBUG scheduler bumped task=1 level=4".to_owned(),
    ];
    assert_eq!(recorder.events(), told);
    group.set_limit(1).unwrap();
    caller.synchronize().wait().unwrap();
    assert!(caller.bump(&task, 5).is_err());
    scheduler.shutdown(How::Drain).wait().unwrap();
    assert!(recorder.events().is_empty());
}

#[test]
fn what_comes_with_a_group_or_a_task_is_not_told() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (scheduler, caller) = events_of(&recorder, one());
    let paused = caller.group(0, 100).unwrap();
    let place = Place::new().group(&paused).bump(3);
    assert!(caller.exec_with(place, ok).unwrap().cancel());
    scheduler.shutdown(How::Drain).wait().unwrap();
    assert!(recorder.events().is_empty());
}

#[test]
fn a_task_that_waits_is_told_and_that_it_gives_up() {
    let recorder = Recorder::default();
    let (_scheduler, caller) = events_of(&recorder, one());
    let same = caller.clone();
    // No worker is left for the task that it waits for.
    let waits = move || same.exec(ok).unwrap().outcome().wait().map(|_| ());
    let place = Place::new().label("parent");
    let outcome = caller.exec_with(place, waits);
    let outcome = outcome.unwrap().outcome().wait().unwrap();
    let told = [
        "DEBUG scheduler blocked task=1 label=parent worker=1 why=waits for others",
        "WARN scheduler deadlock task=1 label=parent worker=1",
    ];
    assert_eq!(recorder.events(), told);
    let stalled = OutcomeError::Stalled(Stalled);
    assert!(matches!(outcome.verdict, Verdict::Failed(e) if e == stalled));
}

/// For room that the end of another task frees.
#[test]
fn a_wait_for_room_that_comes_is_no_deadlock() {
    let recorder = Recorder::default();
    let (scheduler, _) = events_of(&recorder, Scheduler::builder().workers(2));
    let options = CallerOptions {
        capacity: 2.into(),
        ..CallerOptions::default()
    };
    let caller = scheduler.caller("small", options).unwrap();
    let (go, may_go) = channel();
    let go = Mutex::new(go);
    recorder.then(move |_| go.lock().unwrap().send(()).unwrap());
    caller.exec(move || may_go.recv()).unwrap().detach();
    let same = caller.clone();
    let waits = move || {
        let task = same.exec_wait(Place::new(), ok).wait();
        task.map(Task::detach).map_err(|refused| refused.reason)
    };
    let outcome = caller.exec(waits).unwrap().outcome().wait().unwrap();
    assert_eq!(outcome.verdict.ok(), Some(()));
    let events = recorder.events();
    assert!(
        events.len() == 1 && events[0].contains("blocked task=2"),
        "{events:?}"
    );
}

#[test]
fn a_wait_that_comes_to_its_end_is_no_deadlock() {
    let recorder = Recorder::default();
    let (_scheduler, caller) = events_of(&recorder, Scheduler::builder().workers(2));
    let (go, may_go) = channel();
    let go = Mutex::new(go);
    // The other task goes on when an event reports that this one waits.
    recorder.then(move |_| go.lock().unwrap().send(()).unwrap());
    let other = caller.exec(move || may_go.recv()).unwrap();
    let other = Mutex::new(other);
    let waits = move || other.lock().unwrap().outcome().wait().map(|_| ());
    let outcome = caller.exec(waits).unwrap().outcome().wait().unwrap();
    assert_eq!(outcome.verdict.ok(), Some(()));
    let events = recorder.events();
    assert!(
        events.len() == 1 && events[0].contains("blocked task=2"),
        "{events:?}"
    );
}

/// In a task that waits for what never comes, the subscriber that is told of that waits, too, for a
/// task that may start. Returns whether each wait succeeds, the subscriber's first. `meanwhile` runs
/// when that begins.
fn wait_inside(workers: u32, before: impl FnOnce(&Caller), meanwhile: impl FnOnce()) -> [bool; 2] {
    let recorder = Recorder::default();
    let (_scheduler, caller) = events_of(&recorder, Scheduler::builder().workers(workers));
    let paused = caller.group(0, 100).unwrap();
    let paused = caller.exec_with(Place::new().group(&paused), ok).unwrap();
    before(&caller);
    let (told, says) = channel();
    let (begins, same) = (Mutex::new(told), caller.clone());
    recorder.then(move |_| {
        let mut inside = same.exec(ok).unwrap();
        let told = begins.lock().unwrap();
        told.send(None).unwrap();
        told.send(Some(inside.outcome().wait().is_ok())).unwrap();
    });
    let paused = Mutex::new(paused);
    let waits = move || paused.lock().unwrap().outcome().wait().map(|_| ());
    let mut outside = caller.exec(waits).unwrap();
    assert_eq!(says.recv().unwrap(), None);
    meanwhile();
    let outcome = outside.outcome().wait().unwrap();
    caller.cancel_all();
    [
        says.recv().unwrap().unwrap(),
        outcome.verdict.ok().is_some(),
    ]
}

#[test]
fn a_wait_inside_of_another_is_a_wait_of_its_own() {
    assert_eq!(wait_inside(1, |_| (), || ()), [false, false]);
    // One of two workers is free to go on: the subscriber waits for it.
    let (go, may_go) = channel();
    let runs = |caller: &Caller| {
        let (begun, begins) = channel();
        let runs = move || {
            begun.send(()).unwrap();
            may_go.recv()
        };
        caller.exec(runs).unwrap().detach();
        begins.recv().unwrap();
    };
    let goes = || go.send(()).unwrap();
    assert_eq!(wait_inside(2, runs, goes), [true, false]);
}

/// A task waits for what never comes, and must give up. The subscriber that is told of that waits,
/// too, as `inside` says: with the task's caller, and with one that is full of what never starts.
fn wait_inside_of_one_that_gives_up(inside: fn(&Caller, &Caller) -> bool) {
    let recorder = Recorder::default();
    let (scheduler, caller) = events_of(&recorder, one());
    let options = CallerOptions {
        capacity: 1.into(),
        ..CallerOptions::default()
    };
    let full = scheduler.caller("full", options).unwrap();
    let paused = full.group(0, 100).unwrap();
    let paused = full.exec_with(Place::new().group(&paused), ok).unwrap();
    let (told, says) = channel();
    let (told, same) = (Mutex::new(told), caller.clone());
    recorder.then(move |_| told.lock().unwrap().send(inside(&same, &full)).unwrap());
    let paused = Mutex::new(paused);
    let waits = move || paused.lock().unwrap().outcome().wait().map(|_| ());
    let mut outside = caller.exec(waits).unwrap();
    let outcome = outside.outcome().wait_timeout(Duration::from_secs(10));
    let verdict = outcome.unwrap().unwrap().verdict;
    let gave_up = OutcomeError::Stalled(Stalled);
    assert!(matches!(verdict, Verdict::Failed(why) if why == gave_up));
    assert!(says.recv().unwrap());
}

#[test]
fn a_wait_with_a_time_out_inside_of_one_that_gives_up_does_not() {
    const SOON: Duration = Duration::ZERO;
    let check = wait_inside_of_one_that_gives_up;
    check(|_, full| full.synchronize().wait_timeout(SOON).is_err());
    check(|_, full| full.release(How::Drain).wait_timeout(SOON).is_err());
    check(|_, full| {
        let refused = full.exec_wait(Place::new(), ok).or_return_after(SOON);
        refused.is_err_and(|refused| refused.reason == Reason::TimedOut)
    });
}

#[test]
fn a_scope_inside_of_a_wait_that_gives_up_does_not_keep_it_from_that() {
    wait_inside_of_one_that_gives_up(|caller, _| {
        let scope = || caller.scope(|s| s.exec_detached(Place::new(), ok));
        catch_unwind(AssertUnwindSafe(scope)).is_err()
    });
}

#[test]
fn a_wait_that_gives_up_has_left_before_that_is_told() {
    let recorder = Recorder::default();
    let (_scheduler, caller) = events_of(&recorder, one());
    let (told, says) = channel();
    let (told, same) = (Mutex::new(told), caller.clone());
    recorder.then(move |event| {
        if event.contains("deadlock") {
            let again = same.synchronize().wait_timeout(Duration::ZERO);
            told.lock().unwrap().send(again).unwrap();
        }
    });
    let same = caller.clone();
    let waits = caller.exec(move || same.synchronize().wait()).unwrap();
    let verdict = { waits }.outcome().wait().unwrap().verdict;
    let stalled = SyncError::Stalled(Stalled);
    assert!(matches!(verdict, Verdict::Failed(why) if why == stalled));
    assert!(says.try_recv().unwrap().is_err(), "it could wait, too");
}

/// `wait` in a task must give up, but before it looks all tasks of the caller that it is given, and
/// that has one task, are cancelled.
fn at_the_last_moment(capacity: u32, wait: fn(&Caller)) {
    let recorder = Recorder::default();
    let (scheduler, caller) = events_of(&recorder, one());
    let options = CallerOptions {
        capacity: capacity.into(),
        ..CallerOptions::default()
    };
    let other = scheduler.caller("other", options).unwrap();
    let paused = other.group(0, 100).unwrap();
    let place = Place::new().group(&paused);
    other.exec_detached(place, ok).unwrap();
    let cancels = other.clone();
    recorder.then(move |_| cancels.cancel_all());
    let outcome = caller
        .exec(move || wait(&other))
        .unwrap()
        .outcome()
        .wait()
        .unwrap();
    assert_eq!(outcome.verdict.ok(), Some(()));
    let told = "DEBUG scheduler blocked task=2 worker=1 why=waits for others";
    assert_eq!(recorder.events(), [told]);
}

#[test]
fn a_wait_that_succeeds_at_the_last_moment_is_no_deadlock() {
    at_the_last_moment(1, |other| _ = other.synchronize().wait().unwrap());
    at_the_last_moment(1, |other| {
        other.exec_wait(Place::new(), ok).wait().unwrap().detach();
    });
    at_the_last_moment(2, |other| {
        let paused = other.group(0, 100).unwrap();
        let place = Place::new().group(&paused);
        other.scope(|s| s.exec_detached(place, ok)).unwrap();
    });
}

/// Its only task has begun, and gives up in its place.
#[test]
fn a_scope_that_goes_on_is_no_deadlock() {
    let recorder = Recorder::default();
    let (_scheduler, caller) = events_of(&recorder, Scheduler::builder().workers(2));
    let paused = caller.group(0, 100).unwrap();
    let paused = caller.exec_with(Place::new().group(&paused), ok).unwrap();
    let (blocked, is_blocked) = channel();
    recorder.then(move |_| blocked.send(()).unwrap());
    let (same, paused) = (caller.clone(), Mutex::new(paused));
    let scope = move || {
        same.scope(|s| {
            let waits = || paused.lock().unwrap().outcome().wait().map(|_| ());
            s.exec_detached(Place::new(), waits).unwrap();
            is_blocked.recv().unwrap();
        });
        paused.lock().unwrap().cancel();
        Ok::<_, ()>(())
    };
    let outcome = caller.exec(scope).unwrap().outcome().wait().unwrap();
    assert_eq!(outcome.verdict.ok(), Some(()));
    let told = [
        "DEBUG scheduler blocked task=3 worker=2 why=waits for others",
        "DEBUG scheduler blocked task=2 worker=1 why=waits for others",
        "WARN scheduler deadlock task=3 worker=2",
    ];
    assert_eq!(recorder.events(), told);
}

#[test]
fn no_lock_is_held() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let (scheduler, caller) = events_of(&recorder, one().log(Tracing));
    let scheduler = Arc::new(scheduler);
    let there = OnceLock::<Weak<Scheduler>>::new();
    there.set(Arc::downgrade(&scheduler)).unwrap();
    recorder.then(move |_| {
        let scheduler = there.get().unwrap().upgrade().unwrap();
        _ = scheduler.status();
    });
    let group = caller.group(1, 100).unwrap();
    group.set_limit(0).unwrap();
    let task = caller.exec_with(Place::new().group(&group), ok).unwrap();
    group.bump(3);
    caller.bump(&task, 4).unwrap();
    task.cancel();
    let same = caller.clone();
    let waits = move || same.exec(ok).unwrap().outcome().wait().map(|_| ());
    caller.exec(waits).unwrap().outcome().wait().unwrap();
    caller.synchronize().wait().unwrap();
    // Three rare events, two of the cancelled task, a wait and its end, three of each of two tasks.
    assert_eq!(recorder.events().len(), 3 + 2 + 2 + 2 * 3);
}
