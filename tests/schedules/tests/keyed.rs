//! Sending by key under random schedules: a group ends while others send to
//! its key.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use conversant_schedules::keyed::Keyed;
use conversant_schedules::limit::Limit;
use conversant_schedules::queue::Queue;
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::schedules;

fn two_senders(capacity: Limit) {
    schedules::explore(move || {
        let queue = Queue::<i32>::builder().capacity(capacity).build().unwrap();
        let orders = Arc::new(Keyed::new(queue.lane(1, Limit::Unlimited).unwrap()));
        let seen = Arc::new(Mutex::new((false, Vec::new())));
        let reading = [(), ()].map(|()| {
            let (queue, seen) = (queue.clone(), seen.clone());
            thread::spawn(move || {
                while let Ok(mut turn) = queue.receive().wait() {
                    while let Some(delivery) = turn.next() {
                        assert!(!std::mem::replace(&mut seen.lock().unwrap().0, true));
                        thread::yield_now();
                        let mut seen = seen.lock().unwrap();
                        seen.0 = false;
                        seen.1.push(*delivery);
                        drop(seen);
                        delivery.complete();
                    }
                }
            })
        });
        let sending = [0, 10].map(|from| {
            let orders = orders.clone();
            thread::spawn(move || {
                for n in from..from + 3 {
                    match capacity {
                        Limit::Unlimited => orders.send("the one key", n).unwrap(),
                        Limit::AtMost(_) => orders.send_wait("the one key", n).wait().unwrap(),
                    }
                }
            })
        });
        schedules::join(sending);
        queue.close();
        schedules::join(reading);
        let served = &seen.lock().unwrap().1;
        let of = |sender: std::ops::Range<i32>| served.iter().filter(move |n| sender.contains(n));
        assert!(
            of(0..10).eq(&[0, 1, 2]) && of(10..20).eq(&[10, 11, 12]),
            "{served:?}"
        );
        assert!(orders.is_empty());
    });
}

#[test]
fn a_group_that_ends_against_two_senders() {
    two_senders(Limit::Unlimited);
}

/// The group has nearly always ended when there is room.
#[test]
fn two_senders_that_wait_for_room() {
    two_senders(Limit::AtMost(1));
}

/// Calls the keyed sender when it is woken.
struct Caller(Arc<Keyed<&'static str, i32>>);

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        _ = self.0.group_id(&"new");
    }
}

/// A thread that makes the group of a new key may find that it must wake other waits.
#[test]
fn a_waker_calls_while_a_key_comes_in() {
    schedules::explore(|| {
        let queue = Queue::<i32>::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let other = lane.conversation().unwrap();
        let orders = Arc::new(Keyed::new(lane));
        let waker = Waker::from(Arc::new(Caller(orders.clone())));
        let mut wait = queue.receive();
        let poll = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        let sending = thread::spawn(move || other.send(1).unwrap());
        orders.send("new", 2).unwrap();
        sending.join().unwrap();
        drop(wait);
        let served =
            std::iter::from_fn(|| queue.try_receive().ok()?.next().map(|one| one.complete()));
        assert_eq!(served.sum::<i32>(), 3);
    });
}
