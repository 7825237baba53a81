//! What keeps the time: nothing here calls `advance`. Real clocks, but no test depends on how long
//! anything takes.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use conversant::dialog::{Dialogs, Event};
use conversant::job_queue::{JobQueue, Place, Why};
use conversant::limit::Limit;
use conversant::queue::Queue;
use conversant::scheduler::{self, CallerOptions, Scheduler, Verdict};
use conversant::ticker::{Ticker, Timed, keep_time};

use crate::count::Count;
use crate::finishes::finishes;

const SOON: Duration = Duration::from_millis(2);
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_retry_of_a_queue_comes_by_itself() {
    finishes(|| {
        let queue = Queue::builder().back_off(SOON, SOON).build().unwrap();
        let _ticker = Ticker::spawn(queue.clone(), Instant::now()).unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let hook = lane.conversation().unwrap();
        hook.send("created").unwrap();
        for attempt in 1..4 {
            let mut turn = queue.receive().wait().unwrap();
            let delivery = turn.next().unwrap();
            assert_eq!((*delivery, delivery.attempt()), ("created", attempt));
        }
        let mut turn = queue.receive().wait().unwrap();
        assert_eq!(turn.next().unwrap().complete(), "created");
    });
}

#[test]
fn an_earlier_date_wakes_a_ticker_that_sleeps() {
    finishes(|| {
        let jobs = Arc::new(JobQueue::<u32, &str>::new());
        let origin = Instant::now();
        let ticker = Ticker::spawn(Arc::clone(&jobs), origin).unwrap();
        let at = |after| Place::new().due(origin.elapsed() + after);
        jobs.push(1, "in an hour", at(HOUR)).unwrap();
        for _ in 0..5 {
            jobs.push(2, "soon", at(SOON)).unwrap();
            let claim = jobs.claim(1).wait().unwrap().remove(0);
            assert_eq!(*claim, "soon");
            claim.complete().unwrap();
        }
        // It ends at once, though it sleeps for an hour.
        drop(ticker);
        assert_eq!(jobs.counts().later, 1);
    });
}

#[test]
fn a_lease_counts_from_its_claim_and_runs_out() {
    finishes(|| {
        let builder = JobQueue::<u32, &str>::builder().lease(HOUR);
        let jobs = Arc::new(builder.build().unwrap());
        let origin = Instant::now();
        let _ticker = Ticker::spawn(Arc::clone(&jobs), origin).unwrap();
        let id = jobs.push(1, "job", Place::new()).unwrap();
        // Nothing is due: the ticker does not advance the time meanwhile.
        let since = Instant::now();
        while since.elapsed() < SOON {
            thread::yield_now();
        }
        let claimed = origin.elapsed();
        assert!(jobs.now() >= claimed);
        let claim = jobs.try_claim(1).remove(0);
        let Some(Why::Claimed(Some(until))) = jobs.why(id) else {
            panic!("it is claimed");
        };
        assert!(until >= claimed + HOUR);
        drop(claim);
        let brief = JobQueue::<u32, &str>::builder().lease(SOON);
        let jobs = Arc::new(brief.build().unwrap());
        let _ticker = Ticker::spawn(Arc::clone(&jobs), origin).unwrap();
        jobs.push(1, "job", Place::new()).unwrap();
        let lost = jobs.claim(1).wait().unwrap().remove(0);
        let again = jobs.claim(1).wait().unwrap().remove(0);
        assert_eq!(*again, "job");
        drop(lost);
    });
}

#[test]
fn a_timer_of_a_dialog_rings_by_itself() {
    finishes(|| {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let dialogs = Arc::new(Dialogs::<u32>::new());
        let _ticker = Ticker::spawn(Arc::clone(&dialogs), Instant::now()).unwrap();
        let (near, far) = dialogs.pair(&lane, &lane).unwrap();
        far.set_timer(HOUR).unwrap();
        near.set_timer(SOON).unwrap();
        let mut turn = queue.receive().wait().unwrap();
        let rang = turn.next().unwrap();
        assert!(matches!(rang.event, Event::Timer));
    });
}

#[test]
fn a_delay_on_a_pool_comes_by_itself() {
    finishes(|| {
        let pool = |job: Box<dyn FnOnce() + Send>| {
            thread::spawn(job);
            Ok(())
        };
        let scheduler = Scheduler::builder().workers(2).pool(pool).build().unwrap();
        let scheduler = Arc::new(scheduler);
        let _ticker = Ticker::spawn(Arc::clone(&scheduler), Instant::now()).unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        for n in 0..5 {
            let soon = scheduler::Place::new().after(SOON);
            let task = caller.exec_with(soon, move || Ok::<_, ()>(n));
            let outcome = task.unwrap().outcome().wait().unwrap();
            assert!(matches!(outcome.verdict, Verdict::Ok(given) if given == n));
        }
    });
}

