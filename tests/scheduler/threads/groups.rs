//! Groups and bumps on real workers.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};

use conversant::error::Stale;
use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, Group, Place, Reason, Why};

use crate::threads::stage::{Held, end, finishes, gives, one_caller, scheduler, until};

fn in_group<'a>(group: &'a Group) -> Place<'a> {
    Place::new().group(group)
}

/// Submits a task that writes down its number.
fn written(caller: &Caller, place: Place<'_>, page: &Arc<Mutex<Vec<u32>>>, n: u32) {
    let page = Arc::clone(page);
    let body = move || {
        page.lock().unwrap().push(n);
        Ok::<_, ()>(())
    };
    caller.exec_with(place, body).unwrap().detach();
}

#[test]
fn a_serial_group_runs_one_at_a_time_in_order_of_submission() {
    finishes(|| {
        let (scheduler, caller) = one_caller(4);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let now = Arc::new(AtomicU32::new(0));
        let page = Arc::new(Mutex::new(Vec::new()));
        for n in 0..300 {
            let (now, page) = (Arc::clone(&now), Arc::clone(&page));
            let body = move || {
                assert_eq!(now.fetch_add(1, SeqCst), 0, "two at once");
                page.lock().unwrap().push(n);
                now.fetch_sub(1, SeqCst);
                Ok::<_, ()>(())
            };
            caller.exec_with(in_group(&group), body).unwrap().detach();
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 300);
        assert_eq!(*page.lock().unwrap(), (0..300).collect::<Vec<_>>());
        end(&scheduler);
    });
}

#[test]
fn a_group_of_limit_n_runs_n_at_once_and_no_more() {
    finishes(|| {
        let (scheduler, caller) = one_caller(6);
        let group = caller.group(Limit::AtMost(3), 100).unwrap();
        let meet = Arc::new(Barrier::new(3));
        let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        for _ in 0..30 {
            let (now, most, meet) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&meet));
            let body = move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                meet.wait();
                now.fetch_sub(1, SeqCst);
                Ok::<_, ()>(())
            };
            caller.exec_with(in_group(&group), body).unwrap().detach();
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 30);
        assert_eq!(most.load(SeqCst), 3);
        end(&scheduler);
    });
}

#[test]
fn a_group_of_limit_zero_is_paused_until_it_is_raised() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let group = caller.group(Limit::AtMost(0), 100).unwrap();
        let held = Held::submit(&caller, in_group(&group));
        gives(&caller, 1).outcome().wait().unwrap();
        assert!(!held.has_begun());
        assert_eq!(scheduler.status().waiting[0].why, Why::Paused);
        group.set_limit(Limit::SERIAL).unwrap();
        held.wait_began();
        let second = Held::submit(&caller, in_group(&group));
        group.set_limit(Limit::AtMost(0)).unwrap();
        held.finish();
        assert_eq!(scheduler.status().waiting[0].why, Why::Paused);
        group.set_limit(Limit::Unlimited).unwrap();
        second.wait_began();
        second.finish();
        end(&scheduler);
    });
}

#[test]
fn a_limit_raised_or_lowered_counts_from_then_on() {
    finishes(|| {
        let (scheduler, caller) = one_caller(4);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let tasks: Vec<Held> = (0..4)
            .map(|_| Held::submit(&caller, in_group(&group)))
            .collect();
        let [a, b, c, d] = <[Held; 4]>::try_from(tasks).ok().unwrap();
        a.wait_began();
        group.set_limit(Limit::AtMost(3)).unwrap();
        b.wait_began();
        c.wait_began();
        group.set_limit(Limit::SERIAL).unwrap();
        a.finish();
        b.finish();
        assert!(!d.has_begun(), "a debt of one is left");
        assert_eq!(scheduler.status().waiting[0].why, Why::GroupLimit);
        c.finish();
        d.wait_began();
        d.finish();
        end(&scheduler);
    });
}

