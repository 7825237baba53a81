//! Delays on a pool. The embedder keeps the time: by calls of `advance` in virtual time, or by a
//! ticker that is polled by hand. The tests count what happens, and do not depend on its duration.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use conversant::error::Stalled;
use conversant::scheduler::{
    Caller, CallerOptions, Ending, How, OutcomeError, Place, Reason, Record, Scheduler,
};
use conversant::ticker::{Ticker, Timed, keep_time};

use crate::count::Count;
use crate::threads::later::gave;
use crate::threads::pools::{Refused, Sent, inline, on_pool, thread_each};
use crate::threads::stage::{Job, end, finishes, until};

const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(1);

/// The workers run on the thread that submits, or that tells the time.
fn on_a_pool() -> (Scheduler, Caller) {
    on_pool(1, inline)
}

fn later(caller: &Caller, after: Duration) -> Job {
    caller
        .exec_with(Place::new().after(after), || Ok(1))
        .unwrap()
}

/// Dates are on the embedder's scale, even if its origin is far from the scheduler's start.
#[test]
fn dates_are_on_the_scale_of_who_tells_the_time() {
    finishes(|| {
        for origin in [Duration::ZERO, 1000 * HOUR] {
            let (scheduler, caller) = on_a_pool();
            // The scheduler is older than the difference of the dates below.
            let made = Instant::now();
            until(|| made.elapsed() >= 2 * MOMENT);
            let (count, waker) = Count::new();
            let mut cx = Context::from_waker(&waker);
            assert_eq!(Timed::advance(&scheduler, origin), None);
            let first = later(&caller, HOUR);
            let due = Timed::advance(&scheduler, origin);
            let mut earlier = pin!(scheduler.next_due(due));
            assert!(earlier.as_mut().poll(&mut cx).is_pending(), "it is known");
            let second = later(&caller, HOUR - MOMENT);
            assert_eq!(count.get(), 1, "an earlier one");
            assert!(earlier.as_mut().poll(&mut cx).is_ready());
            assert!(first.cancel() && second.cancel());
            end(&scheduler);
        }
    });
}

/// A sleep that never ends.
struct Sleep;

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// Each poll keeps its thread for one look only.
#[test]
fn a_ticker_sleeps_though_it_counts_from_long_before() {
    finishes(|| {
        let (scheduler, caller) = on_a_pool();
        let Some(origin) = Instant::now().checked_sub(3 * HOUR) else {
            return;
        };
        let sleeps = Mutex::new(Vec::new());
        let mut keeps = pin!(keep_time(&scheduler, origin, |long| {
            let mut sleeps = sleeps.lock().unwrap();
            sleeps.push(long);
            assert!(sleeps.len() < 3, "it spins");
            Sleep
        }));
        let (count, waker) = Count::new();
        let mut poll = || {
            let mut cx = Context::from_waker(&waker);
            assert!(keeps.as_mut().poll(&mut cx).is_pending());
        };
        poll();
        let far = later(&caller, 2 * HOUR);
        assert_eq!(count.get(), 1);
        poll();
        let near = later(&caller, HOUR);
        assert_eq!(count.get(), 2);
        poll();
        // A later date does not wake the ticker.
        let farther = later(&caller, 3 * HOUR);
        assert_eq!(count.get(), 2);
        let sleeps = sleeps.lock().unwrap();
        assert!(sleeps[0] > HOUR && sleeps[0] <= 2 * HOUR && sleeps[1] <= HOUR);
        assert!(far.cancel() && near.cancel() && farther.cancel());
    });
}

/// The reason why a task with a delay is refused, or `None`; then the task is cancelled.
fn refused(caller: &Caller) -> Option<Reason> {
    match caller.exec_with(Place::new().after(HOUR), || Ok::<_, ()>(41)) {
        Ok(task) => {
            assert!(task.cancel());
            None
        }
        Err(back) => {
            assert_eq!((back.task)(), Ok(41));
            Some(back.reason)
        }
    }
}

#[test]
fn a_delay_is_taken_only_while_somebody_keeps_the_time() {
    finishes(|| {
        let (scheduler, caller) = on_a_pool();
        assert_eq!(refused(&caller), Some(Reason::NoTicker));
        let all = caller.exec_all(Place::new().after(HOUR), [|| Ok::<_, ()>(1)]);
        let back = all.unwrap_err();
        assert_eq!((back.task.len(), back.reason), (1, Reason::NoTicker));
        assert!(scheduler.status().waiting.is_empty());
        assert!(caller.exec(|| Ok::<_, ()>(1)).is_ok(), "without a delay");
        let sleep = |_| Sleep;
        let ticker = keep_time(&scheduler, Instant::now(), sleep);
        let another = keep_time(&scheduler, Instant::now(), sleep);
        // While there is a ticker, a call of `advance` is no promise of the embedder.
        assert_eq!(scheduler.advance(Duration::ZERO), None);
        assert_eq!(refused(&caller), None);
        drop(another);
        assert_eq!(refused(&caller), None);
        drop(ticker);
        assert_eq!(refused(&caller), Some(Reason::NoTicker));
        assert_eq!(scheduler.advance(Duration::ZERO), None);
        assert_eq!(refused(&caller), None, "who called it does again");
        end(&scheduler);
        assert_eq!(refused(&caller), Some(Reason::Closed));
    });
}

