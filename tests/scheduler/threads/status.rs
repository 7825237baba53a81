//! The status says where each task is, and why it waits.

use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Place, Record, Scheduler, Status, TaskId, Why};

use crate::threads::stage::{Held, capped, end, finishes, gives, one_caller, scheduler, until};

fn why(status: &Status, id: TaskId) -> Why {
    let mut waiting = status.waiting.iter();
    waiting.find(|task| task.id == id).expect("it waits").why
}

#[test]
fn behind_paused_group_limit_and_worker() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let paused = caller.group(Limit::AtMost(0), 100).unwrap();
        let held = Held::submit(&caller, Place::new().group(&group));
        held.wait_began();
        let submit = |place: Place<'_>| caller.exec_with(place, || Ok::<_, ()>(())).unwrap();
        let later = submit(Place::new().group(&group).after(Duration::from_secs(3600)));
        // These tasks are posted, and only the status looks for them.
        let at_limit = submit(Place::new().group(&group));
        let behind = submit(Place::new().group(&group));
        let in_paused = submit(Place::new().group(&paused));
        let behind_paused = submit(Place::new().group(&paused));
        let in_line = submit(Place::new());
        let status = scheduler.status();
        let groups: Vec<_> = status.waiting.iter().map(|task| task.group).collect();
        let (own, in_pause) = (Some(group.id()), Some(paused.id()));
        assert_eq!(groups, [own, own, own, in_pause, in_pause, None]);
        assert_eq!(status.running[0].group, own);
        let counts = scheduler.counts();
        assert_eq!((counts.waiting, counts.delayed, counts.running), (5, 1, 1));
        assert!(later.cancel());
        assert_eq!(why(&status, at_limit.id()), Why::GroupLimit);
        assert_eq!(why(&status, behind.id()), Why::Behind);
        assert_eq!(why(&status, in_paused.id()), Why::Paused);
        assert_eq!(why(&status, behind_paused.id()), Why::Behind);
        assert_eq!(why(&status, in_line.id()), Why::Worker);
        assert!(at_limit.cancel());
        assert_eq!(why(&scheduler.status(), behind.id()), Why::GroupLimit);
        paused.set_limit(Limit::Unlimited).unwrap();
        held.finish();
        caller.synchronize().wait().unwrap();
        let status = scheduler.status();
        assert!(status.waiting.is_empty() && status.running.is_empty());
        end(&scheduler);
    });
}

#[test]
fn tier_and_cap() {
    finishes(|| {
        let scheduler = scheduler(4);
        let caller = scheduler.caller("capped", capped(1)).unwrap();
        let tier = |n| Place::new().tier(n);
        let held = Held::submit(&caller, tier(5));
        held.wait_began();
        let submit = |place: Place<'_>| caller.exec_with(place, || Ok::<_, ()>(())).unwrap();
        let same = submit(tier(5));
        let higher = submit(tier(6));
        let open = Some(5);
        let status = scheduler.status();
        assert_eq!(why(&status, same.id()), Why::Cap);
        assert_eq!(why(&status, higher.id()), Why::Tier { open });
        let lower = submit(tier(4));
        let status = scheduler.status();
        for task in [&same, &higher, &lower] {
            assert_eq!(why(&status, task.id()), Why::Tier { open });
        }
        assert_eq!(status.callers[0].open_tier, open);
        held.finish();
        caller.synchronize().wait().unwrap();
        assert_eq!(scheduler.status().callers[0].open_tier, None);
        end(&scheduler);
    });
}

#[test]
fn after_a_shutdown_no_caller_takes_tasks() {
    finishes(|| {
        let scheduler = scheduler(1);
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        assert!(!scheduler.status().callers[0].released);
        end(&scheduler);
        assert!(caller.exec(|| ()).is_err());
        assert!(scheduler.status().callers[0].released);
    });
}