#[test]
fn a_bump_of_a_waiting_task_puts_it_first() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let mut tasks: Vec<_> = (0..10).map(|n| gives(&caller, n)).collect();
        caller.bump(&tasks[7], 0).unwrap();
        caller.bump(&tasks[3], 1).unwrap();
        held.go();
        caller.synchronize().wait().unwrap();
        let mut starts: Vec<_> = (0..)
            .zip(&mut tasks)
            .map(|(n, task)| (task.outcome().wait().unwrap().run.unwrap().start, n))
            .collect();
        starts.sort();
        let order: Vec<u64> = starts.into_iter().map(|(_, n)| n).collect();
        assert_eq!(order, [3, 7, 0, 1, 2, 4, 5, 6, 8, 9]);
        end(&scheduler);
    });
}

#[test]
fn a_bump_of_a_running_task_is_harmless_and_of_an_ended_one_stale() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let waiting = gives(&caller, 1);
        assert_eq!(caller.bump(&held.task, 9), Ok(()));
        assert_eq!(caller.bump(&waiting, 9), Ok(()));
        assert!(waiting.cancel());
        assert_eq!(caller.bump(&waiting, 9), Err(Stale));
        held.go();
        caller.synchronize().wait().unwrap();
        assert_eq!(caller.bump(&held.task, 9), Err(Stale));
        let elsewhere = scheduler_of_another();
        assert_eq!(elsewhere.1.bump(&held.task, 9), Err(Stale));
        end(&scheduler);
    });
}

fn scheduler_of_another() -> (conversant::scheduler::Scheduler, Caller) {
    one_caller(1)
}

#[test]
fn the_bump_of_a_group_is_for_its_next_task_only() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let page = Arc::new(Mutex::new(Vec::new()));
        let held = Held::start(&caller);
        group.bump(7);
        written(&caller, Place::new(), &page, 1);
        written(&caller, in_group(&group), &page, 2);
        written(&caller, in_group(&group), &page, 3);
        held.go();
        caller.synchronize().wait().unwrap();
        assert_eq!(
            *page.lock().unwrap(),
            [2, 1, 3],
            "the idle group's bump waits"
        );
        end(&scheduler);
    });
}

#[test]
fn the_standing_level_ranks_what_is_not_bumped() {
    finishes(|| {
        // One task at a time: a worker that prefetches passes over a group whose task it has.
        let builder = conversant::scheduler::Scheduler::builder()
            .workers(1)
            .claims(1);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        let low = caller.group(Limit::SERIAL, 10).unwrap();
        let high = caller.group(Limit::SERIAL, 200).unwrap();
        let page = Arc::new(Mutex::new(Vec::new()));
        let held = Held::start(&caller);
        written(&caller, in_group(&low), &page, 1);
        written(&caller, Place::new(), &page, 2);
        written(&caller, in_group(&high), &page, 3);
        written(&caller, in_group(&low).bump(0), &page, 4);
        low.set_level(255);
        high.set_level(0);
        held.go();
        caller.synchronize().wait().unwrap();
        assert_eq!(*page.lock().unwrap(), [1, 4, 2, 3]);
        end(&scheduler);
    });
}

#[test]
fn a_group_of_another_caller_or_scheduler_is_refused() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let other = scheduler.caller("other", Default::default()).unwrap();
        let far = one_caller(1);
        let theirs = other.group(Limit::SERIAL, 100).unwrap();
        let farther = far.1.group(Limit::SERIAL, 100).unwrap();
        for group in [&theirs, &farther] {
            let refused = caller.exec_with(in_group(group), || Ok::<_, ()>(3));
            let refused = refused.unwrap_err();
            assert_eq!(refused.reason, Reason::ForeignGroup);
            assert_eq!((refused.task)(), Ok(3));
        }
        assert!(caller.synchronize().wait().is_err(), "nothing was counted");
        end(&scheduler);
    });
}

