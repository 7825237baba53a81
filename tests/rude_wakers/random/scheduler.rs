//! The scheduler, on a pool whose workers run when an actor decides it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use conversant::limit::Limit;
use conversant::scheduler::{
    Caller, CallerOptions, Group, Hold, How, Place, Reason, Scheduler, SyncError, Task, Verdict,
};

use super::seeds;
use crate::actors::{Stage, pause, run, wait, wait_and_forget};

type Workers = Arc<Mutex<VecDeque<Box<dyn FnOnce() + Send>>>>;

struct World {
    scheduler: Scheduler,
    callers: [(Caller, Group); 2],
    workers: Workers,
    taken: Arc<AtomicU32>,
    ran: Arc<AtomicU32>,
    not_run: AtomicU32,
}

impl World {
    fn new(seed: u64) -> Self {
        let workers = Workers::default();
        let pool = workers.clone();
        let pool = move |job| {
            pool.lock().unwrap().push_back(job);
            Ok(())
        };
        let builder = Scheduler::builder().workers(2).claims(1 + seed as u32 % 3);
        let scheduler = builder.pool(pool).build().unwrap();
        let caller = |name| {
            let caller = scheduler.caller(name, CallerOptions::default()).unwrap();
            let group = caller.group(Limit::SERIAL, 100).unwrap();
            (caller, group)
        };
        World {
            callers: [caller("one"), caller("other")],
            scheduler,
            workers,
            taken: Arc::default(),
            ran: Arc::default(),
            not_run: AtomicU32::new(0),
        }
    }

    /// Returns whether there was a worker.
    fn run_a_worker(&self) -> bool {
        let worker = self.workers.lock().unwrap().pop_front();
        worker.map(|worker| worker()).is_some()
    }

    fn exec(&self, stage: &Stage, caller: &Caller, place: Place<'_>) -> Option<Task<u32, ()>> {
        let (ran, fails) = (self.ran.clone(), stage.one_in(8));
        let task = caller.exec_with(place, move || {
            let n = ran.fetch_add(1, Relaxed);
            if fails { Err(()) } else { Ok(n) }
        });
        match task {
            Ok(task) => {
                self.taken.fetch_add(1, Relaxed);
                Some(task)
            }
            Err(rejected) => {
                assert_ne!(rejected.reason, Reason::NoWorker);
                None
            }
        }
    }

    fn end(&self, begun: &mut bool) -> bool {
        for (caller, group) in &self.callers {
            caller.set_cap(Limit::Unlimited).unwrap();
            group.set_limit(Limit::SERIAL).unwrap();
        }
        self.run_a_worker() || !std::mem::replace(begun, true)
    }
}

async fn act(stage: &Stage, world: &World) {
    let own = world.scheduler.caller("own", CallerOptions::default());
    let own = own.unwrap();
    let mut tasks: Vec<Task<u32, ()>> = Vec::new();
    let mut hold: Option<Hold<&Scheduler>> = None;
    while stage.goes_on() {
        let (caller, group) = &world.callers[stage.below(2)];
        let few = [Limit::AtMost(0), Limit::SERIAL, Limit::Unlimited];
        let limit = few[stage.below(3)];
        match stage.below(16) {
            0 | 1 => {
                let place = Place::new().group(group);
                tasks.extend(world.exec(stage, caller, place));
            }
            2 | 3 => {
                let place = Place::new().tier(stage.below(3) as u32).bump(200);
                tasks.extend(world.exec(stage, caller, place));
            }
            4 => tasks.extend(world.exec(stage, &own, Place::new())),
            5 => {
                if let Some(mut task) = tasks.pop() {
                    drop(hold.take());
                    let Ok(outcome) = wait(task.outcome()).await else {
                        continue;
                    };
                    if matches!(outcome.verdict, Verdict::Cancelled | Verdict::Skipped) {
                        world.not_run.fetch_add(1, Relaxed);
                    }
                }
            }
            6 => {
                if let Some(task) = tasks.last_mut() {
                    _ = wait_and_forget(task.outcome()).await;
                }
            }
            7 => {
                drop(hold.take());
                _ = wait(caller.synchronize()).await;
            }
            8 => _ = tasks.last().is_some_and(Task::cancel),
            9 => caller.set_cap(limit).unwrap(),
            10 => group.set_limit(limit).unwrap(),
            11 => hold = stage.one_in(2).then(|| world.scheduler.hold()),
            12 => world
                .scheduler
                .set_workers(1 + stage.below(3) as u32)
                .unwrap(),
            13 if stage.one_in(10) => {
                drop(hold.take());
                let how = [How::Drain, How::Cancel][stage.below(2)];
                wait(own.release(how)).await.unwrap();
                break;
            }
            14 => drop(tasks.pop()),
            15 => pause().await,
            _ => _ = world.run_a_worker(),
        }
    }
}

#[test]
fn schedulers() {
    seeds(|seed| {
        let world = World::new(seed);
        let mut begun = false;
        let actor = |stage| Box::pin(act(stage, &world)) as _;
        run(seed, actor, |_| world.end(&mut begun), &mut None);
        let status = world.scheduler.status();
        assert!(status.waiting.is_empty() && status.running.is_empty());
        let mut begun = false;
        let how = [How::Drain, How::Cancel][seed as usize % 2];
        let shut = |_: &_| Box::pin(shuts(&world, how)) as _;
        run(seed, shut, |_| world.end(&mut begun), &mut None);
        assert!(world.workers.lock().unwrap().is_empty());
    });
}

async fn shuts(world: &World, how: How) {
    for (caller, _) in &world.callers {
        let over = wait(caller.synchronize()).await;
        assert_ne!(over, Err(SyncError::Busy), "nobody synchronizes");
    }
    wait(world.scheduler.shutdown(how)).await.unwrap();
}
