//! Sends that wait for room: who is told, in what order, and what becomes of the message and of the
//! promised room where the wait ends otherwise. In virtual order: futures polled by hand, wakers
//! counted.

mod queue_support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use conversant::error::TierGoesDown;
use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{
    All, Conversation, Delivery, Lane, Load, One, Queue, SendError, SendReason, Sending,
    SendsStatus,
};
use conversant::wait::Wait;

use queue_support::{Bell, Random, conversation, poll, serve, take};

type Sent<M> = Poll<Result<(), SendError<M>>>;

/// A send that waits, with its bell.
struct Waiting<'a, T, M: Load<T>> {
    wait: Wait<Sending<&'a Conversation<T>, M>>,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<'a, T, M: Load<T>> Waiting<'a, T, M> {
    fn of(wait: Wait<Sending<&'a Conversation<T>, M>>) -> Self {
        let (bell, waker) = Bell::new();
        let mut waiting = Self { wait, bell, waker };
        assert!(waiting.poll().is_pending());
        waiting
    }

    fn poll(&mut self) -> Sent<M::Message> {
        poll(&mut self.wait, &self.waker)
    }

    fn is_sent(&mut self) -> bool {
        matches!(self.poll(), Poll::Ready(Ok(())))
    }

    /// What it was refused for, with the message.
    fn refused(&mut self) -> (M::Message, SendReason) {
        match self.poll() {
            Poll::Ready(Err(error)) => (error.message, error.reason),
            other => panic!("refused, not {}", other.is_ready()),
        }
    }
}

fn one<T>(conversation: &Conversation<T>, message: T) -> Waiting<'_, T, One<T>> {
    Waiting::of(conversation.send_wait(message))
}

fn all<T>(
    conversation: &Conversation<T>,
    messages: impl IntoIterator<Item = T>,
) -> Waiting<'_, T, All<T>> {
    Waiting::of(conversation.send_all_wait(messages))
}

