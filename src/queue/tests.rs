//! Tests that need the private parts of a queue.

use super::holders::Holders;
use super::named::ReceiveFrom;
use super::receive::Receiving;
use super::send_wait::ToSend;
use super::submissions::{Posted, Submissions, Token};
use super::*;
use crate::group::tests::steps;
use crate::sync::Ordering;
use crate::wait::Wait;
use crate::wait::tests::heap::held_by_this_thread;

/// Which types may cross threads, and why.
///
/// Handles reach messages only through the queue's locks, and messages come out by value: they
/// must be `Send`, but need not be `Sync`. A delivery holds a message and lends it by
/// reference, so it is `Sync` only if the message is. A turn or a waiting send may hold one
/// too, and has the same bound.
const _: () = {
    const fn send_and_sync<H: Send + Sync>() {}
    const fn send<H: Send>() {}

    /// Stands for any message that is `Send` and no more.
    type OnlySend = std::cell::Cell<u8>;

    send_and_sync::<Queue<OnlySend>>();
    send_and_sync::<Lane<OnlySend>>();
    send_and_sync::<Group<OnlySend>>();
    send_and_sync::<Conversation<OnlySend>>();
    send_and_sync::<Wait<Receiving<'_, OnlySend, Turn<'_, OnlySend>>>>();
    send_and_sync::<Wait<ReceiveFrom<'_, OnlySend>>>();
    send::<Turn<'_, OnlySend>>();
    send::<Turns<'_, OnlySend>>();
    send::<Delivery<'_, OnlySend>>();
    send::<Detached<OnlySend>>();
    send::<Peek<OnlySend>>();
    send_and_sync::<Turn<'_, u8>>();
    send_and_sync::<Delivery<'_, u8>>();
    send_and_sync::<Detached<u8>>();
    send_and_sync::<Peek<u8>>();

    // No user code runs while a handle or its queue is in a broken state.
    const fn unwind_safe<H: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    unwind_safe::<Queue<OnlySend>>();
    unwind_safe::<Conversation<OnlySend>>();

    // A waiting send holds its messages.
    send::<Wait<ToSend<'_, OnlySend, OnlySend>>>();
    send::<Wait<ToSend<'_, OnlySend, Vec<OnlySend>>>>();
    send_and_sync::<Wait<ToSend<'_, u8, u8>>>();
    send_and_sync::<Wait<ToSend<'_, u8, Vec<u8>>>>();
};

const LONG: usize = Submissions::<u8>::LONG;

/// A post that makes the list long says so, each time that it becomes longer by `LONG`.
#[test]
fn each_long_list_is_told_of() {
    let submissions = Submissions::<u8>::new();
    for posted in 1..=2 * LONG {
        let expected = match posted % LONG {
            0 => Posted::Long,
            _ => Posted::Kept,
        };
        let (ticket, told) = submissions.post(Token {
            ticket: 0,
            group: None,
            link: posted as u32,
            level: 0,
            units: 1,
        });
        assert_eq!((ticket, told), (posted as u64, expected));
    }
}

/// A queue keeps nothing of threads that have ended.
#[test]
fn threads_that_have_ended_are_forgotten() {
    let holders = Holders::new();
    for _ in 0..20 {
        std::thread::scope(|scope| {
            let receives = || holders.hold().let_go(&holders);
            scope.spawn(receives).join().unwrap();
        });
    }
    let known = holders.known.lock().len();
    assert!(known <= 2, "{known}");
}

/// Thread-locals are destroyed one after the other, and the counts are among them.
#[test]
fn a_thread_that_ends_knows_what_it_holds_of_its_latest_queue() {
    use std::sync::mpsc::{Sender, channel};
    struct AtEnd(std::sync::Arc<Holders>, Sender<bool>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.1.send(self.0.is_own()).unwrap();
        }
    }
    thread_local! {
        static FIRST: std::cell::OnceCell<AtEnd> = const { std::cell::OnceCell::new() };
        static LAST: std::cell::OnceCell<AtEnd> = const { std::cell::OnceCell::new() };
    }
    for finished in [false, true] {
        let holders = std::sync::Arc::new(Holders::new());
        let (told, tells) = channel();
        let (holds, held) = channel();
        let (go, may_end) = channel::<()>();
        let of = holders.clone();
        let thread = std::thread::spawn(move || {
            let at_end = || AtEnd(of.clone(), told.clone());
            assert!(FIRST.with(|first| first.set(at_end())).is_ok());
            holds.send(of.hold()).unwrap();
            assert!(LAST.with(|last| last.set(at_end())).is_ok());
            may_end.recv().unwrap();
        });
        let mut held = held.recv().unwrap();
        if finished {
            held.let_go(&holders);
        }
        go.send(()).unwrap();
        thread.join().unwrap();
        assert!(tells.iter().eq([!finished; 2]), "finished: {finished}");
    }
}

