//! E3: tasks of serial groups.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::*;

/// The next task of each group, and how often another one ran.
struct OrderCheck {
    next: Vec<CachePadded<AtomicU64>>,
    wrong: AtomicU64,
}

impl OrderCheck {
    fn new() -> Arc<Self> {
        let next = (0..GROUPS).map(|_| CachePadded::new(AtomicU64::new(0)));
        let (next, wrong) = (next.collect(), AtomicU64::new(0));
        Arc::new(Self { next, wrong })
    }

    /// The `n`th task of all; tasks go to the groups in turn.
    fn task(self: &Arc<Self>, n: u64, count: &Arc<Count>) -> impl FnOnce() + Send + use<> {
        let (order, count) = (Arc::clone(self), Arc::clone(count));
        move || {
            let next = &order.next[n as usize % GROUPS];
            let due = next.load(Ordering::Relaxed);
            if due != n / GROUPS as u64 {
                order.wrong.fetch_add(1, Ordering::Relaxed);
            }
            next.store(due + 1, Ordering::Relaxed);
            count.one();
        }
    }

    fn check(&self, sample: Sample) -> Result<Sample> {
        let wrong = self.wrong.load(Ordering::Relaxed);
        ensure!(wrong == 0, "{wrong} tasks ran out of order");
        Ok(sample)
    }
}

pub(super) fn serial() -> Vec<Entry> {
    let scheduler = scheduler(WORKERS, CLAIMS);
    let caller = caller(&scheduler, CallerOptions::default());
    let group = |_| caller.group(Limit::SERIAL, 100).expect("in range");
    let groups: Vec<Group> = (0..GROUPS).map(group).collect();
    let pool = Arc::new(rayon(WORKERS));
    let strands: Vec<_> = (0..GROUPS).map(|_| Arc::new(Strand::default())).collect();
    vec![
        Entry::ours(OURS, move |ops| {
            let _keep = &scheduler;
            let order = OrderCheck::new();
            let sample = timed(ops, |count| {
                for n in 0..ops {
                    let place = Place::new().group(&groups[n as usize % GROUPS]);
                    let task = fallible(order.task(n, count));
                    caller.exec_detached(place, task).expect("open");
                }
            });
            order.check(sample?)
        }),
        Entry::peer(STRANDS, move |ops| {
            let order = OrderCheck::new();
            let sample = timed(ops, |count| {
                for n in 0..ops {
                    let strand = &strands[n as usize % GROUPS];
                    strand.send(&pool, Box::new(order.task(n, count)));
                }
            });
            order.check(sample?)
        }),
    ]
}

type Boxed = Box<dyn FnOnce() + Send>;

/// Tasks one by one, run by a job on the pool while there are any.
#[derive(Default)]
struct Strand(Mutex<(VecDeque<Boxed>, bool)>);

impl Strand {
    /// How many a job runs before it goes to the end of the pool's queue.
    const RUN: usize = 32;

    fn send(self: &Arc<Self>, pool: &Arc<rayon::ThreadPool>, task: Boxed) {
        let mut state = self.0.lock();
        state.0.push_back(task);
        if !std::mem::replace(&mut state.1, true) {
            drop(state);
            self.serve(pool);
        }
    }

    fn serve(self: &Arc<Self>, pool: &Arc<rayon::ThreadPool>) {
        let (strand, again) = (Arc::clone(self), Arc::clone(pool));
        pool.spawn(move || {
            for _ in 0..Self::RUN {
                let mut state = strand.0.lock();
                let Some(task) = state.0.pop_front() else {
                    state.1 = false;
                    return;
                };
                drop(state);
                task();
            }
            strand.serve(&again);
        });
    }
}
