//! How a job is tried again: attempts, back-off, snooze. One thread, no clock.

use std::time::Duration;

use conversant::job_queue::{Claim, Expired, JobQueue, Place, Scope, Why};
use conversant::limit::Limit;

type Queue = JobQueue<u32, &'static str>;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn first<J>(queue: &JobQueue<u32, J>) -> Claim<'_, u32, J> {
    queue.try_claim(1).remove(0)
}

#[test]
fn the_back_off_doubles_and_holds_that_job_only() {
    let builder = JobQueue::builder().attempts(Limit::Unlimited);
    let queue: Queue = builder.back_off(at(2), at(7)).build().unwrap();
    let place = Place::new().group("g");
    let id = queue.push(1, "fails", place.clone()).unwrap();
    queue.push(2, "waits", place).unwrap();
    let mut now = at(10);
    for pause in [2, 4, 7, 7] {
        queue.advance(now);
        assert_eq!(first(&queue).fail(), Ok(false));
        assert_eq!(queue.why(id), Some(Why::Due(now + at(pause))));
        let other = first(&queue);
        assert_eq!((*other, other.give_back()), ("waits", Ok(())));
        now += at(pause);
    }
    queue.advance(now);
    let again = first(&queue);
    assert_eq!((*again, again.attempt()), ("fails", 5));
    drop(again);
    assert_eq!(queue.why(id), Some(Why::Due(now + at(7))), "a drop fails");
}

#[test]
fn a_lease_fails_when_it_ends_and_not_when_that_is_told() {
    let builder = JobQueue::builder().lease(at(5));
    let queue: Queue = builder.back_off(at(10), at(10)).build().unwrap();
    let id = queue.push(1, "late", Place::new()).unwrap();
    let late = first(&queue);
    assert_eq!(queue.advance(at(12)), Some(at(15)));
    assert_eq!(queue.why(id), Some(Why::Due(at(15))));
    assert_eq!(late.snooze(at(0)), Err(Expired));
}

#[test]
fn a_job_goes_on_with_the_attempts_it_comes_with() {
    let queue: Queue = JobQueue::builder().attempts(5).build().unwrap();
    let place = || Place::new().group("g");
    let now = queue.push(1, "now", place().tried(3)).unwrap();
    queue.push(2, "later", place().tried(4).due(at(1))).unwrap();
    queue.push(3, "over", Place::new().tried(9)).unwrap();
    assert_eq!(queue.status(now).unwrap().attempts, 3);
    let fail = || {
        let claim = first(&queue);
        (*claim, claim.attempt(), claim.fail())
    };
    assert_eq!(fail(), ("now", 4, Ok(false)));
    assert_eq!(fail(), ("now", 5, Ok(true)));
    assert_eq!(fail(), ("over", 10, Ok(true)), "it is tried once more");
    queue.advance(at(1));
    let late = first(&queue);
    assert_eq!((late.attempt(), late.snooze(at(2))), (5, Ok(())));
    assert_eq!(queue.drain(&Scope::Queue)[0].attempts, 4);
}

#[test]
fn a_snooze_counts_no_attempt() {
    let queue: Queue = JobQueue::builder().attempts(1).build().unwrap();
    let id = queue.push(1, "not yet", Place::new()).unwrap();
    for n in 1..9 {
        let claim = first(&queue);
        assert_eq!((claim.attempt(), claim.snooze(at(n))), (1, Ok(())));
        assert_eq!(queue.why(id), Some(Why::Due(at(n))));
        queue.advance(at(n));
    }
    assert_eq!(queue.remove(id).unwrap().attempts, 0);
    let id = queue.push(1, "tried", Place::new().tried(7)).unwrap();
    assert_eq!(queue.status(id).unwrap().attempts, 7);
    first(&queue).fail().unwrap();
    assert_eq!(queue.status(id).unwrap().attempts, 8);
    queue.requeue(id).unwrap();
    assert_eq!(queue.remove(id).unwrap().attempts, 0);
}

#[test]
fn a_job_has_its_own_attempts_and_can_fail_for_good() {
    let queue: Queue = JobQueue::builder().attempts(3).build().unwrap();
    let own = queue.push(1, "once", Place::new().attempts(1)).unwrap();
    assert_eq!((first(&queue).fail(), queue.dead()), (Ok(true), vec![own]));
    queue.remove(own).unwrap();
    let free = Place::new().attempts(Limit::Unlimited);
    let id = queue.push(1, "for good", free).unwrap();
    for n in 1..9 {
        assert_eq!(first(&queue).fail_at(at(n)), Ok(false));
        assert_eq!(queue.why(id), Some(Why::Due(at(n))));
        queue.advance(at(n));
    }
    first(&queue).fail_for_good().unwrap();
    assert_eq!(queue.dead(), [id]);
    let common = queue.push(1, "common", Place::new()).unwrap();
    let fates = [1, 2, 3].map(|_| first(&queue).fail_at(at(0)));
    assert_eq!(fates, [Ok(false), Ok(false), Ok(true)]);
    assert_eq!(queue.dead(), [id, common]);
}

