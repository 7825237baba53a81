//! The run: one queue, a thread for each agent, and the checks.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversant::job_queue::{Claim, JobQueue, Place, Scope};
use conversant::limit::Limit;
use conversant::ticker::Ticker;

use crate::Options;
use crate::jobs::Row;

/// What one agent did.
pub(crate) struct Agent {
    pub(crate) appetite: u32,
    pub(crate) claims: usize,
    /// When each of its jobs was done.
    pub(crate) done: Vec<Duration>,
    /// Finished after the lease had run out.
    pub(crate) late: usize,
    /// How many jobs it held when it crashed.
    pub(crate) crashed_with: Option<usize>,
}

pub(crate) struct Outcome {
    pub(crate) agents: Vec<Agent>,
    pub(crate) jobs: usize,
    /// Jobs that were not done exactly once.
    pub(crate) wrong: usize,
    /// Whether more than a limit ran at any moment.
    pub(crate) exceeded: bool,
    /// Jobs that were claimed more than once.
    pub(crate) returned: usize,
    pub(crate) took: Duration,
}

/// How many jobs of a group or tenant are in flight, by our own count.
struct Meter {
    running: AtomicU32,
    limit: u32,
}

/// One run, shared by all agents.
struct Stage<'a> {
    options: &'a Options,
    queue: JobQueue<u64, usize>,
    /// The meters of each job's tenant and group.
    meters: Vec<[Option<&'a Meter>; 2]>,
    done: Vec<AtomicU32>,
    finished: AtomicUsize,
    returned: AtomicUsize,
    exceeded: AtomicBool,
    start: Instant,
}

pub(crate) fn run(options: &Options, rows: &[Row]) -> Outcome {
    let mut meters: HashMap<(&str, &str), Meter> = HashMap::new();
    let limits = [options.tenant_limit, options.group_limit];
    for row in rows {
        let names = [("", limits[0]), (&*row.group, limits[1])];
        for (group, limit) in names {
            meters.entry((&row.tenant, group)).or_insert(Meter {
                running: AtomicU32::new(0),
                limit,
            });
        }
    }
    let queue = filled(options, rows);
    let start = Instant::now();
    let _ticker = Ticker::spawn(queue.clone(), start).expect("a thread can be had");
    let stage = Stage {
        options,
        queue,
        meters: rows.iter().map(|row| of(&meters, row)).collect(),
        done: rows.iter().map(|_| AtomicU32::new(0)).collect(),
        finished: AtomicUsize::new(0),
        returned: AtomicUsize::new(0),
        exceeded: AtomicBool::new(false),
        start,
    };
    let agents = thread::scope(|scope| {
        let stage = &stage;
        let agents = options.agents.iter().enumerate();
        let agents: Vec<_> = agents
            .map(|(number, &appetite)| scope.spawn(move || stage.work(number + 1, appetite)))
            .collect();
        let agents = agents.into_iter();
        agents
            .map(|agent| agent.join().expect("no agent panics"))
            .collect()
    });
    let once = |done: &&AtomicU32| done.load(Ordering::Relaxed) != 1;
    Outcome {
        agents,
        jobs: rows.len(),
        wrong: stage.done.iter().filter(once).count(),
        exceeded: stage.exceeded.into_inner(),
        returned: stage.returned.into_inner(),
        took: stage.start.elapsed(),
    }
}

/// The meters of a job's tenant and group.
fn of<'a>(meters: &'a HashMap<(&'a str, &'a str), Meter>, row: &'a Row) -> [Option<&'a Meter>; 2] {
    let grouped = !row.group.is_empty();
    let group = grouped.then(|| meters.get(&(&*row.tenant, &*row.group)));
    [meters.get(&(&*row.tenant, "")), group.flatten()]
}

/// Pushes all jobs and closes the queue: it drains.
fn filled(options: &Options, rows: &[Row]) -> JobQueue<u64, usize> {
    let queue = JobQueue::builder()
        .group_limit(Limit::AtMost(options.group_limit))
        .lease(options.lease())
        .attempts(Limit::Unlimited)
        .build()
        .expect("limits are in range");
    for row in rows {
        let tenant = Scope::tenant(&*row.tenant);
        let limit = Limit::AtMost(options.tenant_limit);
        if queue.limit(&tenant) != limit {
            queue.set_limit(tenant, limit).expect("limits are in range");
        }
    }
    let jobs = rows.iter().enumerate().map(|(job, row)| {
        let place = Place::new().tenant(&*row.tenant);
        let place = match &*row.group {
            "" => place,
            group => place.group(group),
        };
        (row.key, job, place)
    });
    queue.push_all(jobs).expect("the queue is open");
    queue.close();
    queue
}

impl Stage<'_> {
    fn work(&self, number: usize, appetite: u32) -> Agent {
        let mut agent = Agent {
            appetite,
            claims: 0,
            done: Vec::new(),
            late: 0,
            crashed_with: None,
        };
        // The ticker takes back jobs whose lease runs out.
        while let Ok(claims) = self.queue.claim(appetite as usize).wait() {
            agent.claims += 1;
            for claim in &claims {
                self.enter(claim);
            }
            let half = self.finished.load(Ordering::Relaxed) * 2 >= self.done.len();
            if half && number == self.options.crash {
                agent.crashed_with = Some(claims.len());
                self.crash(claims);
                return agent;
            }
            for claim in claims {
                self.finish(claim, &mut agent);
            }
        }
        agent
    }

    fn enter(&self, claim: &Claim<u64, usize>) {
        if claim.attempt() > 1 {
            self.returned.fetch_add(1, Ordering::Relaxed);
        }
        for meter in self.meters[**claim].iter().flatten() {
            if meter.running.fetch_add(1, Ordering::SeqCst) >= meter.limit {
                self.exceeded.store(true, Ordering::Relaxed);
            }
        }
    }

    fn leave(&self, claim: &Claim<u64, usize>) {
        for meter in self.meters[**claim].iter().flatten() {
            meter.running.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn finish(&self, claim: Claim<u64, usize>, agent: &mut Agent) {
        let job = *claim;
        black_box((0..200).fold(job, |sum, n| black_box(sum ^ n)));
        self.leave(&claim);
        if claim.complete().is_err() {
            agent.late += 1;
            return;
        }
        self.done[job].fetch_add(1, Ordering::Relaxed);
        self.finished.fetch_add(1, Ordering::Relaxed);
        agent.done.push(self.start.elapsed());
    }

    /// Like a process that is gone: it completes nothing and gives nothing back.
    fn crash(&self, claims: Vec<Claim<u64, usize>>) {
        for claim in claims {
            self.leave(&claim);
            std::mem::forget(claim);
        }
    }
}
