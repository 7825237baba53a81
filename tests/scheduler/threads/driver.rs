//! The same program, simulated and on a scheduler.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Poll;
use std::time::Duration;

use conversant::error::Stalled;
use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Event, Reason, Record, Scheduler, SyncError};
use conversant::simulator::{Driver, Simulation, Work};

use crate::threads::stage::{draws, end, finishes, scheduler};

const SECOND: Duration = Duration::from_secs(1);

/// A future that wakes itself this many times.
async fn yields(mut times: u32) -> Result<(), String> {
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        match times {
            0 => Poll::Ready(()),
            _ => {
                times -= 1;
                Poll::Pending
            }
        }
    })
    .await;
    Ok(())
}

/// Two callers, one with a capacity; tiers, groups, bumps, labels, levels, limits, cancels,
/// failures, panics and futures, as drawn.
fn policy<D: Driver>(driver: &mut D, seed: u64) {
    let mut draw = draws(seed);
    let callers = [1, 3].map(|weight| {
        let options = CallerOptions {
            weight,
            capacity: [Limit::AtMost(6), Limit::Unlimited][usize::from(weight == 3)],
            ..CallerOptions::default()
        };
        let caller = driver.caller(["one", "three"][usize::from(weight == 3)], options);
        let caller = caller.unwrap();
        let group = |limit, level| driver.group(&caller, limit, level).unwrap();
        let groups = [Limit::SERIAL, Limit::Unlimited].map(|limit| (limit, 100));
        let mut group = group;
        let groups = groups.map(|(limit, level)| group(limit, level));
        (caller, groups)
    });
    for _ in 0..3 {
        driver.at_once(|driver| {
            let mut tasks = Vec::new();
            for _ in 0..12 {
                let (caller, groups) = &callers[draw(2) as usize];
                let group = groups.get(draw(3) as usize);
                let mut work = Work::takes(SECOND);
                if draw(3) == 0 {
                    work = work.label("named");
                }
                if group.is_none() {
                    work = work.tier(draw(2) as u32);
                }
                if draw(4) == 0 {
                    work = work.bump(draw(3) as u8);
                }
                let times = draw(3) as u32;
                let task = match draw(5) {
                    0 => {
                        let work = work.awaits(Duration::ZERO, times);
                        driver.spawn(caller, group, work, yields(times))
                    }
                    1 => driver.submit(caller, group, work.failing(), || Err(String::new())),
                    2 => driver.submit(caller, group, work.panicking(), || {
                        resume_unwind(Box::new(()))
                    }),
                    _ => driver.submit(caller, group, work, || Ok(())),
                };
                match task {
                    Ok(task) => tasks.push(task),
                    Err(reason) => assert_eq!(reason, Reason::Full),
                }
            }
            let ids: Vec<_> = tasks.iter().map(|task| driver.id(task)).collect();
            assert!(ids.is_sorted());
            let mut any = || &tasks[draw(tasks.len() as u64) as usize];
            driver.bump(any(), 9).unwrap();
            assert!(driver.cancel(any()));
            if draw(4) == 0 {
                driver.cancel_all(&callers[draw(2) as usize].0);
            }
            if draw(2) == 0 {
                let (_, groups) = &callers[draw(2) as usize];
                driver.cancel_group(&groups[draw(2) as usize]);
            }
            let (caller, groups) = &callers[draw(2) as usize];
            driver.set_level(&groups[draw(2) as usize], draw(256) as u8);
            driver.set_limit(&groups[0], Limit::AtMost(1)).unwrap();
            driver
                .set_cap(caller, Limit::AtMost(1 + draw(3) as u32))
                .unwrap();
        });
        for (caller, _) in &callers {
            _ = driver.synchronize(caller);
        }
    }
}

