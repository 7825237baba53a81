//! A scheduler under random schedules: submit, retire, raise and lower.

mod schedules;

use std::sync::Arc;
use std::time::Duration;

use conversant_schedules::scheduler::{CallerOptions, How, Place, Scheduler, Verdict};
use shuttle::sync::Mutex;
use shuttle::thread;

/// Who runs now, who ran in which tier, and the most at once.
#[derive(Default)]
struct Seen {
    running: Vec<u32>,
    most: usize,
    ended: Vec<u32>,
}

fn task(seen: &Mutex<Seen>, tier: u32) {
    {
        let mut seen = seen.lock().unwrap();
        seen.running.push(tier);
        seen.most = seen.most.max(seen.running.len());
        assert!(seen.running.iter().all(|&other| other == tier));
    }
    thread::yield_now();
    let mut seen = seen.lock().unwrap();
    let at = seen.running.iter().position(|&other| other == tier);
    seen.running.swap_remove(at.expect("it runs"));
    seen.ended.push(tier);
}

const TIERS: [u32; 5] = [1, 1, 1, 2, 2];

fn tiers() {
    let scheduler = Scheduler::builder()
        .readers(2)
        .idle(Duration::ZERO)
        .build()
        .unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let caller = scheduler.caller("", CallerOptions::default()).unwrap();
    for tier in TIERS {
        let seen = seen.clone();
        let run = move || {
            task(&seen, tier);
            Ok::<(), ()>(())
        };
        let task = caller.exec_with(Place::new().tier(tier), run);
        assert!(task.is_ok());
    }
    let scheduler = Arc::new(scheduler);
    let changing = {
        let scheduler = scheduler.clone();
        thread::spawn(move || {
            for max in [1, 3, 2] {
                scheduler.set_readers(max).unwrap();
            }
        })
    };
    let summary = caller.synchronize().wait().unwrap();
    assert!(summary.all_ok());
    changing.join().unwrap();
    assert_eq!(seen.lock().unwrap().ended, TIERS);
    assert!(seen.lock().unwrap().most <= 3);
    drop(caller);
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
    assert_eq!(scheduler.readers().live, 0);
}

#[test]
fn submit_retire_raise_lower() {
    schedules::explore(tiers);
}

/// Two threads submit while readers come and go: none is lost.
#[test]
fn submissions_against_retirement() {
    schedules::explore(|| {
        let scheduler = Scheduler::builder()
            .readers(1)
            .idle(Duration::ZERO)
            .build()
            .unwrap();
        let scheduler = Arc::new(scheduler);
        let submitters = ["a", "b"].map(|name| {
            let scheduler = scheduler.clone();
            thread::spawn(move || {
                let caller = scheduler.caller(name, CallerOptions::default()).unwrap();
                for n in 0..2 {
                    let Ok(mut task) = caller.exec(move || Ok::<u32, ()>(n)) else {
                        panic!("the scheduler is open");
                    };
                    let outcome = task.outcome().wait().expect("nothing stalls");
                    assert!(matches!(outcome.verdict, Verdict::Ok(m) if m == n));
                }
            })
        });
        schedules::join(submitters);
        assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
        assert_eq!(scheduler.readers().live, 0);
    });
}