fn rings<T, M: Load<T>, const N: usize>(waiting: [&Waiting<'_, T, M>; N]) -> [usize; N] {
    waiting.map(|w| w.bell.rings())
}

/// A queue with so many places, all taken by a group without a limit.
fn full<T: Default>(capacity: u32) -> (Queue<T>, Lane<T>, Conversation<T>) {
    let (queue, lane) = bounded(capacity);
    let wide = conversation(&lane, Limit::Unlimited, 100);
    wide.send_all((0..capacity).map(|_| T::default())).unwrap();
    (queue, lane, wide)
}

fn bounded<T>(capacity: u32) -> (Queue<T>, Lane<T>) {
    let capacity = Limit::AtMost(capacity);
    let queue = Queue::builder().capacity(capacity).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

fn held<T>(queue: &Queue<T>) -> u64 {
    let picture = queue.snapshot();
    picture.waiting + picture.in_flight
}

fn sends<T>(queue: &Queue<T>) -> (usize, usize, u64) {
    let SendsStatus {
        waiting,
        notified,
        places,
    } = queue.snapshot().sends;
    (waiting, notified, places)
}

fn complete_one<T>(queue: &Queue<T>) -> T {
    take(queue).unwrap().complete()
}

#[test]
fn with_room_it_is_a_send() {
    let (queue, lane) = bounded(2);
    let conversation = lane.conversation().unwrap();
    conversation.send_wait(1).wait().unwrap();
    conversation
        .send_wait(2)
        .wait_timeout(Duration::ZERO)
        .unwrap()
        .unwrap();
    assert_eq!(serve(&queue), [1, 2]);
    // Without a capacity there is always room.
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    conversation.send_all_wait(0..1000).wait().unwrap();
    assert_eq!(serve(&queue).len(), 1000);
}

#[test]
fn one_is_told_for_each_place_in_order_of_waiting() {
    let (queue, _lane, wide) = full::<u32>(3);
    let mut sends: Vec<_> = (1..=5).map(|n| one(&wide, n)).collect();
    let rung = |sends: &[Waiting<'_, _, _>]| -> Vec<usize> {
        sends.iter().map(|w| w.bell.rings()).collect()
    };
    // Given back it keeps its place.
    take(&queue).unwrap().give_back();
    assert_eq!(rung(&sends), [0, 0, 0, 0, 0]);
    let hands = [(); 3].map(|()| take(&queue).unwrap());
    assert_eq!(
        rung(&sends),
        [0, 0, 0, 0, 0],
        "in flight it keeps its place"
    );
    let [first, second, third] = hands;
    first.complete();
    assert_eq!(rung(&sends), [1, 0, 0, 0, 0]);
    second.complete();
    assert_eq!(rung(&sends), [1, 1, 0, 0, 0]);
    // The second is faster, the third was not told: the first keeps its place.
    assert!(sends[1].is_sent());
    assert!(sends[2].poll().is_pending());
    assert_eq!(rung(&sends), [1, 1, 0, 0, 0]);
    assert!(sends[0].is_sent());
    assert_eq!(held(&queue), 3);
    third.complete();
    assert_eq!(rung(&sends), [1, 1, 1, 0, 0]);
    assert!(sends[2].is_sent());
    assert_eq!(complete_one(&queue), 2);
    assert!(sends[3].is_sent());
    assert_eq!(rung(&sends), [1, 1, 1, 1, 0]);
    drop(sends);
    assert_eq!(serve(&queue), [1, 3, 4]);
}

/// An immediate send is refused while the room is somebody's in line, told or not.
#[test]
fn nobody_in_line_is_overtaken() {
    let (queue, lane, wide) = full::<u32>(2);
    let other = lane.conversation().unwrap();
    let mut three = all(&wide, [1, 2]);
    complete_one(&queue);
    assert_eq!(three.bell.rings(), 0, "one place is not enough for two");
    // There is a free place, and those who wait for two come first.
    assert_eq!(other.send(9).unwrap_err().reason, SendReason::Full);
    let mut late = one(&other, 3);
    complete_one(&queue);
    assert_eq!(rings([&three]), [1]);
    assert_eq!(rings([&late]), [0]);
    assert_eq!(other.send(9).unwrap_err().reason, SendReason::Full);
    assert_eq!(held(&queue), 0, "promised, and not taken yet");
    assert!(three.is_sent());
    assert!(late.poll().is_pending());
    assert_eq!(serve(&queue), [1, 2]);
    // Nobody but `late` asks for room, of which there is more.
    other.send(4).unwrap();
    assert!(late.is_sent());
    assert_eq!(serve(&queue), [4, 3]);
}

#[test]
fn by_key_nobody_is_overtaken_either() {
    let (queue, lane, wide) = full::<u32>(1);
    let orders = Keyed::new(lane);
    let mut first = one(&wide, 1);
    complete_one(&queue);
    assert_eq!(orders.send("anna", 2).unwrap_err().reason, SendReason::Full);
    assert!(first.is_sent());
    assert_eq!(serve(&queue), [1]);
    orders.send("anna", 2).unwrap();
}

#[test]
fn one_that_is_never_polled_keeps_its_own_room_and_no_more() {
    let (queue, _lane, wide) = full::<u32>(2);
    let (mut lazy, mut next) = (one(&wide, 1), one(&wide, 2));
    let mut last = one(&wide, 3);
    complete_one(&queue);
    assert_eq!(sends(&queue), (2, 1, 3));
    complete_one(&queue);
    assert_eq!(rings([&next, &last]), [1, 0]);
    assert!(next.is_sent());
    assert_eq!(complete_one(&queue), 2);
    assert_eq!(rings([&next, &last]), [1, 1]);
    assert!(last.is_sent());
    assert_eq!(sends(&queue), (0, 1, 1), "a snapshot names it");
    assert!(lazy.is_sent());
    assert_eq!(sends(&queue), (0, 0, 0));
    assert_eq!(serve(&queue), [3, 1]);
}

#[test]
fn several_wait_for_all_their_places_at_once() {
    let (queue, lane, wide) = full::<u32>(3);
    let mut three = all(&wide, [1, 2, 3]);
    assert_eq!(sends(&queue), (1, 0, 3));
    complete_one(&queue);
    complete_one(&queue);
    assert_eq!(three.bell.rings(), 0);
    complete_one(&queue);
    assert_eq!(three.bell.rings(), 1);
    assert!(three.is_sent());
    // As one: a second conversation's message comes after.
    let mut next = one(&wide, 4);
    assert_eq!(complete_one(&queue), 1);
    assert!(next.is_sent());
    assert_eq!(serve(&queue), [2, 3, 4]);
    // None at all need no room, and more than there ever is are refused at once.
    wide.send_all([5, 6, 7]).unwrap();
    wide.send_all_wait([]).wait().unwrap();
    let many = wide.send_all_wait(0..4).wait().unwrap_err();
    assert_eq!(
        (many.message, many.reason),
        (vec![0, 1, 2, 3], SendReason::AboveCapacity)
    );
    assert_eq!(
        wide.send_all(0..4).unwrap_err().reason,
        SendReason::AboveCapacity
    );
    drop(lane);
}

/// Before its first poll, waiting, told, done: at none of these is anything lost but the message.
#[test]
fn dropped_at_every_stage() {
    let (queue, _lane, wide) = full::<Arc<()>>(2);
    let message = Arc::new(());
    let alive = || Arc::strong_count(&message) - 1;
    drop(wide.send_wait(message.clone()));
    assert_eq!((alive(), sends(&queue)), (0, (0, 0, 0)));
    // Waiting, and large: who stood behind it goes on at once.
    let large = all(&wide, [message.clone(), message.clone()]);
    let mut small = one(&wide, message.clone());
    complete_one(&queue);
    assert_eq!((rings([&large]), rings([&small])), ([0], [0]));
    drop(large);
    assert_eq!((alive(), rings([&small])), (1, [1]));
    // Told: the next is.
    let next = one(&wide, message.clone());
    assert_eq!(rings([&next]), [0]);
    assert_eq!(sends(&queue), (1, 1, 2));
    assert!(small.poll().is_ready());
    complete_one(&queue);
    assert_eq!(rings([&next]), [1]);
    let mut last = one(&wide, message.clone());
    assert_eq!(rings([&last]), [0]);
    drop(next);
    assert_eq!((alive(), rings([&last])), (2, [1]));
    assert!(last.is_sent());
    // Done: it has nothing to give back.
    drop((small, last));
    assert_eq!((alive(), held(&queue), sends(&queue)), (2, 2, (0, 0, 0)));
    drop(serve(&queue));
    assert_eq!(alive(), 0);
}

#[test]
fn the_message_can_be_had_back_at_every_stage() {
    let (queue, _lane, wide) = full::<u32>(1);
    assert_eq!(wide.send_wait(1).into_message(), Some(1));
    let waiting = one(&wide, 2);
    assert_eq!(waiting.wait.into_message(), Some(2));
    let (told, mut next) = (all(&wide, [3]), one(&wide, 4));
    complete_one(&queue);
    assert_eq!(told.wait.into_message(), Some(vec![3]));
    assert_eq!(next.bell.rings(), 1);
    assert!(next.is_sent());
    assert_eq!(next.wait.into_message(), None, "it is in the queue");
    let mut refused = one(&wide, 5);
    queue.close();
    assert_eq!(refused.refused(), (5, SendReason::Closed));
    assert_eq!(refused.wait.into_message(), None, "it came with the error");
}

#[test]
fn a_time_out_gives_the_message_back_and_the_place_up() {
    let (queue, _lane, wide) = full::<u32>(1);
    let late = wide.send_wait(1).give_back_after(Duration::ZERO);
    let late = late.unwrap_err();
    assert_eq!((late.message, late.reason), (1, SendReason::TimedOut));
    let late = wide.send_all_wait([2]).give_back_at(Instant::now());
    assert_eq!(late.unwrap_err().message, [2]);
    assert!(wide.send_wait(3).wait_timeout(Duration::ZERO).is_err());
    assert_eq!(sends(&queue), (0, 0, 0));
    complete_one(&queue);
    wide.send_wait(4).give_back_after(Duration::ZERO).unwrap();
    let closed = {
        queue.close();
        wide.send_wait(5).give_back_after(Duration::MAX)
    };
    assert_eq!(closed.unwrap_err().reason, SendReason::Closed);
}

/// More than a batch of wakers holds.
#[test]
fn close_gives_all_their_messages_back() {
    let (queue, lane, wide) = full::<usize>(3);
    let other = lane.conversation().unwrap();
    let mut told = one(&wide, 100);
    complete_one(&queue);
    let mut several = all(&other, [200, 201, 202]);
    let mut sends: Vec<_> = (0..80).map(|n| one(&wide, n)).collect();
    queue.close();
    for (n, waiting) in sends.iter_mut().enumerate() {
        assert_eq!(waiting.bell.rings(), 1);
        assert_eq!(waiting.refused(), (n, SendReason::Closed));
    }
    assert_eq!(told.bell.rings(), 1, "told only once");
    assert_eq!(told.refused(), (100, SendReason::Closed));
    assert_eq!(several.refused(), (vec![200, 201, 202], SendReason::Closed));
    assert_eq!(self::sends(&queue), (0, 0, 0));
    assert_eq!(serve(&queue).len(), 2);
}

#[test]
fn to_drop_the_queue_gives_them_back_too() {
    let (queue, _lane, wide) = full::<u32>(1);
    let mut waiting = one(&wide, 1);
    drop(queue);
    assert_eq!(waiting.bell.rings(), 1);
    assert_eq!(waiting.refused(), (1, SendReason::Closed));
}

#[test]
fn to_end_a_conversation_gives_back_what_waits_on_it_and_on_no_other() {
    let (queue, lane, wide) = full::<u32>(2);
    let ending = lane.conversation().unwrap();
    let mut told = one(&ending, 1);
    complete_one(&queue);
    let (mut waiting, mut other) = (one(&ending, 2), one(&wide, 3));
    assert_eq!(sends(&queue), (2, 1, 3));
    ending.end();
    assert_eq!(rings([&told, &waiting]), [1, 1]);
    // Its room is the next one's at once, also before it has looked.
    assert_eq!((sends(&queue), rings([&other])), ((0, 3, 1), [1]));
    assert!(other.is_sent());
    assert_eq!(told.refused(), (1, SendReason::Ended));
    assert_eq!(waiting.refused(), (2, SendReason::Ended));
    assert_eq!(sends(&queue), (0, 0, 0));
    assert_eq!(
        ending.send_wait(4).wait().unwrap_err().reason,
        SendReason::Ended
    );
    ending.end();
    assert_eq!(serve(&queue), [0, 3]);
}

/// Whatever takes a message out makes room.
#[test]
fn room_comes_from_everything_that_takes_out() {
    let (queue, _lane, wide) = full::<u32>(2);
    let mut waiting = one(&wide, 1);
    assert_eq!(queue.drain(wide.group()), Ok(vec![0, 0]));
    assert!(waiting.is_sent());
    wide.send(2).unwrap();
    // In vain five times: poisoned, it keeps its place until it is drained.
    let mut waiting = one(&wide, 3);
    for _ in 0..5 {
        take(&queue).unwrap().give_back();
    }
    assert_eq!(queue.poisoned().len(), 1);
    assert_eq!(waiting.bell.rings(), 0);
    assert_eq!(queue.drain(wide.group()), Ok(vec![1, 2]));
    assert_eq!(waiting.bell.rings(), 1);
    assert!(waiting.is_sent());
    // In flight while its queue is gone: it goes with its delivery.
    assert_eq!(queue.shutdown(), [3]);
}

#[test]
fn the_tier_is_that_of_the_moment_and_can_be_said() {
    let (queue, _lane, wide) = full::<u32>(2);
    wide.send_in(3, 9).unwrap_err();
    let mut down = Waiting::of(wide.send_wait(1).in_tier(1));
    let mut last = one(&wide, 2);
    let mut up = Waiting::of(wide.send_wait(3).in_tier(7));
    assert_eq!(queue.drain(wide.group()), Ok(vec![0, 0]));
    // One of these two was faster, and its tier does not go down.
    assert!(down.is_sent());
    assert!(last.is_sent());
    let tiers = |queue| {
        let delivery: Delivery<u32> = take(queue).unwrap();
        (delivery.tier(), delivery.complete())
    };
    assert_eq!(tiers(&queue), (1, 1));
    assert!(up.is_sent());
    let mut down = Waiting::of(wide.send_wait(4).in_tier(2));
    let mut next = one(&wide, 5);
    assert_eq!(tiers(&queue), (1, 2));
    assert_eq!(rings([&down, &next]), [1, 0]);
    let reason = SendReason::TierGoesDown(TierGoesDown { last: 7, asked: 2 });
    assert_eq!(down.refused(), (4, reason));
    assert_eq!(next.bell.rings(), 1, "its room is the next one's");
    assert!(next.is_sent());
    assert_eq!(tiers(&queue), (7, 3));
    assert_eq!(tiers(&queue), (7, 5));
}

#[test]
fn an_owned_wait_keeps_its_conversation() {
    let (queue, _lane, wide) = full::<u32>(2);
    let wide = Arc::new(wide);
    let (_, waker) = Bell::new();
    let mut first = Conversation::send_wait_owned(&wide, 1);
    let mut second = Conversation::send_all_wait_owned(&wide, [2]);
    drop(wide);
    assert!(poll(&mut first, &waker).is_pending());
    assert!(poll(&mut second, &waker).is_pending());
    complete_one(&queue);
    complete_one(&queue);
    assert!(matches!(poll(&mut first, &waker), Poll::Ready(Ok(()))));
    assert!(matches!(poll(&mut second, &waker), Poll::Ready(Ok(()))));
    assert_eq!(serve(&queue), [1, 2]);
}

/// The rule of handlers: only where it would wait, and as long as something received lives.
#[test]
fn a_handler_never_waits_for_room_in_its_own_full_queue() {
    let (queue, lane, wide) = full::<u32>(2);
    let own = |refused: Result<(), SendError<u32>>| {
        let refused = refused.unwrap_err();
        assert_eq!((refused.message, refused.reason), (7, SendReason::OwnQueue));
        assert_eq!(sends(&queue), (0, 0, 0), "it leaves the line");
    };
    let mut turn = queue.try_receive().unwrap();
    own(wide.send_wait(7).wait());
    let delivery = turn.next().unwrap();
    own(wide.send_wait(7).wait());
    drop(turn);
    own(wide.send_wait(7).wait());
    // Also one that has stood in line as a task, and one that was told of no room since.
    let waiting = one(&wide, 7);
    own(waiting.wait.wait());
    // Another queue is no concern of this one.
    let (other, _lane, elsewhere) = full::<u32>(1);
    let timed = elsewhere.send_wait(7).give_back_after(Duration::ZERO);
    assert_eq!(timed.unwrap_err().reason, SendReason::TimedOut);
    // A deadline ends a wait, so that it may wait.
    let timed = wide.send_wait(7).give_back_after(Duration::ZERO);
    assert_eq!(timed.unwrap_err().reason, SendReason::TimedOut);
    // Nor would it wait where there is room.
    delivery.complete();
    let delivery = take(&queue).unwrap();
    wide.send_wait(1).wait().unwrap();
    // It counts for the thread that received it, wherever it goes.
    std::thread::scope(|scope| {
        let given = scope.spawn(move || delivery);
        let delivery = given.join().unwrap();
        own(wide.send_wait(7).wait());
        scope.spawn(move || delivery.give_back()).join().unwrap();
    });
    // Nothing is live any more: another thread makes room.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while sends(&queue).0 == 0 {
                std::thread::yield_now();
            }
            complete_one(&queue);
        });
        wide.send_wait(8).wait().unwrap();
    });
    assert_eq!(serve(&queue).last(), Some(&8));
    drop((lane, other));
}