/// The rows in the order of their numbers: tier, rank of the start, label and ending.
fn order(mut rows: Vec<Record>) -> Vec<(u64, u32, Option<usize>, String)> {
    rows.sort_by_key(|row| row.task.id);
    let mut starts: Vec<_> = rows.iter().filter_map(|row| Some(row.run?.start)).collect();
    starts.sort();
    let row = |row: Record| {
        let place = row
            .run
            .map(|run| starts.iter().position(|&at| at == run.start).unwrap());
        let Record { task, ending, .. } = row;
        let label = task.label.as_deref().unwrap_or_default();
        (task.id.get(), task.tier, place, format!("{label} {ending}"))
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn one_program_text_simulated_and_run_comes_to_the_same() {
    finishes(|| {
        for seed in 1..60 {
            let mut sim = Simulation::new(1).unwrap();
            policy(&mut sim, seed);
            let (log, rows) = crossbeam_channel::unbounded::<Record>();
            let scheduler = Scheduler::builder().workers(1).claims(1).log(log).build();
            let scheduler = scheduler.unwrap();
            policy(&mut &scheduler, seed);
            end(&scheduler);
            let run = rows.try_iter().collect();
            assert_eq!(order(sim.take_records()), order(run), "{seed}");
        }
    });
}

#[test]
fn time_passes_in_both() {
    finishes(|| {
        const PASSES: Duration = Duration::from_millis(50);
        fn delayed<D: Driver>(driver: &mut D) {
            let caller = driver.caller("main", CallerOptions::default()).unwrap();
            driver.set_workers(2).unwrap();
            let work = Work::takes(Duration::ZERO);
            driver.submit(&caller, None, work, || Ok(())).unwrap();
            driver.pass(PASSES);
            driver
                .submit(&caller, None, work.after(Duration::from_millis(3)), || {
                    Ok(())
                })
                .unwrap();
            assert_eq!(driver.synchronize(&caller).unwrap().ok, 2);
        }
        let mut sim = Simulation::new(1).unwrap();
        delayed(&mut sim);
        assert_eq!(sim.now(), PASSES + Duration::from_millis(3));
        let (log, events) = crossbeam_channel::unbounded::<Event>();
        let scheduler = Scheduler::builder().workers(1).log(log).build().unwrap();
        delayed(&mut &scheduler);
        end(&scheduler);
        let starts = events.try_iter().filter_map(|event| match event {
            Event::Started { task, at, .. } => Some((task.queued, at)),
            _ => None,
        });
        let starts: Vec<_> = starts.collect();
        let (queued, at) = starts[1];
        assert!(queued >= starts[0].0 + PASSES && at >= queued + Duration::from_millis(3));
        assert_eq!(scheduler.workers().max, 2);
    });
}

#[test]
fn a_work_that_names_a_group_is_for_a_simulation() {
    let mut sim = Simulation::new(1).unwrap();
    let caller = sim.caller("main", CallerOptions::default()).unwrap();
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let driver = &mut &scheduler;
    let caller = driver.caller("main", CallerOptions::default()).unwrap();
    let work = Work::takes(SECOND).group(group);
    let refused = driver.submit(&caller, None, work, || Ok(()));
    assert_eq!(refused.unwrap_err(), Reason::ForeignGroup);
}

/// Nothing starts inside `at_once`, so a synchronize does not wait there: simulated or not.
fn panics_at_once<D: Driver>(driver: &mut D) {
    let caller = driver.caller("main", CallerOptions::default()).unwrap();
    let unwinds = catch_unwind(AssertUnwindSafe(|| {
        driver.at_once(|driver| {
            let work = Work::takes(Duration::ZERO);
            driver.submit(&caller, None, work, || Ok(())).unwrap();
            resume_unwind(Box::new("in the middle"))
        })
    }));
    assert!(unwinds.is_err());
    assert_eq!(driver.synchronize(&caller).unwrap().ok, 1);
}

#[test]
fn a_panic_in_at_once_keeps_nothing_from_starting() {
    panics_at_once(&mut Simulation::new(1).unwrap());
    finishes(|| panics_at_once(&mut &scheduler(1)));
}

fn synchronizes_at_once<D: Driver>(driver: &mut D) {
    let caller = driver.caller("main", CallerOptions::default()).unwrap();
    let submit = |driver: &mut D| _ = driver.submit(&caller, None, Work::takes(SECOND), || Ok(()));
    driver.at_once(|driver| {
        let nothing = driver.synchronize(&caller);
        assert_eq!(nothing, Err(SyncError::NothingOutstanding));
        submit(driver);
        driver.pass(Duration::from_millis(1));
        for _ in 0..2 {
            let stalled = Err(SyncError::Stalled(Stalled));
            driver.at_once(|driver| assert_eq!(driver.synchronize(&caller), stalled));
            assert_eq!(driver.synchronize(&caller), stalled);
        }
        submit(driver);
    });
    let summary = driver.synchronize(&caller).unwrap();
    assert_eq!((summary.tasks, summary.ok), (2, 2));
}

#[test]
fn who_synchronizes_in_at_once_is_told_that_nothing_starts() {
    finishes(|| {
        let mut sim = Simulation::new(1).unwrap();
        synchronizes_at_once(&mut sim);
        assert_eq!(sim.now(), Duration::from_millis(2001));
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        synchronizes_at_once(&mut &scheduler);
        end(&scheduler);
    });
}
