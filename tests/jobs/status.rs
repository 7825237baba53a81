//! What a queue tells about its jobs, and operations on many claims at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use conversant::error::Closed;
use conversant::job_queue::{JobId, JobQueue, JobState, JobStatus, Name, Place, Scope};

/// A job that can be neither cloned nor shown.
struct Job(u32);

type Queue = JobQueue<u32, Job>;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn named(status: &JobStatus) -> (Name, Option<Name>, Option<Name>) {
    let JobStatus {
        tenant,
        group,
        unique,
        ..
    } = status.clone();
    (tenant, group, unique)
}

#[test]
fn a_status_tells_all_of_a_job_but_itself() {
    let queue = Queue::new();
    let place = Place::new().tenant("shop").group("mail").unique("one");
    let id = queue.push(7, Job(1), place.due(at(5))).unwrap();
    let plain = queue.push(8, Job(2), Place::new()).unwrap();
    let state = |id| queue.status(id).map(|job| (job.attempts, job.state));
    let names = ("shop".into(), Some("mail".into()), Some("one".into()));
    assert_eq!(named(&queue.status(id).unwrap()), names);
    let names = (Name::default(), None, None);
    assert_eq!(named(&queue.status(plain).unwrap()), names);
    assert_eq!(state(id), Some((0, JobState::Due(at(5)))));
    queue.advance(at(5));
    assert_eq!(state(id), Some((0, JobState::Ready)));
    let mut claims = queue.try_claim(9);
    assert_eq!(state(plain), Some((0, JobState::Claimed(None))));
    let mut mine = claims.remove(usize::from(claims[1].id() == id));
    assert_eq!((mine.0, queue.key(id)), (1, Some(7)));
    drop(claims);
    assert_eq!(state(plain), Some((1, JobState::Ready)));
    mine.fail_for_good().unwrap();
    assert_eq!(state(id), Some((1, JobState::Dead)));
    mine = queue.try_claim(1).remove(0);
    assert_eq!((mine.id(), queue.key(plain)), (plain, Some(8)));
    mine.complete().unwrap();
    assert_eq!((state(plain), queue.key(plain)), (None, None));
    assert_eq!(Queue::new().status(id), None, "of another queue");
}

#[test]
fn totals_of_what_was() {
    let queue = JobQueue::builder().lease(at(30)).build().unwrap();
    let ids = [(); 6].map(|()| queue.push(1, "a job", Place::new()).unwrap());
    let unique = || Place::new().unique("one").due(at(90));
    queue.push(2, "old", unique()).unwrap();
    let (_, old) = queue.push_replacing(2, "new", unique()).unwrap();
    assert_eq!(old.unwrap().job, "old");
    let mut claims = queue.try_claim(4);
    claims.remove(0).complete().unwrap();
    claims.remove(0).fail_for_good().unwrap();
    claims.remove(0).snooze(at(1)).unwrap();
    queue.advance(at(30));
    assert!(
        claims.remove(0).complete().is_err(),
        "its lease has run out"
    );
    queue.remove(ids[5]).unwrap();
    let twins = [(); 2].map(|()| (3, "a twin", Place::new().unique("twin")));
    assert!(queue.push_all(twins).is_err(), "as if none had come");
    let counts = queue.counts();
    let totals = (counts.pushed, counts.completed, counts.removed);
    assert_eq!((totals, counts.returned), ((8, 1, 2), 3));
    assert_eq!(queue.drain(&Scope::Queue).len(), 4);
    assert_eq!(queue.counts().removed, 6);
    assert_eq!(queue.counts().pushed, 8);
}

#[test]
fn what_a_status_says_chooses_what_is_removed() {
    let queue = Queue::new();
    for n in 0..6 {
        let place = Place::new().tenant("shop").group(u64::from(n % 2));
        queue.push(n, Job(n), place.due(at(u64::from(n)))).unwrap();
    }
    queue.push(9, Job(9), Place::new()).unwrap();
    queue.advance(at(3));
    let of_shop = queue.statuses(&Scope::tenant("shop"));
    assert_eq!(of_shop.len(), 6);
    let keys: Vec<_> = of_shop
        .iter()
        .map(|&(id, _)| queue.key(id).unwrap())
        .collect();
    assert_eq!(keys, [0, 1, 2, 3, 4, 5]);
    let late = |(_, job): &(JobId, JobStatus)| job.state == JobState::Due(at(5));
    let late = of_shop.into_iter().filter(late).map(|(id, _)| id);
    let removed = queue.remove_all(late);
    assert!(removed.iter().map(|taken| taken.job.0).eq([5]));
    let odd = queue.statuses(&Scope::group_of("shop", 1));
    assert_eq!(odd.len(), 2);
}

#[test]
fn a_delivery_without_complete_is_reported() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = told.clone();
    let queue = JobQueue::builder()
        .on_dropped(move |id| hears.lock().unwrap().push(id))
        .build()
        .unwrap();
    let ids = queue
        .push_all([1, 2, 3].map(|n| (n, n, Place::new())))
        .unwrap();
    let mut claims = queue.try_claim(9);
    claims.remove(0).give_back().unwrap();
    let dropped = claims.remove(0);
    let panics = std::panic::AssertUnwindSafe(move || {
        let _dropped = dropped;
        std::panic::resume_unwind(Box::new("a handler"));
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(told.lock().unwrap().is_empty());
    drop(claims);
    assert_eq!(*told.lock().unwrap(), [ids[2]]);
    assert_eq!(queue.counts().dropped, 1);
}

#[test]
fn a_claim_of_none_gives_none_at_once() {
    let queue: JobQueue<u32, u32> = JobQueue::new();
    let shop = queue.tenant("shop");
    queue.push(1, 1, Place::new().tenant("shop")).unwrap();
    assert_eq!(queue.claim(0).wait().unwrap().len(), 0);
    assert_eq!(shop.claim(0).wait().unwrap().len(), 0);
    assert_eq!(
        (queue.counts().ready, queue.counts().claims.waiting),
        (1, 0)
    );
    assert_eq!(queue.shutdown().len(), 1);
    assert_eq!(queue.claim(1).wait().err(), Some(Closed));
}

#[test]
fn a_part_has_a_weight_and_leases() {
    let queue: JobQueue<u32, u32> = JobQueue::new();
    let (shop, office) = (queue.tenant("shop"), queue.tenant("office"));
    assert!(queue.set_weight("shop", 0).is_err());
    queue.set_weight("shop", 2).unwrap();
    for n in 0..4 {
        queue.push(n, n, Place::new().tenant("shop")).unwrap();
        queue
            .push(n, 10 + n, Place::new().tenant("office"))
            .unwrap();
    }
    let claims = queue.try_claim(6);
    assert!(claims.iter().map(|claim| **claim).eq([0, 1, 10, 2, 3, 11]));
    let left = crate::until(office.try_claim(9), at(1));
    assert_eq!(left.len(), 2);
    queue.advance(at(1));
    assert!(left.iter().all(|claim| !claim.holds()));
    drop((shop, left));
    for claim in claims {
        claim.complete().unwrap();
    }
    assert_eq!(queue.snapshot().tenants.len(), 2, "a weight is remembered");
    queue.set_weight("shop", 1).unwrap();
    assert_eq!(queue.snapshot().tenants.len(), 1);
}
