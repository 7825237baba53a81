//! What a running task, and a thread that has its token, sees of its cancel.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use conversant::scheduler::{Caller, CallerOptions, CancelToken, How, Place, Task, is_cancelled};

use crate::threads::stage::{Held, Job, end, finishes, one_caller, until};

/// A task that ends when a thread that it started sees that the task is cancelled.
fn ends_by_its_helper(caller: &Caller) -> (Task<CancelToken, ()>, Receiver<CancelToken>) {
    let (says, told) = channel();
    let task = caller.exec(move || {
        let token = CancelToken::current().unwrap();
        let helps = token.clone();
        let helper = thread::spawn(move || {
            assert!(CancelToken::current().is_none() && !is_cancelled());
            while !helps.is_cancelled() {
                thread::yield_now();
            }
        });
        says.send(token.clone()).unwrap();
        helper.join().unwrap();
        assert!(is_cancelled());
        Ok(token)
    });
    (task.unwrap(), told)
}

#[test]
fn a_thread_that_helps_a_task_sees_its_cancel() {
    finishes(|| {
        assert!(CancelToken::current().is_none());
        for how in 0..4 {
            let (scheduler, caller) = one_caller(2);
            let other = scheduler.caller("other", CallerOptions::default()).unwrap();
            let (spared, spares) = ends_by_its_helper(&other);
            let (mut task, told) = ends_by_its_helper(&caller);
            let (token, spares) = (told.recv().unwrap(), spares.recv().unwrap());
            assert!(!token.is_cancelled());
            match how {
                0 => assert!(!task.cancel(), "it runs"),
                1 => caller.cancel_all(),
                2 => _ = caller.release(How::Cancel).wait().unwrap(),
                _ => scheduler.shutdown(How::Cancel).wait().unwrap(),
            }
            let gave = task.outcome().wait().unwrap().verdict.ok().unwrap();
            assert!(gave.is_cancelled() && token.is_cancelled());
            assert_eq!(spares.is_cancelled(), how == 3, "what is another's");
            spared.cancel();
            end(&scheduler);
        }
    });
}

#[test]
fn a_token_that_outlives_its_task_says_what_it_said_at_its_end() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let gives = || Ok::<_, ()>(CancelToken::current().unwrap());
        // Several tasks that one worker claims at once, and tasks one after the other.
        let hold = scheduler.hold();
        let tasks: Vec<_> = (0..40).map(|_| caller.exec(gives).unwrap()).collect();
        drop(hold);
        let tokens = tasks.into_iter().map(|mut task| {
            let outcome = task.outcome().wait().unwrap();
            outcome.verdict.ok().unwrap()
        });
        let mut tokens: Vec<_> = tokens.collect();
        let mut future = caller.spawn(async move { gives() }).unwrap();
        tokens.extend(future.outcome().wait().unwrap().verdict.ok());
        assert_eq!(tokens.len(), 41);
        caller.synchronize().wait().unwrap();
        caller.cancel_all();
        assert!(tokens.iter().all(|token| !token.is_cancelled()));
        scheduler.shutdown(How::Cancel).wait().unwrap();
        drop((caller, scheduler));
        assert!(tokens.iter().all(|token| !token.is_cancelled()));
    });
}

/// Whether a task that first asks after `meanwhile` sees that it is cancelled.
fn asks_after(caller: &Caller, meanwhile: impl FnOnce(&Task<bool, ()>)) -> Option<bool> {
    let ((begun, begins), (go, goes)) = (channel(), channel());
    let task = caller.exec(move || {
        begun.send(()).unwrap();
        goes.recv().unwrap();
        Ok(CancelToken::current().unwrap().is_cancelled())
    });
    let mut task = task.unwrap();
    begins.recv().unwrap();
    meanwhile(&task);
    go.send(()).unwrap();
    task.outcome().wait().unwrap().verdict.ok()
}

#[test]
fn a_task_that_asks_after_the_cancel_of_others_is_not_told() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let other = scheduler.caller("other", CallerOptions::default()).unwrap();
        assert_eq!(asks_after(&caller, |_| other.cancel_all()), Some(false));
        end(&scheduler);
    });
}

#[test]
fn a_task_that_asks_after_its_cancel_is_told() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let told = asks_after(&caller, |task| assert!(!task.cancel()));
        assert_eq!(told, Some(true));
        assert_eq!(asks_after(&caller, |_| caller.cancel_all()), Some(true));
        end(&scheduler);
    });
}

/// The token stays the same, even if the worker runs other tasks between the future's polls.
#[test]
fn a_future_has_one_token_and_is_told_where_it_awaits() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (says, told) = channel();
        let (elsewhere, other) = one_caller(2);
        let [first, second] = [(), ()].map(|()| Held::submit(&other, Place::new()));
        let (task, go) = (first.task, first.go);
        let (last, lasts) = (second.task, second.go);
        let future: Job = caller
            .spawn(async move {
                says.send(CancelToken::current().unwrap()).unwrap();
                task.await.map_err(|error| error.to_string())?;
                says.send(CancelToken::current().unwrap()).unwrap();
                last.await.map_err(|error| error.to_string())?;
                Ok(1)
            })
            .unwrap();
        let early = told.recv().unwrap();
        // Another task asks on the same worker meanwhile.
        let mut asks = caller.exec(|| Ok::<_, ()>(is_cancelled())).unwrap();
        assert_eq!(asks.outcome().wait().unwrap().verdict.ok(), Some(false));
        go.send(()).unwrap();
        let late = told.recv().unwrap();
        until(|| scheduler.counts().suspended == 1);
        assert!(!early.is_cancelled() && !late.is_cancelled());
        assert!(future.cancel());
        assert!(early.is_cancelled() && late.is_cancelled());
        lasts.send(()).unwrap();
        end(&scheduler);
        end(&elsewhere);
    });
}

/// Also while it is polled.
#[test]
fn a_future_that_is_polled_sees_its_cancel() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (says, told) = channel();
        let task: Job = caller
            .spawn(async move {
                says.send(CancelToken::current().unwrap()).unwrap();
                until(is_cancelled);
                Ok(1)
            })
            .unwrap();
        let token = told.recv().unwrap();
        assert!(!token.is_cancelled() && !task.cancel());
        assert!(token.is_cancelled());
        end(&scheduler);
    });
}
