//! Unique names: who has one, from when until when, and what becomes of who asks for it.

use conversant::job_queue::{
    JobQueue, Place, PushReason, Refused, ReplaceError, RequeueError, Terms,
};

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
    assert_eq!(
        (refused.key, refused.job, refused.reason),
        (1, 7, duplicate)
    );
    // Of another tenant it is another name.
    let other = queue.push(1, 8, Place::new().unique("report")).unwrap();
    let claims = shop.try_claim(1);
    let by_handle = shop.push(1, 9, Terms::new().unique("report"));
    assert_eq!(by_handle.unwrap_err().reason, duplicate);
    drop(claims);
    assert_eq!(queue.push(1, 7, once()).unwrap_err().reason, duplicate);
    assert_eq!(queue.remove_all([id, other, id]).len(), 2);
    queue.push(1, 7, once()).unwrap();
}

#[test]
fn of_a_batch_all_names_are_free_or_none_is_pushed() {
    let queue = Queue::new();
    let id = queue.push(1, 7, once()).unwrap();
    let batch = [(5, 5, Place::new()), (6, 6, once()), (7, 7, Place::new())];
    let refused = queue.push_all(batch).unwrap_err();
    assert_eq!(refused.jobs, [(5, 5), (6, 6), (7, 7)]);
    assert_eq!(refused.reason, PushReason::Duplicate(id));
    assert_eq!(queue.counts().ready, 1, "all or none");
    let batch = [6, 7].map(|n| (n, n, Place::new().unique("twice")));
    let refused = queue.push_all(batch).unwrap_err();
    assert_eq!(refused.jobs, [(6, 6), (7, 7)]);
    assert_eq!(refused.reason, PushReason::DuplicateInBatch);
    assert_eq!(queue.counts().ready, 1);
}

#[test]
fn a_dead_job_has_its_name_no_more() {
    let queue = Queue::new();
    let dead = queue.push(1, 1, once()).unwrap();
    queue.try_claim(1).remove(0).fail_for_good().unwrap();
    let refused = ReplaceError {
        job: 2,
        reason: Refused::Dead,
    };
    assert_eq!(queue.replace(dead, 2), Err(refused));
    let next = queue.push(2, 2, once()).unwrap();
    // What the name is for is under way: the old one may not run beside it.
    assert_eq!(queue.requeue(dead), Err(RequeueError::Duplicate(next)));
    assert_eq!(queue.dead(), [dead]);
    queue.try_claim(1).remove(0).complete().unwrap();
    queue.requeue(dead).unwrap();
    let again = queue.push(3, 3, once()).unwrap_err();
    assert_eq!(again.reason, PushReason::Duplicate(dead));
    // A dead one that leaves takes nobody's name with it.
    queue.try_claim(1).remove(0).fail_for_good().unwrap();
    let last = queue.push(4, 4, once()).unwrap();
    queue.remove(dead).unwrap();
    let again = queue.push(5, 5, once()).unwrap_err();
    assert_eq!(again.reason, PushReason::Duplicate(last));
}