/// A waker that panics when it is woken.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker");
    }
}

/// One that is refused passes its room on to the next, whose waker panics: it keeps its message, and the
/// next its room.
#[test]
fn a_waker_that_panics_loses_no_message_and_no_room() {
    let (queue, lane) = bounded(2);
    let [high, other] = [(); 2].map(|()| conversation(&lane, Limit::Unlimited, 100));
    high.send_in(3, 0).unwrap();
    high.send_in(3, 0).unwrap();
    let mut down = Waiting::of(high.send_wait(1).in_tier(1));
    let mut bad = other.send_wait(2);
    let panics = Waker::from(Arc::new(Panics));
    assert!(poll(&mut bad, &panics).is_pending());
    complete_one(&queue);
    assert_eq!(down.bell.rings(), 1);
    assert!(unwinds(|| down.poll()));
    assert_eq!(sends(&queue), (0, 1, 1));
    assert_eq!(down.wait.into_message(), Some(1));
    // What is sent while a receive's waker panics is sent.
    let mut receive = queue.receive();
    let (_, waker) = Bell::new();
    serve(&queue);
    assert!(poll(&mut receive, &panics).is_pending());
    assert!(unwinds(|| poll(&mut bad, &waker)));
    assert!(matches!(poll(&mut bad, &waker), Poll::Ready(Ok(()))));
    assert_eq!(serve(&queue), [2]);
}

