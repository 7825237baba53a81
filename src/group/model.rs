//! Loom models of a group's lock, and of the end of its last reference.

use super::lock::spin::Lock;
use super::{Groups, Mailbox};
use crate::lanes::Lanes;
use crate::limit::{Bypass, Limit};
use crate::sync::{Arc, explore, spawn};

/// What one holder did is seen by the next.
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

/// Two references end at once: the later one takes the group out of its page,
/// with its message.
#[test]
fn the_last_reference_drops_the_group() {
    explore("the_last_reference_drops_the_group", None, || {
        let mut lanes: Lanes<()> = Lanes::new(Bypass::default());
        let lane = lanes.add_lane(1, Limit::Unlimited).unwrap();
        let mut groups = Groups::new();
        let group = groups.add(Mailbox::new(lane, Limit::SERIAL, 100, 0));
        let message = std::sync::Arc::new(());
        group.append(&mut group.lock(), message.clone());
        let other = group.clone();
        groups.remove(&group, &mut group.lock());
        let ends = spawn(move || drop(other));
        drop(group);
        ends.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&message), 1);
        assert!(groups.all().is_empty());
    });
}
