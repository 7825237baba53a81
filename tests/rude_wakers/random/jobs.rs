//! The job queue. A job is a number, which is its key, too.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use conversant::job_queue::{Claim, JobId, JobQueue, Place, Scope};
use conversant::limit::Limit;

use super::seeds;
use crate::actors::{Stage, pause, run, wait};

struct World {
    queue: JobQueue<u32, u32>,
    now: Cell<u64>,
    last: Cell<u32>,
    ids: RefCell<Vec<JobId>>,
    pushed: RefCell<BTreeSet<u32>>,
    done: RefCell<BTreeSet<u32>>,
}

const SCOPES: usize = 4;

fn scope(n: usize) -> Scope {
    match n {
        0 => Scope::Queue,
        1 => Scope::tenant("a"),
        2 => Scope::group_of("a", "serial"),
        _ => Scope::group("serial"),
    }
}

impl World {
    fn new() -> Self {
        let builder = JobQueue::builder().attempts(3).group_limit(Limit::SERIAL);
        let queue = builder.lease(Duration::from_millis(20)).build().unwrap();
        World {
            queue,
            now: Cell::new(0),
            last: Cell::new(0),
            ids: RefCell::default(),
            pushed: RefCell::default(),
            done: RefCell::default(),
        }
    }

    fn later(&self, by: usize) -> Duration {
        Duration::from_millis(self.now.get() + by as u64)
    }

    fn push(&self, stage: &Stage) {
        self.last.set(self.last.get() + 1);
        let job = self.last.get();
        let mut place = Place::new().due(self.later(stage.below(4)));
        if stage.one_in(2) {
            place = place.tenant("a");
        }
        if stage.one_in(2) {
            place = place.group("serial");
        }
        if let Ok(id) = self.queue.push(job, job, place) {
            self.ids.borrow_mut().push(id);
            self.pushed.borrow_mut().insert(job);
        }
    }

    fn is_done(&self, job: u32) {
        assert!(self.done.borrow_mut().insert(job), "{job} is done twice");
    }

    fn advance(&self, by: u64) -> Option<Duration> {
        self.now.set(self.now.get() + by);
        self.queue.advance(self.later(0))
    }

    /// Lifts whatever blocks jobs; returns whether that changed anything.
    fn end(&self) -> bool {
        let begins = !self.queue.is_closed();
        for n in 0..SCOPES {
            self.queue.set_limit(scope(n), Limit::Unlimited).unwrap();
        }
        for id in self.queue.dead() {
            self.is_done(self.queue.remove(id).unwrap().key);
        }
        self.queue.close();
        let before = self.now.get();
        let next = self.advance(5);
        begins || next.is_some_and(|next| next > Duration::from_millis(before))
    }

    fn check(self) {
        while self.end() {}
        loop {
            for claim in self.queue.try_claim(9) {
                let job = *claim;
                claim.complete().unwrap();
                self.is_done(job);
            }
            if !self.end() && self.queue.counts().ready == 0 {
                break;
            }
        }
        assert_eq!(self.pushed, self.done);
        assert_eq!(self.queue.counts().claimed, 0);
    }
}

async fn work(stage: &Stage, world: &World, claims: Vec<Claim<'_, u32, u32>>) {
    for mut claim in claims {
        let job = *claim;
        let ended = match stage.below(7) {
            0 => claim.give_back(),
            1 => claim.give_back_at(world.later(3)),
            2 => claim.fail().map(drop),
            3 => {
                _ = claim.extend(world.later(2));
                pause().await;
                drop(claim);
                continue;
            }
            more => {
                if more == 4 {
                    pause().await;
                }
                let done = claim.complete();
                if done.is_ok() {
                    world.is_done(job);
                }
                done.map(drop)
            }
        };
        // Its lease may have run out.
        _ = ended;
    }
}

async fn act(stage: &Stage, world: &World) {
    let queue = &world.queue;
    while stage.goes_on() {
        let id = world.ids.borrow().last().copied();
        match stage.below(12) {
            0..=2 => {
                if let Ok(claims) = wait(queue.claim(stage.below(4))).await {
                    work(stage, world, claims).await;
                }
            }
            3 => {
                let until = world.later(2);
                if let Ok(mut claims) = wait(queue.claim(2)).await {
                    for claim in &mut claims {
                        _ = claim.extend(until);
                    }
                    work(stage, world, claims).await;
                }
            }
            4..=6 => world.push(stage),
            7 => {
                let limit = Limit::AtMost(stage.below(3) as u32);
                queue.set_limit(scope(stage.below(SCOPES)), limit).unwrap();
            }
            8 => _ = world.advance(1),
            9 => {
                if let Some(Ok(out)) = id.map(|id| queue.remove(id)) {
                    world.is_done(out.key);
                }
            }
            10 => {
                if let Some(&id) = queue.dead().first() {
                    _ = queue.requeue(id);
                }
            }
            _ if stage.one_in(40) => queue.close(),
            _ => pause().await,
        }
    }
}

#[test]
fn job_queues() {
    seeds(|seed| {
        let world = World::new();
        let actor = |stage| Box::pin(act(stage, &world)) as _;
        run(seed, actor, |_| world.end(), &mut None);
        world.check();
    });
}
