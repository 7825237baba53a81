//! PITFALLS "Order and groups", where no thread is needed.

use conversant::error::Stale;
use conversant::limit::Limit;

use super::super::form::{NoMore, NoTurn};
use super::{plain, serve, take, turn};

/// An arrival that races the last completion: it runs, and nothing is stranded.
#[test]
fn arrivals_around_the_last_completion() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let mut held = turn(&queue).unwrap();
    let delivery = held.next().unwrap();
    one.send(2).unwrap();
    delivery.complete();
    drop(held);
    let second = take(&queue).unwrap();
    second.complete();
    one.send(3).unwrap();
    assert_eq!(serve(&queue), [3]);
    assert_eq!(queue.snapshot().waiting, 0);
}

#[test]
fn the_same_key_in_two_queues_is_independent() {
    let (queue, lane) = plain();
    let (other, other_lane) = plain();
    let (a, b) = (
        lane.conversation().unwrap(),
        other_lane.conversation().unwrap(),
    );
    a.send(1).unwrap();
    b.send(2).unwrap();
    let held = take(&queue).unwrap();
    assert_eq!(take(&other).unwrap().complete(), 2);
    // The name of a group of one queue means nothing to the other.
    assert_ne!(a.group_id(), b.group_id());
    assert_eq!(other.bump(a.group_id(), 1), Err(Stale));
    assert_eq!(held.complete(), 1);
}

#[test]
fn a_panicking_handler_frees_its_group() {
    let (queue, lane) = plain();
    lane.set_cap(Limit::SERIAL).unwrap();
    let one = lane.conversation().unwrap();
    one.send_all([1, 2]).unwrap();
    let handler = std::panic::AssertUnwindSafe(|| {
        let mut turn = turn(&queue).unwrap();
        let _delivery = turn.next().unwrap();
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(handler).is_err());
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.counts.eligible), (0, 1));
    let again = take(&queue).unwrap();
    assert_eq!((*again, again.attempt()), (1, 2));
    again.complete();
    assert_eq!(serve(&queue), [2]);
}

#[test]
fn distinct_groups_leave_nothing_behind() {
    let (queue, lane) = plain();
    for n in 0..1_000 {
        lane.conversation().unwrap().send(n).unwrap();
        if n % 3 > 0 {
            take(&queue).unwrap().complete();
        }
    }
    assert_eq!(serve(&queue).len(), 334);
    let snapshot = queue.snapshot();
    assert!(snapshot.lanes[0].groups.is_empty());
    assert_eq!(
        (
            snapshot.waiting,
            snapshot.in_flight,
            snapshot.counts.eligible
        ),
        (0, 0, 0)
    );
}

#[test]
fn arrival_after_an_idle_drain_runs_and_at_the_close_is_a_clean_error() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    assert_eq!(serve(&queue), [1]);
    one.send(2).unwrap();
    assert_eq!(serve(&queue), [2]);
    queue.close();
    assert_eq!(one.send(3).unwrap_err().message, 3);
    assert_eq!(
        queue.try_receive().unwrap_err(),
        NoTurn::Closed(NoMore::Drained)
    );
}