#[test]
fn a_claim_has_its_names_and_gives_the_job_back() {
    let queue: Queue = JobQueue::builder().lease(at(1)).build().unwrap();
    let place = Place::new().tenant("shop").group(7);
    let id = queue.push(1, "job", place.clone()).unwrap();
    let claim = first(&queue);
    assert_eq!((claim.key(), claim.tenant()), (Ok(1), Ok("shop".into())));
    assert_eq!(claim.group(), Ok(Some(7.into())));
    queue.rekey(id, 3).unwrap();
    assert_eq!(claim.key(), Ok(3));
    let done = claim.complete().unwrap();
    assert_eq!((done.key, done.job), (3, "job"));

    queue.push(1, "late", Place::new()).unwrap();
    let late = first(&queue);
    assert_eq!(late.group(), Ok(None));
    queue.advance(at(1));
    assert_eq!((late.key(), late.tenant()), (Err(Expired), Err(Expired)));
    assert_eq!((late.group(), *late), (Err(Expired), "late"));
}

#[test]
fn a_claim_that_is_dropped_is_counted_apart_from_one_given_back() {
    let builder = JobQueue::builder().attempts(Limit::Unlimited);
    let queue: Queue = builder.build().unwrap();
    queue.push(1, "job", Place::new()).unwrap();
    first(&queue).give_back().unwrap();
    first(&queue).fail().unwrap();
    assert_eq!(queue.counts().dropped, 0);
    drop(first(&queue));
    assert_eq!(queue.counts().dropped, 1);
    let panicked = std::panic::catch_unwind(|| {
        let _claim = first(&queue);
        panic!("the handler panics");
    });
    assert!(panicked.is_err());
    // A claim whose lease has run out gave its job back before.
    let mut claims = crate::until(queue.try_claim(1), at(1));
    queue.advance(at(2));
    claims.clear();
    assert_eq!(queue.counts().dropped, 1);
    first(&queue).complete().unwrap();
    assert_eq!(queue.counts().dropped, 1);
}

/// Without a lease a claim has the job by value. With one, all that show the job share it, and the
/// completing caller gets a clone if the job is still shown.
#[test]
fn a_job_is_cloned_only_if_it_is_shown_elsewhere() {
    #[derive(Debug, PartialEq)]
    struct Counted(u32);

    impl Clone for Counted {
        fn clone(&self) -> Self {
            Self(self.0 + 1)
        }
    }

    let queue = JobQueue::new();
    let push = || queue.push(0, Counted(0), Place::new()).unwrap();
    let id = push();
    let claim = first(&queue);
    assert_eq!((&*claim, queue.get(id)), (&Counted(0), None));
    claim.give_back().unwrap();
    assert_eq!(queue.get(id), Some(Counted(1)));
    let claim = first(&queue);
    assert_eq!(queue.get(id), None, "whoever looked before");
    assert_eq!(claim.complete().unwrap().job, Counted(0));

    let id = push();
    let mut late = crate::until(queue.try_claim(1), Duration::from_secs(1));
    assert_eq!(queue.get(id), Some(Counted(1)), "it is here too");
    queue.advance(Duration::from_secs(2));
    let again = first(&queue);
    assert_eq!((&*late[0], &*again), (&Counted(0), &Counted(0)));
    assert_eq!(again.complete().unwrap().job, Counted(1));
    assert_eq!(*late[0], Counted(0));
    assert_eq!(late.pop().unwrap().complete(), Err(Expired));

    // A lease that comes later.
    push();
    let mut late = first(&queue);
    late.extend(Duration::from_secs(3)).unwrap();
    queue.advance(Duration::from_secs(4));
    assert_eq!(*late, Counted(0));
    let mut again = first(&queue);
    again.extend(Duration::from_secs(9)).unwrap();
    assert_eq!(late.complete(), Err(Expired));
    assert_eq!(again.complete().unwrap().job, Counted(0));
}

#[test]
fn a_lease_that_ended_before_now_ends_at_an_earlier_time_too() {
    let queue = Queue::new();
    queue.push(1, "job", Place::new()).unwrap();
    queue.advance(at(5));
    let mut claim = queue.try_claim_one().unwrap();
    claim.extend(at(4)).unwrap();
    assert!(claim.holds(), "nobody told the time since");
    assert_eq!(queue.advance(at(3)), None);
    assert_eq!((claim.holds(), queue.now()), (false, at(5)));
}