fn unwinds<R>(run: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

/// What the queue does, by a list: who is told, who may send, who is refused, after each of many
/// random events.
#[derive(Default)]
struct Naive {
    held: usize,
    /// By number: the places, and whether it was told.
    line: Vec<(usize, usize, bool)>,
}

impl Naive {
    const CAPACITY: usize = 5;

    fn told(&self) -> usize {
        self.line.iter().filter(|w| w.2).map(|w| w.1).sum()
    }

    fn settle(&mut self) {
        while let Some(at) = self.line.iter().position(|w| !w.2) {
            if self.held + self.told() + self.line[at].1 > Self::CAPACITY {
                break;
            }
            self.line[at].2 = true;
        }
    }

    fn admits(&self, places: usize) -> bool {
        let asked: usize = self.line.iter().map(|w| w.1).sum();
        self.held + asked + places <= Self::CAPACITY
    }

    fn leave(&mut self, number: usize) -> (usize, bool) {
        let at = self.line.iter().position(|w| w.0 == number).unwrap();
        let (_, places, told) = self.line.remove(at);
        (places, told)
    }
}

#[test]
fn as_a_list_has_it() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let (queue, lane) = bounded::<usize>(Naive::CAPACITY as u32);
        let wide = conversation(&lane, Limit::Unlimited, 100);
        let (mut naive, mut hands) = (Naive::default(), Vec::new());
        let mut waits: Vec<(usize, Waiting<'_, usize, All<usize>>)> = Vec::new();
        for number in 0..200 {
            match random.below(8) {
                0 | 1 => {
                    let places = 1 + random.below(3);
                    let wait = wide.send_all_wait(vec![number; places]);
                    let (bell, waker) = Bell::new();
                    let mut waiting = Waiting { wait, bell, waker };
                    assert_eq!(waiting.poll().is_ready(), naive.admits(places));
                    if naive.admits(places) {
                        naive.held += places;
                    } else {
                        naive.line.push((number, places, false));
                        waits.push((number, waiting));
                    }
                }
                2 => {
                    let sent = wide.send(number);
                    assert_eq!(sent.is_ok(), naive.admits(1));
                    naive.held += usize::from(sent.is_ok());
                }
                3 | 4 => hands.extend(take(&queue)),
                5 if !hands.is_empty() => {
                    let hand: Delivery<usize> = hands.swap_remove(random.below(hands.len()));
                    if random.below(3) > 0 {
                        hand.complete();
                        naive.held -= 1;
                    }
                }
                6 if !waits.is_empty() => {
                    let at = random.below(waits.len());
                    let (number, waiting) = &mut waits[at];
                    if waiting.poll().is_ready() {
                        let (places, told) = naive.leave(*number);
                        assert!(told, "sent without having been told");
                        naive.held += places;
                        waits.remove(at);
                    } else {
                        assert!(naive.line.iter().any(|w| w.0 == *number && !w.2));
                    }
                }
                7 if !waits.is_empty() => {
                    let (number, waiting) = waits.remove(random.below(waits.len()));
                    drop(waiting);
                    naive.leave(number);
                }
                _ => {}
            }
            naive.settle();
            assert_eq!(held(&queue), naive.held as u64);
            for (number, waiting) in &waits {
                let told = naive.line.iter().any(|w| w.0 == *number && w.2);
                assert_eq!(waiting.bell.rings(), usize::from(told), "{number}");
            }
        }
    }
}

