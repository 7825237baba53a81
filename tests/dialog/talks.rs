//! SEMANTICS 2 on dialogs, sentence by sentence, on one thread.

use crate::queue_support;

mod ends;
mod errors;
mod gone;
mod talk;

use std::time::Duration;

use conversant::dialog::{Dialogs, Endpoint, Event, Fault, Received, Refused};
use conversant::error::Stale;
use conversant::limit::Limit;
use conversant::queue::{Detached, Lane, NoMore, NoTurn, Queue};

use queue_support::{plain, take, turn};

type Side = Received<&'static str>;

/// Two queues, and dialogs between them.
struct World {
    dialogs: Dialogs<&'static str>,
    near: Queue<Side>,
    far: Queue<Side>,
    near_lane: Lane<Side>,
    far_lane: Lane<Side>,
}

impl World {
    fn new() -> Self {
        let ((near, near_lane), (far, far_lane)) = (plain(), plain());
        Self {
            dialogs: Dialogs::new(),
            near,
            far,
            near_lane,
            far_lane,
        }
    }

    fn pair(&self) -> (Endpoint<&'static str>, Endpoint<&'static str>) {
        let pair = self.dialogs.pair(&self.near_lane, &self.far_lane);
        pair.unwrap()
    }

    /// No dialog, no group, no message.
    fn is_clean(&self) -> bool {
        self.dialogs.is_empty() && holds(&self.near) == (0, 0, 0) && holds(&self.far) == (0, 0, 0)
    }
}

/// Messages that wait, messages in flight, and the number of groups.
fn holds(queue: &Queue<Side>) -> (u64, u64, usize) {
    let snapshot = queue.snapshot();
    let groups = snapshot.lanes.iter().map(|lane| lane.groups.len()).sum();
    (snapshot.waiting, snapshot.in_flight, groups)
}

fn fault(code: u32) -> Fault {
    Fault::new(code, "on purpose").unwrap()
}

/// The next event, completed and held.
fn next(queue: &Queue<Side>) -> Option<Side> {
    take(queue).map(Detached::complete)
}

/// All events that can be received now; each is dropped before the next is taken.
fn events(queue: &Queue<Side>) -> Vec<Event<&'static str>> {
    std::iter::from_fn(|| Some(next(queue)?.event)).collect()
}

use Event::{End, Error, Message, Timer};
