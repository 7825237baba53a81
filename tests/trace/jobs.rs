//! A job queue sends events for dead jobs: failed by a call, by a lease, or by a panic.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use conversant::job_queue::{Claim, JobQueue, Place};

use super::recorder::Recorder;

fn fail(claims: Vec<Claim<'_, i32, i32>>) {
    for claim in claims {
        claim.fail().unwrap();
    }
}

#[test]
fn a_death_is_told_once_under_no_lock() {
    let recorder = Recorder::default();
    let _guard = recorder.listen();
    let queue = JobQueue::builder().attempts(2).build().unwrap();
    let looks = queue.clone();
    recorder.then(move |_| assert!(looks.counts().dead > 0));
    let ids = queue
        .push_all((0..5).map(|n| (n, n, Place::new())))
        .unwrap();
    let dead =
        |n: usize, attempts: u32| format!("WARN job_queue dead job={} attempts={attempts}", ids[n]);
    let mut claims = queue.try_claim(9);
    claims.pop().unwrap().fail_for_good().unwrap();
    assert_eq!(recorder.events(), [dead(4, 1)]);
    fail(claims);
    assert!(recorder.events().is_empty(), "they wait again");

    let mut claims = queue.try_claim(1);
    claims.pop().unwrap().fail().unwrap();
    assert_eq!(recorder.events(), [dead(0, 2)]);
    let claims = queue.try_claim(1);
    let panics = AssertUnwindSafe(move || {
        let _claims = claims;
        resume_unwind(Box::new("a handler"))
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!(recorder.events(), [dead(1, 2)]);
    let mut late = queue.try_claim(1);
    late[0].extend(Duration::from_secs(1)).unwrap();
    let rest = queue.try_claim(9);
    queue.advance(Duration::from_secs(1));
    assert_eq!(recorder.events(), [dead(2, 2)]);
    fail(rest);
    assert_eq!(recorder.events(), [dead(3, 2)]);
}
