//! Unique names: which job has one, from when until when, and what a push of a taken name gets.

use std::time::Duration;

use conversant::job_queue::{JobQueue, Place, PushError, PushReason, Refused};

type Queue = JobQueue<u32, u32>;

fn once() -> Place {
    Place::new().tenant("shop").unique("report")
}

#[test]
fn a_unique_name_is_taken_until_its_job_is_gone() {
    let queue = Queue::new();
    let shop = queue.tenant("shop");
    let id = queue.push(2, 1, once()).unwrap();
    let duplicate = PushReason::Duplicate(id);
    let refused = queue.push(1, 7, once().group("g")).unwrap_err();
    assert_eq!((refused.content, refused.reason), ((1, 7), duplicate));
    // With another tenant it is another name.
    let other = queue.push(1, 8, Place::new().unique("report")).unwrap();
    let claims = shop.try_claim(1);
    let by_handle = queue.push(1, 9, shop.place().unique("report"));
    assert_eq!(by_handle.unwrap_err().reason, duplicate);
    drop(claims);
    assert_eq!(queue.push(1, 7, once()).unwrap_err().reason, duplicate);
    assert_eq!(queue.remove_all([id, other, id]).len(), 2);
    queue.push(1, 7, once()).unwrap();
    shop.try_claim(1).remove(0).complete().unwrap();
    queue.push(1, 7, once()).unwrap();
}

#[test]
fn of_a_batch_all_names_are_free_or_none_is_pushed() {
    let queue = Queue::new();
    let id = queue.push(1, 7, once()).unwrap();
    let batch = [(5, 5, Place::new()), (6, 6, once()), (7, 7, Place::new())];
    let refused = queue.push_all(batch).unwrap_err();
    assert_eq!(refused.content, [(5, 5), (6, 6), (7, 7)]);
    assert_eq!(refused.reason, PushReason::Duplicate(id));
    assert_eq!(queue.counts().ready, 1, "all or none");
    let batch = [6, 7].map(|n| (n, n, Place::new().unique("twice")));
    let refused = queue.push_all(batch).unwrap_err();
    assert_eq!(refused.content, [(6, 6), (7, 7)]);
    assert_eq!(refused.reason, PushReason::DuplicateInBatch);
    assert_eq!(queue.counts().ready, 1);
}

#[test]
fn a_dead_job_has_its_name_no_more() {
    let queue = Queue::new();
    let dead = queue.push(1, 1, once()).unwrap();
    queue.try_claim(1).remove(0).fail_for_good().unwrap();
    let refused = PushError {
        content: 2,
        reason: Refused::Dead,
    };
    assert_eq!(queue.replace(dead, 2), Err(refused));
    let next = queue.push(2, 2, once()).unwrap();
    // The next job of the name is under way: the old one may not run at the same time.
    assert_eq!(queue.requeue(dead), Err(Refused::Duplicate(next)));
    assert_eq!(queue.dead(), [dead]);
    queue.try_claim(1).remove(0).complete().unwrap();
    queue.requeue(dead).unwrap();
    let again = queue.push(3, 3, once()).unwrap_err();
    assert_eq!(again.reason, PushReason::Duplicate(dead));
    // A dead job that leaves takes no other job's name with it.
    queue.try_claim(1).remove(0).fail_for_good().unwrap();
    let last = queue.push(4, 4, once()).unwrap();
    queue.remove(dead).unwrap();
    let again = queue.push(5, 5, once()).unwrap_err();
    assert_eq!(again.reason, PushReason::Duplicate(last));
}

#[test]
fn one_that_replaces_is_new_in_all() {
    let queue = Queue::new();
    let at = Duration::from_secs;
    let later = || once().due(at(9));
    let (old, none) = queue.push_replacing(1, 1, later().group("a")).unwrap();
    assert_eq!(none, None);
    let (new, taken) = queue.push_replacing(2, 2, once().group("b")).unwrap();
    let taken = taken.unwrap();
    assert_eq!((taken.key, taken.job, taken.attempts), (1, 1, 0));
    assert_eq!((queue.get(old), queue.advance(at(9))), (None, None));
    let mut claims = queue.try_claim(9);
    assert_eq!((claims.len(), *claims[0], claims[0].id()), (1, 2, new));
    assert_eq!(claims[0].group(), Ok(Some("b".into())));
    // A claimed job is not replaced; when it has been given back, it is.
    let refused = queue.push_replacing(3, 3, once()).unwrap_err();
    assert_eq!(
        (refused.content, refused.reason),
        ((3, 3), PushReason::Duplicate(new))
    );
    claims.remove(0).give_back().unwrap();
    let (_, taken) = queue.push_replacing(4, 4, once()).unwrap();
    assert_eq!(taken.map(|taken| taken.attempts), Some(1));
    // A dead job stays.
    queue.try_claim(1).remove(0).fail_for_good().unwrap();
    let (last, none) = queue.push_replacing(5, 5, once()).unwrap();
    assert_eq!((none, queue.dead().len()), (None, 1));
    let refused = queue.push(6, 6, once()).unwrap_err();
    assert_eq!(refused.reason, PushReason::Duplicate(last));
    queue.close();
    let refused = queue.push_replacing(7, 7, once()).unwrap_err();
    assert_eq!(refused.reason, PushReason::Closed);
}

#[test]
fn no_attempt_at_all_is_refused() {
    let queue = Queue::new();
    let refused = queue.push(1, 1, Place::new().attempts(0)).unwrap_err();
    let PushReason::OutOfRange(why) = refused.reason else {
        panic!("{refused:?}")
    };
    assert_eq!((why.what, why.asked, why.least), ("attempts", 0, 1));
    assert!(JobQueue::<u32, u32>::builder().attempts(0).build().is_err());
    assert_eq!(queue.counts().ready, 0);
}