#[test]
fn the_next_date_is_waited_for_until_it_is_earlier() {
    let jobs = JobQueue::<u32, &str>::new();
    let at = |seconds| Place::new().due(Duration::from_secs(seconds));
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    let known = Some(Duration::from_secs(5));
    let mut any = pin!(jobs.next_due(None));
    let mut earlier = Box::pin(jobs.next_due(known));
    let mut dropped = Box::pin(jobs.next_due(None));
    assert!(any.as_mut().poll(&mut cx).is_pending());
    assert!(earlier.as_mut().poll(&mut cx).is_pending());
    assert!(dropped.as_mut().poll(&mut cx).is_pending());
    drop(dropped);
    let id = jobs.push(1, "at nine", at(9)).unwrap();
    assert_eq!(count.get(), 1, "not the one who left, nor who knows five");
    assert!(earlier.as_mut().poll(&mut cx).is_pending());
    assert_eq!(
        any.as_mut().poll(&mut cx),
        Poll::Ready(Duration::from_secs(9))
    );
    let later = jobs.push(1, "later", at(10)).unwrap();
    assert_eq!(count.get(), 1);
    // A date that is removed and comes back is no earlier than five.
    jobs.remove(later).unwrap();
    jobs.remove(id).unwrap();
    jobs.push(1, "at nine", at(9)).unwrap();
    assert_eq!(count.get(), 1);
    jobs.push(1, "at four", at(4)).unwrap();
    assert_eq!(count.get(), 2);
    assert_eq!(
        earlier.as_mut().poll(&mut cx),
        Poll::Ready(Duration::from_secs(4))
    );
    drop(earlier);
    assert!(count.is_let_go(), "no waker is kept");
}

