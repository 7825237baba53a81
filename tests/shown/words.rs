//! Values that a user may print are shown in plain words.

use std::error::Error;
use std::time::Duration;

use conversant::dialog::{Dialogs, Received};
use conversant::job_queue::{self, JobQueue, JobState, Place, Scope};
use conversant::limit::Limit;
use conversant::queue::Queue;
use conversant::scheduler::{self, CallerOptions, How, OnFailure, Scheduler, Summary};
use conversant::simulator::{Simulation, Work};

#[test]
fn ids() {
    let queue = Queue::<()>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let [one, two] = [(); 2].map(|()| lane.conversation().unwrap().group_id());
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
fn a_poisoned_group() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let one = queue.lane(1, Limit::Unlimited).unwrap();
    let one = one.conversation().unwrap();
    one.send_all([1, 2]).unwrap();
    drop(queue.try_receive().unwrap().next());
    let poisoned = queue.poisoned().remove(0);
    let said = format!("group {}: message 1 failed 1 times, 2 wait", one.group_id());
    assert_eq!(poisoned.to_string(), said);
}

#[test]
fn how_far_a_dialog_has_come() {
    let queue = Queue::<Received<()>>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let (near, far) = Dialogs::new().pair(&lane, &lane).unwrap();
    let said = || [&near, &far].map(|side| side.refusal().map(|why| why.to_string()));
    assert_eq!(said(), [None, None]);
    near.end().unwrap();
    let [of_near, of_far] = ["this side of the dialog has ended", "the peer has ended"];
    assert_eq!(said(), [of_near, of_far].map(|why| Some(why.into())));
    assert_eq!(near.id().to_string(), format!("{}.0", near.id().dialog()));
}

#[test]
fn ids_of_a_scheduler_and_of_a_simulation() {
    let scheduler = Scheduler::builder().build().unwrap();
    let main = scheduler.caller("main", CallerOptions::default()).unwrap();
    assert_eq!(format!("{main:?}"), "Caller { name: \"main\", .. }");
    let group = main.group(Limit::SERIAL, 100).unwrap();
    let id = group.id();
    assert_eq!(format!("{id:?}"), format!("GroupId({id})"));
    assert_eq!(format!("{group:?}"), format!("Group(GroupId({id}))"));
    let mut sim = Simulation::new(1).unwrap();
    let callers = [(); 2].map(|()| sim.caller("main", CallerOptions::default()).unwrap());
    assert_ne!(callers[0].to_string(), callers[1].to_string());
    let caller = callers[0];
    assert_eq!(format!("{caller:?}"), format!("CallerId({caller})"));
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    assert_eq!(format!("{group:?}"), format!("GroupId({group})"));
    let task = sim.submit(caller, Work::takes(Duration::ZERO).group(group));
    let task = task.unwrap();
    assert_eq!(format!("{task:?}"), "SimTask { id: TaskId(1), .. }");
    sim.run();
    let recorded = sim.records()[0].task.group.unwrap();
    assert_eq!(recorded.to_string(), group.to_string());
}

/// Two schedulers' first groups are not one, and two simulations' first callers; nor do they print
/// alike.
#[test]
fn ids_of_two_schedulers() {
    let schedulers = [(); 2].map(|()| Scheduler::builder().build().unwrap());
    let groups = schedulers.map(|scheduler| {
        let main = scheduler.caller("main", CallerOptions::default()).unwrap();
        main.group(Limit::SERIAL, 100).unwrap().id()
    });
    assert_ne!(groups[0], groups[1]);
    assert_ne!(groups[0].to_string(), groups[1].to_string());
    let callers = [(); 2].map(|()| {
        let mut sim = Simulation::new(1).unwrap();
        sim.caller("main", CallerOptions::default()).unwrap()
    });
    assert_ne!(callers[0], callers[1]);
    assert_ne!(callers[0].to_string(), callers[1].to_string());
    assert_eq!(format!("{:<40}|", groups[0]).len(), 41);
    assert_eq!(format!("{:<40}|", callers[0]).len(), 41);
}

#[test]
fn what_is_asked_for() {
    assert_eq!(
        [How::Drain, How::Cancel].map(|how| how.to_string()),
        ["drain", "cancel"]
    );
    let said = [OnFailure::Continue, OnFailure::SkipHigherTiers].map(|what| what.to_string());
    assert_eq!(said, ["continue", "skip higher tiers"]);
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
    use conversant::wait::WaiterState;
    let until = Some(Duration::from_secs(1));
    let said = [
        JobState::Ready.to_string(),
        JobState::Claimed(until).to_string(),
        WaiterState::Notified.to_string(),
        Cause::WaitsAhead.to_string(),
    ];
    assert_eq!(
        said.join(", "),
        "ready, claimed until 1s, notified, asks first for"
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

#[test]
fn refusal_reasons_are_errors_with_and_without_the_message() {
    let jobs = JobQueue::builder().capacity(0).build().unwrap();
    let refused = jobs.push(1, (), Place::new()).unwrap_err();
    let reason: Box<dyn Error> = refused.reason.into();
    assert_eq!(reason.to_string(), "full");
    let refused: Box<dyn Error> = refused.into();
    assert_eq!(refused.to_string(), "not taken: full");
}