#[test]
fn a_thread_that_keeps_the_time_counts_until_it_is_dropped() {
    finishes(|| {
        let (scheduler, caller) = on_a_pool();
        let scheduler = Arc::new(scheduler);
        let ticker = Ticker::spawn(Arc::clone(&scheduler), Instant::now()).unwrap();
        assert_eq!(refused(&caller), None);
        drop(ticker);
        assert_eq!(refused(&caller), Some(Reason::NoTicker));
    });
}

#[test]
fn who_waits_for_what_nobody_makes_due_is_stalled() {
    finishes(|| {
        let (scheduler, caller) = on_pool(2, thread_each);
        let scheduler = Arc::new(scheduler);
        let ticker = Ticker::spawn(Arc::clone(&scheduler), Instant::now()).unwrap();
        let mut later = later(&caller, HOUR);
        drop(ticker);
        let waits = move || Ok::<_, ()>(later.outcome().wait().err());
        let mut waits = caller.exec(waits).unwrap();
        let given = waits.outcome().wait().unwrap().verdict.ok();
        assert_eq!(given, Some(Some(OutcomeError::Stalled(Stalled))));
    });
}

/// More tasks than a batch holds.
const MANY: usize = 100;

fn many(caller: &Caller) -> Vec<Job> {
    (0..MANY).map(|_| later(caller, HOUR)).collect()
}

fn all_cancelled(tasks: Vec<Job>) {
    assert!(tasks.into_iter().all(|task| gave(task).is_none()));
}

#[test]
fn a_drain_does_not_wait_for_what_nobody_makes_due() {
    finishes(|| {
        // The ticker has ended before the shutdown, or ends during it.
        for before in [true, false] {
            let (scheduler, caller) = on_a_pool();
            let mut ticker = Some(keep_time(&scheduler, Instant::now(), |_| Sleep));
            let tasks = many(&caller);
            if before {
                drop(ticker.take());
            }
            assert!(tasks.iter().all(|task| !task.has_ended()), "it is open");
            let (count, waker) = Count::new();
            let mut drained = pin!(scheduler.shutdown(How::Drain));
            let mut poll = || drained.as_mut().poll(&mut Context::from_waker(&waker));
            if !before {
                assert!(poll().is_pending(), "somebody keeps the time");
                drop(ticker);
                assert_eq!(count.get(), 1);
            }
            assert_eq!(poll(), Poll::Ready(Ok(())));
            all_cancelled(tasks);
        }
    });
}

#[test]
fn a_scheduler_that_is_dropped_cancels_what_nobody_makes_due() {
    finishes(|| {
        let (scheduler, caller) = on_a_pool();
        scheduler.advance(HOUR);
        let tasks = many(&caller);
        drop(scheduler);
        all_cancelled(tasks);
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!(summary.cancelled, MANY as u64);
    });
}

/// The embedder has told the time, and so promised to tell it again.
#[test]
fn a_drain_waits_for_an_embedder_that_tells_the_time() {
    finishes(|| {
        let (scheduler, caller) = on_a_pool();
        scheduler.advance(HOUR);
        let task = later(&caller, HOUR);
        let mut cx = Context::from_waker(Waker::noop());
        let mut drained = pin!(scheduler.shutdown(How::Drain));
        assert!(drained.as_mut().poll(&mut cx).is_pending());
        assert_eq!(scheduler.advance(2 * HOUR), None);
        assert_eq!(drained.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
        assert_eq!(gave(task), Some(1));
    });
}

/// A log is told of a task before the task is enqueued: it may shut the scheduler down meanwhile.
#[test]
fn a_task_that_is_on_its_way_when_the_scheduler_is_dropped_is_cancelled() {
    use conversant::scheduler::Event;
    finishes(|| {
        let (told, rows) = std::sync::mpsc::channel();
        let slot = Arc::new(Mutex::new(None::<Scheduler>));
        let dropped = Arc::clone(&slot);
        let log = move |event: Event| match event {
            Event::Queued(_) => drop(dropped.lock().unwrap().take()),
            Event::Ended(Record { ending, .. }) => told.send(ending).unwrap(),
            Event::Started { .. } => {}
        };
        let pool = |_: Sent| Ok::<_, Refused>(());
        let scheduler = Scheduler::builder().pool(pool).log(log).build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        scheduler.advance(HOUR);
        *slot.lock().unwrap() = Some(scheduler);
        let task = later(&caller, HOUR);
        assert_eq!(gave(task), None);
        assert_eq!(rows.recv().unwrap(), Ending::Cancelled);
    });
}

#[test]
fn a_scheduler_shows_how_much_is_not_due() {
    let (scheduler, caller) = on_a_pool();
    scheduler.advance(HOUR);
    let task = later(&caller, HOUR);
    let shown = format!("{scheduler:?}");
    let counts = "Scheduler { counts: Counts { callers: 1, waiting: 0, delayed: 1, ";
    assert!(shown.starts_with(counts), "{shown}");
    assert!(task.cancel());
}