/// A wait for the next date is woken when `make` sets one, not before; then it is ready.
fn tells_of_a_date(timed: &impl Timed, make: impl FnOnce()) {
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    let mut next = pin!(timed.next_due(None));
    assert!(next.as_mut().poll(&mut cx).is_pending());
    assert_eq!(count.get(), 0);
    make();
    assert_eq!(count.get(), 1);
    assert!(next.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn each_product_tells_of_its_first_date() {
    let queue = Queue::builder().back_off(HOUR, HOUR).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    conversation.send(()).unwrap();
    tells_of_a_date(&queue, || {
        drop(queue.try_receive().unwrap().next().unwrap());
    });
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let dialogs = Dialogs::<u32>::new();
    let (near, _far) = dialogs.pair(&lane, &lane).unwrap();
    tells_of_a_date(&dialogs, || near.set_timer(HOUR).unwrap());
    let jobs = JobQueue::<u32, &str>::new();
    tells_of_a_date(&jobs, || {
        jobs.push(1, "job", Place::new().due(HOUR)).unwrap();
    });
    let nobody = |_: Box<dyn FnOnce() + Send>| Ok(());
    let builder = Scheduler::builder().workers(1);
    let scheduler = builder.pool(nobody).build().unwrap();
    // This tells the scheduler that something keeps the time.
    scheduler.advance(Duration::ZERO);
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    tells_of_a_date(&scheduler, || {
        let later = scheduler::Place::new().after(HOUR);
        caller.exec_detached(later, || Ok::<_, ()>(())).unwrap();
    });
}

/// Ready when it has been woken.
#[derive(Clone, Default)]
struct Sleep(Arc<Mutex<(bool, Option<Waker>)>>);

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut sleep = self.0.lock().unwrap();
        sleep.1 = Some(cx.waker().clone());
        match sleep.0 {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

#[test]
fn a_future_keeps_the_time_by_any_runtime_s_sleep() {
    let jobs = JobQueue::<u32, &str>::new();
    // Three hours ago.
    let Some(origin) = Instant::now().checked_sub(3 * HOUR) else {
        return;
    };
    let at = |hours| Place::new().due(hours * HOUR);
    let sleeps = Mutex::new(Vec::new());
    let mut keeps = pin!(keep_time(&jobs, origin, |long| {
        let sleep = Sleep::default();
        sleeps.lock().unwrap().push((long, sleep.clone()));
        sleep
    }));
    let (count, waker) = Count::new();
    let mut poll = || {
        assert!(
            keeps
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        )
    };
    poll();
    assert!(sleeps.lock().unwrap().is_empty(), "nothing is due");
    jobs.push(1, "at five", at(5)).unwrap();
    assert_eq!(count.get(), 1);
    poll();
    jobs.push(2, "at four", at(4)).unwrap();
    assert_eq!(count.get(), 2);
    poll();
    // What was due two hours ago needs no sleep.
    jobs.push(3, "at one", at(1)).unwrap();
    poll();
    assert_eq!(jobs.try_claim(9).len(), 1);
    let sleeps = sleeps.lock().unwrap();
    let longest: Vec<_> = sleeps.iter().map(|(long, _)| *long).collect();
    assert!(longest[0] > HOUR && longest[0] <= 2 * HOUR && longest[1] <= HOUR);
    // When a sleep is over the ticker looks, and sleeps again for the rest.
    let last = &sleeps.last().unwrap().1;
    last.0.lock().unwrap().0 = true;
    let woken = last.0.lock().unwrap().1.take();
    woken.unwrap().wake();
    assert_eq!(count.get(), 3);
}

#[test]
fn the_next_timer_of_a_dialog_wakes_after_one_that_rang_or_was_cancelled() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let dialogs = Dialogs::<u32>::new();
    let (near, far) = dialogs.pair(&lane, &lane).unwrap();
    for cancels in [false, true] {
        let (count, waker) = Count::new();
        let mut cx = Context::from_waker(&waker);
        near.set_timer(SOON).unwrap();
        let due = dialogs.advance(Duration::ZERO).unwrap();
        match cancels {
            true => assert!(near.clear_timer().unwrap()),
            false => assert_eq!(dialogs.advance(due), None),
        }
        let mut earlier = pin!(dialogs.next_due(None));
        assert!(earlier.as_mut().poll(&mut cx).is_pending());
        far.set_timer(HOUR).unwrap();
        assert_eq!(count.get(), 1);
        assert!(earlier.as_mut().poll(&mut cx).is_ready());
        assert!(far.clear_timer().unwrap());
    }
}

/// Requires what a multi-threaded runtime requires.
fn crosses_threads<T: Send>(crosses: T) -> T {
    crosses
}

#[test]
fn a_future_that_keeps_the_time_crosses_threads() {
    let jobs = JobQueue::<u32, &str>::new();
    let (queue, dialogs) = (Queue::<std::cell::Cell<u8>>::new(), Dialogs::<u32>::new());
    drop(crosses_threads(keep_time(&queue, Instant::now(), |_| {
        Sleep::default()
    })));
    drop(crosses_threads(keep_time(&dialogs, Instant::now(), |_| {
        Sleep::default()
    })));
    drop(crosses_threads(jobs.next_due(None)));
}

/// Drops a ticker when it is woken, and reports that.
struct DropsTicker(Mutex<Option<Ticker>>, Sender<()>);

impl Wake for DropsTicker {
    fn wake(self: Arc<Self>) {
        let ticker = self.0.lock().unwrap().take();
        if ticker.is_some() {
            drop(ticker);
            self.1.send(()).ok();
        }
    }
}

#[test]
fn a_ticker_is_dropped_by_what_it_wakes() {
    finishes(|| {
        let jobs = Arc::new(JobQueue::<u32, &str>::new());
        let (dropped, drops) = channel();
        let waker = Arc::new(DropsTicker(Mutex::default(), dropped));
        let mut claim = pin!(jobs.claim(1));
        let woken = Waker::from(Arc::clone(&waker));
        assert!(
            claim
                .as_mut()
                .poll(&mut Context::from_waker(&woken))
                .is_pending()
        );
        let origin = Instant::now();
        let ticker = Ticker::spawn(Arc::clone(&jobs), origin).unwrap();
        *waker.0.lock().unwrap() = Some(ticker);
        jobs.push(1, "soon", Place::new().due(origin.elapsed() + SOON))
            .unwrap();
        drops.recv().unwrap();
        // Its thread ends, and drops its handle of the jobs.
        while Arc::strong_count(&jobs) > 1 {
            thread::yield_now();
        }
    });
}

#[test]
fn an_origin_that_is_to_come_is_slept_for_too() {
    let jobs = JobQueue::<u32, &str>::new();
    jobs.push(1, "at one", Place::new().due(HOUR)).unwrap();
    let mut slept = Duration::ZERO;
    let mut keeps = Box::pin(keep_time(&jobs, Instant::now() + 9 * HOUR, |long| {
        slept = long;
        Sleep::default()
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(keeps.as_mut().poll(&mut cx).is_pending());
    drop(keeps);
    assert!(slept > 9 * HOUR && slept <= 10 * HOUR);
}
