//! Countdowns that end by themselves: each message sends the next lower number, on any free
//! thread; the last message of all closes the queue.
//!
//! Two workers may interleave in many ways. The model shows that in none of them a message is
//! refused or counted twice, or a worker sleeps for ever.

use conversant::prelude::*;

use sync::{AtomicU32, Ordering::AcqRel};

/// What a model replaces. Nothing else here names std's, loom's or shuttle's types.
mod sync {
    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
    #[cfg(shuttle)]
    pub(crate) use shuttle::sync::atomic::{AtomicU32, Ordering};
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
}

/// Two countdowns, side by side. A message has its countdown and its number.
pub struct Countdowns {
    queue: Queue<(usize, u32)>,
    conversations: [Conversation<(usize, u32)>; 2],
    /// Messages that were sent and are not done.
    under_way: AtomicU32,
}

impl Countdowns {
    /// Both start at this number.
    pub fn new(from: u32) -> Result<Self, Box<dyn std::error::Error>> {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited)?;
        let conversations = [lane.conversation()?, lane.conversation()?];
        for which in [0, 1] {
            conversations[which].send((which, from))?;
        }
        let under_way = AtomicU32::new(2);
        Ok(Self {
            queue,
            conversations,
            under_way,
        })
    }

    /// Works until both countdowns are over. Returns how many numbers it has counted.
    pub fn work(&self) -> u32 {
        let mut counted = 0;
        while let Ok(mut turn) = self.queue.receive().wait() {
            while let Some(delivery) = turn.next() {
                let (which, number) = delivery.complete();
                counted += 1;
                // Sent before this message is done: otherwise the queue might be closed.
                if number > 0 {
                    self.under_way.fetch_add(1, AcqRel);
                    let sent = self.conversations[which].send((which, number - 1));
                    sent.expect("it is open");
                }
                if self.under_way.fetch_sub(1, AcqRel) == 1 {
                    self.queue.close();
                }
            }
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::Countdowns;
    #[cfg(loom)]
    use loom::{sync::Arc, thread};
    #[cfg(shuttle)]
    use shuttle::{sync::Arc, thread};
    #[cfg(not(any(loom, shuttle)))]
    use std::{sync::Arc, thread};

    fn two_workers() {
        let countdowns = Arc::new(Countdowns::new(1).unwrap());
        let other = Arc::clone(&countdowns);
        let other = thread::spawn(move || other.work());
        // A worker that sleeps for ever is found here.
        assert_eq!(countdowns.work() + other.join().unwrap(), 4);
    }

    #[test]
    fn two_workers_count_to_the_end() {
        #[cfg(loom)]
        {
            let mut model = loom::model::Builder::new();
            // All interleavings with at most three preemptions.
            model.preemption_bound = Some(3);
            model.check(two_workers);
        }
        #[cfg(shuttle)]
        shuttle::check_random(two_workers, 1_000);
        #[cfg(not(any(loom, shuttle)))]
        two_workers();
    }
}
