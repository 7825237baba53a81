//! Tests that need the inside of a dialog.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use super::hub::Hub;
use super::side::{Endpoint, EndpointRef, Received, Talk};
use super::{Dialogs, Event};
use crate::group::tests::steps;
use crate::limit::Limit;
use crate::queue::Queue;
use crate::sync::Mutex;

/// What may cross threads, and why.
///
/// Messages go through the mutexes of queues by value: they must be `Send`, and
/// need not be `Sync`. A received event lends its message out by reference.
const _: () = {
    const fn send_and_sync<H: Send + Sync>() {}
    const fn send<H: Send>() {}

    /// Stands for any message that is `Send` and no more.
    type OnlySend = std::cell::Cell<u8>;

    send_and_sync::<Dialogs<OnlySend>>();
    send_and_sync::<Endpoint<OnlySend>>();
    send_and_sync::<EndpointRef<OnlySend>>();
    send::<Received<OnlySend>>();
    send_and_sync::<Received<u8>>();
};

/// Ends the far side when it is woken.
struct Ends(Mutex<Option<EndpointRef<u8>>>);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        let side = self.0.lock().take();
        side.map(|side| side.end_by(Event::End));
    }
}

/// A queue is dropped while a dialog begins. The other side has ended by the time that it is to
/// register with its own queue.
#[test]
fn a_side_that_has_ended_watches_no_queue() {
    let (near, far) = (Queue::<Received<u8>>::new(), Queue::<Received<u8>>::new());
    let lanes = [&near, &far].map(|queue| queue.lane(1, Limit::Unlimited).unwrap());
    let [one, other] = &lanes;
    let side = Talk::begin(&Arc::new(Hub::new()), [one.into(), other.into()]).unwrap();
    let alive = Arc::downgrade(&side.talk);
    let waker = Waker::from(Arc::new(Ends(Mutex::new(Some(side.opposite())))));
    let mut receive = Box::pin(far.receive());
    assert!(
        receive
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(near);
    side.watch_queue();
    side.opposite().watch_queue();
    drop((side, receive));
    while far.try_receive().is_ok() {}
    assert!(alive.upgrade().is_none(), "its queue keeps nothing of it");
}

/// Sides that share a group end, the last first, while a message waits for each. An end leaves the
/// messages of the other sides where they are.
#[test]
fn ends_look_at_what_waits_for_others_where_it_is() {
    const SIDES: usize = 300;
    let queue = Queue::<Received<u8>>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let dialogs = Dialogs::new();
    let pair = || dialogs.pair(&lane, &group).unwrap();
    let pairs: Vec<_> = (0..SIDES).map(|_| pair()).collect();
    for (near, _) in &pairs {
        near.send(1).unwrap();
    }
    let before = steps();
    for (left, (_, far)) in pairs.iter().enumerate().rev() {
        far.end().unwrap();
        assert_eq!(group.waiting(), left);
    }
    let steps = steps() - before;
    assert!(steps <= 3 * SIDES, "{steps} steps");
}
