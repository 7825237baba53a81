//! Dialogs between two queues, whose readers answer.

use std::cell::Cell;
use std::time::Duration;

use conversant::dialog::{Dialogs, Endpoint, Event, Fault, Received};
use conversant::limit::Limit;
use conversant::queue::{Lane, Queue, Turn};

use super::seeds;
use crate::actors::{Stage, pause, run, wait};

struct World {
    dialogs: Dialogs<u32>,
    queues: [Queue<Received<u32>>; 2],
    lanes: [Lane<Received<u32>>; 2],
    now: Cell<u64>,
    ended: Cell<bool>,
}

impl World {
    fn new(seed: u64) -> Self {
        let queue = |n: u64| {
            let builder = Queue::builder().attempts(Limit::Unlimited);
            let builder = match (seed + n) % 3 {
                0 => builder.capacity(Limit::AtMost(3)),
                _ => builder,
            };
            builder.build().unwrap()
        };
        let queues = [queue(0), queue(1)];
        World {
            dialogs: Dialogs::new(),
            lanes: [0, 1].map(|n: usize| queues[n].lane(1, Limit::Unlimited).unwrap()),
            queues,
            now: Cell::new(0),
            ended: Cell::new(false),
        }
    }

    fn advance(&self) -> bool {
        self.now.set(self.now.get() + 1);
        let now = Duration::from_millis(self.now.get());
        self.dialogs.advance(now).is_some()
    }

    fn end(&self) -> bool {
        let begins = !self.ended.replace(true);
        let mut changed = begins | self.advance();
        for queue in &self.queues {
            queue.close();
            while let Ok(mut turn) = queue.try_receive() {
                while let Some(delivery) = turn.next() {
                    changed = true;
                    drop(delivery.complete());
                }
            }
        }
        changed
    }
}

async fn serve(stage: &Stage, mut turn: Turn<'_, Received<u32>>) {
    while let Some(delivery) = turn.next() {
        if stage.one_in(4) {
            pause().await;
        }
        let endpoint = delivery.endpoint().clone();
        match stage.below(10) {
            0 => {
                delivery.give_back();
                continue;
            }
            1 => _ = endpoint.end(),
            2 => _ = endpoint.end_with(Fault::new(7, "no").unwrap()),
            _ => {
                if let Event::Message(n @ 1..) = delivery.event {
                    _ = endpoint.send(n - 1);
                }
            }
        }
        drop(delivery.complete());
    }
}

async fn act(stage: &Stage, world: &World) {
    let mut talks: Vec<Endpoint<u32>> = Vec::new();
    while stage.goes_on() {
        let side = stage.below(2);
        match stage.below(12) {
            0 | 1 => {
                let (near, far) = (&world.lanes[side], &world.lanes[1 - side]);
                talks.extend(world.dialogs.begin(near, far));
            }
            2 => {
                if let Some(first) = talks.first() {
                    let beside = world.dialogs.begin(first, &world.lanes[side]);
                    talks.extend(beside);
                }
            }
            3..=5 => {
                if let Some(talk) = talks.last() {
                    _ = talk.send(stage.below(4) as u32);
                }
            }
            6 => _ = talks.pop(),
            7 => {
                if let Some(talk) = talks.last() {
                    _ = talk.set_timer(Duration::from_millis(stage.below(3) as u64));
                }
            }
            8 => _ = world.advance(),
            9 if stage.one_in(40) => world.queues[side].close(),
            10 => pause().await,
            _ => {
                if let Ok(turn) = wait(world.queues[side].receive()).await {
                    serve(stage, turn).await;
                }
            }
        }
    }
}

#[test]
fn dialogs() {
    seeds(|seed| {
        let world = World::new(seed);
        let actor = |stage| Box::pin(act(stage, &world)) as _;
        run(seed, actor, |_| world.end(), &mut None);
        while world.end() {}
        assert!(world.dialogs.is_empty());
        for queue in &world.queues {
            let left = queue.snapshot();
            assert_eq!((left.waiting, left.in_flight), (0, 0));
        }
    });
}
