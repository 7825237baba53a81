//! Tasks that block until the first of several others has ended.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::yield_now;

use crate::limit::Limit;
use crate::scheduler::stall::Target;
use crate::scheduler::{How, Place, Scheduler, Verdict, first};

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
            while scheduler.shared.state.lock().core.stalls.blocked(|_| false) < tasks {
                yield_now();
            }
        };
        until_blocked(1);
        let by_end = |target: &Target| *target == Target::Task(end);
        assert_eq!(scheduler.shared.state.lock().core.stalls.blocked(by_end), 0);
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