#[test]
fn what_runs_and_the_callers() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let other = scheduler.caller("other", CallerOptions::default()).unwrap();
        let held = Held::submit(&caller, Place::new().tier(3));
        held.wait_began();
        let theirs = Held::start(&other);
        gives(&other, 1).detach();
        let status = scheduler.status();
        assert_eq!(status.running.len(), 2);
        let first = &status.running[0];
        assert_eq!((first.id, first.tier), (held.task.id(), 3));
        assert_eq!((&*first.caller, first.worker), ("main", 1));
        let names: Vec<&str> = status.callers.iter().map(|c| &*c.name).collect();
        assert_eq!(names, ["main", "other"]);
        assert_eq!(status.callers[1].unfinished, 2);
        assert_eq!(status.callers[1].running, 1);
        let waiting = &status.waiting[0];
        assert_eq!((&*waiting.caller, waiting.tier), ("other", 0));
        assert!(waiting.queued >= first.start);
        held.finish();
        theirs.finish();
        end(&scheduler);
    });
}

#[test]
fn debug_never_blocks_and_says_little() {
    let (scheduler, caller) = one_caller(1);
    let group = caller.group(Limit::SERIAL, 1).unwrap();
    let task = gives(&caller, 1);
    let builder = Scheduler::builder();
    let hold = scheduler.hold();
    let texts = [
        format!("{scheduler:?}"),
        format!("{caller:?}"),
        format!("{group:?}"),
        format!("{task:?}"),
        format!("{builder:?}"),
        format!("{hold:?}"),
    ];
    assert!(texts.iter().all(|text| text.len() < 300), "{texts:?}");
    let place = Place::new().group(&group);
    assert!(!format!("{place:?} {:?}", caller.synchronize()).is_empty());
}

/// In the status while the task runs or waits, and in its row, however it was submitted and ended.
#[test]
fn a_label_is_told_everywhere() {
    finishes(|| {
        let (log, rows) = crossbeam_channel::bounded::<Record>(10);
        let builder = Scheduler::builder().workers(1).log(log);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let held = Held::submit(&caller, Place::new().label("runs"));
        held.wait_began();
        let quick = || Ok::<_, ()>(());
        let plain = caller.exec(quick).unwrap();
        let posted = caller
            .exec_with(Place::new().label("waits"), quick)
            .unwrap();
        let two = caller
            .exec_all(Place::new().label("both"), [quick, quick])
            .unwrap();
        let day = Duration::from_secs(86_400);
        let later = Place::new().label("later").after(day);
        let later = caller.exec_with(later, quick).unwrap();
        let status = scheduler.status();
        assert_eq!(status.running[0].label.as_deref(), Some("runs"));
        let waiting = status.waiting.iter().map(|task| task.label.as_deref());
        let (waits, both) = (Some("waits"), Some("both"));
        assert!(waiting.eq([None, waits, both, both, Some("later")]));
        assert!(two[0].cancel() && later.cancel());
        held.finish();
        end(&scheduler);
        drop((plain, posted, two, later));
        let mut told: Vec<_> = rows
            .try_iter()
            .map(|row| (row.task.id, row.task.label))
            .collect();
        told.sort_unstable();
        let told = told.iter().map(|(_, label)| label.as_deref());
        assert!(told.eq([Some("runs"), None, waits, both, both, Some("later")]));
    });
}

/// With a capacity, and a task that waits for one that runs.
#[test]
fn who_is_blocked_and_what_a_caller_may_hold() {
    finishes(|| {
        let (scheduler, other) = one_caller(2);
        let options = CallerOptions {
            capacity: Limit::AtMost(3),
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("small", options).unwrap();
        assert_eq!((other.capacity(), other.room()), (Limit::Unlimited, None));
        let Held { mut task, go, .. } = Held::start(&other);
        let body = move || task.outcome().wait().map(drop);
        let mut waits = caller.exec(body).unwrap();
        until(|| scheduler.counts().blocked == 1);
        let status = scheduler.status();
        let blocked: Vec<_> = status.running.iter().map(|t| (t.id, t.blocked)).collect();
        assert!(blocked.contains(&(waits.id(), true)) && blocked.len() == 2);
        assert_eq!(status.callers[1].capacity, Limit::AtMost(3));
        assert_eq!(
            (caller.capacity(), caller.room()),
            (Limit::AtMost(3), Some(2))
        );
        go.send(()).unwrap();
        waits.outcome().wait().unwrap();
        end(&scheduler);
    });
}
