//! Workers that claim three tasks at once.

use super::*;

/// A scheduler of two workers that claim three tasks at once.
fn ahead() -> Arc<Scheduler> {
    let builder = Scheduler::builder().workers(2).claims(3);
    Arc::new(builder.idle(Duration::ZERO).build().unwrap())
}

/// Which tasks ran, and which surely never will.
#[derive(Default)]
struct Ran(Mutex<Vec<u32>>);

impl Ran {
    fn task(self: &Arc<Self>, n: u32) -> impl FnOnce() -> Result<u32, ()> + Send + 'static {
        let ran = self.clone();
        move || {
            ran.0.lock().unwrap().push(n);
            Ok(n)
        }
    }
}

/// Two threads submit, one of them cancels; a task waits for a later one, which its own worker may
/// have claimed with it. Each runs once or is cancelled, and all is reported.
#[test]
fn claims_of_three_against_a_cancel_and_a_wait() {
    schedules::explore(|| {
        let scheduler = ahead();
        let ran = Arc::new(Ran::default());
        let hold = scheduler.hold();
        let caller = scheduler.caller("", CallerOptions::default()).unwrap();
        let awaited: Arc<Mutex<Option<Task<u32, ()>>>> = Arc::default();
        let slot = awaited.clone();
        let waits = move || {
            let mut task = slot.lock().unwrap().take().expect("it was put there");
            let outcome = task.outcome().wait().expect("another worker can start it");
            assert!(matches!(outcome.verdict, Verdict::Ok(9)));
            Ok::<(), ()>(())
        };
        let waits = caller.exec(waits).unwrap_or_else(|_| panic!("open"));
        *awaited.lock().unwrap() = caller.exec(ran.task(9)).ok();
        let more: Vec<_> = (10..14)
            .map(|n| caller.exec(ran.task(n)).unwrap_or_else(|_| panic!("open")))
            .collect();
        drop(hold);
        let submitters = [20, 30].map(|from| {
            let (scheduler, ran) = (scheduler.clone(), ran.clone());
            thread::spawn(move || {
                let caller = scheduler.caller("", CallerOptions::default()).unwrap();
                let tasks = [0, 1].map(|n| caller.exec(ran.task(from + n)).ok().unwrap());
                let cancelled = u64::from(from == 20 && tasks[1].cancel());
                let summary = caller.synchronize().wait().unwrap();
                assert_eq!((summary.ok, summary.cancelled), (2 - cancelled, cancelled));
                let seen = ran.0.lock().unwrap();
                assert_eq!(seen.contains(&(from + 1)), cancelled == 0);
            })
        });
        let cancelled = u64::from(more[3].cancel());
        drop(waits);
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (6 - cancelled, cancelled));
        schedules::join(submitters);
        let mut seen = std::mem::take(&mut *ran.0.lock().unwrap());
        let runs = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), runs, "none runs twice");
        assert_eq!(seen.contains(&13), cancelled == 0);
        assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
    });
}

/// While workers have prefetched tasks, a lower tier arrives, the number of workers falls, and a
/// hold is set: no task that has not started starts.
#[test]
fn claims_of_three_go_back() {
    schedules::explore(|| {
        let scheduler = ahead();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let caller = scheduler.caller("", CallerOptions::default()).unwrap();
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let hold = scheduler.hold();
        let submit = |place: Place<'_>, n: u32| {
            let seen = seen.clone();
            let run = move || {
                seen.lock().unwrap().push(n);
                Ok::<(), ()>(())
            };
            caller.exec_with(place, run).ok().unwrap().detach();
        };
        (0..9).for_each(|n| submit(Place::new().tier(2), n));
        (100..102).for_each(|n| submit(Place::new().tier(2).group(&group), n));
        drop(hold);
        thread::yield_now();
        submit(Place::new().tier(1), 200);
        // At most one task of each worker is running.
        let before = seen.lock().unwrap().len();
        thread::yield_now();
        scheduler.set_workers(1).unwrap();
        assert!(caller.synchronize().wait().unwrap().all_ok());
        {
            let seen = seen.lock().unwrap();
            let low = seen.iter().position(|&n| n == 200).unwrap();
            assert!(low <= before + 2, "{low} came first, not {before}");
            let in_group: Vec<_> = seen.iter().filter(|n| (100..102).contains(*n)).collect();
            assert_eq!(in_group, [&100, &101]);
            assert_eq!(seen.len(), 12);
        }
        let hold = scheduler.hold();
        let held = seen.lock().unwrap().len();
        submit(Place::new(), 300);
        thread::yield_now();
        assert_eq!(seen.lock().unwrap().len(), held);
        drop(hold);
        drop((group, caller));
        assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
        assert_eq!(scheduler.workers().live, 0);
    });
}
