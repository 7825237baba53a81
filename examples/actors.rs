//! 100,000 actors over one queue. Each handles its messages in order, one at a time, on any
//! free thread, and sends to others. The program ends when no message is in flight.
//!
//! `cargo run --release --example actors`

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel};
use std::thread;

use conversant::prelude::*;

const ACTORS: usize = 100_000;
const RUMOURS: usize = 100;

#[derive(Clone, Copy)]
enum Message {
    /// How many actors have passed it on.
    Rumour(usize),
    Thanks,
}

/// What an actor has received.
#[derive(Default)]
struct State {
    rumours: u64,
    thanks: u64,
}

struct Actor {
    /// A message has the number of its actor.
    mail: Conversation<(usize, Message)>,
    state: Mutex<State>,
}

struct World {
    queue: Queue<(usize, Message)>,
    actors: Vec<Actor>,
    /// Messages that were sent and are not done.
    under_way: AtomicU64,
}

impl World {
    fn send(&self, to: usize, message: Message) {
        self.under_way.fetch_add(1, AcqRel);
        let sent = self.actors[to % ACTORS].mail.send((to % ACTORS, message));
        sent.map_err(|refused| refused.reason).expect("it is open");
    }

    /// One message is done; the last one closes the queue.
    fn done(&self) {
        if self.under_way.fetch_sub(1, AcqRel) == 1 {
            self.queue.close();
        }
    }

    fn handle(&self, me: usize, message: Message) {
        // No other thread holds it: a conversation has one turn at a time.
        let mut state = self.actors[me].state.try_lock().expect("one at a time");
        match message {
            Message::Rumour(passed) => {
                state.rumours += 1;
                if passed > 0 {
                    self.send(me + ACTORS - RUMOURS, Message::Thanks);
                }
                if (passed + 1) * RUMOURS < ACTORS {
                    self.send(me + RUMOURS, Message::Rumour(passed + 1));
                }
            }
            Message::Thanks => state.thanks += 1,
        }
    }

    fn work(&self) {
        while let Ok(turns) = self.queue.receive_many(32).wait() {
            for mut turn in turns {
                while let Some(delivery) = turn.next() {
                    let (me, message) = *delivery;
                    self.handle(me, message);
                    delivery.complete();
                    self.done();
                }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited)?;
    let mut actors = Vec::new();
    for _ in 0..ACTORS {
        let (mail, state) = (lane.conversation()?, Mutex::default());
        actors.push(Actor { mail, state });
    }
    // Counts as one message until all rumours are sent.
    let under_way = AtomicU64::new(1);
    let world = World {
        queue,
        actors,
        under_way,
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| world.work());
        }
        for first in 0..RUMOURS {
            world.send(first, Message::Rumour(0));
        }
        world.done();
    });
    let (mut rumours, mut thanks) = (0, 0);
    for actor in world.actors {
        let state = actor.state.into_inner()?;
        (rumours, thanks) = (rumours + state.rumours, thanks + state.thanks);
    }
    println!("{ACTORS} actors: {rumours} rumours, {thanks} thanks");
    Ok(())
}
