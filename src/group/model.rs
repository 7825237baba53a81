//! Loom models of a group's lock, of its last reference and of its last pin.

use super::lock::Lock;
use super::{Group, GroupRef, Groups, KeepsGroups, Mailbox, Pin, Pinned};
use crate::lanes::Lanes;
use crate::limit::{Bypass, Limit};
use crate::sync::{Arc, Mutex, explore, spawn};

/// The next holder sees what the previous one did.
#[test]
fn holders_follow_one_another() {
    explore("holders_follow_one_another", None, || {
        let lock = Arc::new(Lock::new(0));
        let other = lock.clone();
        let other = spawn(move || {
            let mut value = other.lock();
            *value += 1;
            other.set_note(*value);
        });
        assert!(lock.note() <= 1);
        *lock.lock() += 1;
        other.join().unwrap();
        assert_eq!((*lock.lock(), lock.note() > 0), (2, true));
    });
}

type Message = std::sync::Arc<()>;

/// A minimal queue, without rules.
struct Plain(Mutex<Groups<Message, Plain>>);

impl KeepsGroups<Message> for Plain {
    fn unpin(this: &Arc<Self>, pin: Pin<'_, Message, Self>) {
        let group = pin.group;
        this.0.lock().unpin(pin, &mut group.lock());
    }
}

/// A queue with one group, in which a message waits.
fn pinned(message: &Message) -> (Arc<Plain>, Pinned<Message, Plain>) {
    let mut lanes: Lanes<()> = Lanes::new(Bypass::default());
    let lane = lanes.add_lane(1, Limit::Unlimited).unwrap();
    let queue = Arc::new(Plain(Mutex::new(Groups::new())));
    let mailbox = Mailbox::new(lane, Limit::SERIAL, 100, 0);
    let pin = queue.0.lock().add(Group::new(mailbox, false), &queue);
    pin.append(&mut pin.lock(), message.clone());
    (queue, pin)
}

/// Two references end at once. The later one removes the group from its page, with its message.
#[test]
fn the_last_reference_drops_the_group() {
    explore("the_last_reference_drops_the_group", None, || {
        let message = Message::default();
        let (queue, pin) = pinned(&message);
        let (group, other) = (GroupRef::clone(&pin), GroupRef::clone(&pin));
        drop(pin);
        queue.0.lock().remove(&group, &mut group.lock());
        let ends = spawn(move || drop(other));
        drop(group);
        ends.join().unwrap();
        assert_eq!(Message::strong_count(&message), 1);
        assert!(queue.0.lock().all().is_empty());
    });
}

/// Two pins end at once, and nothing else keeps the queue. The later pin drops the queue, and with
/// it the message that waits.
#[test]
fn the_last_pin_lets_the_queue_go() {
    explore("the_last_pin_lets_the_queue_go", None, || {
        let message = Message::default();
        let (queue, pin) = pinned(&message);
        drop(queue);
        let other = pin.another();
        let ends = spawn(move || {
            assert!(other.queue().0.lock().all().len() == 1);
            drop(other);
        });
        let ((), rest) = pin.end_if(|_, _, _| ((), true));
        drop(rest);
        ends.join().unwrap();
        assert_eq!(Message::strong_count(&message), 1);
    });
}
