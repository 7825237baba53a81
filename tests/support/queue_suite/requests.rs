//! SEMANTICS 1E: a hundred requests, every tenth of them bumped.

use conversant::limit::{Bypass, Limit};

use super::super::form::{Conversation, Queue};
use super::{conversation, serve, take};

/// Requests 0..100, each on its own conversation; every tenth but 0 is bumped to its own number.
struct Requests {
    queue: Queue<u8>,
    conversations: Vec<Conversation<u8>>,
}

impl Requests {
    fn new(bypass: Bypass) -> Self {
        let queue = Queue::builder().bypass(bypass).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let conversations = (0..100).map(|_| lane.conversation().unwrap()).collect();
        Self {
            queue,
            conversations,
        }
    }

    fn send(&self, numbers: std::ops::RangeInclusive<u8>) {
        for n in numbers {
            let conversation = &self.conversations[usize::from(n)];
            conversation.send(n).unwrap();
            if n > 0 && n % 10 == 0 {
                self.queue.bump(conversation.group_id(), n).unwrap();
            }
        }
    }
}

fn plain_numbers() -> impl Iterator<Item = u8> {
    (1..100).filter(|n| n % 10 != 0)
}

#[test]
fn e1_the_script() {
    let requests = Requests::new(Bypass::default());
    requests.send(0..=0);
    let mut a = take(&requests.queue).unwrap();
    requests.send(1..=80);
    let mut b = take(&requests.queue).unwrap();
    requests.send(81..=99);
    let (mut by_a, mut by_b) = (vec![*a], vec![*b]);
    // Two seconds each, A always a little earlier: they take turns.
    loop {
        a.complete();
        let Some(next) = take(&requests.queue) else {
            break;
        };
        by_a.push(*next);
        a = next;
        b.complete();
        let Some(next) = take(&requests.queue) else {
            break;
        };
        by_b.push(*next);
        b = next;
    }
    let mut order = vec![0, 80, 90, 70, 60, 50, 40, 30, 20, 10];
    order.extend(plain_numbers());
    let every = |from: usize| order.iter().skip(from).step_by(2).copied();
    assert!(by_a.iter().copied().eq(every(0)));
    assert!(by_b.iter().copied().eq(every(1)));
    assert_eq!(by_a[..9], [0, 90, 60, 40, 20, 1, 3, 5, 7]);
    assert_eq!(by_b[..8], [80, 70, 50, 30, 10, 2, 4, 6]);
}

#[test]
fn e2_all_bumps_before_the_second_dispatch() {
    let requests = Requests::new(Bypass::default());
    requests.send(0..=0);
    let first = take(&requests.queue).unwrap();
    requests.send(1..=99);
    let mut order = vec![first.complete()];
    order.extend(serve(&requests.queue));
    let mut expected = vec![0, 90, 80, 70, 60, 50, 40, 30, 20, 10];
    expected.extend(plain_numbers());
    assert_eq!(order, expected);
}

/// The order of E.1 and E.2 needs K >= 9: with 8 the ninth overtaking is not allowed.
#[test]
fn e6_the_bypass() {
    for (k, tenth) in [(9, 10), (8, 1)] {
        let requests = Requests::new(Bypass::AtMost(k));
        requests.send(0..=0);
        let first = take(&requests.queue).unwrap();
        requests.send(1..=99);
        first.complete();
        assert_eq!(serve(&requests.queue)[8], tenth);
    }
    // A bypass of 0 is strict order of age.
    let requests = Requests::new(Bypass::AtMost(0));
    requests.send(0..=99);
    assert!(serve(&requests.queue).into_iter().eq(0..100));
    // Unbounded: the oldest may wait as long as the order of rank says.
    let (queue, lane) = {
        let queue = Queue::builder().bypass(Bypass::Unbounded).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        (queue, lane)
    };
    let low = conversation(&lane, Limit::SERIAL, 0);
    let high = conversation(&lane, Limit::SERIAL, 1);
    low.send(0).unwrap();
    for n in 1..=200 {
        high.send(n).unwrap();
        assert_eq!(take(&queue).unwrap().complete(), n);
    }
    assert_eq!(serve(&queue), [0]);
}
