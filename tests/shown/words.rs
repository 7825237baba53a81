//! What a person may print says what a person would say.

use std::time::Duration;

use conversant::job_queue::{self, JobQueue, JobState, Place, Scope};
use conversant::limit::Limit;
use conversant::queue::Queue;
use conversant::scheduler::{self, CallerOptions, Scheduler, Summary};

#[test]
fn ids() {
    let queue = Queue::<()>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let [one, two] = [(); 2].map(|()| lane.conversation().unwrap().group());
    assert_ne!(one.to_string(), two.to_string());
    assert_eq!(format!("{one:?}"), format!("GroupId({one})"));
    let jobs = JobQueue::new();
    let id = jobs.push(1, (), Place::new()).unwrap();
    assert_eq!(format!("{id:?}"), format!("JobId({id})"));
    let (queue, jobs) = (one.to_string(), id.to_string());
    let number = |id: &str| id.split_once('.').unwrap().0.parse::<u64>();
    assert_ne!(number(&queue), number(&jobs), "each of its own queue");
}

#[test]
fn a_summary() {
    let scheduler = Scheduler::builder().build().unwrap();
    let caller = scheduler
        .caller("nightly", CallerOptions::default())
        .unwrap();
    let ok = caller.exec(|| Ok::<_, String>(())).unwrap();
    let failed = caller.exec(|| Err::<(), _>("late")).unwrap();
    let id = failed.id();
    ok.detach();
    failed.detach();
    let summary = caller.synchronize().wait().unwrap();
    let said = format!("2 tasks: 1 ok, 1 failed; the first failure is of task {id}");
    assert_eq!(summary.to_string(), said);
    let none = Summary::default();
    assert_eq!(none.to_string(), "0 tasks: 0 ok");
}

#[test]
fn states() {
    use conversant::lock_table::Cause;
    use conversant::semaphore::WaiterState;
    let until = Some(Duration::from_secs(1));
    let said = [
        JobState::Ready.to_string(),
        JobState::Claimed(until).to_string(),
        WaiterState::Told.to_string(),
        Cause::WaitsAhead.to_string(),
    ];
    assert_eq!(
        said.join(", "),
        "ready, claimed until 1s, told, asks first for"
    );
    let jobs = JobQueue::<u32, ()>::new();
    let shown = format!("{:?}", jobs.tenant("shop"));
    assert_eq!(shown, "Part { scope: Tenant(\"shop\"), .. }");
}

#[test]
fn reasons() {
    let second = Duration::from_secs(1);
    let of_jobs = [
        (job_queue::Why::Due(second), "not due before 1s"),
        (job_queue::Why::Claimed(None), "claimed"),
        (job_queue::Why::Claimed(Some(second)), "claimed until 1s"),
        (job_queue::Why::Behind(3), "behind 3 of its group"),
        (
            job_queue::Why::TenantPaused,
            "its tenant is paused: the limit is 0",
        ),
    ];
    for (why, said) in of_jobs {
        assert_eq!(why.to_string(), said);
    }
    let of_tasks = [
        (scheduler::Why::Tier { open: Some(2) }, "tier 2 is open"),
        (scheduler::Why::Tier { open: None }, "no tier is open"),
        (scheduler::Why::NotDue { due: second }, "not due before 1s"),
        (scheduler::Why::Worker, "a worker is missing"),
    ];
    for (why, said) in of_tasks {
        assert_eq!(why.to_string(), said);
    }
    let scope = Scope::group_of("shop", 7);
    assert_eq!(scope.to_string(), "group 7 of tenant shop");
    assert_eq!(Scope::tenant(3).to_string(), "tenant 3");
}