/// So many queues that the test would not end if each receive looked at all of them.
#[test]
fn one_thread_holds_something_of_each_of_many_queues() {
    let queues: Vec<_> = (0..100_000).map(|_| Holders::new()).collect();
    let live: Vec<_> = queues.iter().map(Holders::hold).collect();
    assert!(queues.iter().all(Holders::is_own));
    for (mut holder, queue) in live.into_iter().zip(&queues) {
        holder.let_go(queue);
    }
    assert!(!queues.iter().any(Holders::is_own));
}

/// A thread keeps little of queues that are gone, also while it holds something of others.
#[test]
fn queues_that_are_gone_are_forgotten() {
    for stay in [0, 1, 20] {
        let stay: Vec<_> = (0..stay).map(|_| Holders::new()).collect();
        let mut live: Vec<_> = stay.iter().map(Holders::hold).collect();
        let before = held_by_this_thread();
        for _ in 0..1_000 {
            let brief = Holders::new();
            brief.hold().let_go(&brief);
        }
        let more = held_by_this_thread() - before;
        assert!(more < 4 * 1_024, "{} stay: {more} bytes more", stay.len());
        assert!(stay.iter().all(Holders::is_own));
        live.iter_mut()
            .zip(&stay)
            .for_each(|(one, of)| one.let_go(of));
    }
}

/// While no thread receives, senders take the list in.
#[test]
fn a_long_list_is_taken_in() {
    let queue = Queue::<u8>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let all: Vec<_> = (0..LONG).map(|_| lane.conversation().unwrap()).collect();
    let submissions = &queue.shared().submissions;
    for (n, conversation) in (1..).zip(&all) {
        conversation.send(0).unwrap();
        assert_eq!(submissions.has_some(), n < LONG);
    }
}

/// `Debug` writes to user code, which may call the queue.
#[test]
fn debug_writes_under_no_lock() {
    use std::fmt::Write;
    struct Nosy<'q>(&'q Queue<u8>);
    impl Write for Nosy<'_> {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            assert!(!self.0.is_closed());
            Ok(())
        }
    }
    let queue = Queue::new();
    write!(Nosy(&queue), "{queue:?}").unwrap();
}

/// A queue without handles lives while one of its groups has a pin.
#[test]
fn the_last_pin_lets_the_queue_go() {
    let queue = Queue::<u8>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let alive = Arc::downgrade(lane.shared());
    let one = lane.conversation().unwrap();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let two = group.conversation().unwrap();
    drop((queue, lane, one));
    assert!(alive.upgrade().is_some());
    drop(group);
    assert!(alive.upgrade().is_some(), "its other pin is left");
    drop(two);
    assert!(alive.upgrade().is_none());
}

/// The delivery has the only pin of its group, whose conversation has ended. The queue's
/// handles are dropped before it or after it.
#[test]
fn a_detached_delivery_pins_its_group() {
    for (completes, first) in [(true, true), (true, false), (false, true), (false, false)] {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let alive = Arc::downgrade(lane.shared());
        lane.conversation().unwrap().send(1).unwrap();
        let mut turn = queue.try_receive().unwrap();
        let delivery = turn.next().unwrap().detach();
        drop(turn);
        let mut handles = Some((queue, lane));
        if first {
            handles = None;
        }
        assert!(alive.upgrade().is_some());
        if completes {
            assert_eq!(delivery.complete(), 1);
        } else {
            delivery.give_back();
        }
        drop(handles);
        assert!(alive.upgrade().is_none());
    }
}

/// The messages behind it stay where they are.
#[test]
fn a_failed_message_is_taken_out_alone() {
    let cost = |behind: u32| {
        let queue = Queue::builder().attempts(1).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let conversation = lane.conversation().unwrap();
        conversation.send_all(0..=behind).unwrap();
        queue.try_receive().unwrap().next().unwrap().give_back();
        let before = steps();
        let failed = queue.take_failed(conversation.group_id()).unwrap();
        let cost = steps() - before;
        assert_eq!((failed, conversation.send(behind + 1)), (Some(0), Ok(())));
        assert!(queue.shutdown().into_iter().eq(1..=behind + 1));
        cost
    };
    assert_eq!(cost(100), cost(10_000));
}

/// The groups of other lanes cost nothing, except those in the same pages.
#[test]
fn a_lane_finds_its_groups() {
    let queue = Queue::<u8>::new();
    let others = queue.lane(1, Limit::Unlimited).unwrap();
    let some = || -> Vec<_> {
        (0..10_000)
            .map(|_| others.conversation().unwrap())
            .collect()
    };
    let before = some();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let cost = |lane: &Lane<u8>| {
        let before = steps();
        lane.set_capacity(5).unwrap();
        lane.set_cap(5).unwrap();
        lane.set_capacity(Limit::Unlimited).unwrap();
        steps() - before
    };
    assert_eq!(cost(&lane), 0, "it has none");
    let conversations = [lane.conversation().unwrap(), lane.conversation().unwrap()];
    let after = some();
    conversations[1].send_in(1, 1).unwrap();
    assert!(cost(&lane) <= 4 * 128, "{}", cost(&lane));
    lane.set_capacity(2).unwrap();
    conversations[0].send(2).unwrap();
    for conversation in conversations {
        let refused = conversation.send(3).unwrap_err();
        assert_eq!(refused.reason, SendReason::LaneFull);
    }
    drop((before, after));
}

