//! A send that finds sleeping receives looks for whom to wake.

use super::*;

#[test]
fn a_send_to_a_lane_without_room_wakes_nobody() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::SERIAL).unwrap();
    let [a, b] = [(); 2].map(|()| lane.conversation().unwrap());
    a.send(1).unwrap();
    let turn = queue.try_receive().unwrap();
    let mut waiting = [Waiting::new(&queue)];
    b.send(2).unwrap();
    assert_eq!(wake_counts(&waiting), [0]);
    drop(turn);
    assert_eq!(waiting[0].got(), 2);
}

#[test]
fn each_send_to_a_bumped_group_wakes_a_receive() {
    let (queue, lane) = plain();
    let first = lane.conversation().unwrap();
    let bumped = [7, 8, 9].map(|level| {
        let group = lane.group(Limit::SERIAL, 100).unwrap();
        group.bump(level);
        group.conversation().unwrap()
    });
    let waiting: Vec<_> = (0..5).map(|_| Waiting::new(&queue)).collect();
    first.send(0).unwrap();
    for (sent, conversation) in (2..).zip(&bumped) {
        conversation.send(1).unwrap();
        assert_eq!(wake_counts(&waiting).iter().sum::<usize>(), sent);
    }
}

/// Sends when it is woken. By then the next receive is woken.
struct SendsOn {
    conversation: Conversation<u8>,
    next: Arc<WakeCounter>,
    worked: AtomicBool,
}

impl Wake for SendsOn {
    fn wake(self: Arc<Self>) {
        self.conversation.send(3).unwrap();
        self.worked.store(self.next.count() == 1, Ordering::Relaxed);
    }
}

/// The first message is sent, and its receive is not woken yet, when the second one needs the
/// policy lock and so wakes it.
#[test]
fn a_send_in_the_middle_of_a_send_of_many_wakes_for_itself() {
    let (queue, lane) = plain();
    let tiers = queue.lane(1, Limit::Unlimited).unwrap();
    let paused = tiers.group(Limit::AtMost(0), 100).unwrap();
    let special = paused.conversation().unwrap();
    special.send_in(1, 0).unwrap();
    let (next, waker) = WakeCounter::new();
    let sends_on = Arc::new(SendsOn {
        conversation: lane.conversation().unwrap(),
        next,
        worked: AtomicBool::new(false),
    });
    let mut receives = [(); 2].map(|()| queue.receive());
    let wakers = [Waker::from(Arc::clone(&sends_on)), waker];
    for (receive, waker) in receives.iter_mut().zip(&wakers) {
        assert!(poll(receive, waker).is_pending());
    }
    let one = lane.conversation().unwrap();
    queue.send_many([(&one, 1), (&special, 2)]).unwrap();
    assert!(sends_on.worked.load(Ordering::Relaxed));
}
