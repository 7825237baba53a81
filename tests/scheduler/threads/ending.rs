//! Threads that end: what their locals do in destructors, when other locals are gone already.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use conversant::scheduler::{CancelToken, How, Scheduler, is_cancelled};

use crate::threads::pools::{inline, on_pool};
use crate::threads::stage::finishes;

thread_local! {
    static KEPT: RefCell<Option<RunsAtEnd>> = const { RefCell::new(None) };
}

struct RunsAtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for RunsAtEnd {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|run| run());
    }
}

/// Such a task knows where it runs: its token tells, and its guard does not wait for it.
#[test]
fn a_pool_runs_tasks_at_once_on_a_thread_that_ends() {
    finishes(|| {
        let (scheduler, caller) = on_pool(1, inline);
        let scheduler = Arc::new(scheduler);
        let (tell, told) = channel();
        let ends = thread::spawn(move || {
            // Used first, so dropped last.
            KEPT.set(None);
            caller.exec(|| Ok::<_, ()>(())).unwrap().detach();
            let run = move || {
                let own = Arc::clone(&scheduler);
                let task = move || {
                    let end = Scheduler::shutdown_at_end_owned(own, How::Cancel);
                    let token = CancelToken::current().unwrap();
                    let before = is_cancelled();
                    drop(end);
                    tell.send((before, is_cancelled(), token.is_cancelled()))
                };
                caller.exec(task).unwrap().detach();
                assert_eq!(scheduler.counts().waiting, 0);
            };
            KEPT.set(Some(RunsAtEnd(Some(Box::new(run)))));
        });
        ends.join().unwrap();
        assert_eq!(told.recv(), Ok((false, true, true)));
    });
}

/// Each scheduler runs its worker within a task of the one before.
#[test]
fn a_thread_is_inside_of_as_many_schedulers_as_it_works_for() {
    fn within(outer: Option<Arc<Scheduler>>, more: u32) {
        let (scheduler, caller) = on_pool(1, inline);
        let scheduler = Arc::new(scheduler);
        let own = Arc::clone(&scheduler);
        let task = move || {
            if more > 0 {
                within(Some(Arc::clone(&own)), more - 1);
            }
            // It does not wait, nor does that of the task around it.
            drop(Scheduler::shutdown_at_end_owned(own, How::Drain));
            drop(outer.map(|outer| Scheduler::shutdown_at_end_owned(outer, How::Drain)));
        };
        caller.exec(task).unwrap().detach();
        assert_eq!(scheduler.workers().live, 0);
    }
    finishes(|| within(None, 7));
}