/// Real threads: never more than the capacity, nothing lost, each conversation in order.
#[test]
fn threads_that_wait_for_room() {
    const EACH: u32 = 2_000;
    const CAPACITY: u32 = 3;
    let (queue, lane) = bounded(CAPACITY);
    let served = Mutex::new(vec![Vec::new(); 4]);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|who| {
                let conversation = lane.conversation().unwrap();
                scope.spawn(move || {
                    for n in 0..EACH {
                        if n % 7 == 0 {
                            let late = conversation.send_wait((who, n));
                            match late.give_back_after(Duration::ZERO) {
                                Ok(()) => continue,
                                Err(late) => assert_eq!(late.reason, SendReason::TimedOut),
                            }
                        }
                        conversation.send_wait((who, n)).wait().unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while let Ok(mut turn) = queue.receive().wait() {
                    while let Some(delivery) = turn.next() {
                        assert!(held(&queue) <= u64::from(CAPACITY));
                        let (who, n): (usize, u32) = *delivery;
                        served.lock().unwrap()[who].push(n);
                        delivery.complete();
                    }
                }
            });
        }
        senders.into_iter().for_each(|s| s.join().unwrap());
        assert_eq!(sends(&queue), (0, 0, 0));
        queue.close();
    });
    for served in served.into_inner().unwrap() {
        assert_eq!(served, (0..EACH).collect::<Vec<_>>());
    }
}