#[test]
fn a_tier_that_goes_down_in_a_group_is_refused_with_the_function() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let held = Held::submit(&caller, in_group(&group).tier(5));
        held.wait_began();
        let place = in_group(&group).tier(4);
        let refused = caller.exec_with(place, || Ok::<_, ()>(2)).unwrap_err();
        let Reason::TierGoesDown(down) = refused.reason else {
            panic!("{}", refused.reason);
        };
        assert_eq!((down.last, down.asked), (5, 4));
        assert_eq!((refused.task)(), Ok(2));
        held.finish();
        let place = in_group(&group).tier(4);
        let fine = caller.exec_with(place, || Ok::<_, ()>(()));
        assert!(fine.is_ok(), "the group was idle");
        end(&scheduler);
    });
}

#[test]
fn a_group_outlives_its_handle_and_its_caller() {
    finishes(|| {
        let scheduler = scheduler(1);
        let caller = scheduler.caller("main", Default::default()).unwrap();
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let page = Arc::new(Mutex::new(Vec::new()));
        let held = Held::start(&caller);
        (0..5).for_each(|n| written(&caller, in_group(&group), &page, n));
        drop(group);
        held.go();
        until(|| page.lock().unwrap().len() == 5);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        drop(caller);
        until(|| scheduler.status().callers.is_empty());
        group.bump(1);
        group.set_level(9);
        assert_eq!(group.set_limit(Limit::AtMost(2)), Ok(()));
        drop(group);
        end(&scheduler);
    });
}

/// enqueue races last completion -> item runs, no stranded key
#[test]
fn a_submission_that_races_the_groups_last_ending_runs() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        for n in 0..3000 {
            let mut task = caller
                .exec_with(in_group(&group), move || Ok::<_, ()>(n))
                .unwrap();
            if n % 3 == 0 {
                task.outcome().wait().unwrap();
            }
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 3000);
        end(&scheduler);
    });
}

/// Whichever of its handles is used: the first, a clone, or one that was found by its name.
#[test]
fn a_group_has_one_order_whatever_the_handle() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let handles = [
            group.clone(),
            scheduler.group(group.id()).unwrap(),
            group.clone(),
        ];
        let page = Arc::new(Mutex::new(Vec::new()));
        let held = Held::start(&caller);
        for n in 0..60 {
            let handle = &handles[n as usize * 7 % 5 % 3];
            written(&caller, in_group(handle), &page, n);
        }
        held.finish();
        caller.synchronize().wait().unwrap();
        assert_eq!(*page.lock().unwrap(), (0..60).collect::<Vec<_>>());
        end(&scheduler);
    });
}

#[test]
fn a_group_is_controlled_by_its_name_as_long_as_it_is_there() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (other, same_number) = one_caller(1);
        let group = caller.group(Limit::AtMost(0), 100).unwrap();
        let theirs = same_number.group(Limit::SERIAL, 100).unwrap();
        let id = group.id();
        assert_ne!(id, theirs.id());
        assert!(matches!(other.group(id), Err(Stale)));
        let page = Arc::new(Mutex::new(Vec::new()));
        written(&caller, in_group(&group), &page, 1);
        drop(group);
        let paused = scheduler.status().waiting[0].clone();
        assert_eq!((paused.group, paused.why), (Some(id), Why::Paused));
        scheduler.group(id).unwrap().set_limit(1).unwrap();
        caller.synchronize().wait().unwrap();
        assert!(matches!(scheduler.group(id), Err(Stale)));
        let left = caller.group(Limit::SERIAL, 100).unwrap();
        drop(caller);
        until(|| scheduler.status().callers.is_empty());
        assert!(matches!(scheduler.group(left.id()), Err(Stale)));
        // It is not the next caller's either.
        let next = scheduler.caller("next", CallerOptions::default()).unwrap();
        assert!(matches!(scheduler.group(left.id()), Err(Stale)));
        drop(next);
        end(&scheduler);
        end(&other);
    });
}
