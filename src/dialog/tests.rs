//! What only the inside of a dialog can see.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use super::Event;
use super::hub::Hub;
use super::side::{EndpointRef, Received, Talk};
use crate::limit::Limit;
use crate::queue::Queue;
use crate::sync::Mutex;

/// Ends the far side when it is woken.
struct Ends(Mutex<Option<EndpointRef<u8>>>);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        let side = self.0.lock().take();
        side.map(|side| side.end_by(Event::End));
    }
}

/// A queue is dropped while a dialog begins, and the other side has ended by the time that it
/// is to be told of its own.
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
