//! A job queue under random schedules: two agents, a pusher, limits that change, a lease that runs
//! out, a close; waits for earlier dates.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use conversant_schedules::job_queue::{Counts, JobQueue, Place, Scope};
use conversant_schedules::limit::Limit;
use conversant_schedules::ticker::Timed;
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::schedules;

const JOBS: u32 = 6;

/// The date at which a clock stops.
const LAST: Duration = Duration::from_secs(1_000_000);

/// What the agents saw: claimed groups, and how often each job was done.
#[derive(Default)]
struct Seen {
    held: HashSet<u64>,
    done: HashMap<u32, u32>,
}

/// Even jobs are of one group, odd ones of another; both of limit 1.
fn group(job: u32) -> u64 {
    u64::from(job % 2)
}

fn work(queue: &JobQueue<u32, u32>, seen: &Mutex<Seen>, mut give_back: bool) {
    while let Ok(claims) = queue.claim(2).wait() {
        for claim in &claims {
            let alone = seen.lock().unwrap().held.insert(group(**claim));
            assert!(alone, "two of one group");
        }
        for claim in claims {
            thread::yield_now();
            let job = *claim;
            assert!(seen.lock().unwrap().held.remove(&group(job)));
            if std::mem::take(&mut give_back) {
                drop(claim);
                continue;
            }
            *seen.lock().unwrap().done.entry(job).or_default() += 1;
            claim.complete().expect("it has no lease");
        }
    }
}

fn agents() {
    let queue = JobQueue::new();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let agents = [false, true].map(|give_back| {
        let (queue, seen) = (queue.clone(), seen.clone());
        thread::spawn(move || work(&queue, &seen, give_back))
    });
    queue.set_limit(Scope::Queue, Limit::AtMost(0)).unwrap();
    for job in 0..JOBS {
        let place = Place::new().group(group(job));
        queue.push(job, job, place).expect("the queue is open");
        if job == 2 {
            queue.set_limit(Scope::Queue, Limit::Unlimited).unwrap();
        }
    }
    queue.close();
    schedules::join(agents);
    let seen = seen.lock().unwrap();
    assert!((0..JOBS).all(|job| seen.done[&job] == 1));
    is_done(&queue, JOBS.into());
}

/// All jobs were pushed, each was completed once, and nothing is left.
fn is_done<K: Ord + Clone, J>(queue: &JobQueue<K, J>, jobs: u64) {
    let mut counts = queue.counts();
    assert_eq!((counts.pushed, counts.completed), (jobs, jobs));
    (counts.pushed, counts.completed) = (0, 0);
    (counts.returned, counts.dropped) = (0, 0);
    assert_eq!(counts, Counts::default());
}

#[test]
fn two_agents_a_pusher_a_pause_a_close() {
    schedules::explore(agents);
}

/// A lease runs out at the time of the completion: each job is done once, by whichever agent.
#[test]
fn a_lease_runs_out_beside_a_completion() {
    schedules::explore(|| {
        let queue = JobQueue::new();
        let done = Arc::new(Mutex::new(0));
        let jobs = (0..2).map(|job| (job, job, Place::new().group("g")));
        queue.push_all(jobs).expect("the queue is open");
        queue.close();
        let second = Duration::from_secs(1);
        let mut late = queue.try_claim(1).remove(0).into_owned();
        late.extend(second).expect("it has no lease yet");
        let completed = done.clone();
        let holder = thread::spawn(move || {
            let in_time = late.complete().is_ok();
            *completed.lock().unwrap() += u32::from(in_time);
        });
        let (told, done_by_agent) = (queue.clone(), done.clone());
        let clock = thread::spawn(move || _ = told.advance(second));
        let agent = queue.clone();
        let agent = thread::spawn(move || {
            while let Ok(claims) = agent.claim(2).wait() {
                for claim in claims {
                    claim.complete().expect("it has no lease");
                    *done_by_agent.lock().unwrap() += 1;
                }
            }
        });
        schedules::join([holder, clock, agent]);
        assert_eq!(*done.lock().unwrap(), 2);
        is_done(&queue, 2);
    });
}

/// Waits for earlier and earlier dates, until one second.
fn watch(queue: &JobQueue<u32, u32>, mut known: Option<Duration>) {
    while known != Some(Duration::from_secs(1)) {
        let earlier = queue.next_due(known).wait();
        assert!(known.is_none_or(|known| earlier < known));
        known = Some(earlier);
    }
}

/// Whoever waits for an earlier date is told of it, though dates go and others are told too.
#[test]
fn earlier_dates_are_told() {
    schedules::explore(|| {
        let queue = JobQueue::new();
        let known = [None, Some(Duration::from_secs(4))];
        let watchers = known.map(|known| {
            let queue = queue.clone();
            thread::spawn(move || watch(&queue, known))
        });
        let push = |at| {
            let due = Place::new().due(Duration::from_secs(at));
            queue.push(0, 0, due).expect("the queue is open")
        };
        let gone = push(3);
        push(5);
        queue.remove(gone).expect("it is not due");
        push(1);
        schedules::join(watchers);
    });
}

/// The clock goes from date to date until a last one. What is due is done, and a claim that is
/// forgotten comes back when its lease runs out.
#[test]
fn a_clock_that_waits_for_dates_serves_each() {
    schedules::explore(|| {
        let second = Duration::from_secs(1);
        let queue = JobQueue::<u32, u32>::new();
        let told = queue.clone();
        let clock = thread::spawn(move || {
            let mut now = Duration::ZERO;
            while now < LAST {
                let next = told.advance(now);
                now = next.unwrap_or_else(|| told.next_due(None).wait());
            }
        });
        let agent = queue.clone();
        let agent = thread::spawn(move || {
            let claim = || agent.claim_one().wait().expect("it is open");
            let mut lost = claim();
            lost.extend(agent.now() + second).expect("it has no lease");
            std::mem::forget(lost);
            for _ in 0..2 {
                claim().complete().expect("it has no lease");
            }
        });
        let push = |due| queue.push(0, 0, Place::new().due(due)).is_ok();
        assert!(push(2 * second) && push(3 * second));
        agent.join().expect("a thread panicked");
        assert!(push(LAST));
        clock.join().expect("a thread panicked");
    });
}