/// An idle group gives up its rare state.
#[test]
fn idle_groups_are_as_small_as_before() {
    for capacity in [Limit::Unlimited, Limit::AtMost(9_999)] {
        let queue = Queue::builder().capacity(capacity).build().unwrap();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let all: Vec<_> = (0..1_000).map(|_| lane.conversation().unwrap()).collect();
        let serve = |fails: bool| {
            for conversation in &all {
                conversation.send(0_u64).unwrap();
            }
            while let Ok(mut turn) = queue.try_receive() {
                let delivery = turn.next().unwrap();
                match fails && delivery.attempt() == 1 {
                    true => delivery.give_back(),
                    false => _ = delivery.complete(),
                }
            }
        };
        serve(false);
        let before = held_by_this_thread();
        let is_as_before = |what| {
            let more = held_by_this_thread() - before;
            assert!(more < 40 * 1_000, "{what}: {more} bytes more");
        };
        serve(true);
        is_as_before("each gave a message back");
        for conversation in &all {
            queue.bump(conversation.group_id(), 200).unwrap();
        }
        serve(false);
        is_as_before("each was bumped");
        for conversation in &all {
            conversation.send(0).unwrap();
            let mut turn = queue.try_receive().unwrap();
            turn.next().unwrap().give_back();
            assert_eq!(turn.next().unwrap().complete(), 0);
        }
        is_as_before("each gave one back that came again in the same turn");
    }
}

/// The permits of a capacity count what waits beyond it as a debt, which must not wrap.
#[test]
fn no_first_capacity_behind_a_backlog_too_long_to_count() {
    let queue = Queue::<u8>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let [one, other] = [(); 2].map(|()| lane.conversation().unwrap());
    let refused = |set: Result<(), OutOfRange>, asked| {
        let refused = set.unwrap_err();
        assert_eq!((refused.asked, refused.most), (asked, 1 << 30));
    };
    let wait = |conversation: &Conversation<u8>, more: usize| {
        let _mailbox = conversation.pin.lock();
        conversation.pin.add_sent(more);
    };
    wait(&one, 1 << 30);
    one.set_capacity(1).unwrap();
    assert_eq!(one.send(1).unwrap_err().reason, SendReason::GroupFull);
    wait(&other, 1);
    refused(lane.set_capacity(1), (1 << 30) + 1);
    assert_eq!((lane.capacity(), other.send(2)), (Limit::Unlimited, Ok(())));
    wait(&other, 1 << 30);
    refused(other.set_capacity(1), (1 << 30) + 2);
    refused(lane.set_capacity(1), (1 << 31) + 2);
    assert_eq!(other.capacity(), Limit::Unlimited);
    one.set_capacity(2).unwrap();
    for (conversation, left) in [(&one, 0), (&other, 1)] {
        let _mailbox = conversation.pin.lock();
        conversation
            .pin
            .remove_waiting(conversation.pin.waiting() - left);
    }
    lane.set_capacity(1).unwrap();
    assert_eq!(other.send(3).unwrap_err().reason, SendReason::LaneFull);
}

/// A turn looks at the cap though it was set 2^32 times meanwhile.
#[test]
fn the_epoch_does_not_begin_again() {
    let queue = Queue::new();
    let lane = queue.lane(1, 2).unwrap();
    let conversations = [(); 2].map(|()| lane.conversation().unwrap());
    for conversation in &conversations {
        conversation.send_all([1, 2]).unwrap();
    }
    let mut turns = [(); 2].map(|()| queue.try_receive().unwrap());
    for turn in &mut turns {
        turn.next().unwrap().complete();
    }
    lane.set_cap(1).unwrap();
    let epoch = &queue.shared().epoch;
    epoch.fetch_add(u32::MAX.into(), Ordering::Relaxed);
    assert!(turns[0].next().is_none());
}

/// Without a pause, only the group's lock is needed.
#[test]
fn a_batch_is_given_back_without_the_queues_lock() {
    let queue = Queue::builder().attempts(2).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    conversation.send_all([1, 2, 3]).unwrap();
    let mut turn = queue.try_receive().unwrap().into_owned();
    let (ends, ended) = std::sync::mpsc::channel();
    let turn = queue.shared().with_state(|_| {
        std::thread::spawn(move || {
            turn.next_batch(3).unwrap().complete_up_to(1);
            ends.send(turn).unwrap();
        });
        ended.recv_timeout(std::time::Duration::from_secs(60))
    });
    let mut turn = turn.expect("it waits for the queue's lock");
    let again = turn.next_batch(3).unwrap();
    assert_eq!(again.attempt(), 2);
    assert!(again.complete().eq([2, 3]));
}
