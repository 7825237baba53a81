//! Tasks that block until the first of several others has ended.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::Waker;
use std::thread::yield_now;
use std::time::Duration;

use crate::limit::Limit;
use crate::scheduler::stall::Target;
use crate::scheduler::{How, Place, Scheduler, Verdict, first};
use crate::wait::Op;

/// The task waits for a paused task and for one that ends: alone, and beside a task that waits
/// for another paused one, and began to wait later.
#[test]
fn the_one_that_ends_is_taken_and_no_wait_gives_up() {
    for others in 0..2 {
        let scheduler = Scheduler::builder().workers(2 + others).build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        let paused = Arc::new(caller.group(Limit::AtMost(0), 100).unwrap());
        let pauses = || caller.exec_with(Place::new().group(&paused), || Ok::<_, ()>(()));
        let (one, mut another) = (pauses().unwrap(), pauses().unwrap());
        let (go, may_go) = channel();
        let ends = caller.exec(move || may_go.recv().map_err(drop)).unwrap();
        let end = ends.id();
        let resumes = Arc::clone(&paused);
        let waits = caller.exec(move || {
            let ended = first(&mut [one, ends]).wait().map(|(n, _)| n);
            resumes.set_limit(1).unwrap();
            ended
        });
        let until_blocked = |tasks| {
            while scheduler.shared.lock().core.stalls.blocked(|_| false) < tasks {
                yield_now();
            }
        };
        until_blocked(1);
        let by_end = |target: &Target| *target == Target::Task(end);
        assert_eq!(scheduler.shared.lock().core.stalls.blocked(by_end), 0);
        let other = (others > 0).then(|| {
            caller
                .exec(move || another.outcome().wait().map(drop))
                .unwrap()
        });
        until_blocked(1 + others as usize);
        go.send(()).unwrap();
        let ended = waits.unwrap().outcome().wait().unwrap().verdict;
        assert_eq!(ended.ok(), Some(1));
        if let Some(mut other) = other {
            let verdict = other.outcome().wait().unwrap().verdict;
            assert!(matches!(verdict, Verdict::Ok(())));
        }
        scheduler.shutdown(How::Drain).wait().unwrap();
    }
}

/// What the worker has claimed behind the task that blocks goes back, wherever the task of this
/// scheduler is among those that it waits for.
#[test]
fn a_wait_also_for_a_task_of_another_scheduler_keeps_no_claimed_task() {
    for at in 0..2 {
        let long = Duration::from_secs(1000);
        let builder = Scheduler::builder().workers(1).claim_time(long);
        let scheduler = Arc::new(builder.build().unwrap());
        let elsewhere = Scheduler::builder().workers(1).build().unwrap();
        let [caller, other] =
            [&*scheduler, &elsewhere].map(|of| of.caller("main", Default::default()).unwrap());
        // The worker knows how long tasks take before it claims several.
        caller.exec(|| Ok::<_, ()>(())).unwrap().detach();
        caller.synchronize().wait().unwrap();
        let held = [scheduler.hold(), elsewhere.hold()];
        let (give, given) = channel();
        let shared = Arc::clone(&scheduler.shared);
        let mut waits = caller
            .exec(move || {
                let mut both: [_; 2] = given.recv().map_err(drop)?;
                let queue = shared.lock().queue(1);
                let is_claimed = || !queue.lock().waiting.is_empty();
                let (before, mut wait) = (is_claimed(), first(&mut both));
                wait.op_mut().block(Waker::noop());
                let after = is_claimed();
                wait.op_mut().unblock();
                Ok::<_, ()>((before, after))
            })
            .unwrap();
        let mut both = [&caller, &other].map(|of| of.exec(|| Ok::<_, ()>(())).unwrap());
        both.rotate_left(at);
        give.send(both).unwrap();
        let [here, _elsewhere] = held;
        drop(here);
        let claimed = waits.outcome().wait().unwrap().verdict.ok();
        assert_eq!(claimed, Some((true, false)));
    }
}
