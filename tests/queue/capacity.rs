//! Queues that hold no more than they were told, by key; the rest is in
//! `queue_suite/capacity.rs`.

use crate::queue_support;

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Queue, SendReason};

use queue_support::serve;

#[test]
fn by_key_too() {
    let queue = Queue::builder().capacity(Limit::AtMost(1)).build().unwrap();
    let orders = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap());
    orders.send("anna", 1).unwrap();
    let refused = orders.send("bert", 2).unwrap_err();
    assert_eq!((refused.message, refused.reason), (2, SendReason::Full));
    assert_eq!(serve(&queue), [1]);
    assert!(orders.is_empty(), "a key that was refused leaves nothing");
}
