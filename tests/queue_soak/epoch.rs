//! One queue from its opening to its close, with its lanes, groups and
//! conversations.

use std::sync::{Arc, Mutex, RwLock};

use conversant::limit::{Bypass, Limit};
use conversant::queue::{Builder, Conversation, Group, Lane, Queue};

use super::ledger::{GroupUnits, Ledger, Message};
use super::queue_support::Random;

const GROUPS: usize = 8;
const CONVERSATIONS: usize = 16;

pub(crate) struct Tracked {
    pub(crate) conversation: Arc<Conversation<Message>>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) units: Arc<GroupUnits>,
}

pub(crate) struct Epoch {
    pub(crate) queue: Queue<Message>,
    pub(crate) bounded: bool,
    pub(crate) lanes: [(Limit, Lane<Message>); 3],
    pub(crate) groups: Vec<(Limit, Group<Message>, Arc<GroupUnits>)>,
    all_tracked: Vec<RwLock<Arc<Tracked>>>,
    ledgers: Mutex<Vec<Arc<Ledger>>>,
}

/// The capacity of a queue with a bound.
pub(crate) const CAPACITY: u32 = 60;

fn builder() -> Builder<Message> {
    Queue::builder()
        .quantum(4)
        .bypass(Bypass::AtMost(3))
        .attempts(Limit::AtMost(3))
}

impl Epoch {
    /// With a capacity, or without: with one, most operations take another path.
    pub(crate) fn new(bounded: bool) -> Self {
        let capacity = match bounded {
            true => Limit::AtMost(CAPACITY),
            false => Limit::Unlimited,
        };
        let queue = builder().capacity(capacity).build().unwrap();
        let lanes = [Limit::Unlimited, Limit::AtMost(4), Limit::AtMost(2)];
        let mut weight = 0;
        let lanes = lanes.map(|cap| {
            weight += 1;
            (cap, queue.lane(weight, cap).unwrap())
        });
        let groups: Vec<_> = (0..GROUPS)
            .map(|n| {
                let most = [1, 1, 2, u32::MAX][n % 4];
                let limit = match most {
                    u32::MAX => Limit::Unlimited,
                    n => Limit::AtMost(n),
                };
                let group = lanes[n % 3].1.group(limit, 98 + n as u8 % 4).unwrap();
                (limit, group, GroupUnits::new(most))
            })
            .collect();
        let all_tracked = (0..CONVERSATIONS).map(|n| {
            let (_, group, units) = &groups[n % GROUPS];
            RwLock::new(Arc::new(Tracked {
                conversation: Arc::new(group.conversation().unwrap()),
                ledger: Arc::default(),
                units: units.clone(),
            }))
        });
        let all_tracked: Vec<_> = all_tracked.collect();
        let ledgers = all_tracked
            .iter()
            .map(|tracked| tracked.read().unwrap().ledger.clone());
        let ledgers = Mutex::new(ledgers.collect());
        Self {
            queue,
            bounded,
            lanes,
            groups,
            all_tracked,
            ledgers,
        }
    }

    pub(crate) fn tracked(&self, random: &mut Random) -> Arc<Tracked> {
        self.all_tracked[random.below(CONVERSATIONS)]
            .read()
            .unwrap()
            .clone()
    }

    /// Ends a conversation that is not in use any more, and begins another one: in a group of its
    /// own, or in one of the groups that stay.
    pub(crate) fn replace(&self, random: &mut Random) {
        let slot = &self.all_tracked[random.below(CONVERSATIONS)];
        let (conversation, units) = if random.below(2) == 0 {
            let (_, lane) = &self.lanes[random.below(3)];
            (lane.conversation(), GroupUnits::new(1))
        } else {
            let (_, group, units) = &self.groups[random.below(GROUPS)];
            (group.conversation(), units.clone())
        };
        let Ok(conversation) = conversation else {
            return;
        };
        let ledger = Arc::<Ledger>::default();
        self.ledgers.lock().unwrap().push(ledger.clone());
        let tracked = Arc::new(Tracked {
            conversation: Arc::new(conversation),
            ledger,
            units,
        });
        *slot.write().unwrap() = tracked;
    }

    /// When it is not in use any more: nothing is lost, nothing is left.
    pub(crate) fn check(self) {
        let left = self.queue.snapshot();
        assert_eq!(
            (left.waiting, left.in_flight, left.counts.eligible),
            (0, 0, 0)
        );
        assert_eq!(
            (left.counts.receives.waiting, left.counts.receives.notified),
            (0, 0)
        );
        assert_eq!(
            (left.counts.named.waiting, left.counts.named.notified),
            (0, 0)
        );
        let ledgers = self.ledgers.into_inner().unwrap();
        ledgers.iter().for_each(|ledger| ledger.check_finished());
        drop((self.all_tracked, self.groups, self.lanes));
        assert!(self.queue.snapshot().lanes.is_empty());
    }
}
